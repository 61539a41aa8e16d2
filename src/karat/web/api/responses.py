"""Answers: what a route found, in the very JSON that the command line prints; lists by the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

import polars as pl
from fastapi import Depends, Path, Query, Request, Response

from karat.errors import UsageError, nearest
from karat.reports.golden.golden import to_json
from karat.web.framework.lists import OWN, Ask, Column, Kind, listed

MOST = 1_000
"""Rows of a page, at most."""
OF_LISTS = frozenset({*OWN, "per", "edition", "between"})
"""What an address says of lists: no attribute can be filtered by under these names."""
Number = Annotated[int, Path(ge=0, lt=2**63)]
"""The number of something in the store, as an address has it."""
_AT = "\0at"  # no attribute is called so: no store can hold it
_T = TypeVar("_T")


def said(found: Any, status: int = 200) -> Response:
    """Anything as JSON: objects by their fields, tables row by row."""
    return Response(to_json(found), status, media_type="application/json")


def printed(found: dict[str, Any], status: int = 200) -> Response:
    """An object that has its JSON already, as ``to_dict`` of results gives it."""
    text = json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False)
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


@dataclass(frozen=True)
class Window:
    """The page of a list that is asked for.

    Attributes:
        request: The request.
        page: From 1.
        per: Rows of a page.
    """

    request: Request
    page: int
    per: int

    def of(self, frame: pl.DataFrame) -> Response:
        """A page of a table, filtered and sorted as the address says.

        Raises:
            UsageError: it has no such column, or a value of it cannot be meant so.
        """
        asked = Ask.of(self.request)
        own = OF_LISTS | (asked.others or frozenset())  # what the route itself understands
        where = {name: value for name, value in asked.where.items() if name not in own}
        plain = {name: kind for name, kind in frame.schema.items() if not kind.is_nested()}
        for name in (*where, *([asked.sort.removeprefix("-")] if asked.sort else [])):
            if name not in plain:
                raise UsageError(
                    f"the list has no column {name!r} to be chosen or sorted by",
                    nearest=nearest(name, plain),
                )
        columns = [Column(name, name, _kind(name, kind)) for name, kind in plain.items()]
        search = [name for name, kind in plain.items() if kind == pl.String]
        found = listed(
            frame.with_row_index(_AT),
            [*columns, Column(_AT, "")],
            Ask(asked.search, where, asked.sort),
            search=search,
            per_page=1,
        )
        if found.passed_over:
            name = found.passed_over[0]
            if name not in where:
                raise UsageError("the search has too many words", fix="use fewer")
            raise UsageError(f"{name}={where[name]!r} cannot be understood", fix=f"{name}=>=2")
        places = found.every[_AT]
        shown = frame[places.slice((self.page - 1) * self.per, self.per)]
        return self._page(shown, found.found)

    def part(self, frame: pl.DataFrame, found: int) -> Response:
        """A page whose rows were chosen already, of ``found`` rows in all."""
        return self._page(frame, found)

    def over(self, rows: Sequence[_T], told: Callable[[_T], Any] = lambda row: row) -> Response:
        """A page of a list of anything, in its own order, each row as ``told`` tells it."""
        begin = (self.page - 1) * self.per
        return self._page([told(row) for row in rows[begin : begin + self.per]], len(rows))

    def _page(self, items: Any, found: int) -> Response:
        return said(
            {
                "items": items,
                "found": found,
                "page": self.page,
                "per": self.per,
                "next": self._next(found),
            }
        )

    def _next(self, found: int) -> str | None:
        if self.page * self.per >= found:
            return None
        asked = [(n, v) for n, v in self.request.query_params.multi_items() if n != "page"]
        base: str = self.request.app.state.site.settings.base
        path = self.request.scope["path"].removeprefix(base)
        raw = self.request.scope.get("raw_path")
        if raw is not None:  # ids keep their percent signs
            path = raw.decode("ascii", "replace").partition("?")[0].removeprefix(base)
        return f"{base}{path}?{urlencode([*asked, ('page', self.page + 1)])}"


def _window(
    request: Request,
    page: Annotated[int, Query(ge=1, le=10**9, description="From 1.")] = 1,
    per: Annotated[int, Query(ge=1, le=MOST, description="Rows of a page.")] = 100,
) -> Window:
    return Window(request, page, per)


Paged = Annotated[Window, Depends(_window)]
"""A parameter of a route that answers with a list."""


def _kind(name: str, kind: pl.DataType) -> Kind:
    if kind == pl.Boolean:
        return "flag"
    if kind.is_numeric():
        return "time" if name.endswith("_us") else "number"
    return "text"
