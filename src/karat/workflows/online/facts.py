"""The rows behind a figure: searches, clicks or sessions of a slice, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import narwhals as nw
import polars as pl

from karat.engines.frames.engine import Engine
from karat.engines.frames.files import dtype_of
from karat.errors import UsageError
from karat.online.flags import USER
from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.registry import find
from karat.online.rules import Rules
from karat.tables.online.events import ATTRIBUTE, EventLog
from karat.workflows.online.filters import Only, narrowed, tests_of
from karat.workflows.online.reducers import FactsOf, Reformulations, Scope, facts_of

Table = Literal["searches", "clicks", "sessions"]
_NUMBER = {"searches": "intent", "clicks": "intent", "sessions": "session"}


def look(
    log: EventLog,
    engine: Engine,  # an open engine
    table: Table,  # which facts
    where: Only,  # the slice, as in `OnlineResult.slice`; None matches values not logged
    *,
    rules: Rules = Rules(),  # noqa: B008  (frozen)
    first_day: int | None = None,  # first local day, in days since 1970-01-01; None for all
    last_day: int | None = None,  # last local day
    only: str | None = None,
    limit: int = 50,  # maximum number of rows
    offset: int = 0,  # number of rows to skip
    classes: pl.DataFrame | None = None,
) -> tuple[pl.DataFrame, int]:
    """The facts behind a figure.

    Args:
        rules: Rules of sessions and searches.
        only: Name of a metric: rows that its numerator counts; ``!CTR``: rows that its denominator
            counts and its numerator does not.
        classes: ``query_key`` and ``class``, each query once; needed for ``class``.

    Returns:
        The rows, newest first, with the table's columns, ``session_us`` (start of the session, as
        its number depends on the days; null if it began on an earlier day), all attributes of the
        log, and ``class`` if there are classes; and the total number of rows.
    """
    tests = tests_of(log, where, classes)
    _, day = tests.get("day", ("", None))
    if isinstance(day, int):
        first_day = day if first_day is None else max(day, first_day)
        last_day = day if last_day is None else min(day, last_day)
    attributes = tuple(ATTRIBUTE + name for name in log.attributes)
    scope = Scope(log, rules, first_day, last_day, attributes, text=True)
    conditions = [] if only is None else [_counts(only, table)]
    grouped = None if classes is None else engine.table(classes.select("query_key", "class"))
    order = ["time_us", USER, _NUMBER[table]]
    seen = Reformulations()
    rows: list[pl.DataFrame] = []
    total = 0
    for events in engine.batches(log, scope.columns, scope.since, scope.until):
        relevant = _users_of(scope.within(events), events, tests, grouped) if where else events
        batch = facts_of(relevant, engine, scope, seen)
        facts: nw.LazyFrame[Any] = getattr(batch, table)
        if grouped is not None:
            facts = facts.join(grouped, on="query_key", how="left")
        facts = narrowed(facts, tests)
        facts = engine.keep(facts.filter(*conditions) if conditions else facts)
        most = min(offset + limit, log.rows)  # at most what engines can count
        newest = facts.sort(*order, descending=[True, False, True]).head(most)
        rows.append(engine.collect(_with_session(newest, batch)))
        total += int(engine.collect(facts.select(n=nw.len())).item())
    if not rows:
        nothing = pl.DataFrame(schema={name: dtype_of(name) for name in scope.columns})
        batch = facts_of(engine.table(nothing), engine, scope, seen)
        return engine.collect(_with_session(getattr(batch, table), batch)), 0
    sorted_rows = pl.concat(rows).sort(order, descending=[True, False, True])
    return sorted_rows.slice(offset, limit), total


def _with_session(facts: nw.LazyFrame[Any], batch: FactsOf) -> nw.LazyFrame[Any]:
    began = batch.sessions.select(USER, "session", session_us="time_us")
    return facts.join(began, on=[USER, "session"], how="left")


def _users_of(
    inside: nw.LazyFrame[Any],
    events: nw.LazyFrame[Any],
    tests: Mapping[str, tuple[str, str | int | None]],
    classes: nw.LazyFrame[Any] | None,
) -> nw.LazyFrame[Any]:
    """All events of users with a request in the slice; the others are not needed."""
    asked = inside.filter(nw.col("kind") == "search")
    if "class" in tests and classes is not None:
        asked = asked.join(classes, on="query_key", how="left")
    return events.join(narrowed(asked, tests).select(USER).unique(), on=USER, how="semi")


def _counts(only: str, table: Table) -> nw.Expr:
    negated = only.startswith("!")
    metric: Metric = find(only.removeprefix("!"))
    compute = metric.compute
    if compute.facts != table:
        raise UsageError(f"{metric.name} is computed over {compute.facts}, not {table}")
    if not isinstance(compute, Ratio):
        timed = ~compute.value().is_null()
        return ~timed if negated else timed
    zero = nw.lit(0.0)
    above = nw.coalesce(compute.numerator().cast(nw.Float64), zero) > 0
    below = nw.lit(1.0) if compute.denominator is None else compute.denominator().cast(nw.Float64)
    # Test the user too: a ratio of constants, such as sessions per user, would not select rows.
    within = (nw.coalesce(below, zero) > 0) & ~nw.col(USER).is_null()
    return within & ~above if negated else within & above
