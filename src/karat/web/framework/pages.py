"""Pages: a dataclass each, rendered by its template; also as JSON, and lists as CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import secrets
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import resources
from typing import Any, ClassVar
from urllib.parse import quote

import jinja2
import polars as pl
from fastapi import Response
from fastapi.responses import RedirectResponse

from karat.errors import KaratError, UsageError
from karat.reports.html import page as report
from karat.reports.phrases.numbers import milliseconds
from karat.reports.writers.plain import spreadsheet_safe
from karat.tables.golden.golden_sets import addressable
from karat.web.framework.call import Call, Principal
from karat.web.framework.lists import Listed
from karat.web.framework.navigation import STAGES, Place, Stage, place_of
from karat.web.framework.times import ago, exact

_SHARED = {"report.css", "charts.mjs"}
"""Files of the report that pages share."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page shows; each page adds its own fields."""

    template: ClassVar[str]
    title: str  # heading and browser title
    # The pages above it: name and address; those that are tabs need not be shown
    crumbs: Sequence[tuple[str, str]] = ()

    def json_values(self) -> dict[str, Any]:
        """What JSON has."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.repr}

    @property
    def unlisted(self) -> str:
        """The error for CSV of a page without a list."""
        return "this page has no list"


class PlainPage(Page):
    """A page without a class of its own; JSON has all of its values but those ``not_in_json``."""

    _values: dict[str, Any]

    def __init__(
        self,
        template: str,
        title: str,
        crumbs: Sequence[tuple[str, str]] = (),
        not_in_json: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> None:
        super().__init__(title=title, crumbs=crumbs)
        own = {"template": template, "_values": values}
        vars(self).update({**own, **values, **(not_in_json or {})})

    def json_values(self) -> dict[str, Any]:
        return {**super().json_values(), **self._values}


@dataclass(frozen=True)
class Shell:
    """The frame around every page."""

    base: str  # prefix of every address
    principal: Principal | None  # the user; None if not signed in
    accounts: bool  # whether users sign in with accounts
    now: int  # microseconds UTC
    address: str  # path and query of this page, without the base
    place: Place  # where the page is in the navigation
    golden: str  # name of the current golden set: of the page, or of the workspace
    sets: Sequence[str]  # names of all golden sets that have pages; empty for raters

    @property
    def once(self) -> str:
        """A random value for a form that creates something once (``idempotency``)."""
        return secrets.token_urlsafe(16)

    @property
    def engineer(self) -> bool:
        """Whether the user sees more than the judging pages."""
        return self.principal is not None and self.principal.person.role != "rater"

    @property
    def menu(self) -> Sequence[tuple[Stage, str]]:
        return [(each, each.tabs[0].at(self.golden)) for each in STAGES if each.tabs]

    @property
    def tabs(self) -> Sequence[tuple[str, str]]:
        return [(tab.name, tab.at(self.golden)) for tab in self.place.tabs]


def show(call: Call, page: Page, status: int = 200) -> Response:
    """The page as HTML; with ``?format=json`` its fields, with ``?format=csv`` its list."""
    format_ = call.request.query_params.get("format")
    if format_ == "json":
        return Response(to_json(page.json_values()), status, media_type="application/json")
    if format_ == "csv":
        rows = next(
            (value for value in page.json_values().values() if isinstance(value, Listed)), None
        )
        if rows is not None:
            return Response(
                to_csv(rows),
                status,
                media_type="text/csv; charset=utf-8",
                headers={
                    "content-disposition": f'attachment; filename="{_file_name(page.title)}.csv"'
                },
            )
        if status < 400:  # else the HTML page shows the error
            raise UsageError(page.unlisted)
    text = environment().get_template(page.template).render(page=page, shell=_shell(call))
    return Response(text.encode("utf-8", "replace"), status, media_type="text/html; charset=utf-8")


def _shell(call: Call) -> Shell:
    site, principal, request = call.site, call.user, call.request
    path = request.url.path.removeprefix(site.settings.base)
    place = place_of(request.scope["raw_path"].decode().removeprefix(site.settings.base))
    sets: list[str] = []
    if principal is not None and principal.person.role != "rater":
        with suppress(KaratError):  # the store may be what an error page is about
            sets = [row.name for row in site.golden_sets() if addressable(row.name)]
    return Shell(
        base=site.settings.base,
        principal=principal,
        accounts=site.settings.accounts,
        now=site.clock(),
        address=path + (f"?{request.url.query}" if request.url.query else ""),
        place=place,
        golden=place.golden if place.golden in sets else site.workspace.golden.name,
        sets=sets,
    )


def redirect(call: Call, path: str) -> Response:
    """Redirect after a form (303); ``path`` is without the base."""
    return RedirectResponse(f"{call.site.settings.base}{path}", 303)


def to_json(value: Any) -> str:
    """Fields of a page as JSON; of a list its rows; NaN and infinity as null."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(rows: Listed) -> str:
    """All rows of a list, not only those of the page; cells are safe from formula injection."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([spreadsheet_safe(name) for name in rows.every.columns])
    for row in rows.every.iter_rows():
        writer.writerow([spreadsheet_safe(_cell(value)) for value in row])
    return out.getvalue()


@cache
def environment() -> jinja2.Environment:
    templates_ = report.environment(jinja2.PackageLoader("karat.web", "templates"))
    templates_.filters |= {
        "part": lambda text: quote(str(text), safe=""),
        "shell": shlex.quote,
        "ago": ago,
        "moment": exact,
        "ms": milliseconds,
        "capital": _capital,
        "sentence": lambda text: _capital(text) + ("" if text[-1:] in ".!?" else "."),
    }
    templates_.globals["static"] = static_address
    return templates_


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def templates() -> None:
    """Compile all templates ahead: the largest takes a sixth of a second."""
    own = [file.name for file in (resources.files("karat.web") / "templates").iterdir()]
    for name in (*own, "parts.html.j2", "query.html.j2", "trend_chart.html.j2"):
        environment().get_template(name)


@cache
def static_file(name: str) -> tuple[bytes, str]:
    """A static file and its version, the beginning of its SHA-256; FileNotFoundError for others."""
    if not name.endswith((".css", ".mjs", ".svg")) or "/" in name or "\\" in name:
        raise FileNotFoundError(name)
    reports, own = resources.files("karat.reports.html"), resources.files("karat.web") / "static"
    data = ((reports if name in _SHARED else own) / name).read_bytes()
    return data, hashlib.sha256(data).hexdigest()[:12]


def static_address(name: str) -> str:
    """Address of a static file, without the base; it changes with the content."""
    return f"/static/{name}?v={static_file(name)[1]}"


def _plain(value: Any) -> Any:
    if isinstance(value, Listed):
        return _plain(value.every)
    if isinstance(value, pl.DataFrame):
        numbers = pl.col(pl.Float32, pl.Float64)
        finite = value.with_columns(pl.when(numbers.is_finite()).then(numbers))
        flat = not any(dtype.is_nested() or dtype.is_temporal() for dtype in value.dtypes)
        return finite.to_dicts() if flat else _plain(finite.to_dicts())
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value) if f.repr}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return None
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def _file_name(title: str) -> str:
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in title)
    return name[:60].strip("-") or "list"
