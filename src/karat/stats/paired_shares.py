"""The difference of two shares of the same queries."""

from __future__ import annotations

import math
from statistics import NormalDist

from karat.stats.intervals import Interval


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
