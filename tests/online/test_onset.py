"""The hour in which a change began: planted steps, and hours that cannot tell."""

from __future__ import annotations

import numpy as np
import pytest

from karat.online.onset import Counted, onset
from karat.tables.online.watch import Onset

NAMES = [f"2026-11-{18 + at // 24} {at % 24:02}:00" for at in range(72)]
WINDOW = 48  # Friday: two days before it, and 24 hours


def began(
    rng: np.random.Generator, size: float, before: float, after: float, at: int, end: int = 72
) -> Onset:
    """The onset of a share that changes from one hour on, with so many searches in an hour.

    Hours are as day and night are: 0.4 to 1.6 times the mean.
    """
    hours = []
    for hour, name in enumerate(NAMES):
        mean = size * (1 + 0.6 * np.sin(2 * np.pi * (hour - 9) / 24))
        n, earlier = rng.poisson(mean), rng.poisson(4 * mean)
        rate = after if at <= hour < end else before
        hours.append(
            Counted(name, rng.binomial(n, rate), n, rng.binomial(earlier, before), earlier)
        )
    usual, now = before * (1 - before), after * (1 - after)
    return onset(hours, WINDOW, sign=1, usual=usual, now=now, share=True)


@pytest.mark.parametrize("size", [10, 20, 100])
def test_a_large_step_is_found_within_an_hour(size: int) -> None:
    rng = np.random.default_rng(size)
    for at in (24, 40, 48, 51, 60, 70):
        found = began(rng, size, 0.05, 0.78, at)
        assert found.at is not None
        assert abs(NAMES.index(found.at) - at) <= 1
        assert found.ended is None
        assert (found.earliest or "") <= found.at <= (found.latest or "")


def test_what_ended_has_an_end() -> None:
    found = began(np.random.default_rng(1), 50, 0.05, 0.78, 50, 56)
    assert (found.at, found.ended) == (NAMES[50], NAMES[56])


def test_few_searches_cannot_tell_the_hour() -> None:
    found = began(np.random.default_rng(2), 40, 0.05, 0.1, 52)
    assert found.at is None
    assert found.reason == "there are too few searches in an hour"
    assert (found.earliest or "") <= NAMES[52] <= (found.latest or "")


def test_what_began_before_all_hours_says_so() -> None:
    found = began(np.random.default_rng(3), 50, 0.05, 0.5, 0)
    assert (found.at, found.earliest) == (None, None)
    assert found.reason == "it may have begun before 2026-11-18 00:00"


def test_by_hand() -> None:
    # Usual is 1 of 10 in each hour, v = .09. Then 5, 5 of 10: S² / 2vN of both is 8² / (.18 · 20)
    # = 17.8; from an hour before, 8² / (.18 · 30) = 11.9, which is ln 40 = 3.7 less. So is one
    # hour alone, 4² / (.18 · 10) = 8.9.
    counts = [1, 1, 1, 5, 5]
    hours = [Counted(f"2026-11-20 {at:02}:00", k, 10, 40, 400) for at, k in enumerate(counts)]
    found = onset(hours, 3, sign=1, usual=0.09, now=0.09, share=True)
    assert found == Onset(
        "2026-11-20 03:00", "2026-11-20 03:00", "2026-11-20 03:00", None, "", found.hours
    )
    # 1.96 standard errors of 10 searches and the 400 and 100 more that say what is usual.
    reach = 1.96 * (0.09 * (1 / 10 + 1 / 500)) ** 0.5
    assert found.hours[3].usual_high == pytest.approx(0.1 + reach)
    assert (found.hours[3].value, found.hours[3].usual_low, found.hours[3].n) == (0.5, 0, 10)
    # For a metric that should be high, the same rise is no worse.
    other = onset(hours, 3, sign=-1, usual=0.09, now=0.09, share=True)
    assert (other.at, other.reason) == (None, "no hours stand out")


def test_an_hour_without_searches_does_not_begin_it() -> None:
    counts = [(1, 10), (1, 10), (0, 0), (6, 10), (6, 10)]
    hours = [Counted(f"2026-11-20 {at:02}:00", k, n, 40, 400) for at, (k, n) in enumerate(counts)]
    found = onset(hours, 2, sign=1, usual=0.09, now=0.09, share=True)
    assert found.at == "2026-11-20 03:00"
    assert found.hours[2].value is None


def test_without_earlier_weeks_there_is_none() -> None:
    hours = [Counted("2026-11-20 00:00", 1, 10, 0, 0)]
    found = onset(hours, 0, sign=1, usual=0.09, now=0.09, share=True)
    assert (found.at, found.hours) == (None, ())
    assert "nothing to compare" in found.reason


@pytest.mark.deep  # coverage
@pytest.mark.parametrize(
    ("size", "before", "after"), [(5, 0.05, 0.78), (100, 0.05, 0.1), (1000, 0.05, 0.06)]
)
def test_the_hours_that_it_may_be_include_the_true_one(
    size: int, before: float, after: float
) -> None:
    """19 times in 20; of 300, fewer than 285 - 3.1 · 3.8 = 273 is one chance in a thousand."""
    rng, covered = np.random.default_rng(size), 0
    for _ in range(300):
        at = int(rng.integers(40, 66))
        found = began(rng, size, before, after, at)
        covered += (found.earliest or "") <= NAMES[at] <= (found.latest or "")
    assert covered >= 273
