"""Quantiles of Student's t against SciPy's, and against closed forms."""

from __future__ import annotations

import math

import pytest
from scipy.special import stdtrit

from karat.stats import t_quantile

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
