"""Effect sizes: a difference in units of its spread, and in queries won and lost.

A difference is candidate minus baseline of one query, and higher is better; negate the differences
of a measure for which lower is better.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from karat.errors import UsageError
from karat.stats.averages import Floats, mean
from karat.tables.comparison import ROUNDING

TIED = ROUNDING  # a difference up to this is rounding error and counts as none


class WinTieLoss(NamedTuple):
    """Queries on which the candidate is better, the same, and worse."""

    wins: int
    ties: int
    losses: int


def standardised(
    difference: Floats, weights: Floats | None = None, *, corrected: bool = False
) -> float | None:
    """Mean difference over the standard deviation of the differences: Cohen's d_z.

    Args:
        difference: One for each query, no NaN; shape (n,).
        weights: Above 0; shape (n,). The variance is then n/(n-1) times the weighted mean square.
        corrected: Correct the bias of small samples by Hedges' exact factor.

    Returns:
        None for fewer than 2 queries (3 if corrected), and where all differences are equal.

    Source: Cohen 1988, Statistical Power Analysis; Hedges 1981,
    doi:10.3102/10769986006002107, with n - 1 degrees of freedom.
    """
    n = len(difference)
    if n < 2 + corrected or float(np.ptp(difference)) <= TIED:
        return None
    centre = mean(difference, weights)
    variance = mean((difference - centre) ** 2, weights) * n / (n - 1)
    size = centre / math.sqrt(variance)
    return size * _unbiased(n - 1) if corrected else size


def win_tie_loss(difference: Floats, tolerance: float = TIED) -> WinTieLoss:
    """Number of queries that the candidate wins, ties and loses.

    Args:
        difference: One for each query, no NaN; shape (n,).
        tolerance: Differences up to this size are ties; 0 or more.

    Raises:
        UsageError: a tolerance below 0.
    """
    if not tolerance >= 0:
        raise UsageError(f"tolerance {tolerance:g} is below 0", fix="give 0 or more")
    wins = int((difference > tolerance).sum())
    losses = int((difference < -tolerance).sum())
    return WinTieLoss(wins, len(difference) - wins - losses, losses)


def superiority(
    difference: Floats, weights: Floats | None = None, tolerance: float = TIED
) -> float | None:
    """Probability that the candidate is better on a query, ties counting half; None without any.

    Args:
        difference: One for each query, no NaN; shape (n,).
        weights: Above 0; shape (n,).
        tolerance: As in ``win_tie_loss``.

    Source: Grissom & Kim 2012, Effect Sizes for Research (dependent groups).
    """
    if not len(difference):
        return None
    half = np.where(np.abs(difference) <= tolerance, 0.5, (difference > 0).astype(np.float64))
    return mean(half, weights)


def _unbiased(df: int) -> float:
    """Hedges' factor for the standardised difference."""
    return math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)
