"""Golden sets: their list and overviews; helpers of their other pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Response

from karat.reports.phrases.report import span
from karat.reports.table import Column
from karat.tables.golden.golden_sets import addressable
from karat.web.framework.auth import AReader
from karat.web.framework.errors import opened
from karat.web.framework.lists import NONE, OWN, frame_of, listed
from karat.web.framework.pages import PlainPage, show
from karat.workflows.golden.queries import column_of
from karat.workflows.golden.status import Status
from karat.workflows.golden.status import status as status_of

ROUTER = APIRouter()
Link = Callable[[Mapping[str, Any]], str | None]
"""Link of a row."""
_PAGE_OF = (
    ("karat golden choose", "queries#choose"),
    ("karat golden import", "exchange"),
    ("karat golden pool", "pairs#pool"),
    ("karat golden disagreements", "disagreements"),
    ("karat golden stale", "judgments?stale=yes"),
    ("karat golden freeze", "editions#freeze"),
)
"""Pages that do what a command does."""


def address(name: str, *parts: str, **params: str) -> str:
    """The address of a page of a golden set, without the base path; it encodes ``parts``."""
    path = "/".join(quote(part, safe="") for part in (name, *parts))
    return f"/golden/{path}" + (f"?{urlencode(params)}" if params else "")


def crumbs(name: str, *more: tuple[str, str]) -> list[tuple[str, str]]:
    return [("Golden sets", "/golden"), (name, address(name)), *more]


def golden_page(
    template: str, golden: str, title: str, *more: tuple[str, str], **values: Any
) -> PlainPage:
    """A page of a golden set, with ``more`` breadcrumbs."""
    return PlainPage(template, title, crumbs(golden, *more), golden=golden, **values)


def steps(name: str, status: Status) -> list[dict[str, str]]:
    return [{"what": what, "where": place(name, command)} for what, command in status.todo]


def place(name: str, command: str) -> str:
    """The page that does what a command of ``karat`` does."""
    if command.startswith("karat judge"):
        rest = "/adjudicate" if "--adjudicate" in command else ""
        return f"/judge/{quote(name, safe='')}{rest}"
    page = next((page for start, page in _PAGE_OF if command.startswith(start)), "")
    return f"{address(name)}/{page}" if page else address(name)


@ROUTER.get("/golden")
def all_of_them(call: AReader) -> Response:
    """List the golden sets with their progress."""
    sets = [status_of(call.site.opened(row.name), now=call.now) for row in call.site.golden_sets()]

    def link_to(*parts: str, **params: str) -> Link:
        return lambda row: (
            address(row["name"], *parts, **params) if addressable(row["name"]) else None
        )

    columns = (
        Column("name", "Golden set", link=link_to()),
        Column("queries", "Queries", "count", link=link_to("queries")),
        Column("judged", "Judged", "count", link=link_to("queries", graded=">=1")),
        Column("grades", "Grades", "count", link=link_to("pairs")),
        Column("waiting", "Waiting", "count", link=link_to("pairs", waiting=">=1")),
        Column("kappa", "κ", "number", digits=2, link=link_to("agreement")),
        Column("interval", "95 %"),
        Column(
            "edition",
            "Newest edition",
            link=lambda row: row["edition"] and link_to("editions", row["edition"])(row),
        ),
        Column("todo", "To do", link=lambda row: row["todo_at"]),
    )
    frame = frame_of(((status, _row(status)) for status in sets), columns, text="todo_at")
    golden_sets = listed(frame, columns, call.ask, search=["name"])
    hidden = [name for name in frame["name"] if not addressable(name)]
    return show(
        call, PlainPage("golden_sets.html.j2", "Golden sets", sets=golden_sets, hidden=hidden)
    )


def _row(status: Status) -> dict[str, Any]:
    headline = status.agreement.headline if status.agreement else None
    todo = steps(status.name, status)
    return {
        "queries": status.made_of.queries,
        "kappa": headline.value if headline else None,
        "interval": (headline and span(headline.ci_low, headline.ci_high)) or None,
        "todo": todo[0]["what"] if todo else None,
        "todo_at": todo[0]["where"] if todo and addressable(status.name) else None,
    }


@ROUTER.get("/golden/{name}")
def overview(call: AReader, name: str) -> Response:
    """Show the status, composition and next steps of a golden set."""
    status = status_of(opened(call.site, name), now=call.now)
    page = PlainPage(
        "golden.html.j2",
        name,
        [("Golden sets", "/golden")],
        golden=name,
        status=status,
        made_of=_made_of(name, status),
        warnings=status.made_of.warnings,
        steps=steps(name, status),
    )
    return show(call, page)


def _made_of(name: str, status: Status) -> list[tuple[str, list[dict[str, Any]]]]:
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in status.made_of.frame.iter_rows(named=True):
        is_column = row["attribute"] in ("band", "origin", "no_answer", "words")
        column = row["attribute"] if is_column else column_of(row["attribute"], OWN)
        value = row["value"]
        if column == "no_answer":
            value = {"true": "yes", "false": "no"}.get(value, value)
        where = address(name, "queries", **{column: NONE if value is None else value})
        part = {"value": value, "queries": row["queries"], "share": row["share"], "where": where}
        parts.setdefault(row["attribute"], []).append(part | {"weight": row["weight"]})
    return list(parts.items())
