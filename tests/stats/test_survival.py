"""Kaplan-Meier against a textbook and statsmodels 0.15.0; restricted means by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from statsmodels.duration.survfunc import SurvfuncRight

from karat.online.distributions import kaplan_meier, restricted_mean, survival_quantile

Floats = NDArray[np.float64]

# Weeks in remission under 6-mercaptopurine and under placebo: Freireich et al. 1963, Blood 21; as
# in Gehan 1965 and every textbook since. Negative: still in remission when last seen.
MERCAPTOPURINE = [6, 6, 6, -6, 7, -9, 10, -10, -11, 13, 16, -17, -19, -20, 22, 23]
MERCAPTOPURINE += [-25, -32, -32, -34, -35]
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]


def table(seen: list[int]) -> tuple[Floats, Floats, Floats]:
    """Times, how many ended at each, and how many were last seen at each."""
    times = np.unique(np.abs(seen)).astype(np.float64)
    events = np.array([float(sum(each == time for each in seen)) for time in times])
    censored = np.array([float(sum(each == -time for each in seen)) for time in times])
    return times, events, censored


def test_the_curve_of_6_mercaptopurine() -> None:
    # Kleinbaum & Klein 2012, Survival Analysis, table 2.1: 0.8571 at 6 weeks, 0.8067 at 7, 0.7529
    # at 10, 0.6902 at 13, 0.6275 at 16, 0.5378 at 22, 0.4482 at 23.
    times, events, censored = table(MERCAPTOPURINE)
    curve = dict(zip(times, kaplan_meier(events, censored), strict=True))
    told = {6: 0.8571, 7: 0.8067, 10: 0.7529, 13: 0.6902, 16: 0.6275, 22: 0.5378, 23: 0.4482}
    assert {week: round(curve[week], 4) for week in told} == told
    assert curve[35] == curve[23]  # nobody ends after


def test_the_medians_of_freireich() -> None:
    # The same source: 23 weeks under the drug, 8 under placebo.
    for seen, median in ((MERCAPTOPURINE, 23), (PLACEBO, 8)):
        times, events, censored = table(seen)
        assert survival_quantile(times, kaplan_meier(events, censored), 0.5) == median


def test_a_median_that_is_not_reached_is_infinite() -> None:
    # Two of five end: 3/5 stay, and half is not reached.
    curve = kaplan_meier(np.array([1.0, 1, 0]), np.array([0.0, 0, 3]))
    assert np.isinf(survival_quantile(np.array([1.0, 2, 3]), curve, 0.5))


def test_without_censoring_a_quantile_is_a_time_that_was_seen() -> None:
    # NumPy's inverted_cdf: the smallest value that the share does not exceed; 10 of 1..20 is half.
    times = np.arange(1.0, 21)
    curve = kaplan_meier(np.ones(20), np.zeros(20))
    for level in (0.05, 0.5, 0.9, 0.95, 0.99):
        expected = np.quantile(times, level, method="inverted_cdf")
        assert survival_quantile(times, curve, level) == expected, level


@given(st.lists(st.integers(-30, 30).filter(bool), min_size=2, max_size=60))
def test_the_curve_is_that_of_statsmodels(seen: list[int]) -> None:
    if all(each < 0 for each in seen):
        return  # statsmodels has no curve where nothing ends
    theirs = SurvfuncRight(np.abs(seen), (np.array(seen) > 0).astype(int))
    times, events, censored = table(seen)
    ours = dict(zip(times, kaplan_meier(events, censored), strict=True))
    assert [ours[time] for time in theirs.surv_times] == pytest.approx(theirs.surv_prob, abs=1e-12)


@given(st.lists(st.integers(-30, 30).filter(bool), min_size=1, max_size=60), st.integers(1, 30))
def test_the_restricted_mean_is_the_area_under_the_curve(seen: list[int], up_to: int) -> None:
    times, events, censored = table(seen)
    curve = kaplan_meier(events, censored)
    least, most = restricted_mean(times, curve, times[-1], up_to)
    # The curve is flat between whole numbers: a sum over them is its area.
    alive = [1.0, *(float(curve[times <= week][-1]) if (times <= week).any() else 1.0
                    for week in range(1, up_to))]  # fmt: skip
    assert most == pytest.approx(sum(alive), abs=1e-9)
    last = int(times[-1])
    assert least == pytest.approx(sum(alive[:last]), abs=1e-9)
    assert 0 <= least <= most + 1e-12 <= up_to + 1e-9


def test_a_restricted_mean_by_hand() -> None:
    # 2 and 4 end, one was last seen at 4: 2/3 stay from 2 on, 1/3 from 4 on. Up to 3: 2 + 2/3.
    times, curve = np.array([2.0, 4.0]), kaplan_meier(np.array([1.0, 1]), np.array([0.0, 1]))
    assert restricted_mean(times, curve, 4.0, 3) == (pytest.approx(8 / 3), pytest.approx(8 / 3))
    # Up to 10 nobody was followed: 2 + 2·2/3 at least, and a third of six more at most.
    least, most = restricted_mean(times, curve, 4.0, 10)
    assert (least, most) == (pytest.approx(10 / 3), pytest.approx(10 / 3 + 2))


def test_many_samples_at_once_are_each_of_them() -> None:
    rng = np.random.default_rng(7)
    times = np.arange(1.0, 9)
    events, censored = rng.integers(0, 4, (2, 5, 8)).astype(np.float64)
    curves = kaplan_meier(events, censored)
    medians = survival_quantile(times, curves, 0.5)
    least, most = restricted_mean(times, curves, 8.0, 6)
    for sample in range(5):
        curve = kaplan_meier(events[sample], censored[sample])
        assert np.array_equal(curve, curves[sample])
        assert survival_quantile(times, curve, 0.5) == medians[sample]
        assert restricted_mean(times, curve, 8.0, 6) == (least[sample], most[sample])
