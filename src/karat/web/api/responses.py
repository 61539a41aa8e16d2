"""Responses: the same JSON that the command line prints; lists by the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

import polars as pl
import pydantic_core
from fastapi import Depends, Path, Query, Request, Response
from pydantic_core import PydanticSerializationError

from karat.errors import UsageError, check_known
from karat.reports.golden.golden import to_json
from karat.reports.table import Column, Kind
from karat.web.framework.errors import opened
from karat.web.framework.lists import OWN, Ask, listed
from karat.workflows.workspace.workspace import Workspace

MOST = 1_000
"""Maximum rows per page."""
OF_LISTS = frozenset({*OWN, "per", "edition", "between"})
"""Query parameters of lists: no attribute can be filtered under these names."""
Number = Annotated[int, Path(ge=0, lt=2**63)]
"""A path parameter: the id of a row of the store."""
Several = Annotated[list[str] | None, Query()]
"""A query parameter that may be repeated."""
_AT = "\0at"  # no attribute has this name: it cannot be stored
_T = TypeVar("_T")


def json_response(value: Any, status: int = 200, without: Sequence[str] = ()) -> Response:
    """A record as JSON; a dictionary without frames is much faster (decision 0012)."""
    content: bytes | str = ""
    with suppress(PydanticSerializationError):  # a text that is not valid Unicode
        content = (
            pydantic_core.to_json(value, indent=2, inf_nan_mode="null")
            if isinstance(value, dict)
            else ""
        )
    return Response(content or to_json(value, without), status, media_type="application/json")


def _golden(request: Request, golden: str) -> Workspace:
    return opened(request.app.state.site, golden)


TheGolden = Annotated[Workspace, Depends(_golden)]
"""A parameter of a route: the workspace with the golden set of the path; after the user."""


@dataclass(frozen=True)
class Window:
    """The requested page of a list; pages are numbered from 1."""

    request: Request
    page: int
    per: int

    def table(self, frame: pl.DataFrame) -> Response:
        """A page of a table, filtered and sorted by the address."""
        ask = Ask.of(self.request)
        own = OF_LISTS | (ask.others or frozenset())  # parameters of the route itself
        where = {name: value for name, value in ask.where.items() if name not in own}
        plain = {name: kind for name, kind in frame.schema.items() if not kind.is_nested()}
        for name in (*where, *([ask.sort.removeprefix("-")] if ask.sort else [])):
            check_known(
                name, plain, f"the list has no column {name!r} to filter or sort by", None, count=2
            )
        columns = [Column(name, name, _kind(name, kind)) for name, kind in plain.items()]
        search = [name for name, kind in plain.items() if kind == pl.String]
        result = listed(
            frame.with_row_index(_AT),
            [*columns, Column(_AT, "")],
            Ask(ask.search, where, ask.sort),
            search=search,
            per_page=1,
        )
        if result.passed_over:
            name = result.passed_over[0]
            if name not in where:
                raise UsageError("the search has too many words", fix="use fewer")
            raise UsageError(f"invalid filter {name}={where[name]!r}", fix=f"{name}=>=2")
        places = result.every[_AT]
        shown = frame[places.slice((self.page - 1) * self.per, self.per)]
        return self._page(shown, result.found)

    def slice(self, frame: pl.DataFrame, total: int) -> Response:
        """A page whose rows are selected already, of ``total`` rows in all."""
        return self._page(frame, total)

    def items(self, rows: Sequence[_T], item: Callable[[_T], Any] = lambda row: row) -> Response:
        """A page of any list, in its own order, with ``item`` applied to each row."""
        begin = (self.page - 1) * self.per
        return self._page([item(row) for row in rows[begin : begin + self.per]], len(rows))

    def _page(self, items: Any, total: int) -> Response:
        return json_response(
            {
                "items": items.to_dicts() if isinstance(items, pl.DataFrame) else items,
                "found": total,
                "page": self.page,
                "per": self.per,
                "next": self._next(total),
            }
        )

    def _next(self, total: int) -> str | None:
        if self.page * self.per >= total:
            return None
        query = [(n, v) for n, v in self.request.query_params.multi_items() if n != "page"]
        base: str = self.request.app.state.site.settings.base
        path = self.request.scope["path"].removeprefix(base)
        raw = self.request.scope.get("raw_path")
        if raw is not None:  # keep ids percent-encoded
            path = raw.decode("ascii", "replace").partition("?")[0].removeprefix(base)
        return f"{base}{path}?{urlencode([*query, ('page', self.page + 1)])}"


def _window(
    request: Request,
    page: Annotated[int, Query(ge=1, le=10**9, description="From 1.")] = 1,
    per: Annotated[int, Query(ge=1, le=MOST, description="Rows per page.")] = 100,
) -> Window:
    return Window(request, page, per)


Paged = Annotated[Window, Depends(_window)]
"""A parameter of a route that returns a list."""


def _kind(name: str, kind: pl.DataType) -> Kind:
    if kind == pl.Boolean:
        return "flag"
    if kind.is_numeric():
        return "time" if name.endswith("_us") else "number"
    return "text"
