"""Paired tests: is the difference between two runs, over queries, larger than chance explains?

A difference is candidate minus baseline of one query, without NaN. If all are 0, the runs are
"identical" and not tested.

Only NumPy: SciPy's tests take longer to import than these to run. Our tests compare the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from karat.errors import UsageError
from karat.stats.averages import Floats
from karat.stats.effects import TIED, win_tie_loss
from karat.stats.intervals import Estimate, estimate, resample, resampled_estimates
from karat.stats.student import beta_below, t_above, t_quantile

EXACT_TO = 12
"""Number of differing queries up to which the randomisation test uses every arrangement."""

_WILCOXON_EXACT_TO = 25
_BLOCK = 1 << 18  # numbers per block of signs, and of sums, which fits the cache
_SAME = 1e-10
"""Sums that differ by less, as a share of the sum of sizes, are equal but for rounding."""


@dataclass(frozen=True, slots=True)
class Test:
    """The result of a paired test."""

    __test__ = False  # not for pytest to collect

    name: str  # t | wilcoxon | sign
    p: float | None  # two-sided p-value, or None
    statistic: float | None  # the test statistic; None if p is
    n: int  # number of queries used
    reason: str = ""  # why there is no p-value; empty if there is one
    # 1 if the candidate is higher, -1 lower, 0 neither. For ranks or signs this may differ from the
    # direction of the mean.
    direction: int = 0


@dataclass(frozen=True, slots=True)
class MarginTest:
    """Whether a difference is shown to be small enough."""

    name: str  # equivalence | non-inferiority
    # Probability of such differences if the true one were as large as the margin; None without a
    # spread
    p: float | None
    # Lower end of the interval of the mean difference, of confidence 1 - 2 alpha: p is below alpha
    # where the interval is within the margins. None if p is.
    low: float | None
    high: float | None  # upper end; None for non-inferiority, which has no upper bound
    margin: float
    n: int  # number of queries
    reason: str = ""  # why there is no p-value; empty if there is one


def randomisation(
    difference: Floats,
    *,
    resamples: int = 10_000,
    seed: int | np.random.Generator,
    weights: Floats | None = None,
) -> Floats:
    """P-values of the paired randomisation test of the mean, two-sided.

    If the two runs are equally good, each query's difference is as likely to have the other sign.
    The p-value is the share of arrangements of signs whose mean is as far from 0 as the observed
    one: c / 2^k over all arrangements if at most 12 queries (k) differ, and otherwise
    (c + 1) / (resamples + 1) over random arrangements. Strata do not matter, as nothing is
    exchanged between queries.

    Args:
        difference: One for each query, no NaN; shape (n,), or (n, m) for m measures or systems.
            The columns share their arrangements; each has the same p-value as alone.
        resamples: Number of arrangements to draw, at least 1.
        seed: For ``numpy.random.default_rng``. The draws are the same for any m.
        weights: Of the queries, above 0; shape (n,). The mean is the weighted one.

    Returns:
        Shape () or (m,); above 0 to 1. 1 where all differences are 0, NaN without queries.

    Raises:
        UsageError: fewer than 1 resample.

    Source: Smucker, Allan & Carterette 2007, doi:10.1145/1321440.1321528; Phipson & Smyth 2010,
    doi:10.2202/1544-6115.1585, for (c + 1).
    """
    _refuse_none(resamples)
    values = np.asarray(difference, np.float64)
    columns = values[:, None] if values.ndim == 1 else values
    if weights is not None:
        columns = columns * weights[:, None]
    p = np.full(columns.shape[1], np.nan)
    if len(columns):
        few = np.count_nonzero(columns, axis=0) <= EXACT_TO
        for column in np.flatnonzero(few).tolist():
            p[column] = _exact(columns[:, column])
        if not few.all():
            p[~few] = _drawn(columns[:, ~few], resamples, np.random.default_rng(seed))
    return p.reshape(values.shape[1:])


def bootstrap(
    difference: Floats,
    *,
    resamples: int = 10_000,
    seed: int | np.random.Generator,
    weights: Floats | None = None,
    strata: NDArray[np.int64] | None = None,
) -> Floats:
    """P-values of the paired bootstrap test of the mean, studentised, two-sided.

    Queries are drawn with replacement from the differences minus their mean, that is, under the
    null hypothesis. The p-value is the share of resamples whose t is as far from 0 as that of
    ``t_test``, as (c + 1) / (resamples + 1). A resample without spread, which has no t, counts as
    being as far: where few queries differ, no p-value is small.

    Args:
        difference: One for each query, no NaN; shape (n,), or (n, m) for m measures or systems.
            The columns share their resamples; each has the same p-value as alone.
        resamples: Number of resamples to draw, at least 1.
        seed: For ``numpy.random.default_rng``. The draws are the same for any m.
        weights: Of the queries, above 0; shape (n,). The mean is the weighted one.
        strata: As in ``t_interval``; shape (n,). Each is resampled separately.

    Returns:
        Shape () or (m,); above 0 to 1. 1 where all differences are 0, as in ``randomisation``.
        NaN where ``t_test`` has no t either: without queries, or without spread.

    Raises:
        UsageError: fewer than 1 resample.

    Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, 16.4; Sakai 2006,
    doi:10.1145/1148170.1148261; (c + 1) as in ``randomisation``.
    """
    _refuse_none(resamples)
    values = np.asarray(difference, np.float64)
    columns = values[:, None] if values.ndim == 1 else values
    results = [_estimate(column, weights, strata) for column in columns.T]
    p = np.array([1.0 if result == "identical" else np.nan for result in results])
    estimates = {k: result for k, result in enumerate(results) if isinstance(result, Estimate)}
    if estimates:
        tested = list(estimates)
        shifted = columns[:, tested] - np.array([found.centre for found in estimates.values()])
        observed = np.array([abs(found.centre) / found.error for found in estimates.values()])
        slack = _SAME * np.abs(columns[:, tested]).max(axis=0)
        rng, beyond = np.random.default_rng(seed), np.zeros(len(tested), np.int64)
        block = max(1, _BLOCK // max(columns.shape[0], len(tested)))
        for start in range(0, resamples, block):
            drawn = resample(len(columns), min(block, resamples - start), rng, strata)
            means, variances = resampled_estimates(shifted, drawn, weights, strata)
            # Smaller variances are rounding errors.
            errors = np.sqrt(np.maximum(variances - slack**2 / len(columns), 0))
            beyond += (np.abs(means) >= observed * errors - slack).sum(axis=0)
        p[tested] = (beyond + 1) / (resamples + 1)
    return p.reshape(values.shape[1:])


def t_test(
    difference: Floats,
    weights: Floats | None = None,
    strata: NDArray[np.int64] | None = None,
) -> Test:
    """Student's paired t test of the (weighted, stratified) mean difference.

    Significant at level alpha exactly where ``t_interval`` of confidence 1 - alpha excludes 0.

    Args:
        difference: One for each query, no NaN; shape (n,).
        weights: Above 0; shape (n,).
        strata: As in ``t_interval``; shape (n,).

    Source: Student 1908; with weights and strata as in ``t_interval``.
    """
    n = len(difference)
    found = _estimate(difference, weights, strata)
    if isinstance(found, str):
        return Test("t", None, None, n, found)
    t = found.centre / found.error
    p = min(1.0, 2 * t_above(abs(t), found.df))
    return Test("t", p, t, n, direction=int(np.sign(t)))


def wilcoxon(difference: Floats) -> Test:
    """Wilcoxon's signed-rank test.

    Differences of 0 are dropped; equal sizes (within 1e-12) share their mean rank. Exact for up to
    25 differences of unequal sizes; otherwise by the normal distribution, with correction for ties
    and continuity. The statistic is the smaller of the two rank sums, and n the number of
    differences that are not 0.

    Args:
        difference: One for each query, no NaN; shape (n,).

    Source: Wilcoxon 1945, doi:10.2307/3001968; Hollander, Wolfe & Chicken 2014, ch. 3.1. Equals
    SciPy's ``wilcoxon`` with ``method="exact"``, or ``method="asymptotic", correction=True``.
    """
    reason = _untestable(difference)
    if reason:
        return Test("wilcoxon", None, None, 0, reason)
    kept = difference[np.abs(difference) > TIED]
    sizes = np.sort(np.abs(kept))
    # A chain of sizes, each within rounding of the one before, has one rank.
    place = np.cumsum(np.diff(sizes, prepend=sizes[0]) > TIED)
    count = np.bincount(place)
    midrank = (np.cumsum(count) - (count - 1) / 2)[place]
    positive = kept[np.argsort(np.abs(kept), kind="stable")] > 0
    n = len(kept)
    up, down = float(midrank[positive].sum()), float(midrank[~positive].sum())
    least, direction = min(up, down), int(np.sign(up - down))
    if n <= _WILCOXON_EXACT_TO and len(count) == n:
        return Test("wilcoxon", _rank_sum_p(round(least), n), least, n, direction=direction)
    ties = float((count.astype(np.float64) ** 3 - count).sum())
    deviation = math.sqrt((n * (n + 1) * (2 * n + 1) - ties / 2) / 24)
    away = max(0.0, n * (n + 1) / 4 - least - 0.5)
    p = math.erfc(away / deviation / math.sqrt(2))
    return Test("wilcoxon", p, least, n, direction=direction)


def sign_test(difference: Floats) -> Test:
    """Sign test: are as many queries won as lost?

    Ties (within 1e-12) are dropped. The statistic is the number of queries won, and n the number
    won or lost. Exact, by the binomial distribution.

    Args:
        difference: One for each query, no NaN; shape (n,).

    Source: Dixon & Mood 1946, doi:10.1080/01621459.1946.10501898.
    """
    reason = _untestable(difference)
    if reason:
        return Test("sign", None, None, 0, reason)
    wins, _, losses = win_tie_loss(difference)
    least, n = min(wins, losses), wins + losses
    # A binomial tail is a beta tail: P(X <= k) = I_1/2(n - k, k + 1).
    p = min(1.0, 2 * beta_below(0.5, 0.5, n - least, least + 1))
    return Test("sign", p, float(wins), n, direction=int(np.sign(wins - losses)))


def equivalence(
    difference: Floats,
    margin: float,
    weights: Floats | None = None,
    strata: NDArray[np.int64] | None = None,
    *,
    alpha: float = 0.05,
) -> MarginTest:
    """Is the mean difference smaller than a margin, up or down? Two one-sided t tests.

    Args:
        difference: One for each query, no NaN; shape (n,).
        margin: Above 0, in units of the measure: a difference smaller than this does not matter.
        weights: Above 0; shape (n,).
        strata: As in ``t_interval``; shape (n,).
        alpha: Level of the interval, above 0 and below 0.5.

    Raises:
        UsageError: margin or alpha out of range.

    Source: Schuirmann 1987, doi:10.1007/BF01068419.
    """
    return _against("equivalence", difference, margin, weights, strata, alpha)


def non_inferiority(
    difference: Floats,
    margin: float,
    weights: Floats | None = None,
    strata: NDArray[np.int64] | None = None,
    *,
    alpha: float = 0.05,
) -> MarginTest:
    """Is the candidate at most a margin worse? A one-sided t test.

    Args:
        difference: One for each query, no NaN, higher is better; shape (n,).
        margin: Above 0, in units of the measure: a loss smaller than this does not matter.
        weights: As in ``equivalence``.
        strata: As in ``equivalence``.
        alpha: As in ``equivalence``.

    Raises:
        UsageError: margin or alpha out of range.

    Source: Wellek 2010, Testing Statistical Hypotheses of Equivalence and Noninferiority.
    """
    return _against("non-inferiority", difference, margin, weights, strata, alpha)


def _refuse_none(resamples: int) -> None:
    if resamples < 1:
        raise UsageError(f"{resamples} resamples are too few", fix="at least 1, such as 10,000")


def _against(
    name: str,
    difference: Floats,
    margin: float,
    weights: Floats | None,
    strata: NDArray[np.int64] | None,
    alpha: float,
) -> MarginTest:
    if not 0 < margin < math.inf:
        raise UsageError(f"a margin of {margin:g} is not above 0", fix="give 0.01, for example")
    if not 0 < alpha < 0.5:
        raise UsageError(f"alpha {alpha:g} is out of range", fix="a number between 0 and 0.5")
    n = len(difference)
    found = _estimate(difference, weights, strata)
    if isinstance(found, str):
        return MarginTest(name, None, None, None, margin, n, found)
    reach = t_quantile(1 - alpha, found.df) * found.error
    p = t_above((margin + found.centre) / found.error, found.df)
    high = None
    if name == "equivalence":
        p = max(p, t_above((margin - found.centre) / found.error, found.df))
        high = found.centre + reach
    return MarginTest(name, p, found.centre - reach, high, margin, n)


def _estimate(
    difference: Floats, weights: Floats | None, strata: NDArray[np.int64] | None
) -> Estimate | str:
    """The estimate behind ``t_interval``, or why it cannot be tested."""
    found = _untestable(difference) or estimate(difference, weights, strata)
    if isinstance(found, str):
        return found
    if found.error * math.sqrt(len(difference)) <= TIED * max(1.0, abs(found.centre)):
        return "all values are equal"  # but for rounding
    return found


def _untestable(difference: Floats) -> str:
    if not len(difference):
        return "no query has a value"
    return "identical" if float(np.abs(difference).max()) <= TIED else ""


def _exact(column: Floats) -> float:
    """P-value over all arrangements of signs of the differences that are not 0."""
    kept = column[column != 0]
    sums = np.zeros(1)
    for value in kept.tolist():
        sums = np.concatenate([sums + value, sums - value])
    beyond = np.abs(sums) >= abs(kept.sum()) - _SAME * np.abs(kept).sum()
    return float(beyond.mean())


def _drawn(columns: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """P-values over random arrangements; shape (m,)."""
    n, m = columns.shape
    total = columns.sum(axis=0)
    seen = np.abs(total) - _SAME * np.abs(columns).sum(axis=0)
    words = -(-n // 64)
    beyond = np.zeros(m, np.int64)
    block = max(1, _BLOCK // max(64 * words, m))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        # Whole words, so draws do not depend on the size of blocks.
        drawn = rng.integers(0, 2**64, size=(rows, words), dtype=np.uint64).astype("<u8")
        bits = np.unpackbits(drawn.view(np.uint8), axis=1, count=n)
        # With bits for signs, the sum is what the ones add less what the zeros do.
        sums = 2 * (bits.astype(np.float64) @ columns) - total
        beyond += (np.abs(sums) >= seen).sum(axis=0)
    p: Floats = (beyond + 1) / (resamples + 1)
    return p


def _rank_sum_p(least: int, n: int) -> float:
    """Two-sided p-value of the smaller rank sum: subsets of 1 … n that sum to no more."""
    subsets = [1] + [0] * least
    for rank in range(1, min(n, least) + 1):
        for total in range(least, rank - 1, -1):
            subsets[total] += subsets[total - rank]
    return min(1.0, 2 * sum(subsets) / (1 << n))
