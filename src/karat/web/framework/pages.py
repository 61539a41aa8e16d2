"""Pages: a documented dataclass each, put into its template; the same as JSON, a list as CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import resources
from typing import Any, ClassVar
from urllib.parse import quote

import jinja2
import polars as pl
from fastapi import Request, Response

from karat.errors import UsageError
from karat.reports.html import page as report
from karat.reports.writers.plain import spreadsheet_safe
from karat.web.framework.auth import Principal
from karat.web.framework.lists import Listed
from karat.web.framework.state import AppState
from karat.web.framework.times import ago, exact

_SHARED = {"report.css"}
"""Files of the report that pages use too."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page shows; each page adds its own fields, and all of them are documented.

    Attributes:
        title: Its heading, and in the browser's tab.
        crumbs: The pages above it: name and address.
    """

    template: ClassVar[str]
    section: ClassVar[str] = ""
    """Entry of the menu that it belongs to."""
    title: str
    crumbs: Sequence[tuple[str, str]] = ()

    @property
    def unlisted(self) -> str:
        """Why it has no list, if it has none, for a program that asks for CSV."""
        return "there is no list on this page"


@dataclass(frozen=True)
class Shell:
    """What stands around every page.

    Attributes:
        base: Path that every address begins with.
        asking: Who looks; None where nobody is signed in.
        accounts: Whether people sign in with accounts.
        now: Microseconds UTC.
        address: Path and query of this page, without the base.
    """

    base: str
    asking: Principal | None
    accounts: bool
    now: int
    address: str

    @property
    def once(self) -> str:
        """What a form says that is to make something once; drawn anew for each."""
        return secrets.token_urlsafe(16)


def show(request: Request, page: Page, status: int = 200) -> Response:
    """The page as HTML; with ``?format=json`` its fields, with ``?format=csv`` its list.

    Args:
        request: What was asked.
        page: What to show.
        status: Of the answer.

    Raises:
        UsageError: CSV is wanted of a page without a list.
    """
    wanted = request.query_params.get("format")
    if wanted == "json":
        return Response(to_json(page), status, media_type="application/json")
    if wanted == "csv":
        lists = [getattr(page, f.name) for f in fields(page)]
        found = next((each for each in lists if isinstance(each, Listed)), None)
        if found is not None:
            return Response(
                to_csv(found),
                status,
                media_type="text/csv; charset=utf-8",
                headers={"content-disposition": f'attachment; filename="{_file(page.title)}.csv"'},
            )
        if status < 400:  # else the page says what is wrong
            raise UsageError(page.unlisted)
    site: AppState = request.app.state.site
    query = f"?{request.url.query}" if request.url.query else ""
    shell = Shell(
        base=site.settings.base,
        asking=getattr(request.state, "asking", None),
        accounts=site.settings.accounts,
        now=site.clock(),
        address=request.url.path.removeprefix(site.settings.base) + query,
    )
    text = environment().get_template(page.template).render(page=page, shell=shell)
    return Response(text.encode("utf-8", "replace"), status, media_type="text/html; charset=utf-8")


def to_json(value: Any) -> str:
    """Fields of a page, by name; of a list its rows, of a number that is none null."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(found: Listed) -> str:
    """All rows of a list, not of the page alone; no cell is taken for a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([spreadsheet_safe(name) for name in found.every.columns])
    for row in found.every.iter_rows():
        writer.writerow([spreadsheet_safe(_cell(value)) for value in row])
    return out.getvalue()


@cache
def environment() -> jinja2.Environment:
    """The templates, those of the report among them: what both show is one thing."""
    made = report.environment(jinja2.PackageLoader("karat.web", "templates"))
    made.filters |= {"part": lambda text: quote(str(text), safe=""), "ago": ago, "moment": exact}
    made.globals["static"] = static_address
    return made


def templates() -> None:
    """Compile every template of a page: the largest takes a sixth of a second."""
    made = environment()
    own = [place.name for place in (resources.files("karat.web") / "templates").iterdir()]
    for name in (*own, "parts.html.j2", "query.html.j2", "trend_chart.html.j2"):
        made.get_template(name)


@cache
def static_file(name: str) -> tuple[bytes, str]:
    """A file of ours and its version, the beginning of its SHA-256.

    Raises:
        FileNotFoundError: there is none of this name.
    """
    if not name.endswith((".css", ".mjs", ".svg")) or "/" in name or "\\" in name:
        raise FileNotFoundError(name)
    reports, own = resources.files("karat.reports.html"), resources.files("karat.web") / "static"
    data = ((reports if name in _SHARED else own) / name).read_bytes()
    return data, hashlib.sha256(data).hexdigest()[:12]


def static_address(name: str) -> str:
    """Where a file of ours is served, without the base; it changes when the file does."""
    return f"/static/{name}?v={static_file(name)[1]}"


def _plain(value: Any) -> Any:
    if isinstance(value, Listed):
        return _plain(value.every)
    if isinstance(value, pl.DataFrame):
        numbers = pl.col(pl.Float32, pl.Float64)
        held = value.with_columns(pl.when(numbers.is_finite()).then(numbers))
        flat = not any(dtype.is_nested() or dtype.is_temporal() for dtype in value.dtypes)
        return held.to_dicts() if flat else _plain(held.to_dicts())
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value) if f.repr}
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and value - value != 0:
        return None
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def _file(title: str) -> str:
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in title)
    return name[:60].strip("-") or "list"
