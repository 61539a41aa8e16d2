"""Evidence of a log, computed by an engine in batches of users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals as nw
import polars as pl

from karat.engines.frames.engine import Engine
from karat.online import histograms, moments
from karat.online.evidence import (
    COUNTS,
    WINDOW,
    WINDOW_COLUMN,
    Cut,
    Evidence,
    attributes_of,
    column_of,
    cuttable,
    named,
    together,
)
from karat.online.metrics.entry import Distribution, Facts, Metric, Ratio
from karat.tables.online.events import ATTRIBUTE
from karat.workflows.online.filters import Only, narrowed, tests_of
from karat.workflows.online.reducers import FactsOf, Reformulations, Scope, count, facts_of

TABLES: tuple[Facts, ...] = ("searches", "clicks", "sessions")


@dataclass(frozen=True, kw_only=True)
class Selection(Scope):
    """The part of a log that is evaluated; clicks and sessions count on the day of their search."""

    engine: Engine  # an open engine
    # Only searches with these values, and their clicks, and sessions that begin with one;
    # `Evidence.counts` covers all
    only: Only | None = None
    classes: pl.DataFrame | None = None  # `query_key` and `class`, each query once; for `class`

    @cached_property
    def tests(self) -> dict[str, tuple[str, str | int | None]]:
        return tests_of(self.log, self.only or {}, self.classes)

    def scope(self, columns: Sequence[str] = (), **more: Any) -> Scope:
        """What to read for the filter and further columns, of which attributes are read."""
        tested = (column for column, _ in self.tests.values())
        names = [each for each in (*columns, *tested) if each.startswith(ATTRIBUTE)]
        return replace(self, attributes=tuple(dict.fromkeys(names)), **more)


def gather(
    selection: Selection,
    metrics: Sequence[Metric],
    cuts: Sequence[Cut],
    progress: Callable[[int, int], None] | None = None,
) -> Evidence:
    """Moments and histograms of a log, for metrics in the slices of cuts."""
    evidence, counts = _gathered(selection, metrics, cuts, progress)
    return replace(evidence, counts=_summed(counts))


def gather_windows(
    selection: Selection,
    metrics: Sequence[Metric],
    cuts: Sequence[Cut],
    progress: Callable[[int, int], None] | None = None,
) -> dict[int, Evidence]:
    """The evidence of each window that begins at ``selection.starts``, from one reading."""
    tagged: list[Cut] = [(WINDOW, *cut) for cut in cuts]
    evidence, counts = _gathered(selection, metrics, tagged, progress)
    tables = [evidence.moments, evidence.histograms, evidence.positions]
    parts = [{cut: _by_window(table[WINDOW, *cut], WINDOW) for cut in cuts} for table in tables]
    by_window = _by_window(counts.cast({WINDOW_COLUMN: pl.String}), WINDOW_COLUMN)

    def of(start: int) -> Evidence:
        moments_of, histograms_of, positions_of = (
            {
                cut: frames.get(str(start), table[WINDOW, *cut].clear().drop(WINDOW))
                for cut, frames in part.items()
            }
            for part, table in zip(parts, tables, strict=True)
        )
        counts_of = _summed(by_window.get(str(start), counts.clear()))
        return Evidence(moments_of, histograms_of, positions_of, counts_of)

    return {start: of(start) for start in selection.starts}


def _by_window(frame: pl.DataFrame, column: str) -> dict[str, pl.DataFrame]:
    parts = frame.partition_by(column, as_dict=True, include_key=False)
    return {str(start): part for (start,), part in parts.items()}


def _summed(counts: pl.DataFrame) -> dict[str, int]:
    summed = dict(counts.group_by("name").agg(pl.col("count").sum()).iter_rows())
    return {name: int(summed.get(name, 0)) for name in COUNTS}


def _gathered(
    selection: Selection,
    metrics: Sequence[Metric],
    cuts: Sequence[Cut],
    progress: Callable[[int, int], None] | None,
) -> tuple[Evidence, pl.DataFrame]:
    """Evidence, and the rows of its counts."""
    log, engine = selection.log, selection.engine
    scope = selection.scope(attributes_of(cuts))
    seen = Reformulations()
    table = None if selection.classes is None else engine.table(selection.classes)
    parts, counts = [], []
    done = 0
    for events in engine.batches(log, scope.columns, scope.since, scope.until):
        batch = facts_of(events, engine, scope, seen)
        part, counted = _reduced(batch, selection, metrics, cuts, table)
        del batch  # free the batch before the next is read
        parts.append(part)
        counts.append(counted)
        # Events of bots and outside the period are done too, but not counted.
        done = min(done + _summed(counted)["events"], log.rows)
        if progress is not None:
            progress(done, log.rows)
    if progress is not None:
        progress(log.rows, log.rows)
    columns = {**dict.fromkeys(scope.tags, pl.Int64), "name": pl.String, "count": pl.Int64}
    return together(parts, cuts), pl.concat([pl.DataFrame(schema=columns), *counts])


def _reduced(
    batch: FactsOf,
    selection: Selection,
    metrics: Sequence[Metric],
    cuts: Sequence[Cut],
    classes: nw.LazyFrame[Any] | None,
) -> tuple[Evidence, pl.DataFrame]:
    engine, tests = selection.engine, selection.tests
    by_class = "class" in tests or any("class" in cut for cut in cuts)
    tables: dict[str, nw.LazyFrame[Any]] = {}
    columns = {cut: [column_of(each) for each in cut] for cut in cuts}
    moment_frames: dict[Cut, list[pl.DataFrame]] = {cut: [] for cut in cuts}
    bins: dict[Cut, list[pl.DataFrame]] = {cut: [] for cut in cuts}
    for name in TABLES:
        facts: nw.LazyFrame[Any] = getattr(batch, name)
        if by_class:
            facts = classed(facts, classes)
        facts = tables[name] = engine.keep(cuttable(narrowed(facts, tests), cuts))
        of_facts = [each for each in metrics if each.compute.facts == name]
        ratios = [each for each in of_facts if isinstance(each.compute, Ratio)]
        if ratios:
            cut_columns = sorted({column for each in columns.values() for column in each})
            rows = engine.keep(moments.rows(facts, ratios, cut_columns))
            for cut in cuts:
                wide = engine.collect(moments.moments(rows, ratios, columns[cut]))
                moment_frames[cut].append(moments.long(named(wide, cut), ratios, cut))
        distributions = {
            each.compute.name: each.compute
            for each in of_facts
            if isinstance(each.compute, Distribution)
        }
        for name_of, distribution in distributions.items():
            for cut in cuts:
                counted = engine.collect(
                    histograms.histogram(facts, distribution, columns[cut])
                ).with_columns(name=pl.lit(name_of))
                bins[cut].append(
                    named(counted, cut).select(histograms.empty_histogram(cut).columns)
                )
    places = {
        cut: named(engine.collect(histograms.positions(tables["clicks"], columns[cut])), cut)
        for cut in cuts
    }
    tags = selection.tags
    added = (count(name, tables[name], nw.len(), tags) for name in ("clicks", "sessions"))
    evidence = Evidence(
        {cut: moments.together(moment_frames[cut], cut) for cut in cuts},
        {cut: pl.concat([histograms.empty_histogram(cut), *bins[cut]]) for cut in cuts},
        places,
        {},
    )
    return evidence, engine.collect(nw.concat([batch.counts, *added]))


def classed(facts: nw.LazyFrame[Any], classes: nw.LazyFrame[Any] | None) -> nw.LazyFrame[Any]:
    """Facts joined with the class of their query."""
    if classes is None:
        return facts.with_columns(nw.lit(None).cast(nw.String).alias("class"))
    return facts.join(classes, on="query_key", how="left")
