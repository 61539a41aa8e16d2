"""Quantiles and tails of Student's t against SciPy's, and against closed forms."""

from __future__ import annotations

import math

import pytest
from scipy import stats
from scipy.special import betainc, stdtrit

from karat.stats import t_quantile
from karat.stats.student import beta_below, t_above

DFS = [*range(1, 101), *range(101, 2000, 37), 1999, 2000, 2001, 3000, 4000, 5000]


@pytest.mark.parametrize("probability", [0.75, 0.9, 0.95, 0.975, 0.995, 0.9995])
def test_as_scipy(probability: float) -> None:
    for df in DFS:
        expected = float(stdtrit(df, probability))
        assert t_quantile(probability, df) == pytest.approx(expected, rel=1e-11)
        assert t_quantile(1 - probability, df) == pytest.approx(-expected, rel=1e-11)


def test_closed_forms() -> None:
    # One degree of freedom is Cauchy's distribution: tan(pi (p - 1/2)). Two: with a = 4 p (1 - p),
    # 2 (p - 1/2) sqrt(2 / a).
    for probability in (0.6, 0.9, 0.975, 0.9995):
        cauchy = math.tan(math.pi * (probability - 0.5))
        assert t_quantile(probability, 1) == pytest.approx(cauchy, rel=1e-12)
        a = 4 * probability * (1 - probability)
        two = 2 * (probability - 0.5) * math.sqrt(2 / a)
        assert t_quantile(probability, 2) == pytest.approx(two, rel=1e-12)


def test_the_middle_and_the_limit() -> None:
    assert t_quantile(0.5, 7) == 0
    # Printed tables: 1.96 for infinite degrees of freedom, 12.706 for one, 2.064 for 24.
    assert round(t_quantile(0.975, 10**9), 3) == 1.960
    assert round(t_quantile(0.975, 1), 3) == 12.706
    assert round(t_quantile(0.975, 24), 3) == 2.064


def test_the_tail_is_exact() -> None:
    # SciPy 1.17's t.sf. A million degrees of freedom lose some places to the logarithm of gamma.
    for df, places in ((1, 1e-11), (2, 1e-11), (7, 1e-11), (200, 1e-11), (10**6, 5e-9)):
        for t in (0.0, 1e-3, 0.1, 0.7, 1.0, 3.0, 20.0, -0.5, -4.0):
            expected = float(stats.t.sf(t, df))
            assert t_above(t, df) == pytest.approx(expected, rel=places)
    # One degree of freedom: Cauchy's distribution, 1/2 - atan(t) / pi.
    for t in (1e-9, 1e-3, 2.0):
        expected = 0.5 - math.atan(t) / math.pi
        assert t_above(t, 1) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("a", [0.5, 1.0, 3.5, 40.0])
@pytest.mark.parametrize("b", [0.5, 2.0, 17.0])
def test_beta_as_scipys(a: float, b: float) -> None:
    # SciPy 1.17's betainc; the ends are 0 and 1.
    for x in (1e-6, 0.01, 0.3, 0.5, 0.8, 0.999):
        assert beta_below(x, 1 - x, a, b) == pytest.approx(float(betainc(a, b, x)), rel=1e-11)
    assert beta_below(0.0, 1.0, a, b) == 0
    assert beta_below(1.0, 0.0, a, b) == 1


def test_quantiles_far_out() -> None:
    # What a family of so many comparisons leaves to each, at few degrees of freedom.
    for df in (1, 2, 3, 5, 30):
        for tests in (2, 50, 10_000):
            probability = 1 - 0.05 / 2 / tests
            expected = float(stdtrit(df, probability))
            assert t_quantile(probability, df) == pytest.approx(expected, rel=1e-9)
