"""Golden sets: all of them, and where one stands; what its other pages have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, Request, Response

from karat.errors import UsageError
from karat.reports.phrases.report import span
from karat.store.sql.golden_sets import addressable
from karat.web.framework.auth import AReader
from karat.web.framework.errors import NotFound
from karat.web.framework.lists import NONE, OWN, Ask, Column, Listed, listed
from karat.web.framework.pages import Page, show
from karat.web.framework.state import AppState, TheState
from karat.workflows.golden.queries import column_of
from karat.workflows.golden.status import STATUSES, Status
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
Link = Callable[[Mapping[str, Any]], str | None]
"""Where a row of a list leads."""
_DONE_ON = (
    ("karat golden choose", "queries#choose"),
    ("karat golden import", "exchange"),
    ("karat golden pool", "pairs#pool"),
    ("karat golden disagreements", "disagreements"),
    ("karat golden stale", "judgments?stale=yes"),
    ("karat golden freeze", "editions#freeze"),
)
"""Where what a command does is done by hand."""
_SCHEMA = {
    "name": pl.String(),
    "queries": pl.Int64(),
    "judged": pl.Int64(),
    "grades": pl.Int64(),
    "waiting": pl.Int64(),
    "kappa": pl.Float64(),
    "interval": pl.String(),
    "edition": pl.String(),
    "todo": pl.String(),
    "todo_at": pl.String(),
}


@dataclass(frozen=True, kw_only=True)
class GoldenPage(Page):
    """A page of one golden set.

    Attributes:
        golden: Its name.
    """

    section: ClassVar[str] = "golden"
    tab: ClassVar[str] = ""
    """Which of the golden set's pages it is."""
    golden: str


@dataclass(frozen=True, kw_only=True)
class GoldenSetsPage(Page):
    """All golden sets.

    Attributes:
        sets: One row for each.
        hidden: Names of those that have no pages: their names cannot stand in an address.
    """

    template: ClassVar[str] = "golden_sets.html.j2"
    section: ClassVar[str] = "golden"
    sets: Listed
    hidden: Sequence[str]


@dataclass(frozen=True)
class Part:
    """What some of the queries have in common.

    Attributes:
        value: Of the attribute; None if they have none.
        queries: How many they are.
        share: Of all queries.
        weight: Their share of the weight; None without weights.
        where: The page that lists them.
    """

    value: str | None
    queries: int
    share: float
    weight: float | None
    where: str


@dataclass(frozen=True)
class Step:
    """What to do next.

    Attributes:
        what: In words.
        where: The page on which it is done.
    """

    what: str
    where: str


@dataclass(frozen=True, kw_only=True)
class GoldenSetPage(GoldenPage):
    """Where a golden set stands.

    Attributes:
        status: Its numbers.
        made_of: What its queries are made of, by attribute.
        warnings: What they lack.
        steps: What to do next, the most urgent first.
    """

    template: ClassVar[str] = "golden.html.j2"
    tab: ClassVar[str] = "overview"
    status: Status
    made_of: Sequence[tuple[str, Sequence[Part]]]
    warnings: Sequence[str]
    steps: Sequence[Step]


def opened(site: AppState, name: str) -> Workspace:
    """The workspace with a golden set.

    Raises:
        NotFound: there is none of that name.
    """
    try:
        return site.opened(name)
    except UsageError as error:
        raise NotFound(error.what, nearest=error.nearest, fix=error.fix) from None


def address(name: str, *parts: str, **asked: str) -> str:
    """The address of a page of a golden set, without the base path.

    Args:
        name: Of the golden set.
        parts: What follows, each percent-encoded here.
        asked: Names and values of the query.
    """
    path = "/".join(quote(part, safe="") for part in (name, *parts))
    return f"/golden/{path}" + (f"?{urlencode(asked)}" if asked else "")


def crumbs(name: str, *more: tuple[str, str]) -> list[tuple[str, str]]:
    """What stands above a page of a golden set."""
    return [("Golden sets", "/golden"), (name, address(name)), *more]


def steps(name: str, found: Status) -> list[Step]:
    """What to do next, and the page on which it is done."""
    return [Step(what, place(name, command)) for what, command in found.todo]


def place(name: str, command: str) -> str:
    """The page on which what a command of ``karat`` does is done."""
    if command.startswith("karat judge"):
        rest = "/adjudicate" if "--adjudicate" in command else ""
        return f"/judge/{quote(name, safe='')}{rest}"
    page = next((page for start, page in _DONE_ON if command.startswith(start)), "")
    return f"{address(name)}/{page}" if page else address(name)


@ROUTER.get("/golden")
def all_of_them(request: Request, site: TheState, _asking: AReader) -> Response:
    """List the golden sets, and how far each is."""
    rows = []
    for row in site.golden_sets():
        found = STATUSES.get(site.opened(row.name), now=site.clock())
        head = found.agreement.headline if found.agreement else None
        todo = steps(row.name, found)
        rows.append(
            {
                "name": row.name,
                "queries": found.made_of.queries,
                "judged": found.judged,
                "grades": found.grades,
                "waiting": found.waiting,
                "kappa": head.value if head else None,
                "interval": (head and span(head.ci_low, head.ci_high)) or None,
                "edition": found.edition,
                "todo": todo[0].what if todo else None,
                "todo_at": todo[0].where if todo and addressable(row.name) else None,
            }
        )

    def at(*parts: str, **asked: str) -> Link:
        return lambda row: (
            address(row["name"], *parts, **asked) if addressable(row["name"]) else None
        )

    columns = (
        Column("name", "Golden set", link=at()),
        Column("queries", "Queries", "count", link=at("queries")),
        Column("judged", "Judged", "count", link=at("queries", graded=">=1")),
        Column("grades", "Grades", "count", link=at("pairs")),
        Column("waiting", "Waiting", "count", link=at("pairs", waiting=">=1")),
        Column("kappa", "κ", "number", link=at("agreement")),
        Column("interval", "95 %"),
        Column(
            "edition",
            "Newest edition",
            link=lambda row: row["edition"] and at("editions", row["edition"])(row),
        ),
        Column("todo", "To do", link=lambda row: row["todo_at"]),
    )
    frame = pl.DataFrame(rows, schema=_SCHEMA)
    found_sets = listed(frame, columns, Ask.of(request), search=["name"])
    hidden = [name for name in frame["name"] if not addressable(name)]
    return show(request, GoldenSetsPage(title="Golden sets", sets=found_sets, hidden=hidden))


@ROUTER.get("/golden/{name}")
def overview(request: Request, site: TheState, _asking: AReader, name: str) -> Response:
    """Where a golden set stands, what it is made of, and what to do next."""
    found = STATUSES.get(opened(site, name), now=site.clock())
    page = GoldenSetPage(
        title=name,
        crumbs=[("Golden sets", "/golden")],
        golden=name,
        status=found,
        made_of=_made_of(name, found),
        warnings=found.made_of.warnings,
        steps=steps(name, found),
    )
    return show(request, page)


def _made_of(name: str, found: Status) -> list[tuple[str, list[Part]]]:
    parts: dict[str, list[Part]] = {}
    for row in found.made_of.frame.iter_rows(named=True):
        own = row["attribute"] in ("band", "origin", "no_answer", "words")
        column = row["attribute"] if own else column_of(row["attribute"], OWN)
        value = row["value"]
        if column == "no_answer":
            value = {"true": "yes", "false": "no"}.get(value, value)
        where = address(name, "queries", **{column: NONE if value is None else value})
        parts.setdefault(row["attribute"], []).append(
            Part(value, row["queries"], row["share"], row["weight"], where)
        )
    return list(parts.items())
