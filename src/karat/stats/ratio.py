"""The interval of a ratio of two sums over users, from moments: the delta method.

Searches of one user are correlated, so users, not searches, are the sampling units. A click-through
rate is a sum of clicks over users divided by a sum of searches over users; its variance follows
from how both vary between users.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from karat.stats.intervals import Interval
from karat.stats.student import t_quantile

_ROUNDING = 1e-12
"""Share of the squares below which their sum is rounding error."""


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
