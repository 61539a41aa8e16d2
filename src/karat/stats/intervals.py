"""95 % intervals of a mean over queries: Student's t, and the BCa bootstrap.

Queries are a sample of what users ask, so the interval shows how far the mean may be from the
mean over all such queries. Weights and strata are those of the sampling; the plain mean is the
special case of equal weights in one stratum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from karat.measures import Measure
from karat.stats.averages import Floats, mean
from karat.stats.student import t_quantile

_ROUNDING = 1e-12  # share of the squares below which their sum is rounding error


@dataclass(frozen=True, slots=True)
class UserMoments:
    """Moments of sums by user, sufficient for a ratio and its interval."""

    users: int
    mean_numerator: float  # mean over users of the numerator's sum
    mean_denominator: float  # mean over users of the denominator's sum; above 0
    m2_numerator: float  # sum over users of its squared distance from the mean
    m2_denominator: float  # the same of the denominator
    comoment: float  # sum over users of the product of both distances

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """The moments of a row that has a column for each attribute."""
        return cls(
            users=int(row["users"]),
            mean_numerator=float(row["mean_numerator"]),
            mean_denominator=float(row["mean_denominator"]),
            m2_numerator=float(row["m2_numerator"]),
            m2_denominator=float(row["m2_denominator"]),
            comoment=float(row["comoment"]),
        )

    @property
    def ratio(self) -> float:
        """One mean divided by the other."""
        return self.mean_numerator / self.mean_denominator


def ratio_variance(moments: UserMoments) -> float:
    """Variance of the ratio; 0 if users do not differ; needs two users at least.

    Source: Deng, Knoblich & Lu 2018, KDD (Applying the delta method in metric analytics); Cochran
    1977, Sampling Techniques, 6.4.
    """
    ratio = moments.ratio
    parts = (
        moments.m2_numerator,
        -2 * ratio * moments.comoment,
        ratio * ratio * moments.m2_denominator,
    )
    squares = math.fsum(parts)
    if squares <= _ROUNDING * math.fsum(map(abs, parts)):
        return 0.0
    return squares / ((moments.users - 1) * moments.users * moments.mean_denominator**2)


def ratio_interval(
    moments: UserMoments,
    lowest: float | None = None,
    highest: float | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Student t interval of a ratio of sums over users, with one degree of freedom less than users.

    Args:
        moments: Of the users.
        lowest: Lowest possible ratio, at which the interval is cut; None if unbounded.
        highest: Highest possible ratio, likewise.
        confidence: Share of samples of users whose interval contains the true ratio.
    """
    if moments.users < 2:
        return Interval(None, None, "one user")
    variance = ratio_variance(moments)
    if variance == 0:
        return Interval(None, None, "all users are alike")
    reach = t_quantile(0.5 + confidence / 2, moments.users - 1) * math.sqrt(variance)
    low, high = moments.ratio - reach, moments.ratio + reach
    return Interval(
        low if lowest is None else max(low, lowest),
        high if highest is None else min(high, highest),
    )


TRUSTED_FROM = 25  # number of queries below which an interval is not reliable

LEAST = 5  # number of queries below which no interval is shown, as it would be meaningless

RESAMPLES = 2000  # resamples of a bootstrap interval

_BLOCK = 1 << 18  # numbers per block while drawing, which fits the cache
_COLUMNS = 64  # columns whose resampled means are in memory at once


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval, or the reason why there is none."""

    low: float | None  # lower end, or None
    high: float | None  # upper end, or None
    reason: str = ""  # why there is none; empty if there is one
    cut: str = ""  # where it was cut to the range of the measure; empty if it was not


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, its standard error, and the degrees of freedom of the error."""

    centre: float
    error: float
    df: int


def t_interval(
    values: Floats,
    weights: Floats | None = None,
    strata: NDArray[np.int64] | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Student t interval of the (weighted, stratified) mean.

    Args:
        values: One for each query; shape (n,).
        weights: Above 0; shape (n,).
        strata: Stratum index of each query; shape (n,). Strata with one query are pooled; if there
            is only one of them, it joins the smallest other.
        confidence: Share of samples whose interval contains the true mean.

    Source: Cochran 1977, Sampling Techniques, ch. 5 and 6 (linearised ratio estimator).
    """
    estimated = estimate(values, weights, strata)
    if isinstance(estimated, str):
        return Interval(None, None, estimated)
    reach = t_quantile(0.5 + confidence / 2, estimated.df) * estimated.error
    return Interval(estimated.centre - reach, estimated.centre + reach)


def value_range(measure: Measure) -> tuple[float | None, float | None]:
    """The lowest and the highest value of a measure; None if unbounded."""
    return measure.entry.low, measure.entry.high


def difference_range(measure: Measure) -> tuple[float | None, float | None]:
    """The lowest and highest difference of two values of a measure; None if unbounded."""
    if measure.entry.high is None:
        return None, None
    width = measure.entry.high - measure.entry.low
    return -width, width


def shown(span: Interval, values: Floats, low: float | None, high: float | None) -> Interval:
    """The interval to show: cut at the range of the values, and none for few queries.

    Cutting does not change the coverage, as no mean is outside the range, nor any verdict of a
    gate, as no limit may be at or beyond an end.

    Args:
        span: Interval of the mean of the values.
        values: One for each query; shape (n,). The range is widened to include them.
        low: The lowest possible value; None if unbounded.
        high: The highest possible value; None if unbounded.
    """
    if span.low is None or span.high is None:
        return span
    if len(values) < LEAST:
        return Interval(None, None, f"fewer than {LEAST} queries")
    least = -math.inf if low is None else min(low, float(values.min()))
    most = math.inf if high is None else max(high, float(values.max()))
    ends = [f"{end:g}" for end, out in ((least, span.low < least), (most, span.high > most)) if out]
    cut = f"cut at {' and '.join(ends)}" if ends else ""
    return Interval(max(span.low, least), min(span.high, most), cut=cut)


def estimate(
    values: Floats, weights: Floats | None = None, strata: NDArray[np.int64] | None = None
) -> Estimate | str:
    """The estimate behind ``t_interval``, or the reason why there is none; arguments as there."""
    reason = _no_interval(values)
    if reason:
        return reason
    n = len(values)
    weight = np.ones(n) if weights is None else weights
    centre = mean(values, weights)
    pull = weight * (values - centre) / math.fsum(weight.tolist())
    _, first, groups = np.unique(pooled_strata(strata, n), return_index=True, return_inverse=True)
    if (pull == pull[first][groups]).all():
        return "all values of a stratum are equal, in every stratum"
    counts = np.bincount(groups)  # two at least
    within = np.bincount(groups, pull) / counts
    squares = np.bincount(groups, (pull - within[groups]) ** 2)
    variance = float((squares * counts / (counts - 1)).sum())
    return Estimate(centre, math.sqrt(variance), n - len(counts))


def resample(
    n: int, count: int, rng: np.random.Generator, strata: NDArray[np.int64] | None = None
) -> Floats:
    """How often each query occurs in each bootstrap sample; shape (count, n).

    One such matrix is used for every measure and run, which keeps them comparable. Each stratum is
    resampled separately. Several calls with one generator give the same rows as a single call.
    """
    groups = pooled_strata(strata, n)
    order = np.argsort(groups, kind="stable")
    _, start, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    first, size = np.repeat(start, sizes), np.repeat(sizes, sizes).astype(np.float64)
    drawn = np.empty((count, n))
    height = max(1, _BLOCK // max(n, 1))
    for top in range(0, count, height):
        rows = min(height, count - top)
        picked = order[(rng.random((rows, n)) * size).astype(np.int64) + first]
        picked += np.arange(rows)[:, None] * n
        drawn[top : top + rows] = np.bincount(picked.ravel(), minlength=rows * n).reshape(rows, n)
    return drawn


def resampled_estimates(
    values: Floats,
    drawn: Floats,
    weights: Floats | None = None,
    strata: NDArray[np.int64] | None = None,
) -> tuple[Floats, Floats]:
    """Mean of each resample, and its variance as ``t_interval`` estimates it from the resample.

    Args:
        values: One row for each query, no NaN; shape (n, m). Most precise for values near 0.
        drawn: From ``resample``, for the same queries and strata; shape (resamples, n).
        weights: Above 0; shape (n,).
        strata: As passed to ``resample``; shape (n,).

    Returns:
        Means and variances, each of shape (resamples, m). A variance of 0 may be a positive or
        negative rounding error.

    Source: as ``t_interval``.
    """
    weight = np.ones(len(values)) if weights is None else weights
    weighed = weight[:, None] * values
    total = (drawn @ weight)[:, None]
    sums = drawn @ weighed
    means = sums / total
    variances = np.zeros_like(means)
    groups = pooled_strata(strata, len(values))
    for group in np.unique(groups):
        here = groups == group
        whole, n = here.all(), int(here.sum())
        count = drawn if whole else drawn[:, here]
        w, wx = weight[here], weighed[here]
        # Sums, over the resample's queries in the stratum, of u = w (x - mean) and of its square.
        first = sums if whole else count @ wx
        crossed = first if weights is None else count @ (w[:, None] * wx)
        pulls = first - means * (count @ w)[:, None]
        squares = count @ wx**2 - means * (2 * crossed - means * (count @ w**2)[:, None])
        variances += (squares - pulls**2 / n) * (n / (n - 1))
    return means, variances / total**2


def bca_interval(
    values: Floats,
    drawn: Floats,
    weights: Floats | None = None,
    strata: NDArray[np.int64] | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Bias-corrected and accelerated bootstrap interval of the mean.

    Args:
        values: One for each query; shape (n,). For differences of two runs it is paired.
        drawn: From ``resample``, for the same queries; shape (resamples, n).
        weights: Above 0; shape (n,).
        strata: As passed to ``resample``; shape (n,).
        confidence: As in ``t_interval``.

    Source: Efron 1987, doi:10.1080/01621459.1987.10478410.
    """
    return bca_intervals(values[:, None], drawn, weights, strata, confidence)[0]


def bca_intervals(
    values: Floats,
    drawn: Floats,
    weights: Floats | None = None,
    strata: NDArray[np.int64] | None = None,
    confidence: float = 0.95,
) -> list[Interval]:
    """BCa intervals for many measures, runs or pairs of runs: one for each column.

    Args:
        values: One row for each query, no NaN; shape (n, m).
        drawn: As in ``bca_interval``; all columns share it.
        weights: As in ``bca_interval``.
        strata: As in ``bca_interval``.
        confidence: As in ``t_interval``.
    """
    reasons = [_no_interval(column) for column in values.T]
    if all(reasons):
        return [Interval(None, None, reason) for reason in reasons]
    weight = np.ones(len(values)) if weights is None else weights
    weighed = drawn @ weight
    usable = weighed > 0  # a sample may miss every query the measure is defined for
    if not usable.all():
        drawn, weighed = drawn[usable], weighed[usable]
    spans: list[Interval] = []
    for start in range(0, values.shape[1], _COLUMNS):
        columns = values[:, start : start + _COLUMNS]
        means = ((drawn @ (weight[:, None] * columns)) / weighed[:, None]).T
        for column, row in zip(columns.T, np.ascontiguousarray(means), strict=True):
            reason = reasons[len(spans)]
            span = Interval(None, None, reason) if reason else None
            spans.append(span or _bca(column, row, weight, strata, confidence))
    return spans


def _bca(
    values: Floats,
    means: Floats,
    weight: Floats,
    strata: NDArray[np.int64] | None,
    confidence: float,
) -> Interval:
    centre = mean(values, weight)
    # Sums in another order differ in their last digits but count as equal.
    slack = 1e-12 * float(np.abs(values).max())
    if not len(means) or np.ptp(means) <= slack:
        return Interval(None, None, "every resample has the same mean")
    lower, higher = np.sum(means < centre - slack), np.sum(means > centre + slack)
    below = (lower + 0.5 * (len(means) - lower - higher)) / len(means)
    if not 0 < below < 1:
        return Interval(None, None, "every resample is on one side of the mean")
    normal = NormalDist()
    bias = normal.inv_cdf(float(below))
    total, sum_of = weight.sum(), (weight * values).sum()
    rest = total - weight
    if not rest.all():
        return Interval(None, None, "one query has all the weight")
    without = (sum_of - weight * values) / rest
    # Samples vary within strata only, and so does the acceleration.
    _, groups = np.unique(pooled_strata(strata, len(values)), return_inverse=True)
    spread = (np.bincount(groups, without) / np.bincount(groups))[groups] - without
    acceleration = float((spread**3).sum() / (6 * ((spread**2).sum()) ** 1.5))
    adjusted = []
    for probability in (0.5 - confidence / 2, 0.5 + confidence / 2):
        z = bias + normal.inv_cdf(probability)
        adjusted.append(normal.cdf(bias + z / (1 - acceleration * z)))
    low, high = np.quantile(means, adjusted).tolist()
    return Interval(low, high)


def _no_interval(values: Floats) -> str:
    if len(values) == 0:
        return "no query has a value"
    if len(values) == 1:
        return "one query has no spread"
    if (values == values[0]).all():
        return "all values are equal"
    return ""


def pooled_strata(strata: NDArray[np.int64] | None, n: int) -> NDArray[np.int64]:
    """Stratum of each query by index; strata with one query, which have no spread, are pooled."""
    if strata is None:
        return np.zeros(n, np.int64)
    _, groups, counts = np.unique(strata, return_inverse=True, return_counts=True)
    single = counts == 1
    pool = len(counts)
    if single.sum() == 1 < len(counts):  # alone it would add no variance
        pool = int(np.argmin(np.where(single, n, counts)))
    return np.where(single[groups], pool, groups)


def paired_share_interval(more: int, fewer: int, n: int) -> Interval:
    """95 % interval of the difference of two shares of the same n queries.

    Args:
        more: Number of queries counted in the second run only.
        fewer: Number of queries counted in the first run only.
        n: Number of queries, at least one.

    Source: Agresti & Min 2005, Simple improved confidence intervals for comparing matched
    proportions, Statistics in Medicine 24: Wald's interval after adding half a query to each of
    the four cells; also good for few queries and shares near 0, and never of width 0.
    """
    size = n + 2
    centre = (more - fewer) / size
    spread = math.sqrt(more + fewer + 1 - (more - fewer) ** 2 / size) / size
    half = NormalDist().inv_cdf(0.975) * spread
    return Interval(max(centre - half, -1.0), min(centre + half, 1.0))


def share_interval(share: float, n: float) -> Interval:
    """95 % interval of a share of n trials, by Clopper and Pearson; valid for any share, also 0.

    Args:
        share: The observed one, 0 to 1.
        n: Number of trials above 0. For trials in clusters the effective number: then it need not
            be whole (``effective``).

    Source: Clopper & Pearson 1934, doi:10.1093/biomet/26.4.404; Korn & Graubard 1998, Survey
    Methodology 24, for clusters.
    """
    from scipy.special import betaincinv

    hits = share * n
    low = float(betaincinv(hits, n - hits + 1, 0.025)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, n - hits, 0.975)) if hits < n else 1.0
    return Interval(low, high)


def effective(sizes: Floats) -> float:
    """Number of clusters of equal size that say as much as these, if each is of one kind.

    Args:
        sizes: Of each cluster, above 0; shape (n,).

    Source: Kish 1965, Survey Sampling, 11.7.
    """
    return float(sizes.sum() ** 2 / (sizes**2).sum())
