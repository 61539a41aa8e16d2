"""Home: how search is doing, what is in flight, what to do, and each golden set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Response

from karat.errors import InputError
from karat.reports.charts.sparkline import sparkline
from karat.reports.online.alerts import state_text
from karat.reports.phrases.gate import brief
from karat.reports.phrases.numbers import counted
from karat.reports.release.pipeline import next_text, state_name
from karat.tables.golden.golden_sets import addressable
from karat.tables.online.evaluation import OnlineResults
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
from karat.workflows.online.alerts import current
from karat.workflows.online.headlines import headlines
from karat.workflows.online.log_requests import DayRange, Worst, log_of
from karat.workflows.online.slices import NOTHING
from karat.workflows.online.watch import last_whole_day
from karat.workflows.release import pipeline
from karat.workflows.release.headline import headline
from karat.workflows.release.stored_gates import newest_of_candidates, with_checks
from karat.workflows.release.stored_trends import History, histories_of, newest_gates
from karat.workflows.workspace.annotations import time_of
from karat.workflows.workspace.evaluate_stored import damaged_runs
from karat.workflows.workspace.stored_comparisons import listed

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


@dataclass(frozen=True)
class Look:
    """One of the places that say how search is doing."""

    name: str
    verdict: Literal["fine", "worse", "cannot_tell", "waiting", "none"]
    said: str
    where: str  # without the base path


Watch = Callable[[AppState, Sequence[Status]], Iterable[Attention]]
"""Finds what needs attention, from the state of the app and the status of golden sets."""


def worst_query(site: AppState, _sets: Sequence[Status]) -> Iterable[Attention]:
    """The query that loses most searches of the usual period, if that is counted."""
    with suppress(InputError):
        log = log_of(site.workspace)
        answer = start_computing(site, log, Worst(DayRange().within(log), NOTHING))
        first = next(iter([] if answer is None else answer["queries"]), None)
        if first and first["failed"]:
            counts = f"{first['failed']:,} of {first['searches']:,} searches"
            what = f"“{first['text']}” fails most: {counts}"
            yield Attention(what, "/online/queries#queries")


def to_settle(_site: AppState, sets: Sequence[Status]) -> Iterable[Attention]:
    """Disagreements, adjudications, and imported grades that raters contradict."""
    for status in sets:
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


def gone_stale(_site: AppState, sets: Sequence[Status]) -> Iterable[Attention]:
    """Judgments of documents whose text changed since."""
    for status in sets:
        if status.stale:
            count = counted(status.stale, "judgment")
            where = address(status.name, "judgments", stale="yes")
            yield Attention(f"{count} of documents that have changed since", where, status.name)


def to_judge(_site: AppState, sets: Sequence[Status]) -> Iterable[Attention]:
    """Judgments waiting in the queues."""
    for status in sets:
        if status.waiting:
            count = counted(status.waiting, "judgment")
            yield Attention(f"{count} to give", place(status.name, "karat judge"), status.name)


def to_begin_or_freeze(_site: AppState, sets: Sequence[Status]) -> Iterable[Attention]:
    """What a golden set still lacks: queries, pairs, an edition."""
    for status in sets:
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


def failing_gates(site: AppState, sets: Sequence[Status]) -> Iterable[Attention]:
    """Candidates and runs of histories whose newest gate failed or could not be run."""
    since: dict[str, int] = {}
    for status in sets:
        opened, lines = site.opened(status.name), []
        newest = newest_of_candidates(opened)
        since |= {name: row.time_us for name, row in newest.items()}
        failed = [row for row in newest.values() if row.verdict in _GATES]
        for row in [*with_checks(opened, failed[: _MOST + 1]), *failed[_MOST + 1 :]]:
            why = f": {brief(row.decides)}" if row.decides else ""
            what = f"Gate of {row.candidate} {_GATES[row.verdict]}{why}"
            lines.append(Attention(what, f"/gates/{row.id}", status.name, about="search"))
        yield from _first(lines, "gates that failed", "/gates")
    for history in histories_of(site.workspace):
        for run, point in newest_gates(history).items():
            outcome = _GATES.get(point.verdict or "")
            # What is stored says which rule: a point of the same gate is not named again.
            if outcome is not None and time_of(point.time) > since.get(point.run, 0):
                where = f"/trends/{quote(history.name, safe='')}?{urlencode({'run': run})}"
                what = f"The newest gate of {run} {outcome}"
                yield Attention(what, where, history.name, about="search")


def alerting(site: AppState, _sets: Sequence[Status]) -> Iterable[Attention]:
    """Alerts that last, are not muted, and not resolved."""
    lines = [
        Attention(
            each.text + (f" ({state_text(each)})" if each.state == "acknowledged" else ""),
            f"/online/alerts/{each.id}",
            about="search",
        )
        for each in current(site.workspace, now=site.clock())
    ]
    yield from _first(lines, "alerts", "/online/alerts")


def in_flight(site: AppState, _sets: Sequence[Status]) -> Iterable[Attention]:
    """Releases in flight, with what comes next."""
    for status in pipeline.in_flight(site.workspace, now=site.clock()):
        where = f"/releases/{quote(status.name, safe='')}"
        if status.problem:
            what = f"The switch of {status.name} is not where it should be: {status.problem}"
            yield Attention(what, where, about="release")
        elif not status.over:
            what = f"The release {status.name} ({state_name(status)}) {next_text(status)}"
            yield Attention(what, where, about="release")


def damaged_files(site: AppState, sets: Sequence[Status]) -> Iterable[Attention]:
    """Damaged histories, and stored runs whose files are missing or damaged."""
    for history in histories_of(site.workspace):
        if history.damaged:
            damage = counted(len(history.damaged), "damaged line")
            what = "cannot be read" if history.lacking else f"has {damage}"
            yield Attention(f"The history {history.name} {what}", "/trends")
    for status in sets:
        lines = [
            Attention(
                f"The file of the run “{row.name}” is {problem}", f"/runs/{row.id}", status.name
            )
            for row, problem in damaged_runs(site.opened(status.name))
        ]
        yield from _first(lines, "files of runs are missing or damaged", "/runs")


def unsure_comparisons(site: AppState, sets: Sequence[Status]) -> Iterable[Attention]:
    """Comparisons whose sign unjudged pairs could flip, now or when last computed."""
    for status in sets:
        flipping, older = [], []
        for each in listed(site.opened(status.name)):
            if each.row.state != "done" or not each.turns:
                continue
            name, where = each.row.name, f"/comparisons/{each.row.id}"
            if each.older.changed:  # it may no longer hold
                what = f"Recompute “{name}”: {each.older.told}"
                older.append(Attention(what, where, status.name))
                continue
            to_do = f": {counted(each.next, 'pair')} to judge first" if each.next else ""
            what = (
                f"Unjudged pairs could flip the sign of {' and '.join(each.turns[:2])} in “{name}”"
            )
            where += "#next" if each.next else ""
            flipping.append(Attention(f"{what}{to_do}", where, status.name))
        yield from _first(flipping, "comparisons whose sign could flip", "/comparisons")
        yield from _first(older, "comparisons to recompute", "/comparisons")


def _first(lines: Sequence[Attention], rest: str, where: str) -> Iterable[Attention]:
    """The first lines of one kind, and one line that counts the rest and links to the list."""
    few = len(lines) if len(lines) <= _MOST + 1 else _MOST
    yield from lines[:few]
    if lines[few:]:
        more = f"And {len(lines) - few:,} more {rest}"
        yield Attention(more, where, lines[0].of, about=lines[0].about)


def out_of_reach(site: AppState, _sets: Sequence[Status]) -> Iterable[Attention]:
    """Golden sets of older versions whose names cannot be used in an address."""
    for row in site.golden_sets():
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


def online_look(site: AppState) -> Look:
    """Whether the online metrics of the last day are as usual."""
    name, where = "Online", "/online"
    try:
        log = log_of(site.workspace)
    except InputError:
        return Look(name, "none", "no events yet", where)
    alerts = current(site.workspace, now=site.clock())
    if alerts:
        return Look(name, "worse", counted(len(alerts), "alert", "alerts"), "/online/alerts")
    seen = None if log.last_day is None else glance(site, log, log.last_day)
    if seen is None:
        return Look(name, "cannot_tell", "too few weeks to compare with", where)
    if seen["verdict"] is None:
        return Look(name, "waiting", f"{seen['day']} is being compared", seen["where"])
    verdict = {"worse": "worse", "fine": "fine"}.get(seen["verdict"], "cannot_tell")
    said = seen["sentence"] or f"{seen['said']}, {seen['day']}"
    return Look(name, verdict, said, seen["where"])  # type: ignore[arg-type]


def gates_look(site: AppState, sets: Sequence[Status], histories: Sequence[History]) -> Look:
    """Whether the newest gate of each candidate passed."""
    newest = {
        point.series_name: point.verdict or ""
        for each in histories
        for point in newest_gates(each).values()
    }
    for status in sets:
        stored = newest_of_candidates(site.opened(status.name))
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
        named = first or f"{worse[0].name}: {worse[0].said}"
        return "worse", f"{named}{f', and {len(more)} more' if more else ''}."
    fine = [each.name.lower() for each in looks if each.verdict == "fine"]
    if fine:
        return "fine", f"Nothing got worse that karat can see in {' and '.join(fine)}."
    return "cannot_tell", "No verdict yet: nothing is measured over time."


def _headlines(site: AppState, histories: Sequence[History]) -> list[Mapping[str, Any]]:
    """Quality, satisfied clicks and zero results, as far as they are known."""
    shown = []
    quality = headline(histories)
    if quality is not None:
        found, history, series = quality
        shown.append(_shown(found, address_of(history, series.run, series.measure, "")))
    with suppress(InputError):
        log = log_of(site.workspace)
        answer = start_computing(site, log, usual_evaluation(log))
        if answer is not None and log.last_day is not None:
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
    attention = [item for watch in WATCHES for item in watch(call.site, sets)]
    histories = histories_of(call.site.workspace)
    looks = [online_look(call.site), gates_look(call.site, sets, histories), trends_look(histories)]
    verdict, said = _verdict(looks, attention)
    page = PlainPage(
        "home.html.j2",
        "Home",
        verdict=verdict,
        said=said,
        looks=looks,
        headlines=_headlines(call.site, histories),
        attention=attention,
        golden=sets,
        steps=first_steps(call.site, sets, events=looks[0].verdict != "none"),
        demo=may_load_demo(call, sets),
        job=loading(call),
    )
    return show(call, page)
