"""Effect sizes: a difference in units of its spread, and in queries won and lost.

A difference is candidate minus baseline of one query, and higher is better; negate the differences
of a measure for which lower is better.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from karat.stats.averages import Floats, mean
from karat.tables.comparison import ROUNDING

TIED = ROUNDING  # a difference up to this is rounding error and counts as none


class WinTieLoss(NamedTuple):
    """Queries on which the candidate is better, the same, and worse."""

    wins: int
    ties: int
    losses: int


def standardised(difference: Floats, weights: Floats | None = None) -> float | None:
    """Mean difference over the standard deviation of the differences: Cohen's d_z.

    Args:
        difference: One for each query, no NaN; shape (n,).
        weights: Above 0; shape (n,). The variance is then n/(n-1) times the weighted mean square.

    Returns:
        None for fewer than 2 queries, and where all differences are equal.

    Source: Cohen 1988, Statistical Power Analysis.
    """
    n = len(difference)
    if n < 2 or float(np.ptp(difference)) <= TIED:
        return None
    centre = mean(difference, weights)
    variance = mean((difference - centre) ** 2, weights) * n / (n - 1)
    return centre / math.sqrt(variance)


def win_tie_loss(difference: Floats) -> WinTieLoss:
    """Number of queries that the candidate wins, ties and loses.

    Args:
        difference: One for each query, no NaN; shape (n,).
    """
    wins = int((difference > TIED).sum())
    losses = int((difference < -TIED).sum())
    return WinTieLoss(wins, len(difference) - wins - losses, losses)


def superiority(difference: Floats, weights: Floats | None = None) -> float | None:
    """Probability that the candidate is better on a query, ties counting half; None without any.

    Args:
        difference: One for each query, no NaN; shape (n,).
        weights: Above 0; shape (n,).

    Source: Grissom & Kim 2012, Effect Sizes for Research (dependent groups).
    """
    if not len(difference):
        return None
    half = np.where(np.abs(difference) <= TIED, 0.5, (difference > 0).astype(np.float64))
    return mean(half, weights)
