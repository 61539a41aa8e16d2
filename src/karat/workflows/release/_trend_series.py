"""One series of a history: changes from point to point, drops and drift, also by query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Literal

import numpy as np

from karat.formats.own.query_values import unpacked
from karat.measures import lower_is_better
from karat.stats import drift, looks
from karat.stats.averages import Floats, mean
from karat.stats.intervals import t_interval
from karat.stats.paired import t_test
from karat.tables.records import shared
from karat.tables.release.history import BREAKING, Input, Point, Value
from karat.tables.release.trend import Drop, Fall, Lean, Loss, Mark, Paired, Series

Key = tuple[str, str, str | None, str | None]
"""Name of the series, measure, attribute and value of a slice."""
_HASHED: tuple[tuple[Input, str], ...] = (
    ("judgments", "qrels"),
    ("queries", "queries"),
    ("corpus", "corpus"),
    ("answers", "run"),
)
_ALONE = 0.05  # level of a comparison of two points only


@dataclass(frozen=True, eq=False)
class QueryValues:
    """The values of one measure at one point."""

    # Identifies the queries: values with the same key can be paired
    queries: tuple[str, int, str | None]
    values: Floats  # NaN where a query has no value; shape (n,)
    weights: Floats | None  # weights of the queries, shape (n,); None if all count the same


def query_values(line: Sequence[tuple[Point, Value]]) -> list[QueryValues | None]:
    """The values behind each point of a series; None if the history does not have them."""
    weights = cache(unpacked)  # mostly the same at each point

    def values(point: Point, value: Value) -> QueryValues | None:
        stored = point.by_query
        if stored is None or value.slice is not None or value.measure not in stored.values:
            return None
        key = stored.queries, stored.n, stored.weights
        weigh = None if stored.weights is None else weights(stored.weights, stored.n)
        return QueryValues(key, unpacked(stored.values[value.measure], stored.n), weigh)

    return [values(point, value) for point, value in line]


def annotations_of(
    line: Sequence[tuple[Point, Value]], values: Sequence[QueryValues | None]
) -> tuple[Mark, ...]:
    """The points of one series with their values by query."""
    marks: list[Mark] = []
    last: tuple[Point, Value] | None = None  # the last one that counts
    before: QueryValues | None = None  # its values by query
    for (point, value), own_values in zip(line, values, strict=True):
        counts = value.value is not None and not point.worthless
        changed, unknown = _between(last, (point, value)) if last else ((), ())
        breaks = counts and any(name in BREAKING for name in (*changed, *unknown))
        change = significant = None
        # Values of other queries cannot be paired, even if nothing else changed.
        alike = (
            before is None or breaks or own_values is None or own_values.queries == before.queries
        )
        own = own_values if alike else None
        if last and counts and not breaks and last[1].value is not None and value.value is not None:
            change = value.value - last[1].value
            significant = (
                _differ(before, own)
                if before and own
                else drift.told_apart(last[1].value, value.value, (_error(last[1]), _error(value)))
            )
        marks.append(
            Mark(
                **shared(point, Mark) | shared(value, Mark) | {"by_query": own is not None},
                trouble=point.trouble,
                counts=counts,
                changed=changed,
                unknown=unknown,
                breaks=breaks,
                change=change,
                told_apart=significant,
            )
        )
        if counts:
            last, before = (point, value), own
    return tuple(marks)


def _between(
    old: tuple[Point, Value], new: tuple[Point, Value]
) -> tuple[tuple[Input, ...], tuple[Input, ...]]:
    """What differs between two points of a series, and what may differ."""
    (before, value), (after, value_after) = old, new
    changed: list[Input] = ["code"] if before.commit != after.commit else []
    unknown: list[Input] = []
    for name, key in _HASHED:
        left, right = before.hashes.get(key), after.hashes.get(key)
        if left is not None and right is not None and left != right:
            changed.append(name)
        elif (left is None) != (right is None):
            unknown.append(name)
    if before.rules != after.rules:
        changed.append("rules")
    if not any(name in BREAKING for name in (*changed, *unknown)):
        counted = value.n, value_after.n
        if None not in counted and counted[0] != counted[1]:
            changed.append("n")
    if before.karat != after.karat:
        changed.append("karat")
    return tuple(changed), tuple(unknown)


def _error(value: Value | Mark) -> float | None:
    if value.ci_low is None and value.value in {0.0, 1.0} and (value.n or 0) > 1:
        return 0.0  # several queries and no interval: all have this value
    return drift.standard_error(value.value, value.ci_low, value.ci_high)


def _newest(marks: Sequence[Mark]) -> list[Mark]:
    """The points that count since the last break."""
    start = max((place for place, mark in enumerate(marks) if mark.breaks), default=0)
    return [mark for mark in marks[start:] if mark.counts]


def series_of(
    key: Key,
    marks: tuple[Mark, ...],  # its points
    values: Sequence[QueryValues | None],  # their values by query
    compared: int,  # number of series tested together
    without: int,  # number of newer points that lack it
) -> Series:
    """One series, tested."""
    run, measure, attribute, name = key
    way: Literal["higher", "lower"] = "lower" if lower_is_better(measure) else "higher"
    up = -1.0 if way == "lower" else 1.0
    stretch = 1 + sum(mark.breaks for mark in marks)
    paired = _paired(marks, values, up, compared)
    level = drift.LEVEL if paired is None else drift.BESIDE_LOOKS
    lean = _lean(_newest(marks), up, drift.needed(compared, stretch, level))
    if paired is not None:
        lean = replace(lean, paired=paired, worsened=lean.worsened or paired.loss is not None)
    return Series(run, measure, attribute, name, way, marks, lean, without)


def _lean(marks: Sequence[Mark], up: float, needed: float) -> Lean:
    values = [up * mark.value for mark in marks if mark.value is not None]
    steps = [after - before for before, after in pairwise(values)]
    falling, rising = drift.evidence(steps)
    leans, drifts, below, fall, drop = falling >= needed, False, False, None, None
    if steps:
        best, stands = drift.since_best(values)
        after = steps[best:]
        drifts = leans and stands and drift.evidence(after)[0] >= needed
        fall = Fall(
            time=marks[best].time,
            commit=marks[best].commit,
            change=up * (values[-1] - values[best]),
            worse=sum(step < 0 for step in after),
            better=sum(step > 0 for step in after),
        )
        below = _below(marks[0], marks[-1], up)
        drop = _drop(marks, up)
    return Lean(
        points=len(values),
        worse=sum(step < 0 for step in steps),
        better=sum(step > 0 for step in steps),
        change=up * (values[-1] - values[0]) if steps else None,
        evidence=falling,
        evidence_better=rising,
        needed=needed,
        leans=leans,
        fall=fall,
        drifts=drifts,
        below_start=below,
        drop=drop,
        worsened=below or drop is not None,
        rises=rising >= needed,
        since=marks[0].time if marks else None,
        since_commit=marks[0].commit if marks else None,
    )


def _below(before: Mark, after: Mark, up: float) -> bool:
    """Whether the later point is worse by more than both intervals allow."""
    if before.value is None or after.value is None or up * (after.value - before.value) >= 0:
        return False
    if before.by_query and after.by_query:
        return False  # these are tested query by query
    return drift.told_apart(before.value, after.value, (_error(before), _error(after))) is True


def _drop(marks: Sequence[Mark], up: float) -> Drop | None:
    """The newest significant step for the worse from which no later point has recovered."""
    for at in range(len(marks) - 1, 0, -1):
        before, mark = marks[at - 1], marks[at]
        stands = all(_below(before, later, up) for later in marks[at:])
        if stands and mark.change is not None:
            return Drop(mark.time, mark.commit, mark.change)
    return None


def _differ(before: QueryValues, after: QueryValues) -> bool:
    """Whether a t test of the differences is significant at 5 %, for these two points only."""
    difference, weights = _difference(before, after)
    p = t_test(difference, weights).p if len(difference) else None
    if p is None:  # all differences are equal
        p = 2.0 * 0.5 ** int(np.count_nonzero(difference))
    return p <= _ALONE


def _paired(
    marks: Sequence[Mark], by_query: Sequence[QueryValues | None], up: float, series: int
) -> Paired | None:
    """Compare the points since the last break query by query; None if fewer than two.

    ``up`` is 1 if higher is better, else -1; ``series`` are tested together.
    """
    stretches: list[list[tuple[Mark, QueryValues]]] = [[]]
    for mark, own in zip(marks, by_query, strict=True):
        if mark.breaks:
            stretches.append([])
        if mark.by_query and mark.counts and own is not None:
            stretches[-1].append((mark, own))
    newest = stretches[-1]
    if len(newest) < 2:
        return None
    earlier = sum(len(_states(stretch)) - 1 for stretch in stretches[:-1] if stretch)
    states = _states(newest)
    weights = newest[0][1].weights
    worst = looks.worse(
        [up * own.values for _, own in states], weights=weights, series=series, earlier=earlier
    )
    loss = None
    if worst is not None:
        (before, old), (after, new) = states[worst.reference], states[worst.look]
        difference, weigh = _difference(old, new)
        loss = Loss(
            time=after.time,
            commit=after.commit,
            since=before.time,
            since_commit=before.commit,
            change=mean(difference, weigh),
            p=min(1.0, 2 * worst.p),
            needed=2 * worst.level,
        )
    first = newest[0]
    difference, weigh = _difference(first[1], newest[-1][1])
    span = t_interval(difference, weigh)
    n_looks, needed = len(states) - 1, None
    if n_looks:
        _, part = next(looks.references(n_looks))
        needed = 2 * looks.LEVEL * looks.share(earlier + n_looks) * part / series
    return Paired(
        looks=n_looks,
        since=first[0].time,
        since_commit=first[0].commit,
        change=mean(difference, weigh),
        ci_low=span.low,
        ci_high=span.high,
        p=t_test(difference, weigh).p,
        n=len(difference),
        needed=needed,
        loss=loss,
    )


def _states(stretch: Sequence[tuple[Mark, QueryValues]]) -> list[tuple[Mark, QueryValues]]:
    """The points at which the value of any query differs from the point before."""
    states = list(stretch[:1])
    for mark, own in stretch[1:]:
        if not np.array_equal(own.values, states[-1][1].values, equal_nan=True):
            states.append((mark, own))
    return states


def _difference(before: QueryValues, after: QueryValues) -> tuple[Floats, Floats | None]:
    """The gain and weight of each query that has both values."""
    difference = after.values - before.values
    used = ~np.isnan(difference)
    return difference[used], None if after.weights is None else after.weights[used]
