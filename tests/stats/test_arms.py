"""Vectors of GrowthBook, tea-tasting and Spotify; by hand where a peer is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.stats.arms import (
    Arm,
    ArmMoments,
    above,
    arm,
    contrast,
    cuped,
    detectable,
    fieller,
    normal_contrast,
    quantile,
    users_needed,
)

USERS = """
13121 04466 11000 11000 03130 11010 12120 14110 02010 02010 02000 12020 11020 11121 02244
03050 12010 03020 11000 12011 13344 01122 11100 12010 11020 03000 02222 02040 04220 12121
11010 12230 03060 02010 02030 02231 01010 04243 04182 13040 01011 12041 12020 01111 12020
11010 03010 01010 14030 01010 01000 01100 12020 12000 12040 14080 01000 13020 02032 02210
12132 02020 11010 11010 13222 13030 12231 01000 03220 02020 03150 02000 13040 01010 01000
03100 01100 12030 12021 11030 12120 01000 11000 01030 01000 01020 11100 01110 03010 11000
04141 11010 01020 01010 02010 11010 02253 01000 02030 12040
"""
"""Variant, sessions, orders, and both before, of each user of tea-tasting 1.14.0's
make_users_data(n_users=100, covariates=True, rng=42)."""


def of_sums(total: float, squares: float, n: int) -> Arm:
    """An arm of one value for each user, from sums."""
    mean = total / n
    return Arm(mean, (squares - total * mean) / (n - 1) / n, n)


def of_users(variant: int, below: int | None, above: int = 2) -> ArmMoments:
    """The moments of a variant: orders over sessions, or over users."""
    rows = [list(map(int, user)) for user in USERS.split() if int(user[0]) == variant]
    values = np.array(
        [[row[2], row[1] if below else 1, row[4], row[3] if below else 1] for row in rows], float
    )
    far = values - values.mean(axis=0)
    return ArmMoments(len(values), values.mean(axis=0), far.T @ far)


def test_difference_of_means() -> None:
    # gbstats tests/frequentist/test_tests.py:59-101 (8f1db44).
    both = contrast(of_sums(1396.87, 52377.9767, 3407), of_sums(2422.7, 134698.29, 3461))
    assert both.difference == pytest.approx(0.29, abs=5e-6)
    assert both.error == pytest.approx(0.12478, abs=5e-6)
    assert (both.low, both.high) == pytest.approx((0.04538, 0.53462), abs=5e-6)
    assert both.p == pytest.approx(0.02016, abs=5e-6)
    assert both.df == pytest.approx(5841.742, abs=5e-4)
    assert both.relative == pytest.approx(0.70732, abs=5e-6)


def test_the_lift_agrees_with_the_difference() -> None:
    # There GrowthBook's delta method gives -.03526 to 1.44989, which contains 0 although its own
    # test of the difference has p = .02. Fieller's interval (field notes V1) leaves 0 out.
    both = contrast(of_sums(1396.87, 52377.9767, 3407), of_sums(2422.7, 134698.29, 3461))
    assert (both.relative_low, both.relative_high) == pytest.approx((0.094062, 1.708690), abs=5e-7)


def test_proportions() -> None:
    # gbstats :103-120: 14 of 28 and 16 of 30, lift .06667. Its interval is by the delta method;
    # Fieller's with the same variances p(1-p)/n, t of Welch's 55.707 degrees of freedom: by hand
    # from the quadratic, a = .25 - t² .25/28, b = .26667, c = .28444 - t² .24889/30.
    both = contrast(Arm(0.5, 0.25 / 28, 28), Arm(16 / 30, (16 / 30) * (14 / 30) / 30, 30))
    assert both.relative == pytest.approx(0.06667, abs=5e-6)
    t2 = 2.0034873**2
    a, b = 0.25 - t2 * 0.25 / 28, 16 / 60
    c = (16 / 30) ** 2 - t2 * (16 / 30) * (14 / 30) / 30
    low = (b - math.sqrt(b * b - a * c)) / a - 1
    assert both.relative_low == pytest.approx(low, abs=1e-5)


@pytest.mark.parametrize(
    ("below", "adjusted", "control", "treatment", "difference", "low", "high", "p"),
    [
        (None, False, 0.5660377358, 0.3829787234, -0.1830590124, -0.5004359360, 0.1343179112,
         0.2551230547),
        (None, True, 0.5100734581, 0.4460873770, -0.0639860810, -0.2873693273, 0.1593971652,
         0.5710263127),
        (1, False, 0.2857142857, 0.2022471910, -0.0834670947, -0.2359298643, 0.0689956749,
         0.2799601071),
        (1, True, 0.2557234818, 0.2354978650, -0.0202256168, -0.1325545466, 0.0921033130,
         0.7216216788),
    ],
)  # fmt: skip
def test_tea_tasting(
    below: int | None,
    adjusted: bool,
    control: float,
    treatment: float,
    difference: float,
    low: float,
    high: float,
    p: float,
) -> None:
    """Means and ratios of tea-tasting 1.14.0, without and with the period before (CUPED)."""
    arms = of_users(0, below), of_users(1, below)
    theta, before = cuped(*arms) if adjusted else (0.0, 0.0)
    one, two = (arm(moments, theta, before) for moments in arms)
    both = contrast(one, two)
    assert (one.value, two.value, both.difference) == pytest.approx(
        (control, treatment, difference), abs=5e-10
    )
    # Between whole degrees of freedom the quantile is interpolated.
    assert (both.low, both.high, both.p) == pytest.approx((low, high, p), abs=5e-8)


def test_variance_of_a_ratio() -> None:
    # tea-tasting tests/test_aggr.py:103: means 5 and 4, variances 3 and 2, covariance 1.
    n = 1_000_000
    centred = np.zeros((4, 4))
    centred[:2, :2] = np.array([[3.0, 1.0], [1.0, 2.0]]) * (n - 1)
    found = arm(ArmMoments(n, np.array([5.0, 4.0, 0.0, 0.0]), centred))
    assert found.variance * n == pytest.approx(0.2265625, abs=1e-12)


def test_one_sided_bounds() -> None:
    # gbstats :390-408: the sums above over 3,000 and 3,461 users.
    both = contrast(of_sums(1396.87, 52377.9767, 3000), of_sums(2422.7, 134698.29, 3461))
    low = both.difference - quantile(0.95, both.df) * both.error
    assert low == pytest.approx(0.0207915, abs=5e-8)
    assert above(both.difference / both.error, both.df) == pytest.approx(0.0355427, abs=5e-8)


def test_a_lift_of_a_negative_control() -> None:
    """Less of a loss is a gain, of the estimate and of its interval."""
    both = normal_contrast(-10.0, -8.0, (0.25, 0.25))
    assert both.relative == pytest.approx(0.2)
    assert both.relative_low is not None
    assert both.relative_high is not None
    assert 0 < both.relative_low < 0.2 < both.relative_high


def test_an_unbounded_lift() -> None:
    # The control is 1 standard error from 0: any lift is possible.
    assert fieller(1.0, 2.0, (1.0, 1.0), 1.96) == (None, None)


def test_a_covariate_that_does_not_vary() -> None:
    moments = of_users(0, None)
    moments.centred[2:, :] = moments.centred[:, 2:] = 0.0
    assert cuped(moments, moments) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("variances", "difference", "power", "total"),
    [
        # spotify-confidence e1f8a49 tests/samplesize (its power is .85): 39,906 and 897,348.
        ((100.0, 100.0), 0.3, 0.85, 39_906),
        ((0.34 * 0.66, 0.343 * 0.657), 0.003, 0.85, 897_348),
        # The same at power .8 (field notes V18).
        ((100.0, 100.0), 0.3, 0.8, 34_884),
        ((0.34 * 0.66, 0.343 * 0.657), 0.003, 0.8, 782_795),
    ],
)
def test_users_needed(
    variances: tuple[float, float], difference: float, power: float, total: int
) -> None:
    needed = users_needed(variances, difference, power)
    assert 2 * needed == pytest.approx(total, rel=5e-3)  # its own tolerance
    assert detectable(variances, (needed, needed), power) <= difference * (1 + 1e-9)


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(1e-4, 0.5), st.floats(1e-4, 0.5))
def test_swapped_arms_change_the_sign(one: float, two: float, v1: float, v2: float) -> None:
    a, b = Arm(one, v1, 50), Arm(two, v2, 70)
    there, back = contrast(a, b), contrast(b, a)
    assert there.difference == -back.difference
    assert there.p == pytest.approx(back.p)
    assert there.low is not None
    assert back.high is not None
    assert there.low == pytest.approx(-back.high)


@given(st.floats(0.5, 10), st.floats(0.5, 10), st.floats(1e-4, 0.05), st.floats(1e-4, 0.05))
def test_lift_and_difference_agree(one: float, two: float, v1: float, v2: float) -> None:
    both = contrast(Arm(one, v1, 50), Arm(two, v2, 70))
    assert both.low is not None
    assert both.high is not None
    if both.relative_low is None or both.relative_high is None:
        return
    if abs(both.low) > 1e-9 and abs(both.high) > 1e-9:
        assert (both.low > 0) == (both.relative_low > 0)
        assert (both.high < 0) == (both.relative_high < 0)
