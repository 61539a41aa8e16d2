"""Home: how search is doing, what is in flight, what to do, and each golden set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, Response

from karat.errors import InputError
from karat.reports.charts.sparkline import sparkline
from karat.reports.online.alerts import state_text
from karat.reports.phrases.gate import brief
from karat.reports.phrases.numbers import counted
from karat.reports.release.pipeline import next_text, state_name
from karat.tables.days import day_of
from karat.tables.golden.golden_sets import addressable
from karat.tables.online.alerts import Alert
from karat.tables.online.evaluation import OnlineResults
from karat.tables.online.events import EventLog
from karat.tables.release.gate import GateRow
from karat.tables.release.history import Point
from karat.tables.workspace import Headline
from karat.web.first_steps import first_steps, loading, may_load_demo
from karat.web.framework.auth import ARater
from karat.web.framework.pages import PlainPage, redirect, show
from karat.web.framework.state import AppState
from karat.web.golden.golden_sets import address, place
from karat.web.online.dashboard import usual_evaluation
from karat.web.online.log import start_computing
from karat.web.online.watch import glance
from karat.web.release.trends import address_of
from karat.workflows.golden.status import Status
from karat.workflows.golden.status import status as status_of
from karat.workflows.online.alerts import current, releases_before
from karat.workflows.online.headlines import headlines
from karat.workflows.online.log_requests import DayRange, LogRequest, Worst, log_of
from karat.workflows.online.slices import NOTHING
from karat.workflows.online.watch import last_whole_day
from karat.workflows.release import pipeline
from karat.workflows.release.stored_gates import newest_of_candidates, with_checks
from karat.workflows.release.stored_trends import History, headline, histories_of, newest_gates
from karat.workflows.workspace.annotations import annotations_of, time_of
from karat.workflows.workspace.evaluate_stored import damaged_runs
from karat.workflows.workspace.stored_comparisons import Listed, listed

ROUTER = APIRouter()
_MOST = 3  # lines of one kind before the rest are only counted
_GATES = {
    "fail": "failed",
    "stale": "failed: its judgments are stale",
    "unhealthy": "failed: the search did not respond as expected",
    "error": "could not be run",
}


@dataclass(frozen=True)
class Attention:
    what: str  # in words, with its count
    where: str  # the page to do it on, without the base path
    of: str | None = None  # name of the golden set or file that it belongs to, if any
    # `search`: it got worse, or may have · `release`: a change on its way · `work`: to do
    about: Literal["search", "release", "work"] = "work"
    before: str = ""  # of an alert: what was released before it


@dataclass(frozen=True)
class Look:
    """One of the places that say how search is doing."""

    name: str
    verdict: Literal["fine", "worse", "cannot_tell", "waiting", "none"]
    said: str
    where: str  # without the base path


@dataclass
class Seen:
    """What the page is made from; each part is read once, when it is needed."""

    site: AppState
    sets: Sequence[Status]  # of the golden sets that have pages
    pending: bool = False  # whether something of the log is being computed

    def answer(self, log: EventLog, asked: LogRequest) -> Any | None:
        """What a request of the log found; None while it is computed."""
        found = start_computing(self.site, log, asked)
        self.pending = self.pending or found is None
        return found

    @cached_property
    def log(self) -> EventLog | None:
        with suppress(InputError):
            return log_of(self.site.workspace)
        return None

    @cached_property
    def alerts(self) -> Sequence[Alert]:
        return current(self.site.workspace, now=self.site.clock())

    @cached_property
    def annotations(self) -> pl.DataFrame:
        return annotations_of(self.site.workspace)

    @cached_property
    def comparisons(self) -> Mapping[str, Sequence[Listed]]:
        """Those of each golden set, the newest first."""
        return {each.name: listed(self.site.opened(each.name)) for each in self.sets}

    @cached_property
    def histories(self) -> Sequence[History]:
        return histories_of(self.site.workspace)

    @cached_property
    def of_histories(self) -> Sequence[tuple[History, Mapping[str, Point]]]:
        """The newest gate of each run of each history."""
        return [(each, newest_gates(each)) for each in self.histories]

    @cached_property
    def gates(self) -> Mapping[str, Mapping[str, GateRow]]:
        """The newest gate of each candidate of each golden set."""
        return {each.name: newest_of_candidates(self.site.opened(each.name)) for each in self.sets}


Watch = Callable[[Seen], Iterable[Attention]]
"""Finds what needs attention."""


def worst_query(seen: Seen) -> Iterable[Attention]:
    """The query that loses most searches of the usual period, if that is counted."""
    if seen.log is None:
        return
    with suppress(InputError):
        asked = Worst(DayRange().within(seen.log), NOTHING)
        answer = seen.answer(seen.log, asked)
        first = next(iter([] if answer is None else answer["queries"]), None)
        if first and first["failed"]:
            counts = f"{first['failed']:,} of {first['searches']:,} searches"
            what = f"“{first['text']}” fails most: {counts}"
            yield Attention(what, "/online/queries#queries")


def to_settle(seen: Seen) -> Iterable[Attention]:
    """Disagreements, adjudications, and imported grades that raters contradict."""
    for status in seen.sets:
        here = address(status.name, "disagreements")
        if status.disagreements:
            count = counted(status.disagreements, "disagreement")
            yield Attention(f"{count} to send to adjudication", here, status.name)
        if status.adjudications:
            count = counted(status.adjudications, "disagreement")
            where = place(status.name, "karat judge --adjudicate")
            yield Attention(f"{count} to adjudicate", where, status.name)
        if status.contradictions:
            count = counted(status.contradictions, "imported grade")
            where = address(status.name, "disagreements", between="import")
            yield Attention(f"{count} contradicted by raters", where, status.name)


def gone_stale(seen: Seen) -> Iterable[Attention]:
    """Judgments of documents whose text changed since."""
    for status in seen.sets:
        if status.stale:
            count = counted(status.stale, "judgment")
            where = address(status.name, "judgments", stale="yes")
            yield Attention(f"{count} of documents that have changed since", where, status.name)


def to_judge(seen: Seen) -> Iterable[Attention]:
    """Judgments waiting in the queues."""
    for status in seen.sets:
        if status.waiting:
            count = counted(status.waiting, "judgment")
            yield Attention(f"{count} to give", place(status.name, "karat judge"), status.name)


def to_begin_or_freeze(seen: Seen) -> Iterable[Attention]:
    """What a golden set still lacks: queries, pairs, an edition."""
    for status in seen.sets:
        for what, command in status.todo:
            if command.startswith(
                ("karat golden choose", "karat golden pool", "karat golden import")
            ):
                yield Attention(
                    what[:1].upper() + what[1:], place(status.name, command), status.name
                )
            elif command.startswith("karat golden freeze"):
                new = "it has changed since the newest edition" if status.edition else "no edition"
                freeze = f"Freeze an edition: {new}" + ("" if status.edition else " yet")
                yield Attention(freeze, place(status.name, command), status.name)


def failing_gates(seen: Seen) -> Iterable[Attention]:
    """Candidates and runs of histories whose newest gate failed or could not be run."""
    since: dict[str, int] = {}
    for golden, newest in seen.gates.items():
        lines = []
        since |= {name: row.time_us for name, row in newest.items()}
        failed = [row for row in newest.values() if row.verdict in _GATES]
        checked = with_checks(seen.site.opened(golden), failed[: _MOST + 1])
        for row in [*checked, *failed[_MOST + 1 :]]:
            why = f": {brief(row.decides)}" if row.decides else ""
            what = f"Gate of {row.candidate} {_GATES[row.verdict]}{why}"
            lines.append(Attention(what, f"/gates/{row.id}", golden, about="search"))
        yield from _first(lines, "gates that failed", "/gates")
    for history, points in seen.of_histories:
        for run, point in points.items():
            outcome = _GATES.get(point.verdict or "")
            # What is stored says which rule: a point of the same gate is not named again.
            if outcome is not None and time_of(point.time) > since.get(point.run, 0):
                what = f"The newest gate of {run} {outcome}"
                yield Attention(what, address_of(history.name, run), history.name, about="search")


def alerting(seen: Seen) -> Iterable[Attention]:
    """Alerts that last, are not muted, and not resolved."""
    lines = [
        Attention(
            each.text + (f" ({state_text(each)})" if each.state == "acknowledged" else ""),
            f"/online/alerts/{each.id}",
            about="search",
            before=_released(seen, each) if at <= _MOST else "",
        )
        for at, each in enumerate(seen.alerts)
    ]
    yield from _first(lines, "alerts", "/online/alerts")


def _released(seen: Seen, alert: Alert) -> str:
    day = day_of(alert.onset_us, alert.timezone)
    found = releases_before(seen.annotations, alert.cause.onset, day, alert.timezone)
    more = f", and {len(found) - 1} more" if found[1:] else ""
    said = f"Released before: {found[0]}{more}" if found else "Nothing released in the week before"
    return f"{said} (times in {alert.timezone})."


def in_flight(seen: Seen) -> Iterable[Attention]:
    """Releases in flight, with what comes next."""
    for status in pipeline.in_flight(seen.site.workspace, now=seen.site.clock()):
        where = f"/releases/{quote(status.name, safe='')}"
        if status.problem:
            what = f"The switch of {status.name} is not where it should be: {status.problem}"
            yield Attention(what, where, about="release")
        elif not status.over:
            what = f"The release {status.name} ({state_name(status)}) {next_text(status)}"
            yield Attention(what, where, about="release")


def damaged_files(seen: Seen) -> Iterable[Attention]:
    """Damaged histories, and stored runs whose files are missing or damaged."""
    for history in seen.histories:
        if history.damaged:
            damage = counted(len(history.damaged), "damaged line")
            what = "cannot be read" if history.lacking else f"has {damage}"
            yield Attention(f"The history {history.name} {what}", "/trends")
    for status in seen.sets:
        lines = [
            Attention(
                f"The file of the run “{row.name}” is {problem}", f"/runs/{row.id}", status.name
            )
            for row, problem in damaged_runs(seen.site.opened(status.name))
        ]
        yield from _first(lines, "files of runs are missing or damaged", "/runs")


def unsure_comparisons(seen: Seen) -> Iterable[Attention]:
    """Comparisons whose sign unjudged pairs could flip, now or when last computed."""
    for golden, comparisons in seen.comparisons.items():
        flipping, older = [], []
        for each in comparisons:
            if each.row.state != "done" or not each.turns:
                continue
            name, where = each.row.name, f"/comparisons/{each.row.id}"
            if each.older.changed:  # it may no longer hold
                what = f"Recompute “{name}”: {each.older.told}"
                older.append(Attention(what, where, golden))
                continue
            to_do = f": {counted(each.next, 'pair')} to judge first" if each.next else ""
            what = (
                f"Unjudged pairs could flip the sign of {' and '.join(each.turns[:2])} in “{name}”"
            )
            where += "#next" if each.next else ""
            flipping.append(Attention(f"{what}{to_do}", where, golden))
        yield from _first(flipping, "comparisons whose sign could flip", "/comparisons")
        yield from _first(older, "comparisons to recompute", "/comparisons")


def _first(lines: Sequence[Attention], rest: str, where: str) -> Iterable[Attention]:
    """The first lines of one kind, and one line that counts the rest and links to the list."""
    few = len(lines) if len(lines) <= _MOST + 1 else _MOST
    yield from lines[:few]
    if lines[few:]:
        more = f"And {len(lines) - few:,} more {rest}"
        yield Attention(more, where, lines[0].of, about=lines[0].about)


def out_of_reach(seen: Seen) -> Iterable[Attention]:
    """Golden sets of older versions whose names cannot be used in an address."""
    for row in seen.site.golden_sets():
        if not addressable(row.name):
            what = "A golden set has no pages: its name cannot be used in an address"
            yield Attention(what, "/golden", row.name)


WATCHES: list[Watch] = [
    out_of_reach,
    alerting,
    in_flight,
    damaged_files,
    failing_gates,
    worst_query,
    to_settle,
    gone_stale,
    unsure_comparisons,
    to_judge,
    to_begin_or_freeze,
]
"""All checks, most urgent first; other pages add theirs here."""


def online_look(seen: Seen) -> Look:
    """Whether the online metrics of the last day are as usual."""
    name, where, log = "Online", "/online", seen.log
    if log is None:
        return Look(name, "none", "no events yet", where)
    if seen.alerts:
        return Look(name, "worse", counted(len(seen.alerts), "alert", "alerts"), "/online/alerts")
    last = None if log.last_day is None else glance(seen.site, log, log.last_day)
    if last is None:
        return Look(name, "cannot_tell", "too few weeks to compare with", where)
    if last["verdict"] is None:
        return Look(name, "waiting", f"{last['day']} is being compared", last["where"])
    verdict = {"worse": "worse", "fine": "fine"}.get(last["verdict"], "cannot_tell")
    said = last["sentence"] or f"{last['said']}, {last['day']}"
    return Look(name, verdict, said, last["where"])  # type: ignore[arg-type]


def gates_look(seen: Seen) -> Look:
    """Whether the newest gate of each candidate passed."""
    newest = {
        point.series_name: point.verdict or ""
        for _, points in seen.of_histories
        for point in points.values()
    }
    for stored in seen.gates.values():
        newest |= {name: row.verdict for name, row in stored.items()}
    where = "/gates"
    failed = [name for name, verdict in newest.items() if verdict in _GATES]
    unsure = [name for name, verdict in newest.items() if verdict == "cannot_tell"]
    if not newest:
        return Look("Gates", "none", "none yet", where)
    if failed:
        said = f"{len(failed)} of {len(newest)} did not pass: {', '.join(failed[:2])}"
        return Look("Gates", "worse", said, where)
    if unsure:
        return Look("Gates", "cannot_tell", f"{len(unsure)} of {len(newest)} cannot tell", where)
    said = counted(len(newest), "run passes", "runs pass")
    return Look("Gates", "fine", f"the newest: {said}", where)


def comparison_look(seen: Seen) -> Iterable[Look]:
    """The newest comparison: its page says whether the candidate may ship."""
    newest = [each[0].row for each in seen.comparisons.values() if each]
    for row in sorted(newest, key=lambda row: row.created_us)[-1:]:
        yield Look("Comparison", "none", row.name, f"/comparisons/{row.id}")


def trends_look(histories: Sequence[History]) -> Look:
    """Whether a measure got worse or drifts."""
    every = [series for each in histories for series in each.series]
    alarms = [series for series in every if series.alarms]
    if not every:
        return Look("Trends", "none", "no history yet", "/trends")
    if alarms:
        named = f"{alarms[0].name} of {alarms[0].run}"
        more = f" and {len(alarms) - 1} more" if alarms[1:] else ""
        return Look("Trends", "worse", f"{named}{more} got worse", "/trends")
    if not any(series.lean.change is not None for series in every):
        return Look("Trends", "cannot_tell", "nothing to compare yet", "/trends")
    return Look("Trends", "fine", f"no drift in {len(every):,} series", "/trends")


def _verdict(looks: Sequence[Look], attention: Sequence[Attention]) -> tuple[str, str]:
    """The verdict line: its kind, and its words."""
    first, *more = [each.what for each in attention if each.about == "search"] or [""]
    worse = [each for each in looks if each.verdict == "worse"]
    if first or worse:
        problems = counted(len(more), "more problem")
        named = first or f"{worse[0].name}: {worse[0].said}"
        return "worse", f"{named}{f', and {problems}' if more else ''}."
    fine = [each.name.lower() for each in looks if each.verdict == "fine"]
    if fine:
        return "fine", f"Nothing got worse that karat can see in {' and '.join(fine)}."
    return "cannot_tell", "No verdict yet: nothing is measured over time."


def _headlines(seen: Seen) -> list[Mapping[str, Any]]:
    """Quality, satisfied clicks and zero results, as far as they are known."""
    shown = []
    quality = headline(seen.histories)
    if quality is not None:
        found, history, series = quality
        shown.append(_shown(found, address_of(history, series.run, series.measure)))
    if (log := seen.log) is None or log.last_day is None:
        return shown
    with suppress(InputError):
        answer = seen.answer(log, usual_evaluation(log))
        if answer is not None:
            last = min(log.last_day, last_whole_day(log))
            for each in headlines(OnlineResults.from_dict(answer), last):
                shown.append(_shown(each, f"/online?{urlencode({'metrics': each.what})}"))
    return shown


def _shown(found: Headline, where: str) -> Mapping[str, Any]:
    return {**asdict(found), "where": where, "line": sparkline(found.points)}


@ROUTER.get("/")
def home(call: ARater) -> Response:
    """The home page; raters go to the judging page."""
    if call.principal.person.role == "rater":
        return redirect(call, "/judge")
    names = [row.name for row in call.site.golden_sets() if addressable(row.name)]
    sets = [status_of(call.site.opened(name), now=call.now) for name in names]
    seen = Seen(call.site, sets)
    attention = [item for watch in WATCHES for item in watch(seen)]
    looks = [online_look(seen), gates_look(seen), trends_look(seen.histories)]
    looks += comparison_look(seen)
    verdict, said = _verdict(looks, attention)
    page = PlainPage(
        "home.html.j2",
        "Home",
        verdict=verdict,
        said=said,
        looks=looks,
        headlines=_headlines(seen),
        pending=seen.pending or looks[0].verdict == "waiting",
        attention=attention,
        golden=sets,
        steps=first_steps(call.site, sets, events=looks[0].verdict != "none"),
        demo=may_load_demo(call, sets),
        job=loading(call),
    )
    return show(call, page)
