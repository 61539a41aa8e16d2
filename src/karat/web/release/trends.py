"""Trends: measures over time from the workspace's histories, and annotations."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Thread
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, FastAPI, Form, Query, Response
from fastapi.responses import RedirectResponse

from karat.errors import MissingExtra, UsageError, nearest
from karat.reports.charts.drawing import ready
from karat.reports.phrases import trend as words
from karat.reports.phrases.numbers import counted
from karat.reports.phrases.report import span
from karat.reports.release.trend_page import Remark
from karat.reports.table import Column
from karat.tables.release.trend import Mark, Series
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call, Principal
from karat.web.framework.diagnosis_links import Why, whys
from karat.web.framework.errors import NotFound, Said, refused
from karat.web.framework.jobs import COMPUTING, Busy
from karat.web.framework.lists import Ask, Listed, frame_of, listed
from karat.web.framework.pages import Page, PlainPage, show
from karat.web.framework.state import AppState
from karat.web.framework.times import moment
from karat.workflows.release import stored_trends as workflow
from karat.workflows.release.stored_gates import gates_of_points
from karat.workflows.workspace.annotations import (
    add_annotation,
    annotations_of,
    delete_annotation,
    time_of,
)
from karat.workflows.workspace.stored_runs import stored_by_name
from karat.workflows.workspace.stored_views import link_marks
from karat.workflows.workspace.workspace import Workspace


@asynccontextmanager
async def _warmed(app: FastAPI) -> AsyncIterator[None]:
    """Read histories and load the drawing library before the first request needs them."""
    Thread(target=_warm, args=(app.state.site.workspace,), daemon=True).start()
    yield


def _warm(workspace: Workspace) -> None:
    if workflow.histories_of(workspace):
        ready()


ROUTER = APIRouter(lifespan=_warmed)
LENGTHS = (30, 100, 500)
"""Offered numbers of points in a chart."""
USUAL = 100
"""Default number of points in a chart."""
_PROBLEMS = (
    ("WORSE", "is WORSE than before", "are WORSE than before"),
    ("DRIFT", "shows DRIFT", "show DRIFT"),
    ("cannot", "is inconclusive", "are inconclusive"),
    ("may be", "may be worse", "may be worse"),
)
"""Words of a verdict, the worst first, each with its phrase for one series and for several."""
_BESIDE = 24  # links to other series; the list has all
_WAIT_S = 5.0  # for the index of editions, so that the first view after a start has it
EDITIONS_WAIT = (
    "The editions of the points' grades are still being computed: reload the page in a minute."
)


@dataclass(frozen=True)
class File:
    name: str
    points: int
    lacking: str | None
    fix: str | None
    damaged: Sequence[str]


@ROUTER.get("/trends")
def list_trends(call: AReader) -> Response:
    """List the series of all histories, worst problem first."""
    return show(call, _trends_page(call))


def _trends_page(
    call: Call, wrong: Said | None = None, typed: Mapping[str, str] | None = None
) -> Page:
    histories = workflow.histories_of(call.site.workspace)
    summary, alarms = _summary([series for each in histories for series in each.series])
    return PlainPage(
        "trends.html.j2",
        "Trends",
        said=summary,
        alarms=alarms,
        files=[_file(each) for each in histories],
        series=list_of_series(histories, call.ask),
        marks=annotations_of(call.site.workspace).to_dicts(),
        notes={each.name: notes for each in histories if (notes := _notes(each, explained=False))},
        wrong=wrong,
        not_in_json={"every": _may_remove_all(call.principal), "typed": typed or {}},
    )


@ROUTER.post("/trends/marks")
def annotate(
    call: AnEngineer,
    kind: Annotated[str, Form(max_length=50)],
    text: Annotated[str, Form(max_length=5_000)],
    time: Annotated[str, Form(max_length=50)] = "",
    back: Annotated[str, Form(max_length=2_000)] = "/trends",
) -> Response:
    try:
        add_annotation(call.site.workspace, time=time, kind=kind, text=text, **call.by)
    except UsageError as error:
        status, wrong = refused(error)
        typed = {"time": time, "kind": kind, "text": text, "back": back}
        return show(call, _trends_page(call, wrong=wrong, typed=typed), status)
    return _back(call.site, back)


@ROUTER.post("/trends/marks/{mark_id}/remove")
def remove_annotation(
    call: AnEngineer, mark_id: int, back: Annotated[str, Form(max_length=2_000)] = "/trends"
) -> Response:
    """Remove an annotation: one's own, or as an owner any."""
    delete_annotation(
        call.site.workspace, mark_id, **call.by, of_anybody=_may_remove_all(call.principal)
    )
    return _back(call.site, back)


@ROUTER.get("/trends/{place:path}")
def one_trend(
    call: AReader,
    place: str,
    run: str = "",
    measure: str = "",
    part: Annotated[str, Query(alias="slice")] = "",
    last: Annotated[int, Query(ge=1, le=LENGTHS[-1])] = USUAL,
) -> Response:
    """Show one series: its chart, its points, and their origins."""
    workspace = call.site.workspace
    history, series = _found(workspace, place, run, measure, part)
    newest = series.marks[-1]
    address = address_of(history.name, series.run, series.measure, workflow.slice_of(series))
    annotations = annotations_of(workspace)
    remarks = _remarks(annotations, series.marks[-last:][0])
    golden = call.site.opened(call.site.workspace.golden.name)
    _know_editions(golden)
    sources = [point for point, _ in workflow.points_of(history, series)]
    origins = workflow.kept_from(golden, sources)
    drawn, undrawn = None, ""
    try:
        drawn = dict(workflow.chart_of(history, series, last, list(remarks.values())))
        drawn["charts"] = _linked(drawn["charts"], origins[-last:], call.site.settings.base)
    except MissingExtra as error:
        undrawn = str(error)
    gates = gates_of_points(golden, sources)
    points = list_of_points(golden, history, series, origins, gates, call.ask)
    notes = _notes(history, explained=any(each.name == "apart" for each in points.columns))
    workspace = call.workspace
    if not workflow.editions_are_known(workspace):
        notes.append(EDITIONS_WAIT)
    page = PlainPage(
        "trend.html.j2",
        f"{series.name} of {series.run}",
        [("Trends", "/trends")],
        history=history.name,
        file=_file(history),
        run=series.run,
        measure=series.measure,
        slice=workflow.slice_of(series),
        sentence=words.sentence(series),
        strong=series.alarms or not series.told,
        newest=newest.value,
        interval=interval_of(newest),
        time_us=time_of(newest.time),
        points=points,
        whys=_whys(workspace, series.run),
        notes=notes,
        marks=annotations.to_dicts(),
        not_in_json={
            "numbers": {each: remark.label for each, remark in remarks.items()},
            "drawn": drawn,
            "undrawn": undrawn,
            "others": _others(history, series),
            "lengths": _lengths(address, last, len(series.marks)),
            "n_runs": len({each.run for each in history.series}),
            "address": address,
            "every": _may_remove_all(call.principal),
        },
    )
    return show(call, page)


def _remarks(annotations: pl.DataFrame, first: Mark) -> dict[int, Remark]:
    """The annotations since the first point of a chart, numbered, by id."""
    drawable = annotations.filter(pl.col("time_us") >= time_of(first.time))
    return {
        row["id"]: Remark(f"{moment(row['time_us']):%Y-%m-%dT%H:%M:%S.%fZ}", str(at), row["text"])
        for at, row in enumerate(drawable.iter_rows(named=True), 1)
    }


def _whys(workspace: Workspace, run: str) -> Sequence[Why]:
    stored = stored_by_name(workspace)
    return whys(workspace, [stored[run]]) if run in stored else []


def _found(
    workspace: Workspace, place: str, run: str, measure: str, part: str
) -> tuple[workflow.History, Series]:
    history = workflow.find_history(workspace, place)
    if history is None:
        names = [each.name for each in workflow.histories_of(workspace)]
        raise NotFound(f"unknown history {place!r}", nearest=nearest(place, names) or names)
    if history.lacking is not None:
        raise NotFound(f"{history.name}: {history.lacking}", fix=history.fix)
    series = history.find(run, measure, part)
    if series is None and not (run or measure or part):
        series = next(iter(history.series), None)
    if series is None:
        wanted = " ".join(each for each in (measure, f"of {run}" if run else "", part) if each)
        raise NotFound(
            f"{history.name} has no series {wanted}", fix="choose one from the list of trends"
        )
    return history, series


def _summary(series: Sequence[Series]) -> tuple[str, bool]:
    """Number of series and their problems, and whether there are any."""
    if not series:
        return "Measures over time, recorded by evaluate and gate with --history.", False
    total = counted(len(series), "series", "series")
    verdicts = [words.verdict_of(each) for each in series]
    problems = [
        counted(count, one, many)
        for word, one, many in _PROBLEMS
        if (count := sum(word in verdict for verdict in verdicts))
    ]
    if not any(each.lean.change is not None for each in series):
        problems.insert(0, "NOTHING WAS COMPARED (see the notes)")
    if not problems:
        return f"{total}: no drift found.", False
    return f"{total}: {', '.join(problems)}.", True


def _file(history: workflow.History) -> File:
    return File(history.name, len(history.points), history.lacking, history.fix, history.damaged)


def _notes(history: workflow.History, *, explained: bool) -> list[str]:
    """Notes on a history; those on the column of significance only if it is shown."""
    return [note for note in history.notes if explained or note not in words.ABOUT_SIGNIFICANT]


def _others(history: workflow.History, series: Series) -> dict[str, list[tuple[str, str, bool]]]:
    """Related series: of other measures, runs and slices."""
    own = series.run, series.measure, workflow.slice_of(series)
    keys = sorted({(each.run, each.measure, workflow.slice_of(each)) for each in history.series})
    out = {}
    for label, at in (("Measure", 1), ("Run", 0), ("Slice", 2)):
        out[label] = [
            (key[at] or "all queries", address_of(history.name, *key), key == own)
            for key in keys
            if all(key[other] == own[other] for other in range(3) if other != at)
        ][:_BESIDE]
    return out


def _lengths(address: str, last: int, total: int) -> list[tuple[str, str, bool]]:
    """Offered numbers of points, as far as they differ."""
    offered = [each for each in LENGTHS if each < total] + [
        each for each in LENGTHS if each >= total
    ][:1]
    shown = next((each for each in offered if each >= min(last, total)), offered[-1])
    return [(f"{min(each, total):,}", f"{address}&last={each}", each == shown) for each in offered]


def _back(site: AppState, back: str) -> Response:
    """Redirect to the page of trends that had the form."""
    is_trends_page = back == "/trends" or back.startswith(("/trends/", "/trends?"))
    where = back if is_trends_page else "/trends"
    return RedirectResponse(f"{site.settings.base}{where}#marks", 303)


def _may_remove_all(principal: Principal) -> bool:
    return principal.person.role == "owner"


def list_of_series(histories: Sequence[workflow.History], ask: Ask) -> Listed:
    rows = [
        (series.marks[-1], _series_row(each, series))
        for each in histories
        for series in each.series
    ]
    rows.sort(key=lambda row: _rank(row[1]["verdict"]))  # stable within a history

    def link(row: Mapping[str, Any]) -> str:
        return address_of(row["history"], row["run"], row["measure"], row["slice"] or "")

    columns = [
        Column("measure", "Measure", link=link, choices=True),
        Column("run", "Run", choices=True),
        Column("slice", "Slice", choices=True, optional=True),
        Column("newest", "Newest", "number"),
        Column("interval", "95 %", optional=True),
        Column("change", "Newest step", "signed"),
        Column("verdict", "Trend", choices=True),
        Column("when", "When", "time"),
        Column("points", "Points", "count"),
        Column("says", "In words", shown=False),
        Column("ci_low", "95 % from", "number", shown=False),
        Column("ci_high", "95 % to", "number", shown=False),
        Column("history", "History", choices=len(histories) > 1, shown=len(histories) > 1),
    ]
    frame = frame_of(rows, columns)
    return listed(frame, columns, ask, search=["measure", "run", "slice"])


def _know_editions(workspace: Workspace) -> None:
    """Let the editions be read whose grades points may have; the page has a note if that lasts."""
    if not workflow.editions_are_known(workspace):
        key = "editions of histories", workspace.store.url, workspace.golden.id
        with suppress(Busy):
            COMPUTING.run(key, lambda: workflow.load_edition_hashes(workspace), _WAIT_S)


def _linked(
    charts: Mapping[str, str], origins: Sequence[workflow.From], base: str
) -> dict[str, str]:
    """The charts, whose points lead to their runs; to the list if the run is not stored."""
    leads = {
        f"point-{at}": {"run": str(each.run)}
        for at, each in enumerate(origins)
        if each.run is not None
    }
    linked = {
        size: link_marks(svg, leads, lambda target: f"{base}/runs/{target['run']}")
        for size, svg in charts.items()
    }
    return {size: re.sub(r"#point-\d+", "#points", svg) for size, svg in linked.items()}


def list_of_points(
    workspace: Workspace,
    history: workflow.History,
    series: Series,
    origins: Sequence[workflow.From],
    gates: Sequence[int | None],
    ask: Ask,
) -> Listed:
    """The points of a series, newest first."""
    newest = origins[::-1]
    series_key = series.run, series.measure, series.attribute, series.slice
    rows = _rows((str(history.path), history.stamp, *series_key), _Points(series.marks))
    frame = rows.with_columns(
        pl.Series("kept_run", [each.run for each in newest], pl.Int64),
        pl.Series("graded", [each.edition for each in newest], pl.String),
        pl.Series("gate", gates[::-1], pl.Int64),
    ).with_columns(pl.when(pl.col("kept_run").is_not_null()).then(pl.lit("rankings")).alias("from"))

    def link(name: str, where: str) -> Callable[[Mapping[str, Any]], str | None]:
        return lambda row: (
            None if row[name] is None else f"{where}/{quote(str(row[name]), safe='')}"
        )

    editions = f"/golden/{quote(workspace.golden.name, safe='')}/editions"
    columns = [
        Column("time", "Time, UTC"),
        Column("commit", "Commit", longest=12, optional=True),
        Column("value", "Value", "number"),
        Column("interval", "95 %", optional=True),
        Column("n", "Queries", "count", optional=True),
        Column("change", "Step", "signed"),
        Column("apart", "Significant", "flag", shown=bool(frame["apart"].any())),
        Column(
            "verdict", "Gate or problem", choices=True, optional=True, link=link("gate", "/gates")
        ),
        Column("differs", "What differs", optional=True),
        Column("break", "Break", "flag", shown=False),
        Column("from", "Stored run", link=link("kept_run", "/runs"), optional=True),
        Column("graded", "Edition", link=link("graded", editions), optional=True),
        Column("time_us", "When", "time", shown=False),
        Column("ci_low", "95 % from", "number", shown=False),
        Column("ci_high", "95 % to", "number", shown=False),
        Column("counts", "Counts", "flag", shown=False),
        Column("trouble", "Problem", shown=False),
        Column("kept_run", "Id of the stored run", "count", shown=False),
        Column("gate", "Number of the gate", "count", shown=False),
    ]
    return listed(frame, columns, ask, search=["commit", "time"])


@dataclass(frozen=True)
class _Points:
    """Points excluded from the cache key."""

    marks: Sequence[Mark] = field(compare=False)


@lru_cache(32)
def _rows(_key: tuple[str | None, ...], points: _Points) -> pl.DataFrame:
    """The rows of the points, newest first; cached, as ten thousand take a tenth of a second."""
    return frame_of(
        ((mark, _point_row(mark)) for mark in reversed(points.marks)),
        text="time commit interval verdict differs trouble",
        whole="n time_us",
        real="value change ci_low ci_high",
        flag="apart break counts",
    )


def _point_row(mark: Mark) -> dict[str, Any]:
    phrases = [words.verdict(mark), mark.trouble or ("no value" if mark.value is None else "")]
    return {
        "time": words.clock(mark.time),
        "interval": interval_of(mark) or None,
        "apart": mark.told_apart,
        "verdict": ": ".join(each for each in phrases if each).replace("\N{NO-BREAK SPACE}", " ")
        or None,
        "differs": _differs(mark) or None,
        "break": mark.breaks,
        "time_us": time_of(mark.time),
    }


def _series_row(history: workflow.History, series: Series) -> dict[str, Any]:
    newest = series.marks[-1]
    return {
        "run": series.run,
        "measure": series.measure,
        "slice": workflow.slice_of(series) or None,
        "newest": newest.value,
        "interval": interval_of(newest) or None,
        "verdict": words.verdict_of(series),
        "says": words.sentence(series),
        "when": time_of(newest.time),
        "points": len(series.marks),
        "history": history.name,
    }


def _rank(verdict: str) -> int:
    ranks = {"WORSE": 0, "DRIFT": 0, "cannot": 1, "may be": 2}
    return next((rank for word, rank in ranks.items() if word in verdict), 3)


def interval_of(mark: Mark) -> str:
    """The 95 % interval of a point, in words; empty without one."""
    if mark.ci_low is None or mark.ci_high is None:
        return ""
    return span(mark.ci_low, mark.ci_high)


def _differs(mark: Mark) -> str:
    """Differences from the previous point, breaks first."""
    break_ = f"break: {words.broke(mark)}" if mark.breaks else ""
    return "; ".join(each for each in (break_, words.besides(mark)) if each)


def address_of(history: str, run: str, measure: str = "", part: str = "") -> str:
    """The address of a series; without a measure, of the first of the run."""
    others = {"measure": measure, "slice": part}
    params = {"run": run, **{name: value for name, value in others.items() if value}}
    return f"/trends/{quote(history, safe='')}?{urlencode(params)}"
