"""95 % intervals of a mean over queries: Student's t, and the BCa bootstrap.

Queries are a sample of what users ask, so the interval says how far the mean could be from the
one over all such queries. Weights and strata are those of the sampling; the plain mean is the
special case of equal weights in one stratum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from karat.stats.averages import Floats, mean
from karat.stats.student import t_quantile

TRUSTED_FROM = 25
"""Queries below which an interval is not to be trusted."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval, or the reason why there is none.

    Attributes:
        low: Lower end, or None.
        high: Upper end, or None.
        reason: Why there is none; empty if there is one.
    """

    low: float | None
    high: float | None
    reason: str = ""


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
        strata: Stratum index of each query; shape (n,). Strata of one query are pooled; a single
            one joins the smallest other.
        confidence: Share of samples whose interval holds the true mean.

    Source: Cochran 1977, Sampling Techniques, ch. 5 and 6 (linearised ratio estimator).
    """
    reason = _no_interval(values)
    if reason:
        return Interval(None, None, reason)
    n = len(values)
    weight = np.ones(n) if weights is None else weights
    centre = mean(values, weights)
    pull = weight * (values - centre) / math.fsum(weight.tolist())
    _, first, groups = np.unique(_pooled(strata, n), return_index=True, return_inverse=True)
    if (pull == pull[first][groups]).all():
        return Interval(None, None, "all values of a stratum are equal, in every stratum")
    counts = np.bincount(groups)  # two at least
    within = np.bincount(groups, pull) / counts
    squares = np.bincount(groups, (pull - within[groups]) ** 2)
    variance = float((squares * counts / (counts - 1)).sum())
    reach = t_quantile(0.5 + confidence / 2, n - len(counts)) * math.sqrt(variance)
    return Interval(centre - reach, centre + reach)


def resample(
    n: int, count: int, rng: np.random.Generator, strata: NDArray[np.int64] | None = None
) -> Floats:
    """How often each query stands in each bootstrap sample; shape (count, n).

    One such matrix serves every measure and every run, which keeps them comparable. Strata are
    resampled each on its own.
    """
    drawn = np.zeros((count, n))
    groups = _pooled(strata, n)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        share = np.full(len(members), 1 / len(members))
        drawn[:, members] = rng.multinomial(len(members), share, size=count)
    return drawn


def bca_interval(
    values: Floats,
    drawn: Floats,
    weights: Floats | None = None,
    strata: NDArray[np.int64] | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Bias-corrected and accelerated bootstrap interval of the mean.

    Args:
        values: One for each query; shape (n,).
        drawn: From ``resample``, for the same queries; shape (resamples, n).
        weights: Above 0; shape (n,).
        strata: As ``resample`` was given, for these queries; shape (n,).
        confidence: As in ``t_interval``.

    Source: Efron 1987, doi:10.1080/01621459.1987.10478410.
    """
    reason = _no_interval(values)
    if reason:
        return Interval(None, None, reason)
    weight = np.ones(len(values)) if weights is None else weights
    weighed = drawn @ weight
    held = weighed > 0  # a sample may miss every query the measure is defined for
    means = np.sort((drawn[held] @ (weight * values)) / weighed[held])
    centre = mean(values, weights)
    if means[-1] - means[0] <= 1e-12 * abs(centre):
        return Interval(None, None, "every resample has the same mean")
    below = (np.sum(means < centre) + 0.5 * np.sum(means == centre)) / len(means)
    if not 0 < below < 1:
        return Interval(None, None, "every resample lies on one side of the mean")
    normal = NormalDist()
    bias = normal.inv_cdf(float(below))
    total, sum_of = weight.sum(), (weight * values).sum()
    without = (sum_of - weight * values) / (total - weight)
    # Samples vary within strata only, and so does the acceleration.
    groups = _pooled(strata, len(values))
    spread = (np.bincount(groups, without) / np.bincount(groups))[groups] - without
    acceleration = float((spread**3).sum() / (6 * ((spread**2).sum()) ** 1.5))
    ends = []
    for probability in (0.5 - confidence / 2, 0.5 + confidence / 2):
        z = bias + normal.inv_cdf(probability)
        adjusted = normal.cdf(bias + z / (1 - acceleration * z))
        ends.append(float(np.quantile(means, adjusted)))
    return Interval(ends[0], ends[1])


def _no_interval(values: Floats) -> str:
    if len(values) == 0:
        return "no query has a value"
    if len(values) == 1:
        return "one query has no spread"
    if (values == values[0]).all():
        return "all values are equal"
    return ""


def _pooled(strata: NDArray[np.int64] | None, n: int) -> NDArray[np.int64]:
    """Strata by index; those of a single query, which have no spread, pooled into one."""
    if strata is None:
        return np.zeros(n, np.int64)
    _, groups, counts = np.unique(strata, return_inverse=True, return_counts=True)
    single = counts == 1
    pool = len(counts)
    if single.sum() == 1 < len(counts):  # alone it would add a value and no variance
        pool = int(np.argmin(np.where(single, n, counts)))
    return np.where(single[groups], pool, groups)
