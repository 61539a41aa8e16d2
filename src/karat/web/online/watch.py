"""Watch: a day compared with the same weekdays before it, and the queries behind changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from karat.errors import KaratError
from karat.reports.online.watch import compared_text, verdict_text
from karat.reports.phrases.online import difference, moved_text, usual_text, value, where
from karat.reports.table import Column
from karat.tables.days import day_text
from karat.tables.online.events import EventLog
from karat.tables.online.watch import Change, Watched
from karat.tables.records import record_of
from karat.web.framework.auth import AReader
from karat.web.framework.call import Call
from karat.web.framework.lists import Listed, frame_of, listed
from karat.web.framework.pages import show
from karat.web.framework.state import AppState
from karat.web.online import figures
from karat.web.online.log import Lenient, LogPage, log_page, slice_choices, start_computing
from karat.workflows.online.log_requests import DayRange, Watching, watch_of_day
from karat.workflows.online.slices import NOTHING, Dimension
from karat.workflows.online.watch import last_whole_day
from karat.workflows.workspace.annotations import releases_before

ROUTER = APIRouter()
_VERDICTS = {"usual": "as usual", "cannot_tell": "cannot tell"}


@dataclass(frozen=True, kw_only=True)
class WatchPage(LogPage):
    template: ClassVar[str] = "online_watch.html.j2"
    day: str = ""
    by: str = ""
    slices: Sequence[tuple[str, str, bool]] = field(default=(), repr=False)
    verdict: str = ""  # ``unhealthy`` | ``worse`` | ``cannot_tell`` | ``fine``
    said: str = ""
    compared: str = ""
    doubts: Sequence[str] = ()
    moved: Sequence[Mapping[str, Any]] = ()
    changes: Listed | None = None
    worst: str = ""
    releases: Sequence[str] = ()  # of the week before, if something got worse

    @property
    def unlisted(self) -> str:
        return self.doubts[0] if self.doubts else super().unlisted


@ROUTER.get("/online/watch")
def watched(
    call: AReader,
    day: Annotated[str, Query(max_length=40, description="As 2026-11-20.")] = "",
    by: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Compare a day, by default the last complete one, with the same weekdays before it."""
    text = day.strip()

    def prepare(log: EventLog, lenient: Lenient) -> Any:
        last = last_whole_day(log)
        at = lenient.take(lambda: DayRange(text, text).within(log).last, last) if text else last
        asked, notes = lenient.take(
            lambda: watch_of_day(call.site.workspace, log, at, by),
            watch_of_day(call.site.workspace, log, at, ""),
        )
        fields = {
            "period": (day_text(at),) * 2,
            "day": text if lenient.errors and text else day_text(at),
            "by": by,
            "slices": slice_choices(call, log, by),
        }
        return fields, asked, lambda answer: _shown(call, answer, at, asked, notes)

    return show(call, *log_page(call, WatchPage, "Alerts", prepare))


def _shown(
    call: Call, answer: Mapping[str, Any], day: int, asked: Watching, notes: Sequence[str]
) -> dict[str, Any]:
    result, compared = watched_of(answer), answer.get("compared_in_all", 0)
    by_key = {each.key: each for cut in asked.cuts for each in cut}
    moved = [
        _moved(each, day, by_key) for each in (*result.found("worse"), *result.found("better"))
    ]
    days = {"from": day_text(day), "to": day_text(day)}
    return {
        "verdict": result.verdict,
        "said": verdict_text(result),
        "compared": compared_text(result) if result.searches and result.compared else "",
        "doubts": result.health,
        "moved": moved,
        "changes": _changes(call, result, day, by_key).cut_from("first", compared)
        if result.changes
        else None,
        "notes": [*result.notes, *notes],
        "worst": f"/online/queries?{urlencode(days)}",
        "releases": releases_before(call.site.workspace, day) if result.verdict == "worse" else (),
    }


def _moved(change: Change, day: int, by_key: Mapping[str, Dimension]) -> dict[str, Any]:
    """A metric that got worse or better in a slice, and the queries that contribute most."""
    name, others = change.metric, change.others
    movers = [
        {
            "text": one.text,
            "adds": difference(name, one.adds),
            "now": value(name, one.value),
            "n": one.n,
            "before": value(name, one.before),
            "n_before": one.n_before,
            "where": _rows(change, day, by_key, [("query", one.query)]),
        }
        for one in change.queries
    ]
    return {
        "metric": name,
        "verdict": change.verdict,
        "sentence": moved_text(change),
        "queries": movers,
        "others": difference(name, others) if movers and others else "",
        "where": _rows(change, day, by_key),
    }


def _rows(
    change: Change, day: int, by_key: Mapping[str, Dimension], more: Sequence[tuple[str, str]] = ()
) -> str:
    """Link to the rows that a metric counts in its slice on that day."""
    parts = [
        (by_key.get(key, NOTHING).name or key, slice_value)
        for key, slice_value in change.slice.items()
    ]
    # A metric of 0 counts no rows: then link to all in the denominator.
    return figures.rows_address(
        change.metric, (day, day), [*parts, *more], "yes" if change.value else ""
    )


def _changes(call: Call, result: Watched, day: int, by_key: Mapping[str, Dimension]) -> Listed:
    """Every metric and slice, in the watch's order."""
    records = (
        (
            each,
            {
                "slice": where(each.slice) or None,
                "verdict": _VERDICTS.get(each.verdict, each.verdict),
                "said": None if each.value is None else value(each.metric, each.value),
                "expected_said": None
                if each.expected is None
                else value(each.metric, each.expected),
                "usual": usual_text(each) or None,
                "reason": each.reason or None,
            },
        )
        for each in result.changes
    )

    def link(row: Mapping[str, Any]) -> str:
        return _rows(result.changes[row["at"]], day, by_key)

    columns = [
        Column("metric", "Metric", link=link, choices=True),
        Column("slice", "Slice", choices=True, optional=True),
        Column("verdict", "Verdict", choices=True),
        Column("said", "Value", by="value"),
        Column("expected_said", "Expected", by="expected"),
        Column("usual", "Usual", by="usual_low"),
        Column("n", "n", "count"),
        Column("users", "Users", "count"),
        Column("windows", "Earlier windows", "count", shown=False),
        Column("reason", "Reason", optional=True),
        Column("value", "Raw value", "number", shown=False),
        Column("expected", "Earlier mean", "number", shown=False),
        Column("usual_low", "Usual from", "number", shown=False),
        Column("usual_high", "Usual to", "number", shown=False),
        Column("p", "p", "number", shown=False),
        Column("p_adjusted", "P adjusted", "number", shown=False),
    ]
    frame = frame_of(records, columns).with_row_index("at")
    return listed(frame, columns, call.ask, search=["metric", "slice"], per_page=25)


def glance(site: AppState, log: EventLog, last: int) -> dict[str, Any] | None:
    """In short: the watch of ``last``, or of an earlier day if the log ends within it.

    It is computed if new; its verdict is None until then. None if nothing could be compared, for
    example with too few weeks before that day.
    """
    day = min(last, last_whole_day(log))
    asked, _ = watch_of_day(site.workspace, log, day, "")
    where = f"/online/watch?{urlencode({'day': day_text(day)})}"
    try:
        answer = start_computing(site, log, asked)
    except KaratError:  # the page of the watch shows the error
        return None
    if answer is None:
        return {"day": day_text(day), "verdict": None, "where": where}
    result = watched_of(answer)
    if result.verdict == "cannot_tell" and not result.changes:
        return None
    worse = result.found("worse")
    return {
        "day": result.window,
        "verdict": result.verdict,
        "said": verdict_text(result),
        "doubt": result.health[0] if result.health else "",
        "sentence": moved_text(worse[0]) if worse else "",
        "more": max(0, len(worse) - 1),
        "where": where,
    }


def watched_of(answer: Mapping[str, Any]) -> Watched:
    """The result of a stored answer, which also counts all changes."""
    own = {name: value for name, value in answer.items() if name != "compared_in_all"}
    return record_of(Watched, own)
