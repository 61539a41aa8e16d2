"""Worst queries: where searches fail, how, and what people searched for next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import APIRouter, Form, Query, Response

from karat.errors import UsageError
from karat.reports.online.queries import ordering
from karat.reports.table import Column
from karat.tables.online.events import EventLog
from karat.tables.online.worst_queries import LostGroup, WorstQueries
from karat.tables.records import record_of
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.diagnosis_links import diagnosis_address
from karat.web.framework.idempotency import Flash, redirect_with, show_with
from karat.web.framework.lists import Listed, frame_of, listed
from karat.web.online.figures import NOT_SAID, rows_address
from karat.web.online.log import Lenient, LogPage, TheDays, find_or_compute, log_page, slice_choices
from karat.workflows.online import log_requests
from karat.workflows.online.log_requests import DayRange, Days, Worst
from karat.workflows.online.slices import LONGEST, NOTHING, Dimension, dimension
from karat.workflows.online.worst_queries import to_golden
from karat.workflows.workspace.run_stages import with_stages
from karat.workflows.workspace.stored_inputs import ids_by_text

ROUTER = APIRouter()
_NOT_KEPT = {"from", "to", "by", "format"}


@dataclass(frozen=True, kw_only=True)
class WorstPage(LogPage):
    template: ClassVar[str] = "online_queries.html.j2"
    said: str = ""
    ordering: Sequence[str] = ()
    by: str = ""
    queries: Listed | None = None
    # Loss of each slice: value, queries, searches, failed, share, link
    groups: Sequence[tuple[str, int, int, int, float | None, str]] = ()
    hidden: int = 0
    # Outcome of adding queries to the golden set, shown once; None if none were added
    added: str | None = None
    golden: str = ""
    slices: Sequence[tuple[str, str, bool]] = field(default=(), repr=False)
    carried: Sequence[tuple[str, str]] = field(default=(), repr=False)


@ROUTER.get("/online/queries")
def worst(call: AReader, days: TheDays, by: Annotated[str, Query(max_length=200)] = "") -> Response:
    status = 200

    def page(flash: Flash) -> WorstPage:
        nonlocal status
        common = {"golden": call.site.workspace.golden.name, "added": flash.said or None}
        prepare = partial(_prepare, call, days, by)
        made, status = log_page(call, WorstPage, "Worst queries", prepare, **common)
        return made

    return show_with(
        call,
        "/online/queries",
        page,
        lambda page: page.log is not None and not page.computed and page.wrong is None,
        lambda: status,
    )


def _prepare(call: Call, days: DayRange, by: str, log: EventLog, lenient: Lenient) -> Any:
    period = lenient.period(days, log)
    sliced = lenient.take(lambda: dimension(call.site.workspace, log, by), NOTHING)

    def shown(answer: Any) -> dict[str, Any]:
        result = record_of(WorstQueries, answer)
        return {
            "said": _summary(result),
            # The text on hidden queries names options of the command.
            "ordering": ordering(replace(result, hidden=0)),
            "notes": result.notes,
            "queries": _listed(call, result, period, sliced),
            "groups": [_group(each, result.by or "", period, sliced) for each in result.groups],
            "hidden": result.hidden,
        }

    fields = {
        "period": lenient.typed(days, period),
        "by": sliced.name,
        "slices": slice_choices(call.site, log, by),
        "carried": [*period.said.items(), ("by", sliced.name), ("at", call.request.url.query)],
    }
    return fields, Worst(period, sliced), shown


@ROUTER.post("/online/queries/golden")
def add_to_golden(
    call: AnEngineer,
    query: Annotated[list[str] | None, Form(max_length=5_000)] = None,
    first: Annotated[str, Form(alias="from", max_length=40)] = "",
    last: Annotated[str, Form(alias="to", max_length=40)] = "",
    by: Annotated[str, Form(max_length=200)] = "",
    at: Annotated[str, Form(max_length=60_000)] = "",
) -> Response:
    """Add selected queries to the golden set, with their search counts.

    ``at`` is the address of the list, to return to.
    """
    selected = set(query or [])
    if not selected:
        raise UsageError("no query is selected", fix="tick the boxes next to the queries")
    log = log_requests.log_of(call.site.workspace)
    period, sliced = DayRange(first, last).within(log), dimension(call.site.workspace, log, by)
    params = [*period.said.items(), *([("by", by)] if by else [])]
    list_params = [
        *params,
        *((name, value) for name, value in parse_qsl(at) if name not in _NOT_KEPT),
    ]
    answer = find_or_compute(call, log, Worst(period, sliced))
    if answer is None:
        raise UsageError(
            "nothing was added: the list is being recomputed",
            fix="reload the list, and select the queries again",
        )
    result = record_of(WorstQueries, answer)
    rows = [each for each in result.queries if each.query in selected]
    if not rows:
        raise UsageError("the queries are no longer in the list", fix="reload the list")
    before = ids_by_text(call.site.workspace)
    to_golden(call.site.workspace, replace(result, queries=rows), now=call.now)
    keys = {row.query for row in rows}
    present = len(keys & before.keys())
    notice = _added(len(keys) - present, present)
    tail = f"?{urlencode(list_params)}#queries"
    return redirect_with(call, "/online/queries", tail, said=notice)


def _summary(result: WorstQueries) -> str:
    if not result.searches:
        return "There are no answered searches in these days."
    share = f" ({100 * (result.share or 0):.1f} %)"
    return (
        f"{result.failed:,} of {result.searches:,} searches{share} failed: no results, or no "
        "satisfied click."
    )


def _records(
    result: WorstQueries, golden_ids: Mapping[str, str], diagnosed: str | None
) -> Iterable[tuple[Any, dict[str, Any]]]:
    return (
        (
            row,
            {
                "slice": row.slice.get(result.by or "", NOT_SAID) if result.by else None,
                "interval": None
                if row.low is None or row.high is None
                else f"{100 * row.low:.0f} – {100 * row.high:.0f}",
                "reason": row.reason or None,
                "instead": ", ".join(f"{text} ({n:,})" for text, n in row.next_queries[:3]) or None,
                "golden": golden_ids.get(row.query),
                "diagnosis": diagnosed if row.query in golden_ids else None,
                "why": row.why or None,
                "own_slice": row.slice.get(result.by or "", ""),
            },
        )
        for row in result.queries
    )


def _listed(call: Call, result: WorstQueries, days: Days, by: Dimension) -> Listed:
    golden_ids = ids_by_text(call.site.workspace)
    diagnosed = next(with_stages(call.site.workspace), None) if golden_ids else None

    def rows_link(row: Mapping[str, Any]) -> str:
        own = [(by.name, row["own_slice"])] if by.key else []
        return rows_address("", days, [("query", row["query"]), *own])

    def golden_link(row: Mapping[str, Any]) -> str | None:
        if row["golden"] is None:
            return None
        name = quote(call.site.workspace.golden.name, safe="")
        return f"/golden/{name}/queries/{quote(row['golden'], safe='')}"

    def diagnosis_link(row: Mapping[str, Any]) -> str | None:
        if diagnosed is None or row["golden"] is None:
            return None
        return diagnosis_address(diagnosed[0].id, diagnosed[1], row["golden"])

    columns = [
        Column("text", "Query", link=rows_link, longest=LONGEST),
        Column("slice", by.label or "slice", choices=True, shown=bool(by.key), longest=LONGEST),
        Column("lost", "Lost", "count"),
        Column("failed", "Failed", "count"),
        Column("searches", "Searches", "count"),
        Column("users", "Users", "count"),
        Column("share", "Failure rate", "share"),
        Column("interval", "95 %"),
        Column("reason", "Main reason", choices=True),
        Column("zero", "No results", "count", optional=True),
        Column("reformulated", "Reformulated", "count"),
        Column("abandoned", "Abandoned", "count", shown=False),
        Column("clicked", "Clicked", "share", optional=True),
        Column("satisfied", "Satisfied", "share", optional=True),
        Column("instead", "Searched instead", longest=70, optional=True),
        Column("golden", "In the golden set", link=golden_link, optional=True),
        Column("diagnosis", "Diagnosis", link=diagnosis_link, optional=True),
        Column("why", "Why", shown=False),
        Column("terminal", "Not reformulated", "count", shown=False),
        Column("low", "95 % from", "number", shown=False),
        Column("high", "95 % to", "number", shown=False),
        Column("query", "Normalized", shown=False),
    ]
    records = _records(result, golden_ids, diagnosed[0].name if diagnosed else None)
    frame = frame_of(records, columns, text="own_slice", real="lost")
    shown = listed(frame, columns, call.ask, search=["text", "instead"], per_page=25)
    return shown.cut_from("worst", frame.height + result.hidden)


def _group(
    group: LostGroup, key: str, days: Days, by: Dimension
) -> tuple[str, int, int, int, float | None, str]:
    value = group.slice.get(key, NOT_SAID)
    params = urlencode([*days.said.items(), ("by", by.name), ("slice", value)])
    where = f"/online/queries?{params}"
    return value, group.queries, group.searches, group.failed, group.share, where


def _added(added: int, present: int) -> str:
    new = "1 query was" if added == 1 else f"{added:,} queries were"
    old = f"; {present:,} {'was' if present == 1 else 'were'} already in it" if present else ""
    return f"{new} added to the golden set{old}."
