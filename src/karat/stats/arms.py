"""Two arms of an experiment: difference and relative lift of ratios, with variance reduction.

A metric is a ratio of two sums over users (a mean is one whose denominator is 1), its variance that
of the delta method: users are independent, their searches are not. A covariate is the same ratio
before the experiment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from karat.stats.student import t_above, t_quantile

Floats = NDArray[np.float64]

_ROUNDING = 1e-12  # share of the squares below which their sum is rounding error
_MOST_DF = 10**6  # degrees of freedom from which Student's t is the normal distribution


@dataclass(frozen=True)
class ArmMoments:
    """Moments of the users of an arm: sufficient for a ratio, adjusted or not.

    The four variables of a user are the sums of numerator and denominator, and the same sums before
    the experiment (0 for users who were not there).
    """

    users: int
    means: Floats  # of the four variables; shape (4,)
    centred: Floats  # sums over users of products of the distances from the means; shape (4, 4)


@dataclass(frozen=True, slots=True)
class Arm:
    """The estimate of one arm."""

    value: float
    variance: float  # of the estimate, not of users; 0 if users do not differ
    users: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """Treatment minus control."""

    difference: float
    error: float  # standard error; 0 if no user differs from another
    df: float  # degrees of freedom (Welch and Satterthwaite)
    low: float | None
    high: float | None
    p: float | None  # two-sided
    relative: float | None  # difference divided by control; None if control is 0
    relative_low: float | None  # by Fieller's theorem; None where it is unbounded
    relative_high: float | None


def gradients(moments: ArmMoments, theta: float = 0.0) -> Floats:
    """Derivatives of the ratio, less theta times the covariate, by the four means; shape (4,)."""
    above, below, above_before, below_before = moments.means.tolist()
    slopes = [1 / below, -above / below**2, 0.0, 0.0]
    if theta and below_before:
        slopes[2:] = [-theta / below_before, theta * above_before / below_before**2]
    return np.array(slopes)


def _variance(moments: ArmMoments, slopes: Floats, others: Floats | None = None) -> float:
    """(Co)variance of one or two linear functions of the means; 0 for rounding errors."""
    terms = np.outer(slopes, slopes if others is None else others) * moments.centred
    total = math.fsum(terms.ravel().tolist())
    if abs(total) <= _ROUNDING * math.fsum(np.abs(terms).ravel().tolist()):
        return 0.0
    return total / ((moments.users - 1) * moments.users)


def arm(moments: ArmMoments, theta: float = 0.0, before: float = 0.0) -> Arm:
    """The ratio of an arm, adjusted by ``theta`` times its covariate's distance from ``before``.

    Args:
        moments: Of at least one user; the mean denominator is above 0.
        theta: From ``cuped``; 0 for no adjustment.
        before: The covariate over both arms.

    Source: Deng, Knoblich & Lu 2018, KDD, for the variance; Deng, Xu, Kohavi & Walker 2013, WSDM,
    for the adjustment.
    """
    above, below, above_before, below_before = moments.means.tolist()
    value = above / below
    if theta and below_before:
        value -= theta * (above_before / below_before - before)
    if moments.users < 2:
        return Arm(value, 0.0, moments.users)
    return Arm(value, max(0.0, _variance(moments, gradients(moments, theta))), moments.users)


def cuped(control: ArmMoments, treatment: ArmMoments) -> tuple[float, float]:
    """The coefficient of the covariate over the users of both arms, and the covariate over them.

    Returns:
        (0, 0) where no user of an arm was there before, or the covariate does not vary: the
        estimate is then the unadjusted one.
    """
    if min(control.users, treatment.users) < 2 or min(control.means[3], treatment.means[3]) <= 0:
        return 0.0, 0.0
    whole = together(control, treatment)
    above, below = whole.means[2:].tolist()
    past = np.array([0.0, 0.0, 1 / below, -above / below**2])
    variance = _variance(whole, past)
    if variance <= 0:
        return 0.0, 0.0
    return _variance(whole, gradients(whole), past) / variance, above / below


def together(one: ArmMoments, other: ArmMoments) -> ArmMoments:
    """The moments of the users of both (Chan, Golub & LeVeque 1983)."""
    users = one.users + other.users
    means = (one.users * one.means + other.users * other.means) / users
    far = one.means - other.means
    between = one.users * other.users / users * np.outer(far, far)
    return ArmMoments(users, means, one.centred + other.centred + between)


def contrast(control: Arm, treatment: Arm, alpha: float = 0.05) -> Contrast:
    """The difference of two independent arms by Welch's t, and the relative lift by Fieller.

    Both use one quantile: the lift's interval leaves out 0 exactly if the difference's does.

    Args:
        control: Estimate of the control.
        treatment: Estimate of the treatment.
        alpha: Share of experiments whose interval misses the true difference.

    Source: Welch 1947, Biometrika 34; Fieller 1954, JRSS B 16.
    """
    variances = (control.variance, treatment.variance)
    df = welch_df(variances, (control.users, treatment.users))
    return normal_contrast(control.value, treatment.value, variances, df=df, alpha=alpha)


def normal_contrast(
    control: float,
    treatment: float,
    variances: tuple[float, float],
    *,
    df: float = math.inf,
    alpha: float = 0.05,
) -> Contrast:
    """As ``contrast``, of estimates with known variances; for quantiles these are resampled."""
    difference = treatment - control
    squares = variances[0] + variances[1]
    if squares <= 0:
        return Contrast(
            difference, 0.0, df, None, None, None, _share(difference, control), None, None
        )
    error = math.sqrt(squares)
    reach = quantile(1 - alpha / 2, df)
    low, high = fieller(control, treatment, variances, reach)
    return Contrast(
        difference=difference,
        error=error,
        df=df,
        low=difference - reach * error,
        high=difference + reach * error,
        p=min(1.0, 2 * above(abs(difference) / error, df)),
        relative=_share(difference, control),
        relative_low=low,
        relative_high=high,
    )


def fieller(
    control: float, treatment: float, variances: tuple[float, float], reach: float
) -> tuple[float | None, float | None]:
    """Interval of (treatment - control) / |control|; None, None where the control may be 0.

    Args:
        control: Estimate of the control.
        treatment: Estimate of the treatment.
        variances: Of control and treatment.
        reach: Quantile of the test, such as 1.96.
    """
    squared = reach * reach
    a = control * control - squared * variances[0]
    if a <= 0:
        return None, None
    b = treatment * control
    c = treatment * treatment - squared * variances[1]
    root = math.sqrt(max(0.0, b * b - a * c))
    # As the lift itself: a share of the control's size, whatever its sign.
    sign = math.copysign(1.0, control)
    ends = sorted((sign * ((b - root) / a - 1), sign * ((b + root) / a - 1)))
    return ends[0], ends[1]


def welch_df(variances: tuple[float, float], users: tuple[int, int]) -> float:
    """Degrees of freedom of the difference of two means with these variances of the estimate."""
    below = sum(v * v / (n - 1) for v, n in zip(variances, users, strict=True) if n > 1)
    return (variances[0] + variances[1]) ** 2 / below if below else math.inf


def quantile(probability: float, df: float) -> float:
    """The quantile of Student's t, normal for many degrees of freedom; these may be fractions."""
    if df >= _MOST_DF:
        return NormalDist().inv_cdf(probability)
    low = max(1, math.floor(df))
    below = t_quantile(probability, low)
    if df <= low:
        return below
    # Between whole degrees of freedom quantiles are linear in 1 / df, to 1e-6 from 5 on.
    share = (1 / low - 1 / df) / (1 / low - 1 / (low + 1))
    return below + share * (t_quantile(probability, low + 1) - below)


def above(t: float, df: float) -> float:
    """Probability that Student's t exceeds a value; precise in the tail."""
    if df >= _MOST_DF:
        return math.erfc(t / math.sqrt(2)) / 2
    return t_above(t, df)  # type: ignore[arg-type]  # fractions are degrees of freedom too


def _share(difference: float, control: float) -> float | None:
    return difference / abs(control) if control else None


def detectable(
    variances: tuple[float, float], users: tuple[float, float], power: float, alpha: float = 0.05
) -> float:
    """The smallest difference that a two-sided test detects.

    Args:
        variances: Of one user's contribution, in control and treatment.
        users: In control and treatment.
        power: Share of experiments that detect it.
        alpha: Level of the test.
    """
    error = math.sqrt(sum(v / n for v, n in zip(variances, users, strict=True)))
    return _z(power, alpha) * error


def users_needed(
    variances: tuple[float, float], difference: float, power: float, alpha: float = 0.05
) -> int:
    """Users per arm, of two equal arms, that detect a difference; arguments as ``detectable``."""
    return math.ceil((_z(power, alpha) / difference) ** 2 * sum(variances))


def _z(power: float, alpha: float) -> float:
    return NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)
