"""Power of the paired t test against SciPy's noncentral t, and against simulation."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.errors import UsageError
from karat.stats.power import queries_needed, smallest_difference, t_power
from karat.stats.student import t_quantile


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 10, 20, 50, 100, 500, 5000, 50_000])
@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.05, 0.2])
def test_power_is_scipys_noncentral_t(n: int, alpha: float) -> None:
    beyond, compared = stats.t.ppf(1 - alpha / 2, n - 1), 0
    for size in (0.0, 0.01, 0.1, 0.3, 0.5, 1.0):
        shift = size * math.sqrt(n)
        expected = stats.nct.sf(beyond, n - 1, shift) + stats.nct.cdf(-beyond, n - 1, shift)
        if not math.isnan(expected):  # SciPy 1.17 has no value for some far tails
            assert t_power(size, n, alpha) == pytest.approx(expected, abs=1e-9)
            compared += 1
    assert compared >= 3


def test_the_field_notes_numbers() -> None:
    # field note on judgments, from Nagata's formula at 80 % power and a spread of .2: 50 queries
    # see .081, 100 see .057, and .05 needs 128.
    assert round(smallest_difference(0.2, 50), 3) == 0.081
    assert round(smallest_difference(0.2, 100), 3) == 0.057
    assert queries_needed(0.2, 0.05) == 128
    assert queries_needed(0.2, -0.05) == 128


def test_statsmodels_numbers() -> None:
    # statsmodels 0.15.0: TTestPower().solve_power(effect_size=size, power=power, alpha=alpha).
    for size, power, alpha, n in (
        (0.5, 0.8, 0.05, 33.36713118),
        (1.8, 0.8, 0.05, 4.66261202),
        (1.0, 0.9, 0.01, 18.30345716),
        (0.1, 0.8, 0.05, 786.80894018),
        (0.25, 0.95, 0.1, 174.51687638),
    ):
        assert queries_needed(1.0, size, power, alpha) == math.ceil(n)
    # The same with nobs=n; its solver stops within 1e-6.
    for n, power, alpha, size in (
        (5, 0.8, 0.05, 1.68199708),
        (25, 0.9, 0.01, 0.82997380),
        (100, 0.8, 0.05, 0.28291171),
        (1000, 0.5, 0.1, 0.05201013),
    ):
        assert smallest_difference(1.0, n, power, alpha) == pytest.approx(size, abs=2e-6)


@pytest.mark.parametrize("n", [2, 3, 10, 50, 1000, 10**6, 10**9])
@pytest.mark.parametrize(("power", "alpha"), [(0.8, 0.05), (0.5, 0.1), (0.99, 0.001)])
def test_the_smallest_difference_is_found_with_that_power(
    n: int, power: float, alpha: float
) -> None:
    difference = smallest_difference(3.0, n, power, alpha)
    assert t_power(difference / 3.0, n, alpha) == pytest.approx(power, abs=1e-10)


@given(st.floats(0.008, 50), st.sampled_from([0.5, 0.8, 0.9]), st.sampled_from([0.01, 0.05, 0.1]))
def test_the_queries_needed_are_the_fewest(size: float, power: float, alpha: float) -> None:
    n = queries_needed(1.0, size, power, alpha)
    assert n is not None
    assert t_power(size, n, alpha) >= power - 1e-9
    assert n == 2 or t_power(size, n - 1, alpha) < power + 1e-9


def nagata(size: float) -> float:
    normal = NormalDist()
    beyond = normal.inv_cdf(0.975)
    return ((beyond + normal.inv_cdf(0.8)) / size) ** 2 + beyond**2 / 2


def test_what_the_short_formula_errs() -> None:
    for size in np.geomspace(0.003, 20, 150).tolist():
        n = queries_needed(1.0, size)
        assert n is not None
        assert abs(n - math.ceil(nagata(size))) <= max(1, 3e-6 * n)  # and as the docstring says
    for n, least, most in ((3, 0.17, 0.18), (5, 0.05, 0.052), (10, 0.01, 0.011), (50, 3e-4, 4e-4)):
        beyond = NormalDist().inv_cdf(0.975)
        short = (beyond + NormalDist().inv_cdf(0.8)) / math.sqrt(n - beyond**2 / 2)
        assert least < 1 - short / smallest_difference(1.0, n) < most


def test_simulated() -> None:
    # 40,000 samples: the standard error of the share is .002.
    n, size = 12, 0.9
    drawn = np.random.default_rng(8).normal(size, 1, (40_000, n))
    t = drawn.mean(axis=1) / drawn.std(axis=1, ddof=1) * math.sqrt(n)
    share = float((np.abs(t) > t_quantile(0.975, n - 1)).mean())
    assert share == pytest.approx(t_power(size, n), abs=0.008)


def test_a_difference_of_nothing_is_found_as_often_as_alpha_says() -> None:
    assert t_power(0.0, 17, 0.03) == pytest.approx(0.03, abs=1e-12)


def test_ends() -> None:
    assert queries_needed(0.2, 0.0) is None
    assert queries_needed(0.2, 1e-12) is None
    assert queries_needed(0.0, 0.1) == 2
    assert queries_needed(1e-300, 1.0) == 2
    assert smallest_difference(0.0, 30) == 0.0
    many = queries_needed(1.0, 1e-6)
    assert many == pytest.approx(nagata(1e-6), rel=3e-6)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"sd": -1.0}, "standard deviation -1"),
        ({"sd": math.nan}, "standard deviation nan"),
        ({"n": 1}, "at least 2 queries"),
        ({"alpha": 0.9}, "alpha 0.9 or power 0.8"),
        ({"power": 1.0}, "power 1"),
        ({"alpha": 0.0}, "alpha 0"),
    ],
)
def test_what_cannot_be_is_told(settings: dict[str, float], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        smallest_difference(**{"sd": 0.2, "n": 50, **settings})  # type: ignore[arg-type]


def test_a_difference_must_be_a_number() -> None:
    with pytest.raises(UsageError, match="is not a finite number"):
        queries_needed(0.2, math.nan)
