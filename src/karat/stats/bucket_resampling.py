"""Bootstrap over buckets of users, for intervals of quantiles and Kaplan-Meier estimates.

A hash puts each user into one of 256 buckets, which are therefore independent, identically
distributed samples of users. Buckets are drawn with replacement, and the statistic is computed on
each draw.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from karat.stats.intervals import Interval, resample

Floats = NDArray[np.float64]

RESAMPLES = 1000  # number of draws of buckets for an interval


class Draws:
    """Draws of buckets, the same for every statistic over the same number of buckets.

    Args:
        seed: Random seed. Draws do not depend on earlier draws.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn: dict[int, Floats] = {}

    def of(self, buckets: int) -> Floats:
        """How often each bucket occurs in each draw; shape (draws, buckets)."""
        if buckets not in self._drawn:
            rng = np.random.default_rng((self._seed, buckets))
            self._drawn[buckets] = resample(buckets, RESAMPLES, rng)
        return self._drawn[buckets]


def percentile_interval(least: Floats, most: Floats, confidence: float = 0.95) -> Interval:
    """Interval between the outer percentiles of the statistic over the draws.

    Args:
        least: The statistic of each draw, or its lower bound; infinite where a draw does not
            reach it, NaN where a draw has no data; shape (draws,).
        most: The same, or its upper bound; shape (draws,).
        confidence: Share of samples of users whose interval contains the true value.

    Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, ch. 13.
    """
    least, most = least[~np.isnan(least)], most[~np.isnan(most)]
    if not len(least) or not len(most):
        return Interval(None, None, "no draw of the users has any")
    # Outer percentiles without interpolation, which fails between a time and infinity.
    below = math.floor((0.5 - confidence / 2) * (len(least) - 1))
    above = math.ceil((0.5 + confidence / 2) * (len(most) - 1))
    low = float(np.partition(least, below)[below])
    high = float(np.partition(most, above)[above])
    if np.isinf(low):
        return Interval(None, None, "most draws of the users do not reach it")
    if np.isinf(high):
        return Interval(low, None, "no upper end: many draws of the users do not reach it")
    return Interval(low, high)
