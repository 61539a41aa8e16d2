"""Many systems at once: every pair of them is tested, in one family.

Comparing every pair of systems finds differences by luck, the more pairs the surer. Here the
p-value of a pair is the chance that luck alone makes any pair under any measure look as unusual.

Tukey's question, but not his range: the largest mean less the smallest asks all pairs to differ
by the same amount, though the difference of two variants of one system varies far less than that
of two strangers. Where systems have equal means and unequal spread that finds too much. So each
difference is divided by its own standard error, and held against its own distribution.
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

_BLOCK = 1 << 18
"""Numbers held at once for resamples: what a cache holds is quickest."""
_HELD = 1 << 24
"""Statistics of resamples held at once."""
_SAME = 1e-7
"""A spread no larger than this share of the largest value is what rounding leaves behind."""
_AS_FAR = 1 - 1e-6
"""Statistics this near are equal but for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Tukey:
    """Every pair of systems under one measure, corrected for there being many.

    Attributes:
        means: Mean of each system; shape (s,).
        alone: P-value of each pair by itself, above 0 to 1, symmetric, 1 on the diagonal; shape
            (s, s).
        p_values: The same, corrected over the family; shape (s, s).
        differing: Whether a pair differs on any query; shape (s, s).
        groups: Tie groups, best first: the largest sets of systems of which no two are
            significantly different. Indices of systems, best first; a system may be in several.
        family: Pairs of systems times measures.
        alpha: Chance of finding any pair of the family different, if no two systems differ.
    """

    means: Floats
    alone: Floats
    p_values: Floats
    differing: NDArray[np.bool_]
    groups: tuple[tuple[int, ...], ...]
    family: int
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
        rng: As in ``tukey_each``; so the following.
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
    """All pairs of systems under all of several measures: one family, on the same resamples.

    Queries are drawn with replacement from the differences less their mean. A pair's p-value
    alone is the share of resamples whose t is as far from 0 as the pair's, (c + 1) /
    (resamples + 1). Each resample, too, has such a p-value for every pair; the corrected p-value
    is the share of resamples of which the smallest is as small as the pair's. A resample in which
    all differences of a pair are equal takes the pair's own standard error. No p-value is smaller
    than the smallest that signs alone could give to the k queries that differ, 2^(1 - k), which
    is corrected by Bonferroni.

    Args:
        values: Value of each system for each query under each measure, no NaN; shape (n, s, m),
            n at least 1 and s at least 2.
        rng: Where the resamples come from.
        weights: As in ``tukey``.
        strata: As in ``tukey``.
        alpha: Chance of finding any pair under any measure different, if no two systems differ.
        resamples: How many to draw. The smallest corrected p-value is about as many resamples as
            there are pairs: 10,000 are enough for some 400 of them at 5 %.
        others: Pairs of the family that are tested elsewhere; corrected for by Bonferroni.

    Returns:
        As many as there are measures.

    Raises:
        InputError: As in ``tukey``.
        UsageError: As in ``tukey``.

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
    found = []
    for k in range(measures):
        tables = np.ones((2, systems, systems))
        for table, p in zip(tables, (alone, corrected), strict=True):
            table[left, right] = table[right, left] = p.reshape(-1, measures)[:, k]
        one = values[:, :, k]
        means = np.array([mean(column, weights) for column in one.T])
        differing = np.any(np.abs(one[:, :, None] - one[:, None, :]) > TIED, axis=0)
        groups = _tie_groups(means, tables[1] > alpha + 1e-12)
        family = len(alone) + others
        found.append(Tukey(means, tables[0], tables[1], differing, groups, family, alpha))
    return found


def _family(
    columns: Floats,
    rng: np.random.Generator,
    resamples: int,
    weights: Floats | None,
    strata: NDArray[np.int64] | None,
) -> tuple[Floats, Floats]:
    """P-values of the mean of each column, alone and corrected over all; shape (m,) each."""
    n, m = columns.shape
    alone, corrected = np.ones((2, m))
    differing = (np.abs(columns) > TIED).sum(axis=0)
    tested = np.flatnonzero(differing)
    seed = rng.integers(2**63)
    smallest = np.ones(resamples)
    width = max(1, _HELD // resamples)
    for start in range(0, len(tested) if n > 1 else 0, width):
        chosen = tested[start : start + width]
        # From one seed, so that all columns have the same resamples.
        drawn = np.random.default_rng(seed)
        seen, luck = _statistics(columns[:, chosen], drawn, resamples, weights, strata)
        for column, own, row in zip(chosen.tolist(), seen.tolist(), luck, strict=True):
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
    """Square of t of each column, and in each resample of a world without differences."""
    n, m = columns.shape
    centre, variance = resampled_estimates(columns, np.ones((1, n)), weights, strata)
    least = (_SAME * np.abs(columns).max(axis=0)) ** 2 / n
    own = np.where(variance[0] > least, variance[0], np.inf)
    seen = np.where(variance[0] > least, centre[0] ** 2 / own, np.inf)
    shifted = columns - centre
    luck = np.empty((resamples, m), np.float32)
    block = max(1, _BLOCK // max(n, m))
    for start in range(0, resamples, block):
        drawn = resample(n, min(block, resamples - start), rng, strata)
        means, variances = resampled_estimates(shifted, drawn, weights, strata)
        np.copyto(variances, own, where=variances <= least)
        np.square(means, out=means)
        luck[start : start + len(drawn)] = np.divide(means, variances, out=means)
    return seen, np.ascontiguousarray(luck.T)


def _misshapen(values: Floats) -> UsageError:
    return UsageError(
        f"the test of all pairs got values of shape {values.shape}, not queries by systems",
        fix="give one row for each query and two columns or more, one for each system",
    )


def _refuse(values: Floats, alpha: float, resamples: int) -> None:
    if values.ndim != 3 or values.shape[1] < 2:
        raise _misshapen(values)
    if not len(values):
        raise UsageError("the test of all pairs got no query")
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


def _tie_groups(means: Floats, together: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Largest sets of systems of which every two are together, best first.

    Two that are farther apart may be together where two nearer ones are not, as each pair has a
    spread of its own; so sets are split at each pair that is not, and those within another left
    out (Piepho 2004, doi:10.1198/1061860043515).
    """
    order = np.argsort(-means, kind="stable").tolist()
    ranks = range(len(order))
    groups: list[frozenset[int]] = [frozenset(ranks)]
    for one, other in itertools.combinations(ranks, 2):
        if not together[order[one], order[other]]:
            groups = _split(groups, one, other)
    return tuple(tuple(order[rank] for rank in group) for group in sorted(map(sorted, groups)))


def _split(groups: Sequence[frozenset[int]], one: int, other: int) -> list[frozenset[int]]:
    kept = [group for group in groups if not {one, other} <= group]
    for group in groups:
        for part in (group - {one}, group - {other}) if {one, other} <= group else ():
            if not any(part <= held for held in kept):
                kept.append(part)
    return kept
