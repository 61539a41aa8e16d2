"""Worst queries: where searches are lost, how, and what people searched for instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar
from urllib.parse import parse_qsl, quote, urlencode

import polars as pl
from fastapi import APIRouter, Form, Query, Request, Response

from karat.engines.frames.opening import open_engine
from karat.errors import InputError, UsageError
from karat.golden.traffic import folded
from karat.online.rules import Rules
from karat.reports.online.queries import ordering
from karat.store.sql import queries as stored
from karat.tables.online.events import EventLog
from karat.tables.online.worst_queries import LostGroup, LostQuery, WorstQueries
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.idempotency import lead_saying, show_said
from karat.web.framework.lists import Ask, Column, Listed, listed
from karat.web.framework.state import AppState, TheState
from karat.web.online.dashboard import LogPage, tabs, told
from karat.web.online.figures import NOT_SAID
from karat.web.online.log import (
    ANY_DAYS,
    Days,
    Lacking,
    Lenient,
    Question,
    TheDays,
    Wanted,
    log_of,
    looked,
    the_log,
    trouble,
)
from karat.web.online.slices import LONGEST, NOTHING, Dimension, dimension, dimensions
from karat.workflows.online.worst_queries import to_golden, worst_queries

ROUTER = APIRouter()
MOST_QUERIES = 1_000
"""Queries of the list, the worst; the command has all."""
_NOT_KEPT = {"from", "to", "by", "format"}
_OWN = "own slice"  # as the log has it: what it does not say is called NOT_SAID on the page
_SCHEMA: dict[str, Any] = {
    "text": pl.String,
    "slice": pl.String,
    "lost": pl.Float64,
    "share": pl.Float64,
    "interval": pl.String,
    "searches": pl.Int64,
    "users": pl.Int64,
    "reason": pl.String,
    "zero": pl.Int64,
    "abandoned": pl.Int64,
    "reformulated": pl.Int64,
    "clicked": pl.Float64,
    "satisfied": pl.Float64,
    "instead": pl.String,
    "golden": pl.String,
    "why": pl.String,
    "failed": pl.Int64,
    "terminal": pl.Int64,
    "low": pl.Float64,
    "high": pl.Float64,
    "query": pl.String,
}


@dataclass(frozen=True, kw_only=True)
class WorstPage(LogPage):
    """The queries that lose most.

    Attributes:
        said: What is lost in all, in a sentence.
        ordering: How the queries are ordered and drawn towards the mean, in sentences.
        by: What queries are sliced by, as the address says it; empty for nothing.
        queries: A row for each query, and each of its slices.
        groups: What each slice loses: value, queries, searches, failed, share, its address here.
        hidden: Queries that are not in the list, as they lose nothing or less than all in it.
        added: What became of queries that were chosen for the golden set; None if none were.
        golden: Name of the golden set that they can be added to.
        slices: What can be sliced by: name, label, whether it is this.
        carried: What the form that adds queries sends along.
    """

    template: ClassVar[str] = "online_queries.html.j2"
    said: str = ""
    ordering: Sequence[str] = ()
    by: str = ""
    queries: Listed | None = None
    groups: Sequence[tuple[str, int, int, int, float | None, str]] = ()
    hidden: int = 0
    added: str | None = None
    golden: str = ""
    slices: Sequence[tuple[str, str, bool]] = field(default=(), repr=False)
    carried: Sequence[tuple[str, str]] = field(default=(), repr=False)


@ROUTER.get("/online/queries")
def worst(
    request: Request,
    site: TheState,
    asking: AReader,
    days: TheDays,
    by: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """The queries that lose most searches, the worst first."""
    lenient = Lenient(request)
    return show_said(
        request,
        site,
        asking,
        "/online/queries",
        lambda added: _page(request, lenient, site, days, by, added),
        lambda page: page.log is not None and not page.computed and page.wrong is None,
        lambda: 400 if lenient.errors else 200,
    )


def _page(
    request: Request, lenient: Lenient, site: AppState, days: Wanted, by: str, added: str
) -> WorstPage:
    log = log_of(site)
    common: dict[str, Any] = {"title": "Worst queries", "crumbs": [("Online", "/online")]}
    common |= {"tabs": tabs("queries"), "golden": site.workspace.golden.name}
    if isinstance(log, Lacking):
        return WorstPage(**common, lacking=log)
    over = lenient.take(lambda: days.within(log), ANY_DAYS.within(log))
    sliced = lenient.take(lambda: dimension(site, log, by), NOTHING)
    common |= {
        "log": told(log),
        "period": over.period,
        "by": sliced.name,
        "slices": [(each.name, each.label, each.name == by) for each in dimensions(site, log)],
        "carried": [*over.said.items(), ("by", sliced.name), ("at", request.url.query)],
        "added": added or None,
    }
    if lenient.errors:
        common["period"] = days.typed if any(days.typed) else over.period
        return WorstPage(**common, wrong=lenient.wrong)
    try:
        held = looked(request, log, question_of(over, sliced), lambda: made(log, over, sliced))
    except InputError as error:
        return WorstPage(**common, wrong=trouble(error))
    if held is None:
        return WorstPage(**common)
    found = worst_of(held)
    return WorstPage(
        **common,
        computed=True,
        said=_said(found),
        # How many are hidden is told by options of the command.
        ordering=ordering(replace(found, hidden=0)),
        notes=found.notes,
        queries=_listed(request, site, found, over, sliced),
        groups=[_group(each, found.by or "", over, sliced) for each in found.groups],
        hidden=found.hidden,
    )


@ROUTER.post("/online/queries/golden")
def add_to_golden(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    query: Annotated[list[str] | None, Form(max_length=5_000)] = None,
    first: Annotated[str, Form(alias="from", max_length=40)] = "",
    last: Annotated[str, Form(alias="to", max_length=40)] = "",
    by: Annotated[str, Form(max_length=200)] = "",
    at: Annotated[str, Form(max_length=60_000)] = "",
) -> Response:
    """Add chosen queries to the golden set, with how often each was searched for.

    From there the list is shown again as ``at`` says, the address that it had.
    """
    chosen = set(query or [])
    if not chosen:
        raise UsageError("no query is chosen", fix="tick the boxes before the queries")
    log = the_log(site)
    over, sliced = Wanted(first, last).within(log), dimension(site, log, by)
    own = [*over.said.items(), *([("by", by)] if by else [])]
    where = [*own, *((name, value) for name, value in parse_qsl(at) if name not in _NOT_KEPT)]
    held = looked(request, log, question_of(over, sliced), lambda: made(log, over, sliced))
    if held is None:
        raise UsageError(
            "nothing was added: the list is being computed again",
            fix="look at the list again, and tick them there",
        )
    found = worst_of(held)
    rows = [each for each in found.queries if each.query in chosen]
    if not rows:
        raise UsageError("the queries are not in the list any more", fix="look at the list again")
    before = _in_golden(site)
    to_golden(site.workspace, replace(found, queries=rows), now=site.clock())
    keys = {row.query for row in rows}
    there = len(keys & before.keys())
    said = _added(len(keys) - there, there)
    tail = f"?{urlencode(where)}#queries"
    return lead_saying(request, site, asking, "/online/queries", said, tail)


def question_of(days: Days, by: Dimension) -> Question:
    """All that worst queries depend on besides the log."""
    return {
        "what": "worst",
        "by": [by.name, by.digest],
        "days": [days.first, days.last],
        "rules": Rules().id,
        "most": MOST_QUERIES,
    }


def made(log: EventLog, days: Days, by: Dimension) -> dict[str, Any]:
    """The worst queries, as JSON can hold them."""
    with open_engine() as engine:
        found = worst_queries(
            log,
            engine,
            by=by.key or None,
            limit=MOST_QUERIES,
            first_day=days.first,
            last_day=days.last,
            queries=by.queries,
        )
    return found.to_dict()


def worst_of(held: Mapping[str, Any]) -> WorstQueries:
    """Worst queries, of what ``to_dict`` made."""
    rows = [
        LostQuery(**{**row, "next_queries": [(text, count) for text, count in row["next_queries"]]})
        for row in held["queries"]
    ]
    groups = [LostGroup(**row) for row in held["groups"]]
    period = None if held["period"] is None else (held["period"][0], held["period"][1])
    return WorstQueries(**{**held, "queries": rows, "groups": groups, "period": period})


def _said(found: WorstQueries) -> str:
    if not found.searches:
        return "No search was answered in these days."
    share = f" ({100 * (found.share or 0):.1f} %)"
    return (
        f"{found.failed:,} of {found.searches:,} searches{share} failed: nothing was found, or "
        "nothing that people stayed with."
    )


def _listed(
    request: Request, site: AppState, found: WorstQueries, days: Days, by: Dimension
) -> Listed:
    held = _in_golden(site)
    rows = [
        {
            "text": row.text,
            "slice": row.slice.get(found.by or "", NOT_SAID) if found.by else None,
            "lost": row.lost,
            "share": row.share,
            "interval": None
            if row.low is None or row.high is None
            else f"{100 * row.low:.0f} – {100 * row.high:.0f}",
            "searches": row.searches,
            "users": row.users,
            "reason": row.reason or None,
            "zero": row.zero,
            "abandoned": row.abandoned,
            "reformulated": row.reformulated,
            "clicked": row.clicked,
            "satisfied": row.satisfied,
            "instead": ", ".join(f"{text} ({n:,})" for text, n in row.next_queries[:3]) or None,
            "golden": held.get(row.query),
            "why": row.why or None,
            "failed": row.failed,
            "terminal": row.terminal,
            "low": row.low,
            "high": row.high,
            "query": row.query,
            _OWN: row.slice.get(found.by or "", ""),
        }
        for row in found.queries
    ]
    frame = pl.DataFrame(rows, schema=_SCHEMA | {_OWN: pl.String})

    def rows_link(row: Mapping[str, Any]) -> str:
        slices = [f"query={row['query']}", *([f"{by.name}={row[_OWN]}"] if by.key else [])]
        said = [*days.said.items(), *(("slice", each) for each in slices)]
        return f"/online/rows?{urlencode(said)}"

    def golden_link(row: Mapping[str, Any]) -> str | None:
        if row["golden"] is None:
            return None
        name = quote(site.workspace.golden.name, safe="")
        return f"/golden/{name}/queries/{quote(row['golden'], safe='')}"

    def any_of(name: str) -> bool:
        return frame[name].drop_nulls().len() > 0

    columns = [
        Column("text", "query", link=rows_link, longest=LONGEST),
        Column("slice", by.label or "slice", choices=True, shown=bool(by.key), longest=LONGEST),
        Column("lost", "lost", "count"),
        Column("failed", "failed", "count"),
        Column("searches", "searches", "count"),
        Column("users", "users", "count"),
        Column("share", "failing", "share"),
        Column("interval", "95 %"),
        Column("reason", "mostly", choices=True),
        Column("zero", "no results", "count", shown=any_of("zero")),
        Column("reformulated", "again", "count"),
        Column("abandoned", "abandoned", "count", shown=False),
        Column("clicked", "clicked", "share", shown=any_of("clicked")),
        Column("satisfied", "satisfied", "share", shown=any_of("satisfied")),
        Column("instead", "searched instead", longest=70, shown=any_of("instead")),
        Column("golden", "in the golden set", link=golden_link, shown=any_of("golden")),
        Column("why", "why", shown=False),
        Column("terminal", "not said again", "count", shown=False),
        Column("low", "95 % from", "number", shown=False),
        Column("high", "95 % to", "number", shown=False),
        Column("query", "folded", shown=False),
    ]
    shown = listed(frame, columns, Ask.of(request), search=["text", "instead"], per_page=25)
    return shown.cut_from("worst", frame.height + found.hidden)


def _in_golden(site: AppState) -> dict[str, str]:
    """The queries of the golden set by their folded texts."""
    with site.workspace.store.read() as connection:
        frame = stored.frame(connection, site.workspace.golden.id)
    there = frame.filter(pl.col("text").is_not_null())
    return dict(zip(folded(there["text"].to_list()), there["query_id"].to_list(), strict=True))


def _group(
    group: LostGroup, key: str, days: Days, by: Dimension
) -> tuple[str, int, int, int, float | None, str]:
    value = group.slice.get(key, NOT_SAID)
    said = urlencode([*days.said.items(), ("by", by.name), ("slice", value)])
    where = f"/online/queries?{said}"
    return value, group.queries, group.searches, group.failed, group.share, where


def _added(added: int, there: int) -> str:
    new = "1 query is" if added == 1 else f"{added:,} queries are"
    old = "" if not there else f"; {there:,} {'was' if there == 1 else 'were'} there before"
    return f"{new} new in the golden set{old}."
