"""Home: what needs attention across golden sets, and where things stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from karat.reports.phrases.numbers import counted
from karat.store.sql.golden_sets import addressable
from karat.web.framework.auth import ARater
from karat.web.framework.pages import Page, show
from karat.web.framework.state import AppState, TheState
from karat.web.golden.golden_sets import address, place
from karat.workflows.golden.status import STATUSES, Status
from karat.workflows.release.stored_trends import histories_of, newest_gates
from karat.workflows.workspace.comparison_changes import turning
from karat.workflows.workspace.evaluate_stored import spoilt_runs

ROUTER = APIRouter()
_MOST = 3  # lines of one kind, before the rest are counted
_GATES = {
    "fail": "failed",
    "stale": "failed: its judgments are stale",
    "unhealthy": "failed: the search did not answer as it should",
    "error": "could not be held",
}


@dataclass(frozen=True)
class Attention:
    """Something to do.

    Attributes:
        what: In words, with its number.
        where: The page on which it is done, without the base path.
        of: Name of the golden set, or whatever else it belongs to; None if to nothing.
    """

    what: str
    where: str
    of: str | None = None


@dataclass(frozen=True, kw_only=True)
class HomePage(Page):
    """Where things stand.

    Attributes:
        attention: What to do, the most urgent first.
        golden: Each golden set.
    """

    template: ClassVar[str] = "home.html.j2"
    section: ClassVar[str] = "home"
    attention: Sequence[Attention]
    golden: Sequence[Status]


Watch = Callable[[AppState, Sequence[Status]], Iterable[Attention]]
"""Looks for what needs attention: the site, and where each golden set stands."""


def to_settle(_site: AppState, found: Sequence[Status]) -> Iterable[Attention]:
    """Disagreements, adjudications, and imported grades that raters contradict."""
    for each in found:
        here = address(each.name, "disagreements")
        if each.disagreements:
            said = counted(each.disagreements, "disagreement", "disagreements")
            yield Attention(f"{said} to put before an adjudicator", here, each.name)
        if each.adjudications:
            said = counted(each.adjudications, "disagreement", "disagreements")
            where = place(each.name, "karat judge --adjudicate")
            yield Attention(f"{said} for an adjudicator to settle", where, each.name)
        if each.contradictions:
            said = counted(each.contradictions, "imported grade", "imported grades")
            where = address(each.name, "disagreements", between="import")
            yield Attention(f"{said} contradicted by raters", where, each.name)


def gone_stale(_site: AppState, found: Sequence[Status]) -> Iterable[Attention]:
    """Judgments of documents whose text changed since."""
    for each in found:
        if each.stale:
            said = counted(each.stale, "judgment", "judgments")
            where = address(each.name, "judgments", stale="yes")
            yield Attention(f"{said} of documents that changed since", where, each.name)


def to_judge(_site: AppState, found: Sequence[Status]) -> Iterable[Attention]:
    """Judgments that the queues wait for."""
    for each in found:
        if each.waiting:
            said = counted(each.waiting, "judgment", "judgments")
            yield Attention(f"{said} to give", place(each.name, "karat judge"), each.name)


def to_begin_or_freeze(_site: AppState, found: Sequence[Status]) -> Iterable[Attention]:
    """What a golden set lacks before it can be used: queries, pairs, an edition."""
    for each in found:
        for what, command in each.todo:
            if command.startswith(
                ("karat golden choose", "karat golden pool", "karat golden import")
            ):
                yield Attention(what[:1].upper() + what[1:], place(each.name, command), each.name)
            elif command.startswith("karat golden freeze"):
                new = "something is new since the newest edition" if each.edition else "no edition"
                said = f"Freeze what is judged: {new}" + ("" if each.edition else " yet")
                yield Attention(said, place(each.name, command), each.name)


def failing_gates(site: AppState, _found: Sequence[Status]) -> Iterable[Attention]:
    """Histories of which the newest gate of a run failed, or could not be held."""
    for history in histories_of(site.workspace):
        for run, point in newest_gates(history).items():
            said = _GATES.get(point.verdict or "")
            if said is not None:
                where = f"/trends/{quote(history.name, safe='')}?{urlencode({'run': run})}"
                yield Attention(f"The newest gate of {run} {said}", where, history.name)


def damaged_files(site: AppState, found: Sequence[Status]) -> Iterable[Attention]:
    """Histories with damage, and kept runs whose files are gone or damaged."""
    for history in histories_of(site.workspace):
        if history.damaged:
            # Of one that cannot be read at all, the list says why; of others, each series too.
            some = counted(len(history.damaged), "damaged line", "damaged lines")
            what = "cannot be read" if history.lacking else f"has {some}"
            yield Attention(f"The history {history.name} {what}", "/trends")
    for each in found:
        lines = [
            Attention(f"The file of the run “{row.name}” is {ails}", f"/runs/{row.id}", each.name)
            for row, ails in spoilt_runs(site.opened(each.name))
        ]
        yield from _first(lines, "files of runs are gone or damaged", "/runs")


def unsure_comparisons(site: AppState, found: Sequence[Status]) -> Iterable[Attention]:
    """Comparisons whose sign pairs that nobody judged could flip, or could when computed."""
    for each in found:
        flipping, older = [], []
        for row, head, behind in turning(site.opened(each.name)):
            if behind.changed:  # what it says may be settled by now
                what = f"Compute “{row.name}” again: {behind.told}"
                older.append(Attention(what, f"/comparisons/{row.id}", each.name))
                continue
            pairs = counted(head["next"], "pair", "pairs")
            to_do = f": {pairs} to judge first" if head["next"] else ""
            by = " and ".join(head["turns"][:2])
            what = f"Pairs nobody judged could flip the sign of {by} in “{row.name}”"
            where = f"/comparisons/{row.id}" + ("#next" if head["next"] else "")
            flipping.append(Attention(f"{what}{to_do}", where, each.name))
        yield from _first(flipping, "comparisons whose sign could flip", "/comparisons")
        yield from _first(older, "comparisons to compute again", "/comparisons")


def _first(lines: Sequence[Attention], rest: str, where: str) -> Iterable[Attention]:
    """The first lines of one kind; what is left of many in one line that leads to the list."""
    few = len(lines) if len(lines) <= _MOST + 1 else _MOST
    yield from lines[:few]
    if lines[few:]:
        yield Attention(f"And {len(lines) - few:,} more {rest}", where, lines[0].of)


def out_of_reach(site: AppState, _found: Sequence[Status]) -> Iterable[Attention]:
    """Golden sets of earlier days whose names cannot stand in an address."""
    for row in site.golden_sets():
        if not addressable(row.name):
            what = "A golden set has no pages, for its name cannot stand in an address"
            yield Attention(what, "/golden", row.name)


WATCHES: list[Watch] = [
    out_of_reach,
    damaged_files,
    failing_gates,
    to_settle,
    gone_stale,
    unsure_comparisons,
    to_judge,
    to_begin_or_freeze,
]
"""Who looks, in the order of what is most urgent; other pages add theirs here."""


@ROUTER.get("/")
def home(request: Request, site: TheState, asking: ARater) -> Response:
    """The first page; a rater's is the judging page."""
    if asking.person.role == "rater":
        return RedirectResponse(f"{site.settings.base}/judge", 303)
    names = [row.name for row in site.golden_sets() if addressable(row.name)]
    found = [STATUSES.get(site.opened(name), now=site.clock()) for name in names]
    attention = [each for watch in WATCHES for each in watch(site, found)]
    return show(request, HomePage(title="Home", attention=attention, golden=found))
