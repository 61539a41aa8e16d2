"""Many systems at once: every pair of them is tested, in one family.

Comparing every pair of systems finds differences by chance, and the more pairs the more. Here the
p-value of a pair is the probability that any pair under any measure looks as unusual by chance.

This is Tukey's question without his range statistic: the range of means assumes that all pairs
vary alike, but the difference of two variants of one system varies far less than that of unrelated
systems, and where spreads are unequal the range finds too much. So each difference is divided by
its own standard error and compared with its own distribution.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError, UsageError
from karat.stats.averages import Floats, mean
from karat.stats.effects import TIED
from karat.stats.intervals import resample, resampled_estimates

_BLOCK = 1 << 18  # numbers per block of resamples, which fits the cache
_HELD = 1 << 24  # statistics of resamples in memory at once
_SAME = 1e-7  # a spread up to this share of the largest value is rounding error
_AS_FAR = 1 - 1e-6  # statistics this close are equal but for rounding


@dataclass(frozen=True, slots=True, eq=False)
class Tukey:
    """Every pair of systems under one measure, corrected for multiple comparisons."""

    means: Floats  # mean of each system; shape (s,)
    # Uncorrected p-value of each pair, above 0 to 1, symmetric, 1 on the diagonal; shape (s, s)
    alone: Floats
    p_values: Floats  # the same, corrected over the family; shape (s, s)
    differing: NDArray[np.bool_]  # whether a pair differs on any query; shape (s, s)
    # Tie groups, best first: the largest sets of systems in which no two are significantly
    # different. Indices of systems, best first; a system may be in several.
    groups: tuple[tuple[int, ...], ...]
    family: int  # number of pairs of systems times measures
    # Probability of finding any pair of the family different, if no two systems differ
    alpha: float


def tukey(
    values: Floats,
    rng: np.random.Generator,
    *,
    weights: Floats | None = None,
    strata: NDArray[np.int64] | None = None,
    alpha: float = 0.05,
    resamples: int = 9999,
) -> Tukey:
    """All pairs of systems under one measure; as ``tukey_each``.

    Args:
        values: Value of each system for each query, no NaN; shape (n, s), n at least 1 and s at
            least 2.
        rng: Generator of the resamples.
        weights: Of the queries, above 0; shape (n,). All equal if None.
        strata: As in ``t_interval``; shape (n,).
        alpha: Between 0 and 1.
        resamples: At least 1.

    Raises:
        InputError: a value is not a number.
        UsageError: fewer than two systems, no query, or ``alpha`` or ``resamples`` out of range.
    """
    if values.ndim != 2 or values.shape[1] < 2:
        raise _misshapen(values)
    return tukey_each(
        values[:, :, None], rng, weights=weights, strata=strata, alpha=alpha, resamples=resamples
    )[0]


def tukey_each(
    values: Floats,
    rng: np.random.Generator,
    *,
    weights: Floats | None = None,
    strata: NDArray[np.int64] | None = None,
    alpha: float = 0.05,
    resamples: int = 9999,
    others: int = 0,
) -> list[Tukey]:
    """All pairs of systems under several measures: one family, on the same resamples.

    Queries are drawn with replacement from the differences minus their mean. A pair's uncorrected
    p-value is the share of resamples whose t is as far from 0 as the pair's, (c + 1) /
    (resamples + 1). Each resample also has such a p-value for every pair; the corrected p-value
    is the share of resamples whose smallest is as small as the pair's. A resample in which
    all differences of a pair are equal uses the pair's own standard error. No p-value is below
    the smallest that the signs of the k queries that differ could give, 2^(1 - k), which
    is corrected by Bonferroni.

    Args:
        values: Value of each system for each query under each measure, no NaN; shape (n, s, m),
            n at least 1 and s at least 2.
        rng: Generator of the resamples.
        weights: As in ``tukey``.
        strata: As in ``tukey``.
        alpha: Probability of finding any pair different, if no two systems differ.
        resamples: How many to draw. The smallest possible corrected p-value is about the number
            of pairs / resamples: 10,000 are enough for some 400 pairs at 5 %.
        others: Pairs of the family that are tested elsewhere; corrected for by Bonferroni.

    Returns:
        One for each measure.

    Raises:
        InputError, UsageError: as in ``tukey``.

    Source: Westfall & Young 1993, Resampling-Based Multiple Testing, 2.3 (single-step minP);
    Romano & Wolf 2005, doi:10.1198/016214504000000539 (studentised); the test of one pair is
    ``paired.bootstrap``.
    """
    _refuse(values, alpha, resamples)
    _, systems, measures = values.shape
    left, right = np.triu_indices(systems, 1)
    columns = (values[:, left] - values[:, right]).reshape(len(values), -1)
    alone, corrected = _family(columns, rng, resamples, weights, strata)
    if others:
        corrected = np.minimum(1.0, corrected * (1 + others / max(len(alone), 1)))
    tests = []
    for k in range(measures):
        tables = np.ones((2, systems, systems))
        for table, p in zip(tables, (alone, corrected), strict=True):
            table[left, right] = table[right, left] = p.reshape(-1, measures)[:, k]
        one = values[:, :, k]
        means = np.array([mean(column, weights) for column in one.T])
        differing = np.any(np.abs(one[:, :, None] - one[:, None, :]) > TIED, axis=0)
        groups = _tie_groups(means, tables[1] > alpha + 1e-12)
        family = len(alone) + others
        tests.append(Tukey(means, tables[0], tables[1], differing, groups, family, alpha))
    return tests


def _family(
    columns: Floats,
    rng: np.random.Generator,
    resamples: int,
    weights: Floats | None,
    strata: NDArray[np.int64] | None,
) -> tuple[Floats, Floats]:
    """P-values of the mean of each column, uncorrected and corrected; shape (m,) each."""
    n, m = columns.shape
    alone, corrected = np.ones((2, m))
    differing = (np.abs(columns) > TIED).sum(axis=0)
    tested = np.flatnonzero(differing)
    seed = rng.integers(2**63)
    smallest = np.ones(resamples)
    width = max(1, _HELD // resamples)
    for start in range(0, len(tested) if n > 1 else 0, width):
        chosen = tested[start : start + width]
        # One seed, so all columns have the same resamples.
        drawn = np.random.default_rng(seed)
        observed, by_chance = _statistics(columns[:, chosen], drawn, resamples, weights, strata)
        for column, own, row in zip(chosen.tolist(), observed.tolist(), by_chance, strict=True):
            order = np.argsort(row)
            ordered = row[order]
            beyond = resamples - np.searchsorted(ordered, _AS_FAR * own)
            alone[column] = (beyond + 1) / (resamples + 1)
            as_far = resamples - np.searchsorted(ordered, _AS_FAR * ordered)
            smallest[order] = np.minimum(smallest[order], as_far / (resamples + 1))
    smallest.sort()
    reached = np.searchsorted(smallest, alone[tested] + 1e-12, side="right")
    corrected[tested] = (reached + 1) / (resamples + 1)
    least = np.minimum(1.0, 2.0 ** (1.0 - np.minimum(differing, 1000)))
    return np.maximum(alone, least), np.maximum(corrected, np.minimum(1.0, m * least))


def _statistics(
    columns: Floats,
    rng: np.random.Generator,
    resamples: int,
    weights: Floats | None,
    strata: NDArray[np.int64] | None,
) -> tuple[Floats, NDArray[np.float32]]:
    """Square of t of each column, and in each resample under the null hypothesis."""
    n, m = columns.shape
    centre, variance = resampled_estimates(columns, np.ones((1, n)), weights, strata)
    least = (_SAME * np.abs(columns).max(axis=0)) ** 2 / n
    own = np.where(variance[0] > least, variance[0], np.inf)
    observed = np.where(variance[0] > least, centre[0] ** 2 / own, np.inf)
    shifted = columns - centre
    by_chance = np.empty((resamples, m), np.float32)
    block = max(1, _BLOCK // max(n, m))
    for start in range(0, resamples, block):
        drawn = resample(n, min(block, resamples - start), rng, strata)
        means, variances = resampled_estimates(shifted, drawn, weights, strata)
        np.copyto(variances, own, where=variances <= least)
        np.square(means, out=means)
        by_chance[start : start + len(drawn)] = np.divide(means, variances, out=means)
    return observed, np.ascontiguousarray(by_chance.T)


def _misshapen(values: Floats) -> UsageError:
    return UsageError(
        f"the test of all pairs got values of shape {values.shape}; expected queries by systems",
        fix="give one row for each query and at least two columns, one for each system",
    )


def _refuse(values: Floats, alpha: float, resamples: int) -> None:
    if values.ndim != 3 or values.shape[1] < 2:
        raise _misshapen(values)
    if not len(values):
        raise UsageError("the test of all pairs got no queries")
    if not np.isfinite(values).all():
        row, column, measure = place = tuple(np.argwhere(~np.isfinite(values))[0].tolist())
        under = f" under measure {measure}" if values.shape[2] > 1 else ""
        raise InputError(
            f"the value of system {column} for query {row}{under} is {values[place]}",
            fix="leave out queries without a value for every system",
        )
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is {alpha}, not between 0 and 1", fix="alpha=0.05")
    if resamples < 1:
        raise UsageError(f"resamples is {resamples}, not 1 or more", fix="resamples=9999")


def _tie_groups(means: Floats, together: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Largest sets of systems in which every two are together, best first.

    Two systems with distant means may be together where two closer ones are not, as each pair has
    its own spread; so sets are split at each pair that is not, and subsets of others left out
    (Piepho 2004, doi:10.1198/1061860043515).
    """
    order = np.argsort(-means, kind="stable").tolist()
    ranks = range(len(order))
    groups: list[frozenset[int]] = [frozenset(ranks)]
    for one, other in itertools.combinations(ranks, 2):
        if not together[order[one], order[other]]:
            groups = _split(groups, one, other)
    return tuple(tuple(order[rank] for rank in group) for group in sorted(map(sorted, groups)))


def _split(groups: Sequence[frozenset[int]], one: int, other: int) -> list[frozenset[int]]:
    result = [group for group in groups if not {one, other} <= group]
    for group in groups:
        for part in (group - {one}, group - {other}) if {one, other} <= group else ():
            if not any(part <= other_group for other_group in result):
                result.append(part)
    return result
