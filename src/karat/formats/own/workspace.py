"""``karat.toml``, the configuration of a workspace."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import unquote_plus

from karat.errors import InputError, UsageError, nearest
from karat.formats import toml
from karat.formats.tables.source import Source
from karat.formats.tables.writing import beside
from karat.golden.queue import read_lease
from karat.tables.scale import read_scale
from karat.tables.workspace import (
    DEFAULTS,
    GRADES,
    KAPPA_WEIGHTS,
    ORDERS,
    Card,
    Defaults,
    KappaWeights,
    Order,
    WorkspaceConfig,
)
from karat.tables.zones import is_zone

_Value = TypeVar("_Value")

NAME = "karat.toml"
STORE = "KARAT_STORE"
"""The environment variable that overrides ``store``; it may include a password."""

_KEYS: Mapping[str, tuple[str, ...]] = {
    "workspace": ("store", "runs"),
    "golden": ("name", "scale", "raters", "repeats", "golds", "order", "lease", "grades"),
    "agreement": ("weights", "at_least", "refuse"),
    "card": ("title", "body", "image", "url", "more"),
    "web": ("images", "histories"),
    "online": ("events", "timezone"),
    "defaults": DEFAULTS,
    "engine": (),  # read by formats.own.engines
}
_HISTORIES = ("history.jsonl",)
_ORIGIN = re.compile(r"https?://[\w.-]+(:\d{1,5})?")
_SECRETS = ("password", "sslpassword")
_TEMPLATE = """\
# A karat workspace: golden set, judgments and runs.

[workspace]
store = {store}  # or postgresql://…; the variable {variable} overrides it
runs = "runs"  # folder of stored runs, as Parquet: NAME-HASH.parquet

[golden]
name = {name}
scale = "{low:g}-{high:g}"
raters = {raters}  # raters per pair; they do not see each other's grades
repeats = 0.05  # share of pairs shown to the same rater twice
golds = 0.05  # share of gold items (pairs with a known grade) shown to raters
order = "query"  # all documents of a query in a row; or "mixed"
lease = "10 min"  # how long a pair is reserved for a rater

[golden.grades]  # short labels; the full text is guideline.md
{grades}
[agreement]
weights = "quadratic"  # none | linear | quadratic
at_least = 0.7  # required lower bound of kappa when an edition is frozen
refuse = false  # true: do not freeze below it; false: only warn

[card]  # attributes of a document that raters see in the browser
title = "title"
body = "text"
url = "url"
# image = "image_url"  # requires [web] images
# more = ["brand", "price"]

[web]
histories = ["history.jsonl"]  # files written by --history, for the trend pages
# images = ["https://cdn.example.org"]  # hosts that images may be loaded from

# [online]
# events = "events"  # folder of the event log of karat online import
# timezone = "Europe/Berlin"  # time zone of days; default: UTC

# [defaults]  # for karat evaluate, compare and gate in this folder and below; options override
# measures = ["nDCG@10", "R@100"]
# by = ["category"]
# scale = [0, 3]
# fully_judged = true  # treat unjudged documents as not relevant
"""
_GUIDELINE = """\
# Guideline

Judge whether the document satisfies what the user of the query wanted (the information need, if
given), not whether it contains the same words. Judge each document on its own, not relative to
others.

{grades}
Cannot judge: the query is unclear, the document is empty or in a language you do not read, or it
needs an expert.
"""


def find_workspace(start: Path) -> Path:
    """The ``karat.toml`` in a folder or the nearest parent; raises UsageError if there is none."""
    here = start.resolve()
    for folder in (here, *here.parents):
        if (folder / NAME).is_file():
            return folder / NAME
    raise UsageError(f"{start} is not in a workspace: no {NAME} here or above", fix="karat init")


def read_workspace(path: Path, environment: Mapping[str, str] | None = None) -> WorkspaceConfig:
    """Read a ``karat.toml``.

    Args:
        environment: Where ``KARAT_STORE`` is looked up; ``os.environ`` if None.
    """
    written, name, _ = read_toml(path)
    variables = os.environ if environment is None else environment
    return _Written(written, name).workspace(path.resolve().parent, variables)


def read_defaults(start: Path) -> Defaults | None:
    """``[defaults]`` of the ``karat.toml`` in a folder or the nearest parent; None without."""
    try:
        path = find_workspace(start)
    except UsageError:
        return None
    if not path.stat().st_size:  # an empty file has no defaults; only workspaces need more
        return None
    written, name, data = read_toml(path)
    if "defaults" not in written:
        return None
    keys = written["defaults"] if isinstance(written["defaults"], dict) else ()
    lines = {key: toml.line_of(data, "defaults", key) for key in keys}
    return _Written(written, name, lines).defaults()


def read_toml(path: Path) -> tuple[dict[str, Any], str, bytes]:
    """The content of a TOML file, its name in messages, and its bytes."""
    with Source(path) as source:
        data, name = source.whole(), source.name
    try:
        return toml.table(data), name, data
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            "not valid TOML: the line is not UTF-8", file=name, line=line, fix="save it as UTF-8"
        ) from None
    except toml.NotToml as error:
        raise _no_toml(str(error), data, name) from None


def _no_toml(message: str, data: bytes, name: str) -> InputError:
    """The error with its line; it does not quote the line, which may include a password."""
    at = re.search(r"\(at line (\d+), column (\d+)\)", message)
    ended = len(data.rstrip().splitlines())
    line, where = (int(at[1]), f", column {at[2]}") if at else (ended, ", at its end")
    what = re.sub(r" \(at .*\)$", "", message)
    return InputError(
        f"not valid TOML: {what}",
        file=name,
        line=line,
        fix=f"correct line {line}{where}: a key, =, and a value; strings need quotes",
    )


def write_workspace(
    root: Path, *, store: str, name: str, scale: str, raters: int
) -> WorkspaceConfig:
    """Create ``karat.toml`` and, if there is none, a guideline."""
    if (root / NAME).exists():
        raise UsageError(f"{root / NAME} already exists", fix="edit it, or choose another folder")
    _check_url(store)
    if without_password(store) != store:
        raise UsageError(
            f"the URL of the store includes a password, which does not belong in {NAME}",
            fix=f"set the environment variable {STORE} to the URL, and omit --store",
        )
    low, high = read_scale(scale)
    signs = GRADES if (low, high) == (0.0, 3.0) else _grades(low, high)
    lines = "".join(f"{grade:g} = {_quoted(sign)}\n" for grade, sign in signs.items())
    text = _TEMPLATE.format(
        store=_quoted(store),
        variable=STORE,
        name=_quoted(name),
        low=low,
        high=high,
        raters=raters,
        grades=lines,
    )
    config = _Written(tomllib.loads(text), str(root / NAME)).workspace(root.resolve(), {})
    root.mkdir(parents=True, exist_ok=True)
    if not config.guideline.exists():
        items = "".join(f"- **{grade:g}** {sign}\n" for grade, sign in signs.items())
        with beside(config.guideline) as stream:
            stream.write(_GUIDELINE.format(grades=items).encode())
    with beside(root / NAME) as stream:
        stream.write(text.encode())
    return config


def without_password(url: str) -> str:
    """A database URL without the passwords before its host or in its options.

    SQLite URLs are unchanged.
    """
    if url.startswith("sqlite:"):
        return url
    # Up to the last @: a password may contain others.
    bare = re.sub(r"^([\w+]+://[^:/]*):.+@", r"\1@", url)
    head, mark, options = bare.partition("?")
    names = ((option, unquote_plus(option.partition("=")[0])) for option in options.split("&"))
    public = [option for option, name in names if name.strip().casefold() not in _SECRETS]
    return head + (mark if any(public) else "") + "&".join(public) if mark else bare


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _grades(low: float, high: float) -> dict[float, str]:
    last = int(high - low)
    between = {low + step: f"In part: step {step} of {last} towards right" for step in range(last)}
    return between | {low: "Useless", high: "Right"}


class _Written:
    def __init__(
        self, content: Mapping[str, Any], name: str, lines: Mapping[str, int | None] | None = None
    ) -> None:
        self.name, self.lines = name, lines or {}
        for section, keys in content.items():
            self._known("", section, tuple(_KEYS))
            if not isinstance(keys, dict):
                raise self._wrong(f"{section} is not a table", f"write [{section}]")
            for key in () if section == "engine" else keys:
                check = partial(self._known, f"[{section}] ", key, _KEYS[section])
                self._at(key, check) if section == "defaults" else check()
        self.content = content

    def workspace(self, root: Path, environment: Mapping[str, str]) -> WorkspaceConfig:
        low, high = self._scale()
        grades = self._read_grades(low, high)
        weights = self._one_of("agreement", "weights", KAPPA_WEIGHTS, "quadratic")
        order = self._one_of("golden", "order", ORDERS, "query")
        store_url = self._text("workspace", "store", "sqlite:///karat.db")
        notes = []
        if without_password(store_url) != store_url:
            notes.append(
                f"{self.name} contains the store's password: set the environment variable {STORE} "
                "to the URL, and delete the password from the file"
            )
        store = environment.get(STORE) or store_url
        try:
            _check_url(store_url)
        except UsageError as error:
            raise self._wrong(f"[workspace] store: {error.what}", error.fix) from None
        _check_url(store)
        return WorkspaceConfig(
            root=root,
            store=_absolute(store, root),
            runs=root / self._text("workspace", "runs", "runs"),
            golden=self._text("golden", "name", "golden"),
            scale=(low, high),
            grades=grades,
            raters=int(self._number("golden", "raters", 2, 1, 99, whole=True)),
            repeats=self._number("golden", "repeats", 0.05, 0, 0.5),
            golds=self._number("golden", "golds", 0.05, 0, 0.5),
            order=cast(Order, order),
            lease_us=self._lease(),
            weights=cast(KappaWeights, weights),
            at_least=self._number("agreement", "at_least", 0.7, -1, 1),
            refuse=self._truth("agreement", "refuse"),
            card=self._card(),
            images=self._origins(),
            histories=tuple(root / name for name in self._texts("web", "histories", _HISTORIES)),
            events=root / self._text("online", "events", "events"),
            timezone=self._timezone(),
            notes=tuple(notes),
        )

    def defaults(self) -> Defaults:
        """Its ``[defaults]``; measures and the scale are checked where they are used."""
        return Defaults(
            source=self.name,
            measures=self._at("measures", lambda: self._texts("defaults", "measures", ())),
            by=self._at("by", lambda: self._texts("defaults", "by", ())),
            scale=self._at("scale", self._default_scale),
            fully_judged=self._at("fully_judged", lambda: self._truth("defaults", "fully_judged")),
            lines={key: line for key, line in self.lines.items() if line is not None},
        )

    def _default_scale(self) -> str | list[Any] | None:
        scale = self._value("defaults", "scale", None)
        if scale is not None and not isinstance(scale, str | list):
            raise self._wrong(f"[defaults] scale is {scale!r}, not a scale", "scale = [0, 3]")
        return scale

    def _at(self, key: str, read: Callable[[], _Value]) -> _Value:
        """A value of ``[defaults]``; its errors get their line."""
        try:
            return read()
        except InputError as error:
            line = self.lines.get(key)
            raise InputError(error.what, file=self.name, line=line, fix=error.fix) from None

    def _wrong(self, what: str, fix: str | None = None) -> InputError:
        return InputError(what, file=self.name, fix=fix)

    def _known(self, where: str, key: str, keys: tuple[str, ...]) -> None:
        if key not in keys:
            near = nearest(key, keys, 1)
            fix = f"did you mean {near[0]}?" if near else f"one of {', '.join(keys)}"
            raise self._wrong(f"{where}unknown key {key!r}", fix)

    def _value(self, section: str, key: str, default: Any) -> Any:
        return self.content.get(section, {}).get(key, default)

    def _text(self, section: str, key: str, default: str) -> str:
        value = self._value(section, key, default)
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(
                f"[{section}] {key} is {value!r}, not a string", f'{key} = "{default}"'
            )
        return value

    def _texts(self, section: str, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self._value(section, key, list(default))
        if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
            raise self._wrong(
                f"[{section}] {key} is {value!r}, not a list of strings", f'{key} = ["…"]'
            )
        return tuple(value)

    def _card(self) -> Card:
        image = None
        if self._value("card", "image", None) is not None:
            image = self._text("card", "image", "image_url")
        return Card(
            title=self._text("card", "title", "title"),
            body=self._text("card", "body", "text"),
            image=image,
            url=self._text("card", "url", "url"),
            more=self._texts("card", "more", ()),
        )

    def _origins(self) -> tuple[str, ...]:
        origins = self._texts("web", "images", ())
        for origin in origins:
            if not _ORIGIN.fullmatch(origin):
                raise self._wrong(
                    f"[web] images contains {origin!r}, which is not an origin",
                    'images = ["https://cdn.example.org"]',
                )
        return origins

    def _number(
        self,
        section: str,
        key: str,
        default: float,
        low: float,
        high: float,
        *,
        whole: bool = False,
    ) -> float:
        value = self._value(section, key, default)
        good = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not good or not low <= value <= high:
            kind = "a whole number" if whole else "a number"
            what = f"[{section}] {key} is {value!r}, not {kind} from {low:g} to {high:g}"
            raise self._wrong(what, f"{key} = {default:g}")
        return float(value)

    def _truth(self, section: str, key: str) -> bool:
        value = self._value(section, key, False)
        if not isinstance(value, bool):
            raise self._wrong(
                f"[{section}] {key} is {value!r}, not true or false", f"{key} = false"
            )
        return value

    def _one_of(self, section: str, key: str, choices: tuple[str, ...], default: str) -> str:
        value = self._text(section, key, default)
        if value not in choices:
            near = nearest(value, choices, 1)
            fix = f"did you mean {near[0]}?" if near else f"one of {', '.join(choices)}"
            raise self._wrong(f"[{section}] {key}: unknown value {value!r}", fix)
        return value

    def _lease(self) -> int:
        try:
            return read_lease(self._value("golden", "lease", "10 min"))
        except UsageError as error:
            raise self._wrong(f"[golden] {error.what}", 'lease = "10 min"') from None

    def _timezone(self) -> str:
        name = self._text("online", "timezone", "UTC")
        if not is_zone(name):
            fix = 'timezone = "Europe/Berlin"'
            raise self._wrong(f"[online] timezone: unknown time zone {name!r}", fix)
        return name

    def _scale(self) -> tuple[float, float]:
        try:
            return read_scale(self._value("golden", "scale", "0-3"))
        except UsageError as error:
            raise self._wrong(f"[golden] scale: {error.what}", 'scale = "0-3"') from None

    def _read_grades(self, low: float, high: float) -> dict[float, str]:
        written = self._value("golden", "grades", None)
        if written is None:
            return dict(GRADES) if (low, high) == (0.0, 3.0) else _grades(low, high)
        fix = f'[golden.grades], then {low:g} = "Useless: …" and so on to {high:g}'
        if not isinstance(written, dict) or not written:
            raise self._wrong("[golden] grades is not a table", fix)
        grades: dict[float, str] = {}
        for key, sign in written.items():
            if not re.fullmatch(r"\d+(\.\d+)?", key) or not low <= float(key) <= high:
                raise self._wrong(
                    f"[golden.grades] {key!r} is not a grade from {low:g} to {high:g}",
                    "restore the scale if you changed it: the scale of a golden set with judgments "
                    f"is fixed; otherwise {fix}",
                )
            if not isinstance(sign, str) or not sign.strip():
                raise self._wrong(f"[golden.grades] {key} is {sign!r}, not a string", fix)
            grades[float(key)] = sign.strip()
        lacking = [end for end in (low, high) if end not in grades]
        if lacking:
            raise self._wrong(f"[golden.grades] lacks {lacking[0]:g}, an end of the scale", fix)
        return dict(sorted(grades.items()))


def _check_url(url: str) -> None:
    """Refuse ambiguous URLs, without quoting them: they may include a password."""
    if re.match("sqlite://[^/]", url):
        raise UsageError(
            "the URL of the store has two slashes, which precede a host",
            fix="use three for karat.db in the workspace: sqlite:///karat.db",
        )
    if not url.startswith("sqlite:") and url.count("@") > 1:
        raise UsageError(
            "the URL of the store contains more than one @: its host is ambiguous",
            fix="write @ as %40, except before the host",
        )


def _absolute(url: str, root: Path) -> str:
    """A SQLite URL with its path made absolute; other URLs unchanged.

    ``:memory:`` is left to the store, which refuses it.
    """
    path = url.removeprefix("sqlite:").removeprefix("///")
    if not url.startswith("sqlite:") or path in {"", ":memory:"} or path.startswith("//"):
        return url
    return f"sqlite:///{(root / path).as_posix()}"
