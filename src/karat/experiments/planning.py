"""Planning: the smallest effects that users of a log detect, and metrics tried on known truths.

Users are in 256 buckets by a hash. A split puts half of the buckets into each arm, so that 1,000
splits need the moments of the buckets only. Equal arms must differ in 5 % of the splits; if one of
them has worse results, a metric should see it, and in the right direction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from karat.experiments.moments import moments_of
from karat.online.flags import USER
from karat.online.metrics.entry import Metric
from karat.stats.arms import ArmMoments, Floats, arm, detectable, together
from karat.tables.experiments.planning import Certificate, Detectable

SPLITS = 1000
POWER = 0.8
SHARES = (0.05, 0.1, 0.5)  # of all users in each arm
DEGRADED = 0.3  # share of searches whose first and fifth result are swapped
_REFUTED = 0.01  # level of the test of false positives: several metrics are tried
_WRONG = 0.05  # share of splits that may find the degradation as an improvement
_FEW = 64  # buckets with users below which splits are too alike


def degraded(searches: nw.LazyFrame[Any], share: float, kept: float) -> nw.LazyFrame[Any]:
    """Searches as if their first and fifth result were swapped in a share of them.

    A click on the first result stays, at position 5, with the probability of looking there; a click
    on the fifth moves to the top.

    Args:
        searches: SEARCHES.
        share: Of searches.
        kept: Clicks at position 5 over clicks at position 1, of the log.
    """
    one = nw.col("clicks") == 1
    user = nw.when(nw.col(USER) < 0).then(-(nw.col(USER) + 1)).otherwise(nw.col(USER))
    drawn = (user % 1009 + nw.col("intent") * 7919) % 1000
    again = (user % 10007 + nw.col("intent") * 104729) % 1000
    picked = (drawn < round(1000 * share)) & one
    first = picked & (nw.col("first_rank") == 1)
    lost = first & (again >= round(1000 * kept))
    place = (
        nw.when(lost)
        .then(nw.lit(None).cast(nw.Int32))
        .when(first)
        .then(nw.lit(5).cast(nw.Int32))
        .when(picked & (nw.col("first_rank") == 5))
        .then(nw.lit(1).cast(nw.Int32))
        .otherwise(nw.col("first_rank"))
    )
    gone = {
        name: nw.when(lost).then(nw.lit(0).cast(nw.Int64)).otherwise(nw.col(name))
        for name in ("clicked", "clicks", "sat", "sat_low", "sat_high", "quick_back")
    }
    return searches.with_columns(_lost=lost, _place=place, **gone).with_columns(
        first_rank=nw.col("_place"),
        abandoned=nw.when(nw.col("_lost")).then(nw.lit(1).cast(nw.Int64)).otherwise("abandoned"),
    )


def by_bucket(frame: pl.DataFrame, metric: str) -> list[ArmMoments]:
    """The moments of each bucket of users."""
    return [moments_of(row) for row in frame.filter(metric=metric).iter_rows(named=True)]


def smallest(metric: Metric, buckets: Sequence[ArmMoments], weeks: int) -> list[Detectable]:
    """What shares of these users detect, each with an equal control."""
    whole = buckets[0]
    for bucket in buckets[1:]:
        whole = together(whole, bucket)
    estimate = arm(whole)
    spread = estimate.variance * whole.users
    rows = []
    for share in SHARES:
        users = whole.users * share
        if users < 2 or not spread:
            continue
        least = detectable((spread, spread), (users, users), POWER)
        relative = least / abs(estimate.value) if estimate.value else None
        both = round(2 * users)
        rows.append(Detectable(metric.name, weeks, share, both, estimate.value, least, relative))
    return rows


def certify(
    metric: Metric,
    buckets: Sequence[ArmMoments],
    worse: Sequence[ArmMoments] | None,
    rng: np.random.Generator,
    alpha: float = 0.05,
) -> Certificate:
    """A metric tried on splits of the users.

    Args:
        metric: The metric.
        buckets: Of the log.
        worse: The same of the degraded log; None where the metric cannot see it.
        rng: Draws the splits.
        alpha: Level of the tests.
    """
    if len(buckets) < _FEW:
        reason = "too few users"
        return Certificate(metric.name, 0, 0.0, 1.0, None, None, may_decide=False, reason=reason)
    half = np.zeros((SPLITS, len(buckets)))
    half[:, : len(buckets) // 2] = 1.0
    half = rng.permuted(half, axis=1)
    z = _differences(_stacked(buckets), _stacked(buckets), half)
    beyond = float((np.abs(z) > _critical(alpha)).mean())
    p = _chance(beyond, len(buckets), alpha)
    found = wrong = None
    reason = "" if p >= _REFUTED else f"equal arms differ in {100 * beyond:.1f} % of the splits"
    if metric.direction == "none":
        reason = "neither more nor less of it is better"
    if worse is not None:
        planted = _differences(_stacked(buckets), _stacked(worse), half)
        harm = planted if metric.direction == "lower" else -planted
        found = float((harm > _critical(alpha)).mean())
        wrong = float((harm < -_critical(alpha)).mean())
        if not reason and wrong > _WRONG:
            reason = f"worse results look better in {100 * wrong:.0f} % of the splits"
    return Certificate(metric.name, SPLITS, beyond, p, found, wrong, not reason, reason)


def _stacked(buckets: Sequence[ArmMoments]) -> tuple[Floats, Floats, Floats]:
    """Users, means and centred moments of numerator and denominator."""
    return (
        np.array([bucket.users for bucket in buckets], np.float64),
        np.array([bucket.means[:2] for bucket in buckets]),
        np.array([bucket.centred[:2, :2] for bucket in buckets]),
    )


def _differences(
    control: tuple[Floats, Floats, Floats], treatment: tuple[Floats, Floats, Floats], half: Floats
) -> Floats:
    """Standardised difference of both arms in each split; shape (splits,)."""
    values, variances = zip(
        _estimates(*control, 1 - half), _estimates(*treatment, half), strict=True
    )
    errors = np.sqrt(variances[0] + variances[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num((values[1] - values[0]) / errors, posinf=0.0, neginf=0.0)


def _estimates(
    users: Floats, means: Floats, centred: Floats, chosen: Floats
) -> tuple[Floats, Floats]:
    """Ratio and its variance over the chosen buckets of each split; shape (splits,) each."""
    # About the mean of all users, so that no digits cancel.
    middle = (users[:, None] * means).sum(axis=0) / users.sum()
    far = means - middle
    squares = centred + users[:, None, None] * far[:, :, None] * far[:, None, :]
    n = chosen @ users
    away = (chosen @ (users[:, None] * far)) / n[:, None]
    spread = np.einsum("sb,bij->sij", chosen, squares)
    spread -= n[:, None, None] * away[:, :, None] * away[:, None, :]
    above, below = (middle + away).T
    ratio = above / below
    total = spread[:, 0, 0] - 2 * ratio * spread[:, 0, 1] + ratio**2 * spread[:, 1, 1]
    variance: Floats = np.maximum(total, 0.0) / ((n - 1) * n * below**2)
    return ratio, variance


def _critical(alpha: float) -> float:
    return NormalDist().inv_cdf(1 - alpha / 2)


def _chance(beyond: float, buckets: int, alpha: float) -> float:
    """Two-sided p-value of a share of splits that differ, if the intervals are right.

    All splits have the same buckets, whose variance is by chance above or below that of their
    users: a binomial test alone would refuse one right metric of seven.
    """
    critical = _critical(alpha)
    steep = critical * NormalDist().pdf(critical)  # change of alpha with the logarithm of variance
    variance = alpha * (1 - alpha) / SPLITS + steep**2 * 2 / (buckets - 1)
    return math.erfc(abs(beyond - alpha) / math.sqrt(2 * variance))


def kept_of(clicks: pl.DataFrame) -> float | None:
    """Clicks at position 5 over clicks at position 1; from ``position`` and ``clicks``."""
    at = dict(clicks.select("position", "clicks").iter_rows())
    first = at.get(1, 0)
    return min(1.0, at.get(5, 0) / first) if first else None
