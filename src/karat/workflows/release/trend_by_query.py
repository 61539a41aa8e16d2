"""Points of a series compared query by query, where the history has their values so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from karat.formats.own.query_values import unpacked
from karat.stats import looks
from karat.stats.averages import Floats, mean
from karat.stats.intervals import t_interval
from karat.stats.paired import t_test
from karat.tables.release.history import Point, Value
from karat.tables.release.trend import Loss, Mark, Paired

_ALONE = 0.05


@dataclass(frozen=True, eq=False)
class QueryValues:
    """The values of one measure at one point.

    Attributes:
        queries: Of which queries; values with the same can be paired.
        values: NaN where a query has none; shape (n,).
        weights: Of the queries; None where all count the same; shape (n,).
    """

    queries: tuple[str, int, str | None]
    values: Floats
    weights: Floats | None


def query_values(line: Sequence[tuple[Point, Value]]) -> list[QueryValues | None]:
    """The values behind each point of a series; None where the history does not have them."""
    found: list[QueryValues | None] = []
    weights: dict[tuple[str, int], Floats] = {}
    for point, value in line:
        kept = point.by_query
        text = None if kept is None or value.slice is not None else kept.values.get(value.measure)
        if kept is None or text is None:
            found.append(None)
            continue
        if kept.weights is not None and (kept.weights, kept.n) not in weights:
            weights[kept.weights, kept.n] = unpacked(kept.weights, kept.n)
        weigh = None if kept.weights is None else weights[kept.weights, kept.n]
        which = kept.queries, kept.n, kept.weights
        found.append(QueryValues(which, unpacked(text, kept.n), weigh))
    return found


def differ(before: QueryValues, after: QueryValues) -> bool:
    """Whether a t test of the differences finds one, at 5 % for these two alone."""
    difference, weights = _difference(before, after)
    p = t_test(difference, weights).p if len(difference) else None
    if p is None:  # all differences are the same
        p = 2.0 * 0.5 ** int(np.count_nonzero(difference))
    return p <= _ALONE


def paired_of(
    marks: Sequence[Mark], held: Sequence[QueryValues | None], up: float, series: int
) -> Paired | None:
    """The points since the last break compared query by query; None without two to compare.

    Args:
        marks: The points of a series.
        held: Their values; as many.
        up: 1 if more is better, else -1.
        series: So many series are looked at together.
    """
    stretches: list[list[tuple[Mark, QueryValues]]] = [[]]
    for mark, own in zip(marks, held, strict=True):
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
    found = looks.worse(
        [up * own.values for _, own in states], weights=weights, series=series, earlier=earlier
    )
    loss = None
    if found is not None:
        (before, old), (after, new) = states[found.reference], states[found.look]
        difference, weigh = _difference(old, new)
        loss = Loss(
            time=after.time,
            commit=after.commit,
            since=before.time,
            since_commit=before.commit,
            change=mean(difference, weigh),
            p=min(1.0, 2 * found.p),
            needed=2 * found.level,
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
    """The points at which the values of any query are others than at the point before."""
    found = list(stretch[:1])
    for mark, own in stretch[1:]:
        if not np.array_equal(own.values, found[-1][1].values, equal_nan=True):
            found.append((mark, own))
    return found


def _difference(before: QueryValues, after: QueryValues) -> tuple[Floats, Floats | None]:
    """What each query gained, and what it counts for; without those that lack a value."""
    difference = after.values - before.values
    used = ~np.isnan(difference)
    return difference[used], None if after.weights is None else after.weights[used]
