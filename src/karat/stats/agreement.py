"""Agreement of raters: Cohen's κ, Fleiss' κ, Krippendorff's α, Gwet's AC1, the share equal.

Judgments of one query are correlated, so intervals resample queries. Every statistic is therefore a
function of sums over queries: ``Sums`` has one row of them for each query, and the statistic of any
set of queries, or of a matrix of resamples, is one call.

A statistic that cannot be distinguished from chance (all ratings are the same grade) is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from karat.errors import UsageError
from karat.stats.averages import Floats
from karat.stats.intervals import Interval
from karat.stats.student import t_quantile

_SAME = 1e-12  # a spread up to this is rounding error


def agreement_interval(sums: Sums, confidence: float = 0.95) -> Interval:
    """Interval of an agreement statistic over all possible queries.

    Args:
        sums: The statistic, by query. Queries with weight 0 do not count.
        confidence: Share of samples of queries whose interval contains the true value.

    Returns:
        The interval, or the reason why there is none.

    Source: Tukey's jackknife of clusters, as in Cochran 1977, Sampling Techniques, ch. 6.17.
    """
    value = sums.whole
    if math.isnan(value):
        return Interval(None, None, "the statistic is undefined")
    without = sums.without()[sums.weight > 0]
    n = len(without)
    if n < 2:
        return Interval(None, None, "one query has no spread")
    if np.isnan(without).any():
        return Interval(None, None, "without one of the queries the statistic is undefined")
    if np.ptp(without) <= _SAME:
        if sums.floor is not None and value >= 1 - _SAME:
            return Interval(None, None, "no disagreement was observed")
        return Interval(None, None, "all queries give the same value")
    reach = t_quantile(0.5 + confidence / 2, n - 1)
    if sums.floor is None:
        error = _error(without)
        return Interval(value - reach * error, value + reach * error)
    if (without < 1 - _SAME).all():
        times = math.exp(reach * _error(np.log(1 - without)))
        low, high = 1 - (1 - value) * times, 1 - (1 - value) / times
    else:  # all the disagreement is in one query; without it the logarithm is infinite
        error = _error(without)
        low, high = value - reach * error, value + reach * error
    return Interval(max(low, sums.floor), min(high, 1.0))


def more_needed(value: float, low: float, pairs: int, target: float) -> int | None:
    """How many more pairs must be judged twice for the interval to be above a target.

    Args:
        value: The statistic, below 1.
        low: Lower end of its interval.
        pairs: Number of pairs judged twice so far.
        target: Target for the lower end, below 1.

    Returns:
        The number, or None if the statistic is not above the target: then no number is enough.
        Assumes that the statistic stays the same, and that new judgments are of new queries with
        as many documents each; more judgments of the same queries add less information.
    """
    if low >= target:
        return 0
    if value <= target:
        return None
    # The interval of the logarithm of disagreement shrinks with the root of the number of queries.
    factor = math.log((1 - low) / (1 - value)) / math.log((1 - target) / (1 - value))
    return math.ceil(pairs * (factor * factor - 1) - _SAME * pairs)


def _error(without: Floats) -> float:
    n = len(without)
    return math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))


Integers = NDArray[np.int64]
Weights = Literal["none", "linear", "quadratic"]
Metric = Literal["nominal", "ordinal", "interval"]

WEIGHTS: tuple[Weights, ...] = ("none", "linear", "quadratic")
METRICS: tuple[Metric, ...] = ("nominal", "ordinal", "interval")

_NOTHING = 1e-12  # share of chance disagreement up to which it is rounding error


def weights_named(name: str) -> Weights:
    """Weights of κ by their name; raises UsageError for others."""
    found = next((each for each in WEIGHTS if each == name), None)
    if found is None:
        raise UsageError(f"unknown kappa weighting {name!r}", fix=f"use {', '.join(WEIGHTS)}")
    return found


@dataclass(frozen=True, slots=True)
class Ratings:
    """Grades by rater and pair, as numbers; at most one for each rater and pair."""

    query: Integers  # index of the query, from 0; shape (n,)
    item: Integers  # index of the pair of query and document, from 0; shape (n,)
    rater: Integers  # index of the rater, from 0; shape (n,)
    level: Integers  # index into `grades`; shape (n,)
    # The grades of the scale, ascending; shape (levels,). Distances are between these values, so an
    # unused grade changes none of them.
    grades: Floats
    queries: int  # number of queries, with or without ratings

    def keep(self, chosen: NDArray[np.bool_]) -> Ratings:
        """Only the chosen ratings, shape (n,); indices do not change."""
        return Ratings(
            self.query[chosen],
            self.item[chosen],
            self.rater[chosen],
            self.level[chosen],
            self.grades,
            self.queries,
        )

    def counts(self) -> tuple[Floats, Integers]:
        """How often each rated item got each grade, and the item's query.

        Returns:
            Shapes (items, levels) and (items,).
        """
        _, first, row = np.unique(self.item, return_index=True, return_inverse=True)
        levels = len(self.grades)
        cells = np.bincount(row * levels + self.level, minlength=len(first) * levels)
        return cells.reshape(len(first), levels).astype(np.float64), self.query[first]

    def together(self, first: int, second: int) -> tuple[Integers, Integers, Integers]:
        """The query, and the grades by two raters, of every item that both graded."""
        mine, theirs = self.rater == first, self.rater == second
        _, left, right = np.intersect1d(
            self.item[mine], self.item[theirs], assume_unique=True, return_indices=True
        )
        return self.query[mine][left], self.level[mine][left], self.level[theirs][right]


@dataclass(frozen=True, slots=True)
class Sums:
    """A statistic as a function of the sum of one row for each query."""

    table: Floats  # one row for each query; shape (queries, columns)
    # From sums of shape (..., columns) to values of shape (...); NaN is undefined
    value: Callable[[Floats], Floats]
    # Number of items of each query that were judged at least twice, or 0; shape (queries,)
    weight: Floats
    # The lowest possible value, if the highest is 1; None if there are no such bounds
    floor: float | None = None

    @property
    def whole(self) -> float:
        """The statistic over all queries."""
        return float(self.value(self.table.sum(axis=0)))

    def without(self) -> Floats:
        """The statistic over all queries but one, for each query; shape (queries,)."""
        return self.value(self.table.sum(axis=0) - self.table)

    def minus(self, other: Sums) -> Sums:
        """This statistic minus another over the same queries."""
        width = self.table.shape[1]
        return Sums(
            np.hstack([self.table, other.table]),
            lambda sums: self.value(sums[..., :width]) - other.value(sums[..., width:]),
            self.weight + other.weight,
        )


def by_query(query: Integers, values: Floats, queries: int) -> Floats:
    """Sum of the rows of each query; shapes (n, ...) to (queries, ...)."""
    sums = np.zeros((queries, *values.shape[1:]))
    np.add.at(sums, query, values)
    return sums


def ratio(query: Integers, over: Floats, under: Floats, queries: int) -> Sums:
    """Sum of ``over`` / sum of ``under``: a share, or a mean if ``under`` is always 1."""
    table = by_query(query, np.stack([over, under], axis=1), queries)
    return Sums(table, lambda sums: _divide(sums[..., 0], sums[..., 1]), table[:, 1])


def share_equal(query: Integers, first: Integers, second: Integers, queries: int) -> Sums:
    """How often two gradings of the same items are equal; arguments as for ``kappa``."""
    return _share(query, (first == second).astype(np.float64), queries)


def kappa(
    query: Integers,
    first: Integers,
    second: Integers,
    grades: Floats,
    queries: int,
    weights: Weights = "none",
) -> Sums:
    """Cohen's κ of two gradings of the same items.

    Args:
        query: Index of each item's query; shape (n,).
        first: Index into ``grades`` of one rater's grade; shape (n,).
        second: The same of the other.
        grades: Ascending; shape (levels,).
        queries: Number of queries.
        weights: Weight of a disagreement: ``none`` 1, ``linear`` the distance of the grades,
            ``quadratic`` its square.

    Undefined if both always used the same grade.

    Source: Cohen 1960, doi:10.1177/001316446002000104; 1968, doi:10.1037/h0026256.
    """
    cost, levels = _cost(grades, weights), len(grades)
    one = np.eye(levels)
    items = np.hstack(
        [np.ones((len(query), 1)), cost[first, second][:, None], one[first], one[second]]
    )
    table = by_query(query, items, queries)

    def value(sums: Floats) -> Floats:
        rows, columns = sums[..., 2 : 2 + levels], sums[..., 2 + levels :]
        chance = ((rows @ cost) * columns).sum(axis=-1)
        n = sums[..., 0]
        return _corrected(sums[..., 1] * n, chance, n * n * cost.max(initial=1.0))

    return Sums(table, value, table[:, 0], -1.0)


def mean_kappa(ratings: Ratings, weights: Weights = "none", of: int | None = None) -> Sums:
    """Mean κ of all pairs of raters, weighted by how many items both graded.

    Pairs whose κ is undefined are left out.

    Args:
        ratings: The ratings.
        weights: As in ``kappa``.
        of: Index of a rater: only the pairs with this one.
    """
    raters, parts = np.unique(ratings.rater), []
    for place, first in enumerate(raters):
        for second in raters[place + 1 :]:
            if of not in (None, first, second):
                continue
            met = ratings.together(int(first), int(second))
            if len(met[0]):
                parts.append(kappa(*met, ratings.grades, ratings.queries, weights))
    if not parts:
        none = np.zeros(0, np.int64)
        parts = [kappa(none, none, none, ratings.grades, ratings.queries, weights)]
    width = parts[0].table.shape[1]

    def value(sums: Floats) -> Floats:
        pairs = sums.reshape(*sums.shape[:-1], len(parts), width)
        kappas, size = parts[0].value(pairs), pairs[..., 0]
        size = np.where(np.isnan(kappas), 0.0, size)
        return _divide((np.nan_to_num(kappas) * size).sum(axis=-1), size.sum(axis=-1))

    weight = np.sum([part.weight for part in parts], axis=0)
    return Sums(np.hstack([part.table for part in parts]), value, weight, -1.0)


def mean_share_equal(ratings: Ratings) -> Sums:
    """Share of equal grades among the pairs of ratings of an item, each item counting once."""
    counts, query = ratings.counts()
    size = counts.sum(axis=1)
    twice = size > 1
    return _share(query[twice], _equal(counts[twice], size[twice]), ratings.queries)


def fleiss(ratings: Ratings) -> Sums:
    """Fleiss' κ, also for unequal numbers of raters.

    Source: Fleiss 1971, doi:10.1037/h0031619; with unequal numbers of raters as in Gwet 2014,
    Handbook of Inter-Rater Reliability, ch. 2 (an item with one rating counts only for the
    grades' shares).
    """

    def chance(shares: Floats) -> Floats:
        return np.asarray((shares * shares).sum(axis=-1))

    return _by_shares(ratings, chance)


def ac1(ratings: Ratings, categories: int) -> Sums:
    """Gwet's AC1, which a rare grade does not lower as it does κ.

    Args:
        ratings: The ratings.
        categories: Number of grades of the scale, used or not; at least 2.

    Undefined, like the others, if all ratings are the same grade (the formula gives 1).

    Source: Gwet 2008, doi:10.1348/000711006X126600; unequal numbers of raters as in ``fleiss``.
    """

    def chance(shares: Floats) -> Floats:
        return np.asarray((shares * (1 - shares)).sum(axis=-1) / (categories - 1))

    return _by_shares(ratings, chance)


def _by_shares(ratings: Ratings, chance: Callable[[Floats], Floats]) -> Sums:
    """(P - chance) / (1 - chance), where P is the mean share of equal pairs of ratings."""
    counts, query = ratings.counts()
    size = counts.sum(axis=1)
    twice = size > 1
    equal = np.zeros(len(size))
    equal[twice] = _equal(counts[twice], size[twice])
    items = np.column_stack([twice, equal, np.ones(len(size)), counts / size[:, None]])
    table = by_query(query, items, ratings.queries)

    def value(sums: Floats) -> Floats:
        shares = _divide(sums[..., 3:], sums[..., 2:3])
        observed, expected = _divide(sums[..., 1], sums[..., 0]), chance(shares)
        corrected = _corrected(1 - observed, 1 - expected, 1.0)
        return np.where(shares.max(axis=-1, initial=0.0) > 1 - _NOTHING, np.nan, corrected)

    return Sums(table, value, table[:, 0], -1.0)


def alpha(ratings: Ratings, metric: Metric = "ordinal") -> Sums:
    """Krippendorff's α, for any number of raters with any missing ratings.

    Args:
        ratings: The ratings; items with one rating do not count.
        metric: Weight of a disagreement: ``nominal`` 1, ``ordinal`` the square of the number of
            ratings between, ``interval`` the square of the distance of the grades.

    Source: Krippendorff 2011, Computing Krippendorff's Alpha-Reliability,
    https://repository.upenn.edu/asc_papers/43.
    """
    counts, query = ratings.counts()
    size, levels = counts.sum(axis=1), len(ratings.grades)
    twice = size > 1
    counts, query, size = counts[twice], query[twice], size[twice]
    table = np.zeros((ratings.queries, levels, levels))
    order = np.argsort(query, kind="stable")
    present, starts = np.unique(query[order], return_index=True)
    ends = np.append(starts, len(order))[1:]
    for one, start, end in zip(present, starts, ends, strict=True):
        here = order[start:end]
        shared = counts[here] / (size[here] - 1)[:, None]
        table[one] = counts[here].T @ shared - np.diag(shared.sum(axis=0))
    fixed = _cost(ratings.grades, "none" if metric == "nominal" else "quadratic")

    def value(sums: Floats) -> Floats:
        pairs = sums.reshape(*sums.shape[:-1], levels, levels)
        marginal = pairs.sum(axis=-1)
        n = marginal.sum(axis=-1)
        cost = fixed
        if metric == "ordinal":
            place = (np.cumsum(marginal, axis=-1) - marginal / 2) / np.maximum(n, 1.0)[..., None]
            cost = (place[..., :, None] - place[..., None, :]) ** 2
        observed = (pairs * cost).sum(axis=(-2, -1)) * (n - 1)
        expected = (marginal[..., :, None] * marginal[..., None, :] * cost).sum(axis=(-2, -1))
        return _corrected(observed, expected, n * n * fixed.max(initial=1.0))

    weight = by_query(query, np.ones(len(query)), ratings.queries)
    return Sums(table.reshape(ratings.queries, levels * levels), value, weight, -1.0)


def confusion(first: Integers, second: Integers, levels: int) -> Integers:
    """How often one gave a grade (row) and the other gave another (column)."""
    cells = np.bincount(first * levels + second, minlength=levels * levels)
    return cells.reshape(levels, levels)


def _share(query: Integers, equal: Floats, queries: int) -> Sums:
    return replace(ratio(query, equal, np.ones(len(query)), queries), floor=0.0)


def _cost(grades: Floats, weights: Weights) -> Floats:
    distance = np.abs(grades[:, None] - grades[None, :])
    if weights == "none":
        return (distance > 0).astype(np.float64)
    return distance if weights == "linear" else distance**2


def _equal(counts: Floats, size: Floats) -> Floats:
    """Share of the pairs of ratings of an item that are equal."""
    return np.asarray(((counts**2).sum(axis=1) - size) / (size * (size - 1)))


def _corrected(observed: Floats, chance: Floats, scale: Floats | float) -> Floats:
    """1 - observed / chance disagreement; NaN where chance gives no disagreement."""
    return 1 - _divide(observed, np.where(chance > _NOTHING * scale, chance, 0.0))


def _divide(over: Floats, under: Floats) -> Floats:
    """The quotient; NaN for division by 0."""
    over, under = np.broadcast_arrays(over, under)
    out = np.full(over.shape, np.nan)
    return np.asarray(np.divide(over, under, out=out, where=under > 0))
