"""Mappings: TOML files that say what the columns and actions of a log mean."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from karat.formats import toml
from karat.formats.events.fields import Written
from karat.formats.events.times import UNITS
from karat.formats.events.vocabulary import ANYWHERE, COLUMNS
from karat.formats.toml import Tables
from karat.tables.days import is_zone
from karat.tables.online.events import KINDS

OURS = (*COLUMNS, *(name for name in ANYWHERE if name not in ("flag", "agent")), "latency", "bot",
        "user_agent")  # fmt: skip
"""Columns that a mapping may name."""
_MEANT = {
    name: ours
    for names in (ANYWHERE, COLUMNS)
    for ours, usual in names.items()
    for name in usual
    if ours in OURS and name not in OURS
}
"""Usual names in logs that a mapping may use instead, such as ``revenue`` for ``value``."""
_KEYS: Mapping[str, Sequence[str] | None] = {
    **dict.fromkeys(("columns", "attributes", "constants", "kinds", "status")),
    "flags": ("yes", "no"),
    "numbers": ("decimal", "thousands", "without"),
    "time": ("unit", "zone", "format"),
    "latency": ("unit",),
    "hits": ("separator", "empty"),
    "position": ("base",),
}
_STATUSES = ("ok", "error", "timeout")
_CONSTANTS = (*(name for name in OURS if name not in ("hits", "time")), "attributes")


@dataclass(frozen=True)
class Mapped:
    """The content of a mapping."""

    columns: Mapping[str, str] = field(default_factory=dict)
    # Attribute to the log's column; None: every further column is an attribute
    attributes: Mapping[str, str] | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None  # unit of numeric times; None: guessed from their size
    zone: str | None = None
    form: str | None = None  # format of times, as for `strptime`
    latency: str | None = None  # unit of latencies; None: from the column's name
    separator: str | None = None
    # What empty hits mean: `nothing` (no results) | `unknown`; None: not stated
    empty: Literal["nothing", "unknown"] | None = None
    base: int | None = None  # number of the first position; None: guessed from the smallest
    # The log's status, in lower case, to karat's
    statuses: Mapping[str, str] = field(default_factory=dict)
    written: Written = field(default_factory=Written)
    name: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of the content, whatever the file's name and layout; "" for an empty mapping."""
        content = asdict(replace(self, name=""))
        if content == asdict(Mapped()):
            return ""
        if self.empty is None:  # digests of mappings older than this key stay the same
            del content["empty"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def named(self) -> Iterator[tuple[str, str]]:
        """The columns of the log that are named: key of the mapping and column."""
        for key, column in self.columns.items():
            yield f"[columns] {key}", column
        for key, column in (self.attributes or {}).items():
            yield f"[attributes] {key}", column


def read_mapping(path: str | Path) -> Mapped:
    tables = toml.read(path).check(_KEYS)
    kinds = _texts(tables, "kinds")
    for action, kind in kinds.items():
        tables.known(f"[kinds] {action}: ", kind, KINDS, "kind")
    statuses = _texts(tables, "status")
    for word, status in statuses.items():
        tables.known(f"[status] {word}: ", status, _STATUSES, "status")
    constants = _texts(tables, "constants", _CONSTANTS)
    tables.known("[constants] kind: ", constants.get("kind", "other"), KINDS, "kind")
    zone = tables.text_or_none("time", "zone")
    if zone is not None and not is_zone(zone):
        raise tables.wrong(f"[time] zone: unknown time zone {zone!r}", 'zone = "Europe/Berlin"')
    base = tables.value("position", "base")
    if base not in (None, 0, 1):
        raise tables.invalid("position", "base", "0 or 1", "base = 1")
    return Mapped(
        columns=_texts(tables, "columns", OURS),
        attributes=_texts(tables, "attributes") if "attributes" in tables.content else None,
        constants=constants,
        kinds=kinds,
        unit=tables.choice("time", "unit", tuple(UNITS), "unit"),
        zone=zone,
        form=_format(tables),
        latency=tables.choice("latency", "unit", tuple(UNITS), "unit"),
        separator=tables.text_or_none("hits", "separator", blank=True),
        empty=_empty(tables),
        base=None if base is None else int(base),
        statuses={word.strip().lower(): status for word, status in statuses.items()},
        written=_written(tables),
        name=tables.name,
    )


def _format(tables: Tables) -> str | None:
    form = tables.text_or_none("time", "format")
    if form is None:
        return None
    # Python's %f; in Polars a fraction is %.f after a point, otherwise %3f, %6f or %9f.
    form = re.sub(r"(?<!%)((?:%%)*)\.%f", r"\1%.f", form)
    if re.search(r"(?<!%)(?:%%)*%f", form):
        raise tables.wrong(
            "[time] format: %f is supported only after a point",
            "state the number of digits of the fraction: %3f, %6f or %9f",
        )
    return form


def _written(tables: Tables) -> Written:
    decimal, thousands = (tables.value("numbers", key) for key in ("decimal", "thousands"))
    if decimal not in (None, ".", ","):
        raise tables.invalid("numbers", "decimal", ". or ,", 'decimal = ","')
    if thousands not in (None, ".", ",", "'", " ") or (
        thousands is not None and thousands == (decimal or ".")
    ):
        expected = "a point, comma, space or apostrophe that is not the decimal sign"
        raise tables.invalid("numbers", "thousands", expected, 'thousands = "."')
    if thousands is not None:
        decimal = decimal or "."
    yes, no = ([word.lower() for word in _words(tables, "flags", key)] for key in ("yes", "no"))
    both = sorted({*yes} & {*no})
    if both:
        raise tables.wrong(f"[flags] {both[0]!r} is both yes and no", "remove one of them")
    without = tuple(_words(tables, "numbers", "without"))
    return Written(decimal, thousands, without, tuple(yes), tuple(no))


def _words(tables: Tables, section: str, key: str) -> list[str]:
    value = tables.value(section, key)
    words = [value] if isinstance(value, str) and value.strip() else tables.texts(section, key)
    return [word.strip() for word in words]


def _texts(tables: Tables, section: str, keys: tuple[str, ...] | None = None) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in tables.content.get(section, {}).items():
        key = name
        if keys is not None:
            key = name if name in keys else _MEANT.get(name, name)
            tables.known(f"[{section}] ", key, keys)
            if key in texts:
                raise tables.wrong(
                    f"[{section}] {name} is another name for {key}, and both are set",
                    "remove one of them",
                )
        if isinstance(value, bool):
            value = str(value).lower()  # noqa: PLW2901 - as logs have it
        if not isinstance(value, str | int | float) or value == "":
            raise tables.invalid(section, name, "a string", f'{name} = "…"')
        texts[key] = str(value)
    return texts


def _empty(tables: Tables) -> Literal["nothing", "unknown"] | None:
    value = tables.value("hits", "empty")
    if value is None:
        return None
    if value == "unknown":
        return "unknown"
    if value == 0 and not isinstance(value, bool):
        return "nothing"
    fix = 'empty = 0 if empty hits mean no results, else empty = "unknown"'
    raise tables.invalid("hits", "empty", "0 or 'unknown'", fix)
