"""The rows behind a figure: searches, clicks or sessions of a slice, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Literal

import narwhals as nw
import polars as pl

from karat.errors import UsageError, nearest
from karat.formats.engines.engine import Engine
from karat.formats.engines.files import dtype_of
from karat.online.evidence import column_of, shown
from karat.online.flags import USER
from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.registry import find
from karat.online.rules import Rules
from karat.tables.events import ATTRIBUTE, EventLog
from karat.tables.online import DIMENSIONS
from karat.workflows.online.reducing import Asked, Reformulations, facts_of

Table = Literal["searches", "clicks", "sessions"]
_NUMBER = {"searches": "intent", "clicks": "intent", "sessions": "session"}
_EPOCH = date(1970, 1, 1)


def look(
    log: EventLog,
    engine: Engine,
    table: Table,
    where: Mapping[str, str | None],
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
        The rows, newest first, in the table's columns, all attributes of the log and ``class`` if
        there are classes; and how many there are in all.

    Raises:
        UsageError: A dimension that the log lacks, a day or hour that is none, a metric that is
            none or is over other facts.
    """
    _check(log, where, classes)
    numbers = {name: _number(name, value) for name, value in where.items()}
    day = numbers.get("day")
    if isinstance(day, int):
        first_day = day if first_day is None else max(day, first_day)
        last_day = day if last_day is None else min(day, last_day)
    attributes = tuple(ATTRIBUTE + name for name in log.attributes)
    asked = Asked(log, rules, first_day, last_day, attributes, text=True)
    tests = [shown(column_of(name), value) for name, value in numbers.items()]
    counted = [] if only is None else [_counts(only, table)]
    grouped = None if classes is None else engine.table(classes.select("query_key", "class"))
    order = ["time_us", USER, _NUMBER[table]]
    seen = Reformulations()
    rows: list[pl.DataFrame] = []
    every = 0
    for events in engine.batches(log, asked.columns, asked.since, asked.until):
        near = _users_of(asked.within(events), events, numbers, grouped) if where else events
        facts: nw.LazyFrame[Any] = getattr(facts_of(near, engine, asked, seen), table)
        if grouped is not None:
            facts = facts.join(grouped, on="query_key", how="left")
        for test in (*tests, *counted):
            facts = facts.filter(test)
        facts = engine.keep(facts)
        newest = facts.sort(*order, descending=[True, False, True]).head(offset + limit)
        rows.append(engine.collect(newest))
        every += int(engine.collect(facts.select(n=nw.len())).item())
    if not rows:
        nothing = pl.DataFrame(schema={name: dtype_of(name) for name in asked.columns})
        facts = getattr(facts_of(engine.table(nothing), engine, asked, seen), table)
        return engine.collect(facts), 0
    found = pl.concat(rows).sort(order, descending=[True, False, True])
    return found.slice(offset, limit), every


def _users_of(
    inside: nw.LazyFrame[Any],
    events: nw.LazyFrame[Any],
    where: Mapping[str, str | int | None],
    classes: nw.LazyFrame[Any] | None,
) -> nw.LazyFrame[Any]:
    """All events of the users with a request in the slice: the rest need not be reduced."""
    asked = inside.filter(nw.col("kind") == "search")
    if "class" in where and classes is not None:
        asked = asked.join(classes, on="query_key", how="left")
    for name, value in where.items():
        asked = asked.filter(shown(column_of(name), value))
    return events.join(asked.select(USER).unique(), on=USER, how="semi")


def _check(log: EventLog, where: Mapping[str, str | None], classes: pl.DataFrame | None) -> None:
    """Raise if a log cannot be cut by a dimension."""
    known = [*DIMENSIONS, *log.attributes]
    for name in where:
        if name not in known:
            raise UsageError(
                f"the log has no attribute {name}",
                nearest=nearest(name, known),
                fix=f"it can be cut by {', '.join(known)}",
            )
    if "class" in where and classes is None:
        raise UsageError(
            "no classes of queries are known here", fix="name a file of queries with a class"
        )


def _number(dimension: str, value: str | None) -> str | int | None:
    """What facts hold for a dimension's value in words."""
    if value is None or dimension not in {"day", "hour"}:
        return value
    try:
        return (date.fromisoformat(value) - _EPOCH).days if dimension == "day" else int(value)
    except ValueError:
        example = "2026-11-20" if dimension == "day" else "09"
        raise UsageError(f"{value!r} is no {dimension}", fix=f"as in {example}") from None


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
    within = nw.coalesce(below, zero) > 0
    return within & ~above if others else within & above
