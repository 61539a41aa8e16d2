"""Watch: a window compared with the same windows of earlier weeks, and changes by cause."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from karat.errors import KaratError
from karat.reports.online.watch import compared_text, verdict_text
from karat.reports.phrases.online import cause_text, moved_text, usual_text, value, where
from karat.reports.table import Column
from karat.tables.days import day_number, day_text
from karat.tables.online.events import EventLog
from karat.tables.online.watch import Watched
from karat.tables.records import record_of
from karat.web.framework.auth import AReader
from karat.web.framework.call import Call
from karat.web.framework.lists import Listed, frame_of, listed
from karat.web.framework.pages import show
from karat.web.framework.state import AppState
from karat.web.online.causes import CauseShown, query_rows, rows_of, shown
from karat.web.online.log import Lenient, LogPage, log_page, slice_choices, start_computing
from karat.workflows.online import alerts
from karat.workflows.online.log_requests import DayRange, Watching, watch_of
from karat.workflows.online.watch import last_whole_window, window_end
from karat.workflows.online.watch_windows import window_of
from karat.workflows.workspace.annotations import annotations_of

ROUTER = APIRouter()
LOG = logging.getLogger("karat.web")
WINDOWS = {"1h": "1 hour", "6h": "6 hours", "12h": "12 hours", "1d": "1 day", "7d": "7 days"}
"""Lengths of windows that the page offers."""
_VERDICTS = {"usual": "as usual", "cannot_tell": "cannot tell"}


@dataclass(frozen=True, kw_only=True)
class WatchPage(LogPage):
    template: ClassVar[str] = "online_watch.html.j2"
    day: str = ""
    hour: str = ""  # at which the window ends, as `12`; empty for the end of the day
    window: str = "1d"
    by: str = ""
    slices: Sequence[tuple[str, str, bool]] = field(default=(), repr=False)
    windows: Sequence[tuple[str, str]] = field(default=(), repr=False)
    label: str = ""  # the window, as `2026-11-20 06:00-12:00`
    verdict: str = ""  # ``unhealthy`` | ``worse`` | ``cannot_tell`` | ``fine``
    said: str = ""
    compared: str = ""
    doubts: Sequence[str] = ()
    causes: Sequence[CauseShown] = ()
    better: Sequence[Mapping[str, Any]] = ()
    changes: Listed | None = None
    worst: str = ""

    @property
    def unlisted(self) -> str:
        return self.doubts[0] if self.doubts else super().unlisted


@ROUTER.get("/online/watch")
def watched(
    call: AReader,
    # The window ends with this day (`2026-11-20`) or at this hour (`2026-11-20 12:00`).
    until: Annotated[str, Query(max_length=40, description="As 2026-11-20 12:00.")] = "",
    hour: Annotated[str, Query(max_length=2, description="As 12, if until is a day.")] = "",
    window: Annotated[str, Query(max_length=20, description="As 6h.")] = "1d",
    by: Annotated[str, Query(max_length=200)] = "",
    day: Annotated[str, Query(max_length=40, description="As until.")] = "",
) -> Response:
    """Compare a window, by default the last complete one, with earlier weeks."""
    typed = until.strip() or day.strip()
    if typed and hour.strip() and len(typed) <= len("2026-11-20"):
        typed = f"{typed} {hour.strip():0>2}:00"

    def prepare(log: EventLog, lenient: Lenient) -> Any:
        usual = window_end(last_whole_window("1d", log))

        def request(length: str, end: str, slice_by: str) -> tuple[Watching, list[str]]:
            end = end or window_end(last_whole_window(length, log))
            day_number(end[:10])
            last = day_text(window_of(length, end, log, 0)[0].last_day)
            DayRange(last, last).within(log)
            return watch_of(call.site.workspace, log, length, end, [slice_by] if slice_by else [])

        asked, notes = lenient.take(
            lambda: request(window, typed, by),
            watch_of(call.site.workspace, log, "1d", usual, ()),
        )
        at, _ = window_of(asked.window, asked.until, log, 0)
        ends = typed if lenient.errors and typed else asked.until or usual
        fields = {
            "title": "Compare a window",
            "crumbs": [("Alerts", "/online/alerts")],
            "period": (day_text(at.first_day), day_text(at.last_day)),
            "day": ends[:10],
            "hour": ends[11:13],
            "window": window,
            "windows": [*({window: window} | WINDOWS).items()],
            "by": by,
            "slices": slice_choices(call.site, log, by),
        }
        asked = remembering(call.site, asked)
        days = at.first_day, at.last_day
        return fields, asked, lambda answer: _shown(call, answer, days, asked, notes)

    return show(call, *log_page(call, WatchPage, "Compare a window", prepare))


def remembering(site: AppState, asked: Watching) -> Watching:
    """A watch that records alerts when it is computed."""
    return replace(asked, found=partial(remember, site))


def remember(site: AppState, log: EventLog, result: Watched) -> None:
    """Record alerts, and post what is new; a failure is logged."""
    try:
        posted = alerts.remember(site.workspace, log, result, now=site.clock())
    except KaratError as error:  # the result is shown in any case
        LOG.error("alerts could not be recorded: %s", error)
        return
    for each in posted or ():
        if not each.delivered:
            LOG.error("an alert was not delivered: %s", each.reason)


def _shown(
    call: Call,
    answer: Mapping[str, Any],
    days: tuple[int, int],
    asked: Watching,
    notes: Sequence[str],
) -> dict[str, Any]:
    result, compared = watched_of(answer), answer.get("compared_in_all", 0)
    names = {each.key: each.name for cut in asked.cuts for each in cut}
    ids = alerts.ids_of(call.site.workspace, result.causes)
    annotations = annotations_of(call.site.workspace)
    period = {"from": day_text(days[0]), "to": day_text(days[1])}
    return {
        "label": result.window,
        "verdict": result.verdict,
        "said": verdict_text(result),
        "compared": compared_text(result) if result.searches and result.compared else "",
        "doubts": result.health,
        "causes": [
            shown(call, cause, days, names, result.timezone, annotations, alert)
            for cause, alert in zip(result.causes, ids, strict=True)
        ],
        "better": [
            {
                "metric": each.metric,
                "verdict": each.verdict,
                "sentence": moved_text(each),
                "queries": query_rows(each, days, names),
                "where": rows_of(each, days, names, counts=bool(each.value)),
            }
            for each in result.found("better")
        ],
        "changes": _changes(call, result, days, names).cut_from("first", compared)
        if result.changes
        else None,
        "notes": [*result.notes, *notes],
        "worst": f"/online/queries?{urlencode(period)}",
    }


def _changes(
    call: Call, result: Watched, days: tuple[int, int], names: Mapping[str, str]
) -> Listed:
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
        change = result.changes[row["at"]]
        # A metric of 0 counts no rows: then link to all in the denominator.
        return rows_of(change, days, names, counts=bool(change.value))

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
    until = min(day_text(last), window_end(last_whole_window("1d", log)))
    asked, _ = watch_of(site.workspace, log, "1d", until, ())
    where = f"/online/watch?{urlencode({'until': until})}"
    try:
        answer = start_computing(site, log, remembering(site, asked))
    except KaratError:  # the page of the watch shows the error
        return None
    if answer is None:
        return {"day": until, "verdict": None, "where": where}
    result = watched_of(answer)
    if result.verdict == "cannot_tell" and not result.changes:
        return None
    causes = result.causes
    alert = next(iter(alerts.ids_of(site.workspace, causes[:1])), None)
    return {
        "day": result.window,
        "verdict": result.verdict,
        "said": verdict_text(result),
        "doubt": result.health[0] if result.health else "",
        "sentence": cause_text(causes[0]) if causes else "",
        "more": max(0, len(causes) - 1),
        "where": where if alert is None else f"/online/alerts/{alert}",
    }


def watched_of(answer: Mapping[str, Any]) -> Watched:
    """The result of a stored answer, which also counts all changes."""
    own = {name: value for name, value in answer.items() if name != "compared_in_all"}
    return record_of(Watched, own)
