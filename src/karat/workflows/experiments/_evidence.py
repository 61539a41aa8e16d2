"""Evidence of an experiment from a log, computed by an engine in batches of users."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import polars as pl

from karat.engines.frames.engine import ROWS_AT_ONCE, Engine
from karat.experiments import moments
from karat.experiments.evidence import FIRST_CUT, OWN, Evidence, empty_histogram, together
from karat.experiments.moments import empty_queries
from karat.online import histograms
from karat.online.evidence import Cut, attributes_of, column_of, cuttable, named
from karat.online.flags import USER, flag
from karat.online.metrics.entry import Distribution, Facts, Metric, Ratio
from karat.online.rules import Rules
from karat.tables.experiments.experiment import ExperimentPlan
from karat.tables.online.events import ATTRIBUTE, EventLog
from karat.workflows.online.evidence import TABLES, classed
from karat.workflows.online.reducers import FactsOf, Reformulations, Scope, facts_of


@dataclass(frozen=True)
class Reading:
    """What is read, and how."""

    log: EventLog
    engine: Engine  # an open engine
    plan: ExperimentPlan
    rules: Rules = Rules()  # noqa: RUF009 - frozen
    classes: pl.DataFrame | None = None  # `query_key` and `class`, each query once
    exposed: pl.DataFrame | None = None  # `user_key`, `time_us`, `arm`; None: by searches
    # `query_key` of the queries whose answers differ between the arms; None: the plan's trigger
    differ: pl.DataFrame | None = None

    @property
    def triggered(self) -> bool:
        """Whether users count from the first search on whose answers differ."""
        return self.plan.trigger is not None or self.differ is not None


def gather(
    reading: Reading,
    metrics: Mapping[Cut, Sequence[Metric]],
    progress: Callable[[int, int], None] | None = None,
) -> Evidence:
    """The evidence of an experiment, for the metrics of each cut; () is all."""
    log, plan, cuts = reading.log, reading.plan, list(metrics)
    attributes = set(attributes_of(_of_log(cuts)))
    if plan.trigger is not None:
        attributes.add(ATTRIBUTE + plan.trigger)
    scope = Scope(log, reading.rules, None, plan.end, tuple(sorted(attributes)))
    seen, parts = Reformulations(), []
    batches = reading.engine.batches(log, scope.columns, scope.since, scope.until)
    for number, events in enumerate(batches, start=1):
        batch = facts_of(events, reading.engine, scope, seen)
        parts.append(_reduced(reading, events, batch, metrics))
        del batch  # free it before the next is read
        if progress is not None:
            progress(min(number * ROWS_AT_ONCE, log.rows), log.rows)
    if progress is not None:
        progress(log.rows, log.rows)
    evidence = together(parts, cuts)
    return evidence if reading.exposed is None else _with_absent(evidence, reading)


def _with_absent(evidence: Evidence, reading: Reading) -> Evidence:
    """Counts with the exposed users who have no search: they are in the arms too."""
    assert reading.exposed is not None
    plan = reading.plan
    arms = pl.col("arm").is_in([plan.control, plan.treatment])
    users = reading.exposed.filter(arms).group_by("user_key").agg(pl.col("arm").unique())
    alone = users.filter(pl.col("arm").list.len() == 1).select(pl.col("arm").list.first())
    every = dict(alone["arm"].value_counts().iter_rows())
    whole = (every.get(plan.control, 0), every.get(plan.treatment, 0))
    searching = evidence.counts["users"]
    absent = (whole[0] - searching[0], whole[1] - searching[1])
    counts = {**evidence.counts, "users": whole, "absent": absent}
    return replace(evidence, counts=counts, both=users.height - alone.height)


def _reduced(
    reading: Reading,
    events: nw.LazyFrame[Any],
    batch: FactsOf,
    metrics: Mapping[Cut, Sequence[Metric]],
) -> Evidence:
    engine, plan, cuts = reading.engine, reading.plan, list(metrics)
    exposed = engine.keep(_exposures(reading, batch.searches))
    tables = _facts_of_users(reading, batch, exposed, cuts)
    ratios: dict[Cut, list[pl.DataFrame]] = {cut: [moments.empty(cut)] for cut in cuts}
    bins: dict[Cut, list[pl.DataFrame]] = {cut: [empty_histogram(cut)] for cut in cuts}
    for cut, asked in metrics.items():
        columns = [OWN[cut]] if cut in OWN else [column_of(each) for each in cut]
        for name, facts in tables.items():
            of_ratios = _ratios(asked, name)
            if of_ratios:
                before = cut in ((), FIRST_CUT)  # slices are not adjusted
                plan_of = moments.reduced(facts, of_ratios, columns, plan.caps, before=before)
                wide = _named(engine.collect(plan_of), cut)
                ratios[cut].append(moments.long(wide, of_ratios, cut))
            after = moments.after(facts)
            for of, distribution in _distributions(asked, name).items():
                by = [*columns, moments.ARM]
                counted = engine.collect(histograms.histogram(after, distribution, by))
                table = _named(counted, cut).rename({moments.ARM: "arm"})
                table = table.with_columns(name=pl.lit(of))
                bins[cut].append(table.select(empty_histogram(cut).columns))
    queries = [empty_queries()]
    for name, facts in tables.items():
        here = _ratios(metrics[FIRST_CUT], name)
        if here:
            queries.append(
                moments.long_queries(engine.collect(moments.by_query(facts, here)), here)
            )
    counts, both, first, last = _counted(reading, events, exposed, tables["searches"])
    whole = [moments.empty(())]
    if reading.triggered:
        everyone = engine.keep(
            moments.exposures(batch.searches, plan.control, plan.treatment, plan.start)
        )
        size = everyone.group_by(moments.ARM).agg(exposed=nw.len().cast(nw.Int64))
        counts |= _of_arms(engine.collect(size), moments.ARM, plan)
        for name, facts in _facts_of_users(reading, batch, everyone, [()]).items():
            here = _ratios(metrics[()], name)
            if here:
                wide = engine.collect(moments.reduced(facts, here, (), plan.caps, before=False))
                whole.append(moments.long(wide, here, ()))
    return Evidence(
        {cut: moments.together(ratios[cut], cut) for cut in cuts},
        {cut: pl.concat(bins[cut]) for cut in cuts},
        counts,
        both,
        first,
        last,
        moments.together(whole, ()),
        pl.concat(queries),
    )


def _facts_of_users(
    reading: Reading, batch: FactsOf, exposed: nw.LazyFrame[Any], cuts: Sequence[Cut]
) -> dict[Facts, nw.LazyFrame[Any]]:
    """The facts of exposed users, ready to be sliced."""
    by_class = any("class" in cut for cut in cuts)
    classes = None if reading.classes is None else reading.engine.table(reading.classes)
    tables: dict[Facts, nw.LazyFrame[Any]] = {}
    for name in TABLES:
        facts: nw.LazyFrame[Any] = getattr(batch, name)
        facts = moments.of_users(
            classed(facts, classes) if by_class else facts,
            exposed,
            sessions=name == "sessions",
            window_us=reading.plan.window_us,
            before_us=reading.plan.before_us,
            last_us=reading.log.last_us or 0,
        )
        kept = cuttable(facts, _of_log(cuts))
        tables[name] = reading.engine.keep(kept)
    return tables


def _of_arms(table: pl.DataFrame, column: str, plan: ExperimentPlan) -> dict[str, tuple[int, int]]:
    """The counts of control and treatment, from a row for each arm; 0 without a row."""
    rows = {row[column]: row for row in table.iter_rows(named=True)}
    control, treatment = (rows.get(name, {}) for name in (plan.control, plan.treatment))
    return {
        name: (control.get(name, 0), treatment.get(name, 0))
        for name in table.columns
        if name != column
    }


def _of_log(cuts: Sequence[Cut]) -> list[Cut]:
    """Those by attributes and classes."""
    return [cut for cut in cuts if cut not in OWN]


def _ratios(metrics: Sequence[Metric], facts: Facts) -> list[Metric]:
    computes = ((metric, metric.compute) for metric in metrics)
    return [metric for metric, of in computes if isinstance(of, Ratio) and of.facts == facts]


def _distributions(metrics: Sequence[Metric], facts: Facts) -> dict[str, Distribution]:
    computes = (metric.compute for metric in metrics)
    return {of.name: of for of in computes if isinstance(of, Distribution) and of.facts == facts}


def _named(table: pl.DataFrame, cut: Cut) -> pl.DataFrame:
    """The columns of a cut by its dimensions, as text."""
    if cut in OWN:
        return table.rename({OWN[cut]: cut[0]}).with_columns(pl.col(cut[0]).cast(pl.String))
    return named(table, cut)


def _exposures(reading: Reading, searches: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    plan = reading.plan
    if reading.exposed is None:
        if reading.differ is not None:
            keys = reading.engine.table(reading.differ)
            searches = searches.join(keys, on="query_key", how="semi")
        elif plan.trigger is not None:
            searches = moments.triggered(searches, ATTRIBUTE + plan.trigger)
        return moments.exposures(searches, plan.control, plan.treatment, plan.start)
    table = reading.engine.table(reading.exposed)
    users = searches.select(USER).unique()
    return moments.exposures_of(
        table.join(users, on=USER, how="semi"), plan.control, plan.treatment
    )


def _counted(
    reading: Reading,
    events: nw.LazyFrame[Any],
    exposed: nw.LazyFrame[Any],
    searches: nw.LazyFrame[Any],
) -> tuple[dict[str, tuple[int, int]], int, int | None, int | None]:
    """Counts by arm, users in both arms, and the first and last day of exposure."""
    engine, plan, log = reading.engine, reading.plan, reading.log
    window = plan.window_us or 0
    users = engine.collect(
        exposed.with_columns(
            _closed=flag(nw.col("first_us") + window <= (log.last_us or 0)),
        )
        .group_by(moments.ARM)
        .agg(users=nw.len().cast(nw.Int64), closed=nw.col("_closed").sum().cast(nw.Int64))
    )
    shown = moments.after(searches)
    unknown = flag(nw.col("seen").is_null() & (nw.col("completed") == 1))
    logged = engine.collect(
        shown.with_columns(_unknown=unknown)
        .group_by(moments.ARM)
        .agg(
            searches=nw.len().cast(nw.Int64),
            unknown_results=nw.col("_unknown").sum().cast(nw.Int64),
        )
    )
    tables = [(users, moments.ARM), (logged, moments.ARM)]
    if log.bots:  # by user: one bot makes any number of events
        of_arms = events.filter(nw.col("arm").is_in([plan.control, plan.treatment]))
        everyone = of_arms.with_columns(_bot=flag(nw.col("bot"))).group_by(USER, "arm")
        robots = (
            everyone.agg(_bot=nw.col("_bot").max())
            .group_by("arm")
            .agg(everyone=nw.len().cast(nw.Int64), bots=nw.col("_bot").sum().cast(nw.Int64))
        )
        tables.append((engine.collect(robots), "arm"))
    counts: dict[str, tuple[int, int]] = {}
    for table, column in tables:
        counts |= _of_arms(table, column, plan)
    both = int(users.filter(pl.col(moments.ARM).is_null())["users"].sum())
    days = engine.collect(
        shown.select(first=nw.col("local_day").min(), last=nw.col("local_day").max())
    )
    first, last = days.row(0) if days.height else (None, None)
    return counts, both, first, last
