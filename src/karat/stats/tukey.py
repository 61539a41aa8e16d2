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

_BLOCK = 10_000
"""Places of systems (arrangements x systems) drawn at once for a query."""
_TABLE = 1 << 14
"""Numbers in a table of the sums that a few queries can make: what a cache holds is quickest."""


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
    if values.ndim != 2 or values.shape[1] < 2:
        raise _misshapen(values)
    every = tukey_each(values[:, :, None], rng, weights=weights, alpha=alpha, resamples=resamples)
    return every[0]


def tukey_each(
    values: Floats,
    rng: np.random.Generator,
    *,
    weights: Floats | None = None,
    alpha: float = 0.05,
    resamples: int = 9999,
) -> list[Tukey]:
    """Tukey's test under each of several measures, on the same arrangements.

    A query's systems are exchanged alike under every measure, so the drawing is paid for once. A
    measure that has few enough arrangements goes through all of them, by itself. Nothing is
    corrected for there being several measures.

    Args:
        values: Value of each system for each query under each measure, no NaN; shape (n, s, m),
            n at least 1 and s at least 2.
        rng: As in ``tukey``. What is drawn does not depend on m, but on the queries on which any
            system differs under any measure that draws: where these are the same for a measure
            alone, so is the result, but for rounding.
        weights: As in ``tukey``.
        alpha: As in ``tukey``, for each measure.
        resamples: As in ``tukey``.

    Returns:
        As many as there are measures.

    Raises:
        InputError: As in ``tukey``.
        UsageError: As in ``tukey``.

    Source: As ``tukey``.
    """
    _refuse(values, alpha, resamples)
    n, systems, measures = values.shape
    share = np.full(n, 1 / n) if weights is None else weights / math.fsum(weights.tolist())
    parts = values * share[:, None, None]
    differing = (values != values[:, :1]).any(axis=1)
    free = np.maximum(differing.sum(axis=0) - 1, 0).tolist()  # queries that need turning
    # Two to the power of 64 is too many already.
    exact = [math.factorial(systems) ** min(count, 64) <= resamples for count in free]
    ranges = {k: _all_ranges(parts[differing[:, k], :, k]) for k in range(measures) if exact[k]}
    drawn = [k for k in range(measures) if not exact[k]]
    if drawn:
        turned = parts[differing[:, drawn].any(axis=1)][:, :, drawn]
        ranges.update(zip(drawn, _drawn_ranges(turned, rng, resamples).T, strict=True))
    found = (values[:, :, k] for k in range(measures))
    return [
        _against(each, weights, alpha, np.sort(ranges[k]), exact=exact[k])
        for k, each in enumerate(found)
    ]


def _against(
    values: Floats, weights: Floats | None, alpha: float, ranges: Floats, *, exact: bool
) -> Tukey:
    """Hold every pair against the sorted ranges that luck makes."""
    means = np.array([mean(column, weights) for column in values.T])
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


def _misshapen(values: Floats) -> UsageError:
    return UsageError(
        f"Tukey's test was given values of shape {values.shape}, not queries by systems",
        fix="give one row for each query and two columns or more, one for each system",
    )


def _refuse(values: Floats, alpha: float, resamples: int) -> None:
    if values.ndim != 3 or values.shape[1] < 2:
        raise _misshapen(values)
    if not len(values):
        raise UsageError("Tukey's test was given no query")
    if not np.isfinite(values).all():
        row, column, measure = place = tuple(np.argwhere(~np.isfinite(values))[0].tolist())
        under = f" under measure {measure}" if values.shape[2] > 1 else ""
        raise InputError(
            f"the value of system {column} for query {row}{under} is {values[place]}",
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
    """The same under each measure, in arrangements drawn at random; shape (resamples, m)."""
    n, systems, measures = parts.shape
    # A few queries are turned at once, by looking up their sum in a table of all there can be.
    together = 1
    while systems ** (together + 1) * measures <= _TABLE and together < n:
        together += 1
    ranges = np.empty((resamples, measures))
    height = max(_BLOCK // systems, 1)
    for start in range(0, resamples, height):
        rows = min(height, resamples - start)
        sums, summand = np.zeros((2, rows * systems, measures))
        for first in range(0, n, together):
            table, places = np.zeros((1, measures)), np.zeros((rows, systems), np.int64)
            for query in parts[first : first + together]:
                steps = np.arange(systems) * len(table)
                places += rng.permuted(np.broadcast_to(steps, places.shape), axis=1)
                table = (query[:, None] + table).reshape(-1, measures)
            np.take(table, places.ravel(), axis=0, out=summand, mode="clip")
            sums += summand
        ranges[start : start + rows] = _range(sums.reshape(rows, systems, measures))
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
