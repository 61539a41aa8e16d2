"""Home: what needs attention, and the status of each golden set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Response

from karat.reports.online.alerts import state_text
from karat.reports.phrases.numbers import counted
from karat.reports.release.pipeline import next_text, state_name
from karat.tables.golden.golden_sets import addressable
from karat.web.framework.auth import ARater
from karat.web.framework.pages import PlainPage, redirect, show
from karat.web.framework.state import AppState
from karat.web.golden.golden_sets import address, place
from karat.workflows.golden.status import Status
from karat.workflows.golden.status import status as status_of
from karat.workflows.online.alerts import current
from karat.workflows.release import pipeline
from karat.workflows.release.stored_trends import histories_of, newest_gates
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


Watch = Callable[[AppState, Sequence[Status]], Iterable[Attention]]
"""Finds what needs attention, from the state of the app and the status of golden sets."""


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


def failing_gates(site: AppState, _sets: Sequence[Status]) -> Iterable[Attention]:
    """Histories in which the newest gate of a run failed or could not be run."""
    for history in histories_of(site.workspace):
        for run, point in newest_gates(history).items():
            outcome = _GATES.get(point.verdict or "")
            if outcome is not None:
                where = f"/trends/{quote(history.name, safe='')}?{urlencode({'run': run})}"
                yield Attention(f"The newest gate of {run} {outcome}", where, history.name)


def alerting(site: AppState, _sets: Sequence[Status]) -> Iterable[Attention]:
    """Alerts that last, are not muted, and not resolved."""
    lines = [
        Attention(
            each.text + (f" ({state_text(each)})" if each.state == "acknowledged" else ""),
            f"/online/alerts/{each.id}",
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
            yield Attention(what, where)
        elif not status.over:
            what = f"The release {status.name} ({state_name(status)}) {next_text(status)}"
            yield Attention(what, where)


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
        yield Attention(f"And {len(lines) - few:,} more {rest}", where, lines[0].of)


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
    to_settle,
    gone_stale,
    unsure_comparisons,
    to_judge,
    to_begin_or_freeze,
]
"""All checks, most urgent first; other pages add theirs here."""


@ROUTER.get("/")
def home(call: ARater) -> Response:
    """The home page; raters go to the judging page."""
    if call.principal.person.role == "rater":
        return redirect(call, "/judge")
    names = [row.name for row in call.site.golden_sets() if addressable(row.name)]
    sets = [status_of(call.site.opened(name), now=call.now) for name in names]
    attention = [item for watch in WATCHES for item in watch(call.site, sets)]
    return show(call, PlainPage("home.html.j2", "Home", attention=attention, golden=sets))
