"""How far raters agree: Cohen's κ, Fleiss' κ, Krippendorff's α, Gwet's AC1, the share equal.

Judgments of one query hang together, so queries are what an interval has to resample. Every figure
is therefore a function of sums that add up over queries: ``Sums`` holds one row of them for each
query, and the figure of any set of queries, or of a whole matrix of resamples, is one call.

A figure that chance cannot be told from (every rating is the same grade) is undefined: NaN here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from karat.stats.averages import Floats

Integers = NDArray[np.int64]
Weights = Literal["none", "linear", "quadratic"]
Metric = Literal["nominal", "ordinal", "interval"]

WEIGHTS: tuple[Weights, ...] = ("none", "linear", "quadratic")
METRICS: tuple[Metric, ...] = ("nominal", "ordinal", "interval")

_NOTHING = 1e-12
"""Share of chance disagreement up to which it is a rounding error of none at all."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """Grades by rater and pair, as numbers; at most one for each rater and pair.

    Attributes:
        query: Index of the query, from 0; shape (n,).
        item: Index of the pair of query and document, from 0; shape (n,).
        rater: Index of the rater, from 0; shape (n,).
        level: Index into ``grades``; shape (n,).
        grades: The grades there are, ascending; shape (levels,). Distances are between these
            values, so a grade that nobody used changes none of them.
        queries: How many queries there are, with or without ratings.
    """

    query: Integers
    item: Integers
    rater: Integers
    level: Integers
    grades: Floats
    queries: int

    def keep(self, held: NDArray[np.bool_]) -> Ratings:
        """Only those; indices stay what they were."""
        return Ratings(
            self.query[held],
            self.item[held],
            self.rater[held],
            self.level[held],
            self.grades,
            self.queries,
        )

    def counts(self) -> tuple[Floats, Integers]:
        """How often each item got each grade, and the item's query; items without one are out.

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
    """What a figure is made of: a row for each query, and the figure as a function of their sum.

    Attributes:
        table: One row for each query; shape (queries, columns).
        value: From sums of shape (..., columns) to figures of shape (...); NaN is undefined.
        weight: How much each query has to say, 0 for nothing: the pairs judged twice, or more
            often; shape (queries,).
        floor: Of a figure that is 1 at most and this at least; None of one without such bounds.
    """

    table: Floats
    value: Callable[[Floats], Floats]
    weight: Floats
    floor: float | None = None

    @property
    def whole(self) -> float:
        """The figure over all queries."""
        return float(self.value(self.table.sum(axis=0)))

    def without(self) -> Floats:
        """The figure over all queries but one, each in turn; shape (queries,)."""
        return self.value(self.table.sum(axis=0) - self.table)

    def minus(self, other: Sums) -> Sums:
        """This figure minus another over the same queries."""
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
    """Sum of ``over`` by sum of ``under``: a share, or a mean if ``under`` is 1 throughout."""
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
        queries: How many there are.
        weights: What a disagreement counts: ``none`` 1, ``linear`` the distance of the grades,
            ``quadratic`` its square.

    Undefined if both used one and the same grade throughout.

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


def mean_kappa(ratings: Ratings, weights: Weights = "none") -> Sums:
    """Mean of the κ of each two raters, weighted by how many items both graded.

    Of two raters it is their κ. Two raters whose κ is undefined are left out.
    """
    raters, parts = np.unique(ratings.rater), []
    for place, first in enumerate(raters):
        for second in raters[place + 1 :]:
            met = ratings.together(int(first), int(second))
            if len(met[0]):
                parts.append(kappa(*met, ratings.grades, ratings.queries, weights))
    if not parts:
        none = np.zeros(0, np.int64)
        parts = [kappa(none, none, none, ratings.grades, ratings.queries, weights)]
    width = parts[0].table.shape[1]

    def value(sums: Floats) -> Floats:
        each = sums.reshape(*sums.shape[:-1], len(parts), width)
        found, size = parts[0].value(each), each[..., 0]
        size = np.where(np.isnan(found), 0.0, size)
        return _divide((np.nan_to_num(found) * size).sum(axis=-1), size.sum(axis=-1))

    weight = np.sum([part.weight for part in parts], axis=0)
    return Sums(np.hstack([part.table for part in parts]), value, weight, -1.0)


def mean_share_equal(ratings: Ratings) -> Sums:
    """Share of equal grades among the pairs of ratings of an item, each item counting once."""
    counts, query = ratings.counts()
    size = counts.sum(axis=1)
    held = size > 1
    return _share(query[held], _equal(counts[held], size[held]), ratings.queries)


def fleiss(ratings: Ratings) -> Sums:
    """Fleiss' κ; items with other numbers of raters count by their shares.

    Source: Fleiss 1971, doi:10.1037/h0031619; with unequal numbers of raters as in Gwet 2014,
    Handbook of Inter-Rater Reliability, ch. 2 (an item of one rating counts for the grades'
    shares only).
    """

    def chance(shares: Floats) -> Floats:
        return np.asarray((shares * shares).sum(axis=-1))

    return _by_shares(ratings, chance)


def ac1(ratings: Ratings, categories: int) -> Sums:
    """Gwet's AC1, which a rare grade does not pull down as it does κ.

    Args:
        ratings: As they are.
        categories: How many grades the scale has, used or not; 2 at least.

    Undefined, as the others here, if every rating is the same grade (the formula says 1).

    Source: Gwet 2008, doi:10.1348/000711006X126600; unequal numbers of raters as in ``fleiss``.
    """

    def chance(shares: Floats) -> Floats:
        return np.asarray((shares * (1 - shares)).sum(axis=-1) / (categories - 1))

    return _by_shares(ratings, chance)


def _by_shares(ratings: Ratings, chance: Callable[[Floats], Floats]) -> Sums:
    """(P - chance) / (1 - chance), P the mean share of equal pairs of ratings of an item."""
    counts, query = ratings.counts()
    size = counts.sum(axis=1)
    twice = size > 1
    equal = np.zeros(len(size))
    equal[twice] = _equal(counts[twice], size[twice])
    items = np.column_stack([twice, equal, np.ones(len(size)), counts / size[:, None]])
    table = by_query(query, items, ratings.queries)

    def value(sums: Floats) -> Floats:
        shares = _divide(sums[..., 3:], sums[..., 2:3])
        seen, expected = _divide(sums[..., 1], sums[..., 0]), chance(shares)
        found = _corrected(1 - seen, 1 - expected, 1.0)
        return np.where(shares.max(axis=-1, initial=0.0) > 1 - _NOTHING, np.nan, found)

    return Sums(table, value, table[:, 0], -1.0)


def alpha(ratings: Ratings, metric: Metric = "ordinal") -> Sums:
    """Krippendorff's α: any number of raters, of whom any may be missing anywhere.

    Args:
        ratings: Items of one rating do not count.
        metric: What a disagreement counts: ``nominal`` 1, ``ordinal`` the square of how many
            ratings lie between, ``interval`` the square of the distance of the grades.

    Source: Krippendorff 2011, Computing Krippendorff's Alpha-Reliability,
    https://repository.upenn.edu/asc_papers/43.
    """
    counts, query = ratings.counts()
    size, levels = counts.sum(axis=1), len(ratings.grades)
    held = size > 1
    counts, query, size = counts[held], query[held], size[held]
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
        seen = (pairs * cost).sum(axis=(-2, -1)) * (n - 1)
        expected = (marginal[..., :, None] * marginal[..., None, :] * cost).sum(axis=(-2, -1))
        return _corrected(seen, expected, n * n * fixed.max(initial=1.0))

    weight = by_query(query, np.ones(len(query)), ratings.queries)
    return Sums(table.reshape(ratings.queries, levels * levels), value, weight, -1.0)


def confusion(first: Integers, second: Integers, levels: int) -> Integers:
    """How often one gave a grade (row) and the other gave another (column)."""
    cells = np.bincount(first * levels + second, minlength=levels * levels)
    return cells.reshape(levels, levels)


def _share(query: Integers, equal: Floats, queries: int) -> Sums:
    found = ratio(query, equal, np.ones(len(query)), queries)
    return replace(found, floor=0.0)


def _cost(grades: Floats, weights: Weights) -> Floats:
    apart = np.abs(grades[:, None] - grades[None, :])
    if weights == "none":
        return (apart > 0).astype(np.float64)
    return apart if weights == "linear" else apart**2


def _equal(counts: Floats, size: Floats) -> Floats:
    """Share of the pairs of ratings of an item that are equal."""
    return np.asarray(((counts**2).sum(axis=1) - size) / (size * (size - 1)))


def _corrected(seen: Floats, chance: Floats, scale: Floats | float) -> Floats:
    """1 - seen / chance; NaN where chance could not disagree."""
    return 1 - _divide(seen, np.where(chance > _NOTHING * scale, chance, 0.0))


def _divide(over: Floats, under: Floats) -> Floats:
    """NaN for nothing by nothing, and for anything else by nothing."""
    over, under = np.broadcast_arrays(over, under)
    out = np.full(over.shape, np.nan)
    return np.asarray(np.divide(over, under, out=out, where=under > 0))
