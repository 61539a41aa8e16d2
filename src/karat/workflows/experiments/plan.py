"""Planning an experiment from a log: users, smallest effects, metrics that may decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from karat.engines.frames.engine import Engine
from karat.engines.frames.opening import open_engine
from karat.errors import InputError, UsageError
from karat.experiments import moments, planning
from karat.online import histograms
from karat.online.health import NO_REAL_PEOPLE
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.expressions import why_unknown
from karat.online.rules import Rules
from karat.tables.experiments.planning import Certificate, Detectable, Planning
from karat.tables.online.events import EventLog
from karat.workflows.online.evaluate import event_log
from karat.workflows.online.evidence import TABLES
from karat.workflows.online.reducers import FactsOf, Reformulations, Scope, facts_of

METRICS = ("SAT", "CTR", "MRCR", "Abandonment", "ZeroResults", "Reformulation", "AddToCart",
           "Conversion")  # fmt: skip
"""Metrics that are planned by default, if the log has them."""
_MOST_WEEKS = 8
_BUCKET = ("user_bucket",)


def plan_experiment(
    events: Any,
    metrics: Sequence[str] = (),
    *,
    mapping: Any = None,
    timezone: str | None = None,
    engine: str = "polars",
    master: str | None = None,
    rules: Rules | None = None,
    seed: int = 0,
) -> Planning:
    """The smallest effects that an experiment finds, and how metrics behave on known truths.

    Args:
        events: A log, as ``karat.evaluate_online`` takes it; its arms do not matter.
        metrics: Metrics; the usual ones that the log has data for if none are given.
        mapping: The meaning of columns and actions, as for ``karat online import``.
        timezone: Time zone in which days begin; UTC if None.
        engine: ``polars`` | ``duckdb`` | ``spark``.
        master: Spark master.
        rules: Of sessions and searches.
        seed: Of the splits.

    Raises:
        UsageError: unknown metric.
        InputError: the log cannot be read, or has less than a week of events.
    """
    with (
        event_log(events, mapping=mapping, timezone=timezone) as (log, notes),
        open_engine(engine, master=master) as opened,
    ):
        return _planned(log, opened, metrics, rules or Rules(), seed, notes)


def _planned(
    log: EventLog,
    engine: Engine,
    names: Sequence[str],
    rules: Rules,
    seed: int,
    notes: Sequence[str],
) -> Planning:
    found = registry.find_all(names or METRICS)
    for metric in found:
        if names and not isinstance(metric.compute, Ratio):
            raise UsageError(
                f"{metric.name} is a quantile or a mean of times, which cannot be planned yet",
                fix="plan a share or a rate, such as SAT",
            )
        if names and not metric.point:
            raise UsageError(f"{metric.name} has no single value to plan", fix="leave it out")
    left_out = [f"{m.name}: {why_unknown(m, log)}" for m in found if why_unknown(m, log)]
    known = [m for m in found if not why_unknown(m, log) and m.point]
    if log.first_day is None or log.last_day is None or log.last_day - log.first_day < 6:
        raise InputError("the log has less than a week of events", fix="import at least a week")
    weeks = min((log.last_day - log.first_day + 1) // 7, _MOST_WEEKS)
    tables, worse = _reduced(log, engine, known, rules, weeks)
    rows: list[Detectable] = []
    certificates: list[Certificate] = []
    rng = np.random.default_rng(seed)
    for metric in known:
        for week in range(1, weeks + 1):
            buckets = planning.by_bucket(tables[week], metric.name)
            rows += planning.smallest(metric, buckets, week) if buckets else []
        planted = planning.by_bucket(worse, metric.name)
        buckets = planning.by_bucket(tables[weeks], metric.name)
        of_searches = metric.compute.facts == "searches" and len(planted) == len(buckets)
        certificates.append(
            planning.certify(metric, buckets, planted if of_searches else None, rng)
        )
    users = [
        max((row.users for row in rows if row.weeks == week and row.share == 0.5), default=0)
        for week in range(1, weeks + 1)
    ]
    return Planning(
        rows=rows,
        certificates=certificates,
        weeks=weeks,
        users_by_week=users,
        degraded=planning.DEGRADED,
        notes=[*([NO_REAL_PEOPLE] if log.simulated else []), *notes, *left_out],
        simulated=log.simulated,
    )


def _reduced(
    log: EventLog, engine: Engine, metrics: Sequence[Metric], rules: Rules, weeks: int
) -> tuple[dict[int, pl.DataFrame], pl.DataFrame]:
    """Moments by bucket in the last 1, 2, … weeks, and those of the degraded log in all of them."""
    assert log.last_day is not None
    scope = Scope(log, rules, log.last_day - 7 * weeks + 1, log.last_day)
    spans: dict[int, list[pl.DataFrame]] = {week: [] for week in range(1, weeks + 1)}
    worse: list[pl.DataFrame] = []
    seen = Reformulations()
    for events in engine.batches(log, scope.columns, scope.since, scope.until):
        batch = facts_of(events, engine, scope, seen)
        places = engine.collect(histograms.positions(batch.clicks, ()))
        kept = planning.kept_of(places)
        for week, parts in spans.items():
            first = log.last_day - 7 * week + 1
            parts.append(_by_bucket(batch, engine, metrics, first))
        if kept is not None:
            swapped = planning.degraded(batch.searches, planning.DEGRADED, kept)
            of_searches = [m for m in metrics if m.compute.facts == "searches"]
            changed = FactsOf(swapped, batch.clicks, batch.sessions, batch.counts)
            worse.append(_by_bucket(changed, engine, of_searches, scope.first_day or 0))
        del batch
    together = {week: moments.together(parts, _BUCKET) for week, parts in spans.items()}
    return together, moments.together(worse, _BUCKET)


def _by_bucket(
    batch: FactsOf, engine: Engine, metrics: Sequence[Metric], first_day: int
) -> pl.DataFrame:
    parts = [moments.empty(_BUCKET)]
    for name in TABLES:
        here = [metric for metric in metrics if metric.compute.facts == name]
        if not here:
            continue
        facts: nw.LazyFrame[Any] = getattr(batch, name)
        all_users = moments.everyone(facts.filter(nw.col("local_day") >= first_day))
        wide = engine.collect(moments.reduced(all_users, here, _BUCKET, {}, before=False))
        parts.append(
            moments.long(wide.with_columns(pl.col("user_bucket").cast(pl.String)), here, _BUCKET)
        )
    return pl.concat(parts)
