"""Many systems at once: Tukey's honest significant difference, by randomisation.

Comparing every pair of systems finds differences by luck, the more pairs the surer. Here every
pair is held against the largest difference that luck alone would make between any two of them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError, UsageError
from karat.stats.averages import Floats, mean

_BLOCK = 1 << 20
"""Numbers held at once for each matrix of permuted means."""


@dataclass(frozen=True, slots=True, eq=False)
class Tukey:
    """Every pair of systems, corrected for there being many.

    Attributes:
        means: Mean of each system; shape (s,).
        p_values: Of each pair, above 0 to 1, symmetric, 1 on the diagonal; shape (s, s).
        honest_difference: Means that differ by more than this are told apart at ``alpha``;
            infinite if too few arrangements were drawn to tell anything apart.
        groups: Tie groups, best first: the largest sets of neighbours, by mean, of which no two
            are told apart. Indices of systems, best first; a system may stand in several.
        alpha: Chance of telling apart any pair, if no two systems differ.
        arrangements: How many the p-values rest on.
        exact: Whether these are all there are; otherwise they were drawn.
    """

    means: Floats
    p_values: Floats
    honest_difference: float
    groups: tuple[tuple[int, ...], ...]
    alpha: float
    arrangements: int
    exact: bool


def tukey(
    values: Floats,
    rng: np.random.Generator,
    *,
    weights: Floats | None = None,
    alpha: float = 0.05,
    resamples: int = 9999,
) -> Tukey:
    """Tukey's test for all pairs of systems, by exchanging systems within each query.

    If the systems are alike, any exchange of a query's values among them was as likely. Each
    arrangement gives the largest mean less the smallest; the p-value of a pair is the share of
    arrangements whose value is as large as the pair's difference: c / all when all of them are
    gone through, which is done where they are no more than ``resamples``, and otherwise
    (c + 1) / (resamples + 1). Queries on which all systems have one value change nothing. Strata
    do not matter, as nothing is exchanged between queries.

    Args:
        values: Value of each system for each query, no NaN; shape (n, s), n at least 1 and s at
            least 2.
        rng: Where the arrangements come from.
        weights: Of the queries, above 0; shape (n,). All equal if None.
        alpha: Between 0 and 1; the chance of telling apart any pair, if no two systems differ.
        resamples: Arrangements to draw, at least 1.

    Raises:
        InputError: a value is not a number.
        UsageError: fewer than two systems, no query, or ``alpha`` or ``resamples`` out of range.

    Source: Carterette 2012, doi:10.1145/2094072.2094076 (single step, differences not
    standardised); Phipson & Smyth 2010, doi:10.2202/1544-6115.1585, for (c + 1).
    """
    _refuse(values, alpha, resamples)
    n, systems = values.shape
    means = np.array([mean(column, weights) for column in values.T])
    share = np.full(n, 1 / n) if weights is None else weights / math.fsum(weights.tolist())
    differing = (values != values[:, :1]).any(axis=1)
    parts = (values * share[:, None])[differing]
    count = math.factorial(systems) ** max(len(parts) - 1, 0)
    exact = count <= resamples
    ranges = np.sort(_all_ranges(parts) if exact else _drawn_ranges(parts, rng, resamples))

    # Sums in another order differ in their last digits and are to count as equal.
    slack = 1e-12 * float(np.abs(values).max())
    gaps = np.abs(means[:, None] - means)
    reached = len(ranges) - np.searchsorted(ranges, gaps - slack)
    drawn = 0 if exact else 1
    p_values = (reached + drawn) / (len(ranges) + drawn)
    np.fill_diagonal(p_values, 1.0)
    # The most arrangements that may reach a difference which is still told apart.
    most = math.floor(alpha * (len(ranges) + drawn) + 1e-9) - drawn
    honest = math.inf if most < 0 else float(ranges[-1 - most])
    groups = _tie_groups(means, p_values > alpha + 1e-12)
    return Tukey(means, p_values, honest, groups, alpha, len(ranges), exact)


def _refuse(values: Floats, alpha: float, resamples: int) -> None:
    if values.ndim != 2 or values.shape[1] < 2:
        raise UsageError(
            f"Tukey's test was given values of shape {values.shape}, not queries by systems",
            fix="give one row for each query and two columns or more, one for each system",
        )
    if not len(values):
        raise UsageError("Tukey's test was given no query")
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise InputError(
            f"the value of system {column} for query {row} is {values[row, column]}",
            fix="leave out queries for which a system has no value",
        )
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is {alpha}, not between 0 and 1", fix="alpha=0.05")
    if resamples < 1:
        raise UsageError(f"resamples is {resamples}, not 1 or more", fix="resamples=9999")


def _all_ranges(parts: Floats) -> Floats:
    """Largest less smallest mean in every arrangement; shape (s! ** (n - 1),).

    The first query stays as it is: to exchange whole systems does not change the range.
    """
    systems = parts.shape[1]
    orders = np.array(list(itertools.permutations(range(systems)))) if len(parts) > 1 else None
    sums = parts[:1] if len(parts) else np.zeros((1, systems))
    for row in parts[1:]:
        sums = (sums[:, None, :] + row[orders]).reshape(-1, systems)
    return _range(sums)


def _drawn_ranges(parts: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    """The same in arrangements drawn at random; shape (resamples,)."""
    systems = parts.shape[1]
    ranges = np.empty(resamples)
    height = max(_BLOCK // systems, 1)
    for start in range(0, resamples, height):
        stop = min(start + height, resamples)
        # Query by query: the sums stay in the cache, and the whole cube is never held.
        sums = np.zeros((stop - start, systems))
        for row in parts:
            sums += rng.permuted(np.broadcast_to(row, sums.shape), axis=1)
        ranges[start:stop] = _range(sums)
    return ranges


def _range(sums: Floats) -> Floats:
    widest: Floats = sums.max(axis=1) - sums.min(axis=1)
    return widest


def _tie_groups(means: Floats, together: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Largest stretches of the systems, by mean, that are together; given for every pair."""
    order = np.argsort(-means, kind="stable")
    groups: list[tuple[int, ...]] = []
    reach = 0
    for first in range(len(order)):
        # A p-value never rises with the difference, so those together with the first are a
        # stretch, and are together with one another.
        stop = first + int(together[order[first], order[first:]].sum())
        if stop > reach:
            groups.append(tuple(order[first:stop].tolist()))
            reach = stop
    return tuple(groups)
