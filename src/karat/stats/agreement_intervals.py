"""Intervals of agreement by a jackknife over queries, and the judgments needed for a target.

Judgments of one query are correlated, so the jackknife leaves out queries, not judgments, with the
quantile of Student's t for one degree of freedom less than queries. A statistic that cannot exceed
1 is 1 minus a ratio of disagreements; its interval is computed on the logarithm of that ratio,
which makes it asymmetric. Of six intervals tried, including bootstraps over queries, this one's
coverage is nearest to 95 % at 10 to 50 queries, and it is entirely above the true value least often
(``benchmarks/agreement_coverage.py``). Nothing is random.
"""

from __future__ import annotations

import math

import numpy as np

from karat.stats.agreement import Sums
from karat.stats.averages import Floats
from karat.stats.intervals import Interval
from karat.stats.student import t_quantile

_SAME = 1e-12
"""A spread up to this is rounding error."""


def agreement_interval(sums: Sums, confidence: float = 0.95) -> Interval:
    """Interval of an agreement statistic over all possible queries.

    Args:
        sums: The statistic, by query. Queries with weight 0 do not count.
        confidence: Share of samples of queries whose interval contains the true value.

    Returns:
        The interval, or the reason why there is none.

    Source: Tukey's jackknife of clusters, as in Cochran 1977, Sampling Techniques, ch. 6.17.
    """
    value = sums.whole
    if math.isnan(value):
        return Interval(None, None, "the statistic is undefined")
    without = sums.without()[sums.weight > 0]
    n = len(without)
    if n < 2:
        return Interval(None, None, "one query has no spread")
    if np.isnan(without).any():
        return Interval(None, None, "without one of the queries the statistic is undefined")
    if np.ptp(without) <= _SAME:
        if sums.floor is not None and value >= 1 - _SAME:
            return Interval(None, None, "no disagreement was observed")
        return Interval(None, None, "all queries give the same value")
    reach = t_quantile(0.5 + confidence / 2, n - 1)
    if sums.floor is None:
        error = _error(without)
        return Interval(value - reach * error, value + reach * error)
    if (without < 1 - _SAME).all():
        times = math.exp(reach * _error(np.log(1 - without)))
        low, high = 1 - (1 - value) * times, 1 - (1 - value) / times
    else:  # all the disagreement is in one query; without it the logarithm is infinite
        error = _error(without)
        low, high = value - reach * error, value + reach * error
    return Interval(max(low, sums.floor), min(high, 1.0))


def more_needed(value: float, low: float, pairs: int, target: float) -> int | None:
    """How many more pairs must be judged twice for the interval to be above a target.

    Args:
        value: The statistic, below 1.
        low: Lower end of its interval.
        pairs: Number of pairs judged twice so far.
        target: Target for the lower end, below 1.

    Returns:
        The number, or None if the statistic is not above the target: then no number is enough.
        Assumes that the statistic stays the same, and that new judgments are of new queries with
        as many documents each; more judgments of the same queries add less information.
    """
    if low >= target:
        return 0
    if value <= target:
        return None
    # The interval of the logarithm of disagreement shrinks with the root of the number of queries.
    factor = math.log((1 - low) / (1 - value)) / math.log((1 - target) / (1 - value))
    return math.ceil(pairs * (factor * factor - 1) - _SAME * pairs)


def _error(without: Floats) -> float:
    n = len(without)
    return math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
