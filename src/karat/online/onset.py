"""The hour in which a change began, from what hours count and what is usual in them.

**Usual** in an hour is what the same weekday and hour of earlier weeks counted, shrunk towards
their day as if by ``_SHRUNK`` more searches, as hours are few.

**Onset.** A change is a stretch of hours with a ratio of its own. Of all stretches that reach into
the window, it is the one whose deviation is least likely by chance: the largest S² / 2vN, with S
the numerators less what is usual, N the denominators, and v the variance of one of them. That is
the log likelihood ratio against no change, for one shift of a mean of known variance (Hinkley
1970, doi:10.1093/biomet/57.1.1, for its begin; Levin and Kline 1985, doi:10.1002/sim.4780040409,
for stretches that end).

**How sure.** An hour may be the onset if its stretch is at most 40 times less likely. If the true
onset is another, a likelihood ratio exceeds 40 with a chance of at most 1/40 on either side (Wald),
so the hours that may be the onset include it at least 19 times in 20 (Siegmund 1988,
doi:10.2307/1403360, on such sets). If they span more than ``_MOST_APART`` hours, there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from karat.stats.averages import Floats
from karat.tables.online.watch import Hour, Onset

_SHRUNK = 100.0  # searches of its day that an hour is shrunk by
_LEAST = math.log(40)  # by how much a log likelihood ratio must be smaller
_MOST_APART = 6  # hours
_REACH = 1.96  # standard errors of 95 %


@dataclass(frozen=True, slots=True)
class Counted:
    """What an hour counts, and what earlier weeks counted in it."""

    start: str  # local time, as `2026-11-20 03:00`
    numerator: float
    denominator: float
    earlier_numerator: float  # sum over earlier weeks
    earlier_denominator: float


def onset(
    hours: Sequence[Counted], first: int, *, sign: int, usual: float, now: float, share: bool
) -> Onset:
    """When a change began.

    Args:
        hours: All hours to the end of the window, some from before it.
        first: Place of the first hour of the window.
        sign: 1 if more is worse, else -1.
        usual: Variance of the metric per unit of the denominator in earlier weeks.
        now: The same in the window.
        share: Whether the metric is at most 1.
    """
    expected, weight = _expected(hours)
    if expected is None:
        return Onset(None, None, None, None, "earlier weeks have nothing to compare hours with")
    shown = [
        _hour(hour, float(mean), usual * (1 / max(hour.denominator, 1) + 1 / float(of)), share)
        for hour, mean, of in zip(hours, expected, weight, strict=True)
    ]
    sizes = np.array([hour.denominator for hour in hours])
    deviations = sign * (np.array([hour.numerator for hour in hours]) - expected * sizes)
    scores = _scores(deviations, sizes, max(usual, now), first)
    by_begin = scores.max(axis=1)
    if not by_begin.max() > 0:
        return Onset(None, None, None, None, "no hours stand out", shown)
    begin = int(by_begin.argmax())
    end = int(scores[begin].argmax())
    possible = np.flatnonzero(by_begin >= by_begin[begin] - _LEAST)
    low, high = int(possible[0]), int(possible[-1])
    lasts = scores[begin, -1] > scores[begin, end] - _LEAST
    from_start = low == int(np.flatnonzero(sizes > 0)[0])
    reason = ""
    if high - low > _MOST_APART:
        reason = "there are too few searches in an hour"
    elif from_start:
        reason = f"it may have begun before {hours[0].start}"
    return Onset(
        at=None if reason else hours[begin].start,
        earliest=None if from_start else hours[low].start,
        latest=hours[high].start,
        ended=None if lasts else hours[end].start,
        reason=reason,
        hours=shown,
    )


def _scores(deviations: Floats, sizes: Floats, variance: float, first: int) -> Floats:
    """S² / 2vN of each stretch, by its first hour and the hour after it; 0 if it cannot be."""
    total = np.concatenate([[0.0], np.cumsum(deviations)])
    count = np.concatenate([[0.0], np.cumsum(sizes)])
    sums, units = total[None, :] - total[:-1, None], count[None, :] - count[:-1, None]
    begins, ends = np.arange(len(sizes))[:, None], np.arange(len(total))[None, :]
    fits = (ends > begins) & (ends > first) & (sizes > 0)[:, None] & (sums > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(fits, sums**2 / (2 * variance * units), 0.0)


def _expected(hours: Sequence[Counted]) -> tuple[Floats | None, Floats]:
    """What is usual in each hour, and how many units of earlier weeks say so."""
    counted = np.array([hour.earlier_denominator for hour in hours])
    summed = np.array([hour.earlier_numerator for hour in hours])
    weight = counted + _SHRUNK
    if not counted.sum():
        return None, weight
    days = np.array([hour.start[:10] for hour in hours])
    of_day = np.full(len(hours), summed.sum() / counted.sum())
    for day in set(days.tolist()):
        here = days == day
        if counted[here].sum():
            of_day[here] = summed[here].sum() / counted[here].sum()
    return (summed + _SHRUNK * of_day) / weight, weight


def _hour(hour: Counted, expected: float, variance: float, share: bool) -> Hour:
    reach = _REACH * math.sqrt(variance)
    return Hour(
        start=hour.start,
        value=hour.numerator / hour.denominator if hour.denominator else None,
        n=round(hour.denominator),
        expected=expected,
        usual_low=max(0.0, expected - reach),
        usual_high=min(1.0, expected + reach) if share else expected + reach,
    )
