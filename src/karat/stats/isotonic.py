"""Isotonic regression: the non-decreasing step function nearest to the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def isotonic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Fit y by a non-decreasing function of x, by least squares.

    Args:
        x: Shape (n,), n at least 1.
        y: Shape (n,).

    Returns:
        Different values of x, ascending, and the fit at each; ``numpy.interp`` reads between.

    Source: pool adjacent violators (Barlow et al. 1972, Statistical Inference under Order
    Restrictions); equal to scikit-learn's ``IsotonicRegression``.
    """
    places, group = np.unique(x, return_inverse=True)
    count = np.bincount(group).astype(np.float64)
    level = np.bincount(group, y) / count
    means: list[float] = []
    weights: list[float] = []
    sizes: list[int] = []
    for value, weight in zip(level.tolist(), count.tolist(), strict=True):
        means.append(value)
        weights.append(weight)
        sizes.append(1)
        while len(means) > 1 and means[-2] >= means[-1]:
            total = weights[-2] + weights[-1]
            means[-2:] = [(means[-2] * weights[-2] + means[-1] * weights[-1]) / total]
            weights[-2:], sizes[-2:] = [total], [sizes[-2] + sizes[-1]]
    return places, np.repeat(means, sizes)
