"""Mappings: TOML files that say what the columns and actions of a log mean."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from karat.errors import InputError, nearest
from karat.formats import toml
from karat.formats.events.numbers import Written
from karat.formats.events.times import UNITS
from karat.formats.events.vocabulary import ANYWHERE, COLUMNS
from karat.formats.tables.source import Source
from karat.tables.online.events import KINDS
from karat.tables.zones import is_zone

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
_SECTIONS = ("columns", "attributes", "constants", "kinds", "status", "flags", "numbers", "time",
             "latency", "hits", "position")  # fmt: skip
_STATUSES = ("ok", "error", "timeout")
_CONSTANTS = (*(name for name in OURS if name not in ("hits", "time")), "attributes")


@dataclass(frozen=True)
class Mapped:
    """The content of a mapping.

    Attributes:
        attributes: Attribute to the log's column; None: every further column is an attribute.
        unit: Unit of numeric times; None: guessed from their size.
        form: Format of times, as for ``strptime``.
        latency: Unit of latencies; None: from the column's name.
        empty: What empty hits mean: ``nothing`` (no results) | ``unknown``; None: not stated.
        base: Number of the first position; None: guessed from the smallest.
        statuses: The log's status, in lower case, to karat's.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    zone: str | None = None
    form: str | None = None
    latency: str | None = None
    separator: str | None = None
    empty: Literal["nothing", "unknown"] | None = None
    base: int | None = None
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
    with Source(path) as source:
        data, name = source.whole(), source.name
    try:
        written = toml.table(data)
    except (UnicodeDecodeError, toml.NotToml) as error:
        raise InputError(
            f"not valid TOML: {error}", file=name, fix="save it as UTF-8 TOML"
        ) from None
    return _Written(written, name).mapped()


class _Written:
    def __init__(self, content: Mapping[str, Any], name: str) -> None:
        self.name = name
        for section, value in content.items():
            self._known("", section, _SECTIONS)
            if not isinstance(value, dict):
                raise self._wrong(f"{section} is not a table", f"write [{section}]")
        self.content = content

    def mapped(self) -> Mapped:
        columns = self._texts("columns", OURS)
        kinds = self._texts("kinds", None)
        for action, kind in kinds.items():
            if kind not in KINDS:
                self._known(f"[kinds] {action}: ", kind, KINDS, "kind")
        constants = self._texts("constants", _CONSTANTS)
        if constants.get("kind", "other") not in KINDS:
            self._known("[constants] kind: ", constants["kind"], KINDS, "kind")
        unit = self._choice("time", "unit", tuple(UNITS), ("unit", "zone", "format"))
        zone = self._text("time", "zone")
        if zone is not None and not is_zone(zone):
            raise self._wrong(f"[time] zone: unknown time zone {zone!r}", 'zone = "Europe/Berlin"')
        attributes = self._texts("attributes", None) if "attributes" in self.content else None
        return Mapped(
            columns=columns,
            attributes=attributes,
            constants=constants,
            kinds=kinds,
            unit=unit,
            zone=zone,
            form=self._format(),
            latency=self._choice("latency", "unit", tuple(UNITS), ("unit",)),
            separator=self._text("hits", "separator", ("separator", "empty")),
            empty=self._empty(),
            base=self._base(),
            statuses=self._statuses(),
            written=self._written(),
            name=self.name,
        )

    def _format(self) -> str | None:
        form = self._text("time", "format")
        if form is None:
            return None
        # Python's %f; in Polars a fraction is %.f after a point, otherwise %3f, %6f or %9f.
        form = re.sub(r"(?<!%)((?:%%)*)\.%f", r"\1%.f", form)
        if re.search(r"(?<!%)(?:%%)*%f", form):
            raise self._wrong(
                "[time] format: %f is supported only after a point",
                "state the number of digits of the fraction: %3f, %6f or %9f",
            )
        return form

    def _statuses(self) -> dict[str, str]:
        statuses = self._texts("status", None)
        for word, status in statuses.items():
            self._known(f"[status] {word}: ", status, _STATUSES, "status")
        return {word.strip().lower(): status for word, status in statuses.items()}

    def _written(self) -> Written:
        for section, keys in (
            ("flags", ("yes", "no")),
            ("numbers", ("decimal", "thousands", "without")),
        ):
            for key in self.content.get(section, {}):
                self._known(f"[{section}] ", key, keys)
        numbers = self.content.get("numbers", {})
        decimal, thousands = numbers.get("decimal"), numbers.get("thousands")
        if decimal not in (None, ".", ","):
            raise self._wrong(f"[numbers] decimal is {decimal!r}, not . or ,", 'decimal = ","')
        if thousands not in (None, ".", ",", "'", " ") or (
            thousands is not None and thousands == (decimal or ".")
        ):
            raise self._wrong(
                f"[numbers] thousands is {thousands!r}: expected a point, comma, space or "
                "apostrophe that is not the decimal sign",
                'thousands = "."',
            )
        if thousands is not None:
            decimal = decimal or "."
        yes, no = ([word.strip().lower() for word in self._words("flags", key)]
                   for key in ("yes", "no"))  # fmt: skip
        both = sorted({*yes} & {*no})
        if both:
            raise self._wrong(f"[flags] {both[0]!r} is both yes and no", "remove one of them")
        without = tuple(word.strip() for word in self._words("numbers", "without"))
        return Written(decimal, thousands, without, tuple(yes), tuple(no))

    def _words(self, section: str, key: str) -> list[str]:
        value = self.content.get(section, {}).get(key, [])
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, list) or not all(isinstance(w, str) and w.strip() for w in words):
            raise self._wrong(
                f"[{section}] {key} is {value!r}, not a list of strings", f'{key} = ["…"]'
            )
        return words

    def _wrong(self, what: str, fix: str) -> InputError:
        return InputError(what, file=self.name, fix=fix)

    def _known(self, where: str, key: str, keys: tuple[str, ...], what: str = "key") -> None:
        if key not in keys:
            near = nearest(key, keys, 1)
            fix = f"did you mean {near[0]}?" if near else f"one of {', '.join(keys)}"
            raise self._wrong(f"{where}unknown {what} {key!r}", fix)

    def _texts(self, section: str, keys: tuple[str, ...] | None) -> dict[str, str]:
        texts: dict[str, str] = {}
        for name, value in self.content.get(section, {}).items():
            key = name
            if keys is not None:
                key = name if name in keys else _MEANT.get(name, name)
                self._known(f"[{section}] ", key, keys)
                if key in texts:
                    raise self._wrong(
                        f"[{section}] {name} is another name for {key}, and both are set",
                        "remove one of them",
                    )
            if isinstance(value, bool):
                value = str(value).lower()  # noqa: PLW2901 - as logs have it
            if not isinstance(value, str | int | float) or value == "":
                raise self._wrong(f"[{section}] {name} is {value!r}, not a string", f'{name} = "…"')
            texts[key] = str(value)
        return texts

    def _text(
        self, section: str, key: str, keys: tuple[str, ...] = ("unit", "zone", "format")
    ) -> str | None:
        for name in self.content.get(section, {}):
            self._known(f"[{section}] ", name, keys)
        value = self.content.get(section, {}).get(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise self._wrong(f"[{section}] {key} is {value!r}, not a string", f'{key} = "…"')
        return value

    def _choice(
        self, section: str, key: str, choices: tuple[str, ...], keys: tuple[str, ...]
    ) -> str | None:
        value = self._text(section, key, keys)
        if value is not None:
            self._known(f"[{section}] {key}: ", value, choices, "unit")
        return value

    def _empty(self) -> Literal["nothing", "unknown"] | None:
        value = self.content.get("hits", {}).get("empty")
        if value is None:
            return None
        if value == "unknown":
            return "unknown"
        if value == 0 and not isinstance(value, bool):
            return "nothing"
        raise self._wrong(
            f"[hits] empty is {value!r}, not 0 or 'unknown'",
            'empty = 0 if empty hits mean no results, else empty = "unknown"',
        )

    def _base(self) -> int | None:
        for name in self.content.get("position", {}):
            self._known("[position] ", name, ("base",))
        value = self.content.get("position", {}).get("base")
        if value is None:
            return None
        if value not in (0, 1):
            raise self._wrong(f"[position] base is {value!r}, not 0 or 1", "base = 1")
        return int(value)
