"""Survival analysis of censored times: the Kaplan-Meier curve, its quantiles and its mean.

All functions take one sample or many at once (resamples): the last axis is time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROUNDING = 1e-9
"""Rounding error of a product of many factors."""


def kaplan_meier(events: Floats, censored: Floats) -> Floats:
    """Share that lasts longer than each time; shape of the arguments.

    Args:
        events: How many ended at each time, times ascending; shape (…, times).
        censored: How many were last seen at each time; events at the same time come first.

    Source: Kaplan & Meier 1958, JASA 53, 457-481.
    """
    alive = (events + censored)[..., ::-1]
    risk: Floats = np.cumsum(alive, axis=-1, dtype=np.float64)[..., ::-1]
    stays = 1.0 - np.divide(events, risk, out=np.zeros_like(risk), where=risk > 0)
    curve: Floats = np.cumprod(stays, axis=-1, dtype=np.float64)
    return curve


def survival_quantile(times: Floats, survival: Floats, level: float) -> Floats:
    """The smallest time by which a share has ended; infinite if the curve does not reach it.

    Without censoring it is the smallest time that the share did not exceed (Hyndman and Fan 1996,
    definition 1), without interpolation.

    Args:
        times: Ascending; shape (times,).
        survival: From ``kaplan_meier``; shape (…, times).
        level: Above 0 and below 1; 0.5 for the median.

    Returns:
        Shape (…).
    """
    reached = survival <= 1 - level + _ROUNDING
    return np.where(reached.any(axis=-1), times[reached.argmax(axis=-1)], np.inf)


def restricted_mean(
    times: Floats, survival: Floats, last: Floats | float, up_to: float
) -> tuple[Floats, Floats]:
    """Bounds of the mean of the smaller of the time and ``up_to``: the area under the curve.

    They are equal if any time reaches ``up_to``, or all have ended. Otherwise the rest ended, at
    the earliest, when last seen and, at the latest, at ``up_to``.

    Args:
        times: Ascending; shape (times,).
        survival: From ``kaplan_meier``; shape (…, times).
        last: The longest time seen, ended or not; shape (…).
        up_to: In the unit of the times.

    Returns:
        Lower and upper bound, each of shape (…).

    Source: Irwin 1949, J. Hyg. 47; Royston & Parmar 2013, BMC Med. Res. Methodol. 13:152.
    """
    before = np.concatenate([np.ones_like(survival[..., :1]), survival[..., :-1]], axis=-1)
    area = ((before - survival) * np.minimum(times, up_to)).sum(axis=-1)
    rest = survival[..., -1]
    return area + rest * np.minimum(last, up_to), area + rest * up_to
