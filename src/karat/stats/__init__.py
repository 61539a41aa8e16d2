"""Statistics: averages, intervals and tests over queries."""

from karat.stats.averages import geometric_mean, mean
from karat.stats.intervals import Interval, bca_interval, resample, t_interval
from karat.stats.student import t_quantile

__all__ = [
    "Interval",
    "bca_interval",
    "geometric_mean",
    "mean",
    "resample",
    "t_interval",
    "t_quantile",
]
