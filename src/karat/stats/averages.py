"""Averages over queries: weighted, by exactly rounded sums."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GEOMETRIC_FLOOR = 0.00001
"""Lowest value in a geometric mean; smaller values count as this, as in trec_eval."""


def mean(values: Floats, weights: Floats | None = None) -> float:
    """Weighted mean by exactly rounded sums, independent of the order of queries.

    Args:
        values: Shape (n,), n at least 1, no NaN.
        weights: Shape (n,), 0 or more and not all 0; all equal if None.
    """
    if weights is None:
        return math.fsum(values.tolist()) / len(values)
    return math.fsum((values * weights).tolist()) / math.fsum(weights.tolist())


def geometric_mean(values: Floats, weights: Floats | None = None) -> float:
    """Exp of the mean logarithm; values below 0.00001 count as 0.00001, as in trec_eval."""
    return math.exp(mean(log_floored(values), weights))


def log_floored(values: Floats) -> Floats:
    """Natural logarithm of each value, or of 0.00001 if the value is smaller; shape (n,)."""
    return np.log(np.maximum(values, GEOMETRIC_FLOOR))
