"""Trends: measures over time from the histories of the workspace, and marks of what happened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Annotated, Any, ClassVar

import polars as pl
from fastapi import APIRouter, FastAPI, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from karat.errors import MissingExtra, UsageError, nearest
from karat.reports.phrases import trend as words
from karat.reports.phrases.numbers import counted
from karat.reports.release.trend_page import Remark, ready
from karat.tables.release.trend import Series
from karat.web.framework.auth import AnEngineer, AReader, Principal
from karat.web.framework.errors import NotFound, Said, refused
from karat.web.framework.lists import Ask, Listed
from karat.web.framework.pages import Page, show
from karat.web.framework.state import AppState, TheState
from karat.web.framework.times import moment
from karat.web.release._trend_lists import (
    EDITIONS_WAIT,
    address_of,
    interval_of,
    list_of_points,
    list_of_series,
)
from karat.workflows.release.stored_trends import (
    History,
    chart_of,
    editions_are_known,
    find_history,
    histories_of,
    slice_of,
)
from karat.workflows.workspace.annotations import add_mark, marks_of, remove_mark, time_of
from karat.workflows.workspace.workspace import Workspace


@asynccontextmanager
async def _warmed(app: FastAPI) -> AsyncIterator[None]:
    """Have histories read, and what draws charts ready, before somebody waits for them."""
    Thread(target=_warm, args=(app.state.site.workspace,), daemon=True).start()
    yield


def _warm(opened: Workspace) -> None:
    ready()
    histories_of(opened)


ROUTER = APIRouter(lifespan=_warmed)
LENGTHS = (30, 100, 500)
"""Points that a chart can show."""
USUAL = 100
"""Points that it shows unless somebody asks."""
_BESIDE = 24  # other series that a page leads to at once; the list has all


@dataclass(frozen=True)
class File:
    """A history, as its page says it.

    Attributes:
        name: Its file.
        points: Points in it.
        lacking: Why it shows nothing; None if it does.
        fix: What to do about it, or about what is damaged.
        damaged: Lines that are left out, or why it cannot be read, each in a sentence.
    """

    name: str
    points: int
    lacking: str | None
    fix: str | None
    damaged: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class TrendsPage(Page):
    """All series of all histories.

    Attributes:
        said: How many there are, and what is wrong with them.
        alarms: Whether anything is.
        files: The histories.
        series: The series, the worst problem first.
        marks: What happened to the search.
        every: Whether whoever looks may take away anybody's mark.
        notes: What is to be known of each history.
        wrong: Why a mark was not made; None if nothing went wrong.
        typed: What was typed into its form: ``time``, ``kind``, ``text``, and ``back``, the page
            that it is on.
    """

    template: ClassVar[str] = "trends.html.j2"
    section: ClassVar[str] = "trends"
    said: str
    alarms: bool
    files: Sequence[File]
    series: Listed
    marks: Sequence[Mapping[str, Any]]
    every: bool = field(repr=False)
    notes: Mapping[str, Sequence[str]]
    wrong: Said | None = None
    typed: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class TrendPage(Page):
    """One series.

    Attributes:
        history: Its file.
        file: The same, with what is wrong with it.
        run: Its run.
        measure: Its measure.
        slice: The slice it is of, as ``lang=de``; empty for all queries.
        sentence: What its newest points say.
        strong: Whether something is wrong.
        newest: Its newest value; None if there is none, which is not 0.
        interval: Of it, in words; empty without one.
        time_us: When that was.
        points: Its points, the newest first.
        notes: What is to be known of the history.
        marks: What happened to the search.
        numbers: By a mark's number the one that the chart calls it by.
        drawn: The chart and what stands beside it; None where it cannot be drawn.
        undrawn: Why it cannot.
        others: By what they differ in, the series beside it: name, address, whether it is this.
        lengths: How many points the chart may show: name, address, whether it does.
        n_runs: How many runs the history has.
        address: Of this page.
        every: Whether whoever looks may take away anybody's mark.
    """

    template: ClassVar[str] = "trend.html.j2"
    section: ClassVar[str] = "trends"
    history: str
    file: File
    run: str
    measure: str
    slice: str
    sentence: str
    strong: bool
    newest: float | None
    interval: str
    time_us: int
    points: Listed
    notes: Sequence[str]
    marks: Sequence[Mapping[str, Any]]
    numbers: Mapping[int, str] = field(repr=False)
    drawn: Mapping[str, Any] | None = field(repr=False)
    undrawn: str = field(repr=False)
    others: Mapping[str, Sequence[tuple[str, str, bool]]] = field(repr=False)
    lengths: Sequence[tuple[str, str, bool]] = field(repr=False)
    n_runs: int = field(repr=False)
    address: str = field(repr=False)
    every: bool = field(repr=False)


@ROUTER.get("/trends")
def list_trends(request: Request, site: TheState, asking: AReader) -> Response:
    """Every series of every history, the worst problem first."""
    return show(request, _trends_page(request, site, asking))


def _trends_page(request: Request, site: AppState, asking: Principal, **more: Any) -> TrendsPage:
    found = histories_of(site.workspace)
    said, alarms = _said([series for each in found for series in each.series])
    return TrendsPage(
        title="Trends",
        said=said,
        alarms=alarms,
        files=[_file(each) for each in found],
        series=list_of_series(found, Ask.of(request)),
        marks=marks_of(site.workspace).to_dicts(),
        every=_every(asking),
        notes={each.name: notes for each in found if (notes := _notes(each, explained=False))},
        **more,
    )


@ROUTER.post("/trends/marks")
def mark(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    kind: Annotated[str, Form(max_length=50)],
    text: Annotated[str, Form(max_length=5_000)],
    time: Annotated[str, Form(max_length=50)] = "",
    back: Annotated[str, Form(max_length=2_000)] = "/trends",
) -> Response:
    """Mark what happened."""
    by, now = asking.person.name, site.clock()
    try:
        add_mark(site.workspace, time=time, kind=kind, text=text, person=by, now=now)
    except UsageError as error:
        status, wrong = refused(error)
        typed = {"time": time, "kind": kind, "text": text, "back": back}
        return show(request, _trends_page(request, site, asking, wrong=wrong, typed=typed), status)
    return _back(site, back)


@ROUTER.post("/trends/marks/{mark_id}/remove")
def unmark(
    site: TheState,
    asking: AnEngineer,
    mark_id: int,
    back: Annotated[str, Form(max_length=2_000)] = "/trends",
) -> Response:
    """Take a mark away: one's own, or an owner anybody's."""
    by, now = asking.person.name, site.clock()
    remove_mark(site.workspace, mark_id, person=by, now=now, of_anybody=_every(asking))
    return _back(site, back)


@ROUTER.get("/trends/{place:path}")
def one_trend(
    request: Request,
    site: TheState,
    asking: AReader,
    place: str,
    run: str = "",
    measure: str = "",
    part: Annotated[str, Query(alias="slice")] = "",
    last: Annotated[int, Query(ge=1, le=LENGTHS[-1])] = USUAL,
) -> Response:
    """One series: its chart, its points, and what they were computed from."""
    opened = site.workspace
    history, series = _found(opened, place, run, measure, part)
    newest = series.marks[-1]
    here = address_of(history.name, series.run, series.measure, slice_of(series))
    held = marks_of(opened)
    shown = series.marks[-last:]
    drawable = held.filter(pl.col("time_us") >= time_of(shown[0].time))
    numbers = {each: str(at) for at, each in enumerate(drawable["id"].to_list(), 1)}
    remarks = [
        Remark(f"{moment(row['time_us']):%Y-%m-%dT%H:%M:%S.%fZ}", numbers[row["id"]], row["text"])
        for row in drawable.iter_rows(named=True)
    ]
    drawn, undrawn = None, ""
    try:
        drawn = chart_of(history, series, last, remarks)
    except MissingExtra as error:
        undrawn = str(error)
    points = list_of_points(site, history, series, Ask.of(request))
    apart = any(column.name == "apart" for column in points.columns)
    notes = _notes(history, explained=apart)
    if not editions_are_known(site.opened(site.workspace.golden.name)):
        notes.append(EDITIONS_WAIT)
    page = TrendPage(
        title=f"{series.name} of {series.run}",
        crumbs=[("Trends", "/trends")],
        history=history.name,
        run=series.run,
        measure=series.measure,
        slice=slice_of(series),
        sentence=words.sentence(series),
        strong=series.alarms or not series.told,
        newest=newest.value,
        interval=interval_of(newest),
        time_us=time_of(newest.time),
        points=points,
        file=_file(history),
        notes=notes,
        marks=held.to_dicts(),
        numbers=numbers,
        drawn=drawn,
        undrawn=undrawn,
        others=_others(history, series),
        lengths=_lengths(here, last, len(series.marks)),
        n_runs=len({each.run for each in history.series}),
        address=here,
        every=_every(asking),
    )
    return show(request, page)


def _found(
    opened: Workspace, place: str, run: str, measure: str, part: str
) -> tuple[History, Series]:
    history = find_history(opened, place)
    if history is None:
        names = [each.name for each in histories_of(opened)]
        raise NotFound(f"there is no history {place!r}", nearest=nearest(place, names) or names)
    if history.lacking is not None:
        raise NotFound(f"{history.name}: {history.lacking}", fix=history.fix)
    found = history.find(run, measure, part)
    if found is None and not (run or measure or part):
        found = next(iter(history.series), None)
    if found is None:
        said = " ".join(each for each in (measure, f"of {run}" if run else "", part) if each)
        raise NotFound(f"{history.name} has no series {said}", fix="choose one under Trends")
    return history, found


def _said(series: Sequence[Series]) -> tuple[str, bool]:
    """How many series there are and what is wrong with them; whether anything is."""
    if not series:
        return "Measures over time, as evaluate and gate keep them with --history.", False
    all_of = counted(len(series), "series", "series")
    verdicts = [words.verdict_of(each) for each in series]
    counts = [
        sum(word in each for each in verdicts) for word in ("WORSE", "DRIFT", "cannot", "may be")
    ]
    says: list[Callable[[int], str]] = [
        lambda n: f"{n:,} {'is' if n == 1 else 'are'} WORSE than before",
        lambda n: f"{n:,} {'shows' if n == 1 else 'show'} DRIFT",
        lambda n: f"of {n:,} nobody can tell",
        lambda n: f"{n:,} may be worse",
    ]
    told = [say(count) for count, say in zip(counts, says, strict=True) if count]
    if not any(each.lean.change is not None for each in series):
        told.insert(0, "NOTHING WAS COMPARED (see the notes)")
    if not told:
        return f"{all_of}: no drift found.", False
    return f"{all_of}: {', '.join(told)}.", True


def _file(history: History) -> File:
    return File(history.name, len(history.points), history.lacking, history.fix, history.damaged)


def _notes(history: History, *, explained: bool) -> list[str]:
    """What is to be known of a history; of the column ``told apart`` only where that stands."""
    return [note for note in history.notes if explained or note not in words.ABOUT_APART]


def _others(history: History, series: Series) -> dict[str, list[tuple[str, str, bool]]]:
    """Series beside one: of other measures, other runs, other slices, where there are such."""
    own = series.run, series.measure, slice_of(series)
    there = sorted({(each.run, each.measure, slice_of(each)) for each in history.series})
    out = {}
    for label, at in (("Measure", 1), ("Run", 0), ("Slice", 2)):
        out[label] = [
            (key[at] or "all queries", address_of(history.name, *key), key == own)
            for key in there
            if all(key[other] == own[other] for other in range(3) if other != at)
        ][:_BESIDE]
    return out


def _lengths(here: str, last: int, total: int) -> list[tuple[str, str, bool]]:
    """How many points the chart may show, where that makes a difference."""
    offered = [each for each in LENGTHS if each < total] + [
        each for each in LENGTHS if each >= total
    ][:1]
    shown = next((each for each in offered if each >= min(last, total)), offered[-1])
    return [(f"{min(each, total):,}", f"{here}&last={each}", each == shown) for each in offered]


def _back(site: AppState, said: str) -> Response:
    """To the page of trends that a form stood on, and to no other."""
    known = said == "/trends" or said.startswith(("/trends/", "/trends?"))
    where = said if known else "/trends"
    return RedirectResponse(f"{site.settings.base}{where}#marks", 303)


def _every(asking: Principal) -> bool:
    return asking.person.role == "owner"
