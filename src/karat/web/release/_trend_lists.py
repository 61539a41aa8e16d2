"""Lists of trends: series with their newest values, points with what they were computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

import polars as pl

from karat.reports.phrases import trend as words
from karat.reports.phrases.report import span
from karat.tables.release.trend import Mark, Series
from karat.web.framework.jobs import COMPUTING, Busy
from karat.web.framework.lists import Ask, Column, Listed, listed
from karat.web.framework.state import AppState
from karat.workflows.release.stored_trends import (
    History,
    editions_are_known,
    kept_from,
    know_editions,
    points_of,
    slice_of,
)
from karat.workflows.workspace.annotations import time_of

_WAIT_S = 5.0  # for editions to be known: the first view after a start has their column too
EDITIONS_WAIT = (
    "Which edition each point's grades are of is still being computed: reload the page in a minute."
)
_SERIES: dict[str, Any] = {
    "run": pl.String,
    "measure": pl.String,
    "slice": pl.String,
    "newest": pl.Float64,
    "interval": pl.String,
    "change": pl.Float64,
    "verdict": pl.String,
    "says": pl.String,
    "when": pl.Int64,
    "points": pl.Int64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "history": pl.String,
}
_POINTS: dict[str, Any] = {
    "time": pl.String,
    "commit": pl.String,
    "value": pl.Float64,
    "interval": pl.String,
    "n": pl.Int64,
    "change": pl.Float64,
    "apart": pl.Boolean,
    "verdict": pl.String,
    "differs": pl.String,
    "break": pl.Boolean,
    "time_us": pl.Int64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "counts": pl.Boolean,
    "trouble": pl.String,
}


def list_of_series(found: Sequence[History], ask: Ask) -> Listed:
    """Every series of histories, the worst problem first."""
    rows = [_series_row(each, series) for each in found for series in each.series]
    rows.sort(key=lambda row: _rank(row["verdict"]))  # stable: as each history has them
    frame = pl.DataFrame(rows, schema=_SERIES)

    def link(row: Mapping[str, Any]) -> str:
        return address_of(row["history"], row["run"], row["measure"], row["slice"] or "")

    columns = [
        Column("measure", "measure", link=link, choices=True),
        Column("run", "run", choices=True),
        Column("slice", "slice", choices=True, shown=frame["slice"].drop_nulls().len() > 0),
        Column("newest", "newest", "number"),
        Column("interval", "95 %", shown=frame["interval"].drop_nulls().len() > 0),
        Column("change", "newest step", "signed"),
        Column("verdict", "trend", choices=True),
        Column("when", "when", "time"),
        Column("points", "points", "count"),
        Column("says", "in words", shown=False),
        Column("ci_low", "95 % from", "number", shown=False),
        Column("ci_high", "95 % to", "number", shown=False),
        Column("history", "history", choices=len(found) > 1, shown=len(found) > 1),
    ]
    return listed(frame, columns, ask, search=["measure", "run", "slice"])


def list_of_points(site: AppState, history: History, series: Series, ask: Ask) -> Listed:
    """The points of a series, the newest first."""
    opened = site.opened(site.workspace.golden.name)
    if not editions_are_known(opened):
        key = "editions of histories", opened.store.url, opened.golden.id
        with suppress(Busy):  # then the page says so
            COMPUTING.run(key, lambda: know_editions(opened), _WAIT_S)
    came = kept_from(opened, [point for point, _ in points_of(history, series)])[::-1]
    own = series.run, series.measure, series.attribute, series.slice
    known = _rows((str(history.path), history.stamp, *own), _Held(series.marks))
    frame = known.with_columns(
        pl.Series("kept_run", [each.run for each in came], pl.Int64),
        pl.Series("graded", [each.edition for each in came], pl.String),
    ).with_columns(pl.when(pl.col("kept_run").is_not_null()).then(pl.lit("rankings")).alias("from"))

    def run_link(row: Mapping[str, Any]) -> str | None:
        return None if row["kept_run"] is None else f"/runs/{row['kept_run']}"

    def edition_link(row: Mapping[str, Any]) -> str | None:
        if row["graded"] is None:
            return None
        where = f"/golden/{quote(opened.golden.name, safe='')}/editions"
        return f"{where}/{quote(row['graded'], safe='')}"

    def any_of(name: str) -> bool:
        return frame[name].drop_nulls().len() > 0

    columns = [
        Column("time", "time, UTC"),
        Column("commit", "commit", longest=12, shown=any_of("commit")),
        Column("value", "value", "number"),
        Column("interval", "95 %", shown=any_of("interval")),
        Column("n", "queries", "count", shown=any_of("n")),
        Column("change", "step", "signed"),
        Column("apart", "told apart", "flag", shown=bool(frame["apart"].any())),
        Column("verdict", "gate or trouble", choices=True, shown=any_of("verdict")),
        Column("differs", "what differs", shown=any_of("differs")),
        Column("break", "break", "flag", shown=False),
        Column("from", "kept run", link=run_link, shown=any_of("kept_run")),
        Column("graded", "grades of", link=edition_link, shown=any_of("graded")),
        Column("time_us", "when", "time", shown=False),
        Column("ci_low", "95 % from", "number", shown=False),
        Column("ci_high", "95 % to", "number", shown=False),
        Column("counts", "counts", "flag", shown=False),
        Column("trouble", "trouble", shown=False),
        Column("kept_run", "number of the kept run", "count", shown=False),
    ]
    return listed(frame, columns, ask, search=["commit", "time"])


@dataclass(frozen=True)
class _Held:
    """Points beside the key that tells them from others."""

    marks: Sequence[Mark] = field(compare=False)


@lru_cache(32)
def _rows(_key: tuple[str | None, ...], held: _Held) -> pl.DataFrame:
    """What is said of each point, the newest first; ten thousand take a tenth of a second."""
    return pl.DataFrame([_point_row(mark) for mark in reversed(held.marks)], schema=_POINTS)


def _point_row(mark: Mark) -> dict[str, Any]:
    said = [words.verdict(mark), mark.trouble or ("no value" if mark.value is None else "")]
    return {
        "time": words.clock(mark.time),
        "commit": mark.commit,
        "value": mark.value,
        "interval": interval_of(mark) or None,
        "n": mark.n,
        "change": mark.change,
        "apart": mark.told_apart,
        "verdict": ": ".join(each for each in said if each).replace("\N{NO-BREAK SPACE}", " ")
        or None,
        "differs": _differs(mark) or None,
        "break": mark.breaks,
        "time_us": time_of(mark.time),
        "ci_low": mark.ci_low,
        "ci_high": mark.ci_high,
        "counts": mark.counts,
        "trouble": mark.trouble,
    }


def _series_row(history: History, series: Series) -> dict[str, Any]:
    newest = series.marks[-1]
    return {
        "run": series.run,
        "measure": series.measure,
        "slice": slice_of(series) or None,
        "newest": newest.value,
        "interval": interval_of(newest) or None,
        "change": newest.change,
        "verdict": words.verdict_of(series),
        "says": words.sentence(series),
        "when": time_of(newest.time),
        "points": len(series.marks),
        "ci_low": newest.ci_low,
        "ci_high": newest.ci_high,
        "history": history.name,
    }


def _rank(verdict: str) -> int:
    for rank, words_of in enumerate((("WORSE", "DRIFT"), ("cannot",), ("may be",))):
        if any(word in verdict for word in words_of):
            return rank
    return 3


def interval_of(mark: Mark) -> str:
    """The 95 % interval of a point, in words; empty without one."""
    if mark.ci_low is None or mark.ci_high is None:
        return ""
    return span(mark.ci_low, mark.ci_high)


def _differs(mark: Mark) -> str:
    """What is not as it was at the point before, a break first."""
    broke = f"break: {words.broke(mark)}" if mark.breaks else ""
    return "; ".join(each for each in (broke, words.besides(mark)) if each)


def address_of(history: str, run: str, measure: str, part: str) -> str:
    """Where a series is, without the base."""
    said = {"run": run, "measure": measure} | ({"slice": part} if part else {})
    return f"/trends/{quote(history, safe='')}?{urlencode(said)}"
