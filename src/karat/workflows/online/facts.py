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
    engine: Engine,
    table: Table,
    where: Only,
    *,
    rules: Rules = Rules(),  # noqa: B008  (frozen)
    first_day: int | None = None,
    last_day: int | None = None,
    only: str | None = None,
    limit: int = 50,
    offset: int = 0,
    classes: pl.DataFrame | None = None,
) -> tuple[pl.DataFrame, int]:
    """The facts behind a figure.

    Args:
        log: What the store holds.
        engine: What reduces it, opened.
        table: Which facts.
        where: The slice, as ``OnlineResult.slice`` has it; None: not logged.
        rules: How events become facts.
        first_day: The first local day, since 1970-01-01; None for all.
        last_day: The last.
        only: A metric's name: rows that its numerator counts; ``!CTR``: rows that its denominator
            counts and its numerator does not.
        limit: Rows at most.
        offset: Rows to leave out first.
        classes: ``query_key`` and ``class``, each query once; needed for ``class``.

    Returns:
        The rows, newest first, in the table's columns, ``session_us`` (when the session began:
        its number depends on the days; null if its first search is of an earlier one), all
        attributes of the log and ``class`` if there are classes; and how many there are in all.

    Raises:
        UsageError: A dimension that the log lacks, a day or hour that is none, a metric that is
            none or is over other facts.
    """
    tests = tests_of(log, where, classes)
    _, day = tests.get("day", ("", None))
    if isinstance(day, int):
        first_day = day if first_day is None else max(day, first_day)
        last_day = day if last_day is None else min(day, last_day)
    attributes = tuple(ATTRIBUTE + name for name in log.attributes)
    scope = Scope(log, rules, first_day, last_day, attributes, text=True)
    counted = [] if only is None else [_counts(only, table)]
    grouped = None if classes is None else engine.table(classes.select("query_key", "class"))
    order = ["time_us", USER, _NUMBER[table]]
    seen = Reformulations()
    rows: list[pl.DataFrame] = []
    every = 0
    for events in engine.batches(log, scope.columns, scope.since, scope.until):
        near = _users_of(scope.within(events), events, tests, grouped) if where else events
        found_of = facts_of(near, engine, scope, seen)
        facts: nw.LazyFrame[Any] = getattr(found_of, table)
        if grouped is not None:
            facts = facts.join(grouped, on="query_key", how="left")
        facts = narrowed(facts, tests)
        facts = engine.keep(facts.filter(*counted) if counted else facts)
        most = min(offset + limit, log.rows)  # engines count no further than they can
        newest = facts.sort(*order, descending=[True, False, True]).head(most)
        rows.append(engine.collect(_with_session(newest, found_of)))
        every += int(engine.collect(facts.select(n=nw.len())).item())
    if not rows:
        nothing = pl.DataFrame(schema={name: dtype_of(name) for name in scope.columns})
        found_of = facts_of(engine.table(nothing), engine, scope, seen)
        return engine.collect(_with_session(getattr(found_of, table), found_of)), 0
    found = pl.concat(rows).sort(order, descending=[True, False, True])
    return found.slice(offset, limit), every


def _with_session(facts: nw.LazyFrame[Any], found: FactsOf) -> nw.LazyFrame[Any]:
    began = found.sessions.select(USER, "session", session_us="time_us")
    return facts.join(began, on=[USER, "session"], how="left")


def _users_of(
    inside: nw.LazyFrame[Any],
    events: nw.LazyFrame[Any],
    tests: Mapping[str, tuple[str, str | int | None]],
    classes: nw.LazyFrame[Any] | None,
) -> nw.LazyFrame[Any]:
    """All events of the users with a request in the slice: the rest need not be reduced."""
    asked = inside.filter(nw.col("kind") == "search")
    if "class" in tests and classes is not None:
        asked = asked.join(classes, on="query_key", how="left")
    return events.join(narrowed(asked, tests).select(USER).unique(), on=USER, how="semi")


def _counts(only: str, table: Table) -> nw.Expr:
    """Whether a metric counts a row."""
    others = only.startswith("!")
    metric: Metric = find(only.removeprefix("!"))
    how = metric.compute
    if how.facts != table:
        raise UsageError(f"{metric.name} is over {how.facts}, not over {table}")
    if not isinstance(how, Ratio):
        timed = ~how.value().is_null()
        return ~timed if others else timed
    zero = nw.lit(0.0)
    above = nw.coalesce(how.numerator().cast(nw.Float64), zero) > 0
    below = nw.lit(1.0) if how.denominator is None else how.denominator().cast(nw.Float64)
    # A ratio of constants, as sessions to a user, would be no test of rows but one for all.
    within = (nw.coalesce(below, zero) > 0) & ~nw.col(USER).is_null()
    return within & ~above if others else within & above
