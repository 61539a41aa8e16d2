"""Quantiles of Student's t.

Our own, and not SciPy's, for one reason: an interval stands beside every mean, so every start
of ``karat evaluate`` would pay for importing ``scipy.special`` (a third of a second, a fifth of
a whole evaluation). The tests hold it to SciPy's within 1e-12.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_SERIES_TO = 2000  # degrees of freedom above which the expansion alone is exact to the last bits


def t_quantile(probability: float, df: int) -> float:
    """The value that Student's t stays below with a given probability.

    Args:
        probability: Above 0 and below 1.
        df: Degrees of freedom, 1 or more.

    Source: Abramowitz & Stegun 26.7.5 (expansion) and 26.7.3-4 (the distribution function for
    whole degrees of freedom), polished by Newton's method.
    """
    if probability < 0.5:
        return -t_quantile(1.0 - probability, df)
    t = _expansion(NormalDist().inv_cdf(probability), df)
    if df > _SERIES_TO:
        return t
    t = {1: math.tan(math.pi * (probability - 0.5))}.get(df, t)
    for _ in range(50):
        step = (_cdf(t, df) - probability) / _density(t, df)
        t -= step
        if abs(step) <= 1e-14 * max(1.0, abs(t)):
            break
    return t


def _expansion(z: float, df: int) -> float:
    z2 = z * z
    terms = (
        (z2 + 1) / 4,
        ((5 * z2 + 16) * z2 + 3) / 96,
        (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384,
        ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160,
    )
    return z * (1 + math.fsum(term / float(df) ** power for power, term in enumerate(terms, 1)))


def _cdf(t: float, df: int) -> float:
    theta = math.atan(t / math.sqrt(df))
    cos, sin = math.cos(theta), math.sin(theta)
    # The product grows by (j-1)/j cos² from term to term, over even or odd j below df.
    term = total = 1.0 if df % 2 == 0 else cos
    for j in range(2 if df % 2 == 0 else 3, df - 1, 2):
        term *= (j - 1) / j * cos * cos
        total += term
    if df % 2 == 0:
        inside = sin * total
    else:
        inside = 2 / math.pi * (theta + (sin * total if df > 1 else 0.0))
    return 0.5 + inside / 2


def _density(t: float, df: int) -> float:
    log = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    return math.exp(log - (df + 1) / 2 * math.log1p(t * t / df))
