"""Correlation of a measure with an outcome: rank correlation, and AUC for binary outcomes.

Not SciPy's, as importing ``scipy.stats`` takes longer than the correlations of an evaluation. The
tests compare the results with SciPy's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from karat.stats.averages import Floats
from karat.stats.intervals import Interval

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Correlation:
    """Correlation of two values over queries."""

    n: int  # number of queries that have both
    spearman: float | None  # Spearman's rank correlation, -1 to 1, or None
    ci_low: float | None  # lower end of its interval, or None
    ci_high: float | None  # upper end
    kendall: float | None  # Kendall's tau-b, -1 to 1, or None
    # For a binary outcome, how often a query with 1 has a higher value than one with 0, ties
    # counting half; 0 to 1, or None
    auc: float | None
    reason: str = ""  # why there is no interval, or no correlation; empty if there are both


def outcome(
    values: Floats, outcomes: Floats | NDArray[np.bool_], *, confidence: float = 0.95
) -> Correlation:
    """Correlation of a measure with an outcome over queries.

    Every query counts the same: weights and strata are ignored, so this describes these queries,
    not the population they were sampled from.

    Args:
        values: One for each query; NaN where there is none; shape (n,).
        outcomes: One for each query, NaN where there is none; booleans, or numbers of which only
            the order matters; shape (n,). Outcomes that are all 0 or 1 are binary. Queries that
            lack either are left out.
        confidence: Share of samples whose interval contains the true Spearman correlation.

    Returns:
        Spearman and Kendall are None if all values or all outcomes are equal; AUC has a value if
        both 0 and 1 occur (0.5 if all values are equal).

    Source: Spearman by midranks; Kendall 1945, doi:10.1093/biomet/33.3.239 (tau-b); AUC as
    Mann & Whitney's U over the number of pairs.
    """
    numeric = outcomes.astype(np.float64)
    both = ~(np.isnan(values) | np.isnan(numeric))
    left, right = _Ranked.of(values[both]), _Ranked.of(numeric[both])
    n = len(left.place)
    auc = _auc(left, numeric[both])
    reason = _no_correlation(left, right)
    if reason:
        return Correlation(n, None, None, None, None, auc, reason)
    spearman = _pearson(left.midrank - (n + 1) / 2, right.midrank - (n + 1) / 2)
    interval = spearman_interval(spearman, n, confidence)
    tau = _tau_b(left, right)
    return Correlation(n, spearman, interval.low, interval.high, tau, auc, interval.reason)


def spearman_interval(correlation: float, n: int, confidence: float = 0.95) -> Interval:
    """Interval of Spearman's correlation, by Fisher's z.

    The variance of z is approximated by (1 + r²/2) / (n - 3), for correlations up to about 0.95.
    With many ties, as in binary outcomes, the interval is somewhat too wide.

    Args:
        correlation: Spearman's r, -1 to 1.
        n: Number of queries.
        confidence: Share of samples whose interval contains the true correlation.

    Source: Bonett & Wright 2000, doi:10.1007/BF02294183.
    """
    if n < 4:
        return Interval(None, None, "an interval of a correlation needs 4 queries")
    if abs(correlation) == 1:
        return Interval(None, None, "the two orders agree (or disagree) in every pair")
    z = math.atanh(correlation)
    reach = NormalDist().inv_cdf(0.5 + confidence / 2)
    reach *= math.sqrt((1 + correlation**2 / 2) / (n - 3))
    return Interval(math.tanh(z - reach), math.tanh(z + reach))


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Values by rank: ``place`` from 0, equal values at one place; ``size`` of each place."""

    place: Ints
    size: Ints

    @classmethod
    def of(cls, values: Floats) -> _Ranked:
        _, place, size = np.unique(values, return_inverse=True, return_counts=True)
        return cls(place, size)

    @property
    def midrank(self) -> Floats:
        """Rank of each from 1; equal values have the mean of their ranks."""
        rank: Floats = (np.cumsum(self.size) - (self.size - 1) / 2)[self.place]
        return rank

    @property
    def untied(self) -> int:
        """Pairs whose values differ."""
        return _pairs(np.array([len(self.place)])) - _pairs(self.size)


def _no_correlation(left: _Ranked, right: _Ranked) -> str:
    if len(left.place) == 0:
        return "no query has both"
    if len(left.place) == 1:
        return "one query has no order"
    if len(left.size) == 1:
        return "all values are equal"
    if len(right.size) == 1:
        return "all outcomes are equal"
    return ""


def _pearson(x: Floats, y: Floats) -> float:
    """Correlation of two centred columns."""
    # Full agreement is exactly 1, regardless of rounding: then there is no interval.
    if (x == y).all():
        return 1.0
    if (x == -y).all():
        return -1.0
    return _bounded(float(x @ y) / math.sqrt(float(x @ x) * float(y @ y)))


def _tau_b(left: _Ranked, right: _Ranked) -> float:
    """Concordant minus discordant pairs, over the geometric mean of the pairs untied in each."""
    joint = left.place * np.int64(len(right.size)) + right.place
    _, size = np.unique(joint, return_counts=True)
    # Pairs tied on the left ascend on the right, so they are not counted as inversions.
    discordant = _inversions(right.place[np.argsort(joint)])
    tied_in_either = _pairs(left.size) + _pairs(right.size) - _pairs(size)
    untied = _pairs(np.array([len(joint)])) - tied_in_either
    surplus = untied - 2 * discordant
    return _bounded(surplus / math.sqrt(left.untied * right.untied))


def _inversions(place: Ints) -> int:
    """Pairs in which a later value is smaller, in O(n log n).

    Two values separate at the highest bit in which they differ. From the top bit down, values
    that agree so far are grouped in their original order, and each 0 counts the 1s before it.
    """
    total = 0
    for bit in range(int(place.max()).bit_length() - 1, -1, -1):
        group, one = place >> (bit + 1), place >> bit & 1
        start = np.flatnonzero(np.diff(group, prepend=-1))
        before = np.cumsum(one) - one
        before -= np.repeat(before[start], np.diff(np.append(start, len(place))))
        total += int(before[one == 0].sum())
        place = place[np.argsort(place >> bit, kind="stable")]
    return total


def _auc(values: _Ranked, outcomes: Floats) -> float | None:
    yes = outcomes == 1
    ones = int(yes.sum())
    zeros = int((outcomes == 0).sum())
    if not ones or not zeros or ones + zeros < len(outcomes):
        return None
    above = float(values.midrank[yes].sum()) - ones * (ones + 1) / 2
    return above / (ones * zeros)


def _pairs(size: Ints) -> int:
    """Pairs within groups of these sizes."""
    return int((size * (size - 1) // 2).sum())


def _bounded(value: float) -> float:
    return max(-1.0, min(1.0, value))
