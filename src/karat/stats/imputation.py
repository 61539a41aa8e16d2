"""Intervals of a mean of values that are uncertain themselves, such as of grades from clicks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from karat.stats.arms import quantile
from karat.stats.averages import Floats
from karat.stats.intervals import Estimate, Interval

DRAWS = 20  # of the uncertain grades
_ROUNDING = 1e-12  # share of the variance that is rounding error


@dataclass(frozen=True, slots=True)
class Combined:
    """The error of an estimate over queries and draws."""

    error: float  # standard error
    df: float  # degrees of freedom
    share: float  # of the variance that is between draws, 0 to 1

    def interval(self, centre: float, confidence: float = 0.95) -> Interval:
        """Student's t interval around the estimate."""
        reach = quantile(0.5 + confidence / 2, self.df) * self.error
        return Interval(centre - reach, centre + reach)


def combined(within: Estimate, drawn: Floats) -> Combined:
    """The error of a mean, from its error over queries and its values in draws of the grades.

    Args:
        within: The mean over queries with the grades as they are.
        drawn: The same mean with the grades of each draw; shape (draws,).

    Where values are noisy because grades are, their spread over queries has a part of that noise
    already, so the error is rather too large than too small.

    Source: Rubin 1987, Multiple Imputation for Nonresponse in Surveys, 3.1: W + (1 + 1/M) B;
    degrees of freedom by Barnard & Rubin 1999, doi:10.1093/biomet/86.4.948.
    """
    inside, count = within.error**2, len(drawn)
    if count < 2:
        return Combined(within.error, within.df, 0.0)
    between = (1 + 1 / count) * float(np.var(drawn, ddof=1))
    total = inside + between
    share = between / total if total else 0.0
    if share < _ROUNDING:
        return Combined(within.error, within.df, 0.0)
    by_draws = (count - 1) / share**2
    by_queries = within.df * (within.df + 1) / (within.df + 3) * (1 - share)
    return Combined(math.sqrt(total), 1 / (1 / by_draws + 1 / by_queries), share)
