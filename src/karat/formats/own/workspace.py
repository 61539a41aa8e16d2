"""``karat.toml``, the configuration of a workspace."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote_plus

from karat.errors import UsageError
from karat.formats import toml
from karat.formats.tables.writing import beside
from karat.formats.toml import Tables
from karat.golden.queue import read_lease
from karat.online.rules import MINUTE, duration
from karat.tables.days import is_zone
from karat.tables.online.events import place
from karat.tables.schema import read_scale
from karat.tables.workspace import (
    DEFAULTS,
    GRADES,
    KAPPA_WEIGHTS,
    ORDERS,
    WEBHOOK_FORMS,
    Card,
    Defaults,
    KappaWeights,
    Order,
    WatchConfig,
    WebhookForm,
    WorkspaceConfig,
)

NAME = "karat.toml"
STORE = "KARAT_STORE"  # the environment variable that overrides `store`; it may include a password

_KEYS: Mapping[str, tuple[str, ...] | None] = {
    "workspace": ("store", "runs"),
    "golden": ("name", "scale", "raters", "repeats", "golds", "order", "lease", "grades"),
    "agreement": ("weights", "at_least", "refuse"),
    "card": ("title", "body", "image", "url", "more"),
    "web": ("images", "histories"),
    "online": ("events", "timezone"),
    "watch": ("every", "window", "by", "notify", "format"),
    "defaults": DEFAULTS,
    "engine": None,  # read by formats.own.engines
    "judge": None,  # read by formats.own.judges
}
_DATABASE = "karat.db"
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
# events = "events"  # folder of the event log of karat online import, or s3://BUCKET/FOLDER
# timezone = "Europe/Berlin"  # time zone of days; default: UTC

# [watch]  # how karat serve watches the event log
# every = "1h"  # or "never"
# window = "1d"  # or 7d, 6h, 1h
# by = ["arm"]  # default: every attribute of the log
# notify = {{ env = "SLACK_WEBHOOK" }}  # where new alerts are posted
# format = "slack"  # or "json"

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
    """Read a ``karat.toml``; ``KARAT_STORE`` is looked up in ``os.environ`` if None."""
    variables = os.environ if environment is None else environment
    return _config(toml.read(path).check(_KEYS), path.resolve().parent, variables)


def declares_store(path: Path) -> bool:
    """Whether a ``karat.toml`` is of a workspace; else it only has settings of commands."""
    made = (path.parent / _DATABASE).exists() or bool(os.environ.get(STORE))
    return made or (path.stat().st_size > 0 and "workspace" in toml.read(path).content)


def read_defaults(start: Path) -> Defaults | None:
    """``[defaults]`` of the ``karat.toml`` in a folder or the nearest parent; None without.

    Measures and the scale are checked where they are used.
    """
    try:
        path = find_workspace(start)
    except UsageError:
        return None
    if not path.stat().st_size:  # an empty file has no defaults; only workspaces need more
        return None
    tables = toml.read(path)
    if "defaults" not in tables.content:
        return None
    tables.check(_KEYS)
    scale = tables.value("defaults", "scale")
    if scale is not None and not isinstance(scale, str | list):
        raise tables.invalid("defaults", "scale", "a scale", "scale = [0, 3]")
    lines = {key: toml.line_of(tables.data, "defaults", key) for key in tables.content["defaults"]}
    return Defaults(
        source=tables.name,
        measures=tables.texts("defaults", "measures"),
        by=tables.texts("defaults", "by"),
        scale=scale,
        fully_judged=tables.truth("defaults", "fully_judged"),
        lines={key: line for key, line in lines.items() if line is not None},
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
    config = _config(Tables(text.encode(), str(root / NAME)), root.resolve(), {})
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


def _config(tables: Tables, root: Path, environment: Mapping[str, str]) -> WorkspaceConfig:
    scale = tables.read("golden", "scale", "0-3", read_scale)
    file_store = tables.text("workspace", "store", f"sqlite:///{_DATABASE}")
    store = environment.get(STORE) or file_store
    try:
        _check_url(file_store)
    except UsageError as error:
        raise tables.wrong(f"[workspace] store: {error.what}", error.fix) from None
    _check_url(store)
    notes = []
    if without_password(file_store) != file_store:
        notes.append(
            f"{tables.name} contains the store's password: set the environment variable {STORE} "
            "to the URL, and delete the password from the file"
        )
    zone = tables.text("online", "timezone", "UTC")
    if not is_zone(zone):
        fix = 'timezone = "Europe/Berlin"'
        raise tables.wrong(f"[online] timezone: unknown time zone {zone!r}", fix)
    tables.text("online", "events", "events")  # checks that it is a string
    events = tables.read("online", "events", "events", place)
    return WorkspaceConfig(
        root=root,
        store=_absolute(store, root),
        runs=root / tables.text("workspace", "runs", "runs"),
        golden=tables.text("golden", "name", "golden"),
        scale=scale,
        grades=_read_grades(tables, *scale),
        raters=int(tables.number("golden", "raters", 2, 1, 99, whole=True)),
        repeats=tables.number("golden", "repeats", 0.05, 0, 0.5),
        golds=tables.number("golden", "golds", 0.05, 0, 0.5),
        order=cast(Order, tables.choice("golden", "order", ORDERS) or "query"),
        lease_us=tables.read("golden", "lease", "10 min", read_lease),
        weights=cast(
            KappaWeights, tables.choice("agreement", "weights", KAPPA_WEIGHTS) or "quadratic"
        ),
        at_least=tables.number("agreement", "at_least", 0.7, -1, 1),
        refuse=tables.truth("agreement", "refuse"),
        card=Card(
            title=tables.text("card", "title", "title"),
            body=tables.text("card", "body", "text"),
            image=tables.text_or_none("card", "image", "image_url"),
            url=tables.text("card", "url", "url"),
            more=tables.texts("card", "more"),
        ),
        images=_origins(tables),
        histories=tuple(root / name for name in tables.texts("web", "histories", _HISTORIES)),
        events=events if isinstance(events, str) else root / events,
        timezone=zone,
        watch=_watch(tables),
        notes=tuple(notes),
    )


def _watch(tables: Tables) -> WatchConfig:
    from karat.tables.engines import Secret

    notify = tables.value("watch", "notify")
    if isinstance(notify, dict) and len(notify) == 1 and notify.keys() <= {"env", "file"}:
        notify = Secret(**{key: str(value) for key, value in notify.items()})
    if notify is not None and not isinstance(notify, str | Secret):
        raise tables.invalid("watch", "notify", "a URL", 'notify = { env = "SLACK_WEBHOOK" }')
    return WatchConfig(
        every_us=tables.read("watch", "every", "1h", _every),
        window=tables.read("watch", "window", "1d", _window),
        by=tables.texts("watch", "by"),
        notify=notify,
        form=cast(WebhookForm, tables.choice("watch", "format", WEBHOOK_FORMS) or "json"),
    )


def _every(value: Any) -> int:
    if value == "never":
        return 0
    return max(duration(value), MINUTE)


def _window(value: Any) -> str:
    from karat.online.watch import latest  # which a file without [watch] does not need

    latest(str(value), 0, 0)  # raises for an invalid length
    return str(value)


def _origins(tables: Tables) -> tuple[str, ...]:
    origins = tables.texts("web", "images")
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise tables.wrong(
                f"[web] images contains {origin!r}, which is not an origin",
                'images = ["https://cdn.example.org"]',
            )
    return origins


def _read_grades(tables: Tables, low: float, high: float) -> dict[float, str]:
    written = tables.value("golden", "grades")
    if written is None:
        return dict(GRADES) if (low, high) == (0.0, 3.0) else _grades(low, high)
    fix = f'[golden.grades], then {low:g} = "Useless: …" and so on to {high:g}'
    if not isinstance(written, dict) or not written:
        raise tables.wrong("[golden] grades is not a table", fix)
    grades: dict[float, str] = {}
    for key, sign in written.items():
        if not re.fullmatch(r"\d+(\.\d+)?", key) or not low <= float(key) <= high:
            raise tables.wrong(
                f"[golden.grades] {key!r} is not a grade from {low:g} to {high:g}",
                "restore the scale if you changed it: the scale of a golden set with judgments "
                f"is fixed; otherwise {fix}",
            )
        if not isinstance(sign, str) or not sign.strip():
            raise tables.wrong(f"[golden.grades] {key} is {sign!r}, not a string", fix)
        grades[float(key)] = sign.strip()
    lacking = [end for end in (low, high) if end not in grades]
    if lacking:
        raise tables.wrong(f"[golden.grades] lacks {lacking[0]:g}, an end of the scale", fix)
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
