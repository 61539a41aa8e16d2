"""The delta method over users: its variance, its interval, and that it holds where others fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from karat.stats.intervals import UserMoments, ratio_interval, ratio_variance
from karat.stats.student import t_quantile

Floats = NDArray[np.float64]


def moments(above: Floats, below: Floats) -> UserMoments:
    """The moments of users' sums, by NumPy."""
    return UserMoments(
        users=len(above),
        mean_numerator=float(above.mean()),
        mean_denominator=float(below.mean()),
        m2_numerator=float(((above - above.mean()) ** 2).sum()),
        m2_denominator=float(((below - below.mean()) ** 2).sum()),
        comoment=float(((above - above.mean()) * (below - below.mean())).sum()),
    )


def test_the_variance_is_tea_tastings() -> None:
    # tea-tasting 1.14.0, tests/test_aggr.py:103: means 5 and 4, variances 3 and 2, covariance 1:
    # 3/16 + 25·2/256 − 2·5·1/64 = .1875 + .1953125 − .15625 = .2265625, of one user; a mean over
    # n users has an n-th of it.
    n = 10
    found = ratio_variance(UserMoments(n, 5.0, 4.0, 3.0 * (n - 1), 2.0 * (n - 1), 1.0 * (n - 1)))
    assert found * n == pytest.approx(0.2265625, abs=1e-15)


def test_an_interval_by_hand() -> None:
    # Clicks 1, 0, 3 of searches 2, 1, 3: 4/6. Residuals clicks − 2/3·searches: −1/3, −2/3, 1, whose
    # squares add up to 14/9; variance 14/9 / (2·3·2²) = 0.0648; two degrees of freedom, t = 4.3027.
    found = ratio_interval(moments(np.array([1.0, 0, 3]), np.array([2.0, 1, 3])))
    reach = 4.302652729911275 * math.sqrt(14 / 9 / 24)
    assert found.low == pytest.approx(2 / 3 - reach)
    assert found.high == pytest.approx(2 / 3 + reach)
    cut = ratio_interval(moments(np.array([1.0, 0, 3]), np.array([2.0, 1, 3])), 0.0, 1.0)
    assert (cut.low, cut.high) == (0.0, 1.0)


def test_a_mean_over_users_is_the_t_interval() -> None:
    values = np.array([1.0, 2.0, 4.0, 9.0])
    found = ratio_interval(moments(values, np.ones(4)))
    reach = t_quantile(0.975, 3) * values.std(ddof=1) / 2  # √4
    assert found.low == pytest.approx(4 - reach)
    assert found.high == pytest.approx(4 + reach)


def test_there_is_no_interval_of_one_user_or_of_users_who_are_alike() -> None:
    one = ratio_interval(moments(np.array([1.0]), np.array([2.0])))
    assert (one.low, one.high, one.reason) == (None, None, "one user")
    # A third of the searches of each: thirds are not exact, and what they leave is no variance.
    alike = ratio_interval(moments(np.array([0.1, 0.2, 0.7]), np.array([0.3, 0.6, 2.1])))
    assert (alike.low, alike.reason) == (None, "all users are alike")


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(1, 50)).map(lambda x: (min(x), max(x))),
        min_size=2,
        max_size=30,
    )
)
def test_the_variance_is_that_of_the_residuals(sums: list[tuple[int, int]]) -> None:
    above, below = np.array(sums, np.float64).T
    rest = above - above.sum() / below.sum() * below
    n = len(sums)
    by_hand = float((rest**2).sum() / ((n - 1) * n * below.mean() ** 2))
    assert ratio_variance(moments(above, below)) == pytest.approx(by_hand, abs=1e-12)


def test_users_cover_the_truth_where_searches_do_not() -> None:
    """Heavy users: a few search a hundred times as often, and each clicks by a habit of their own.

    2,000 logs of 300 users. Searches per user are 1 + a Pareto law with α = 1.6 cut at 400, habits
    Beta(0.6, 0.9) of mean 0.4 and independent, so that the true rate is 0.4. Of intervals over
    users 95 % should hold it (the delta method is a little short with tails this heavy); those that
    take searches for independent are far too narrow.
    """
    rng = np.random.default_rng(20261122)
    logs, users, truth = 2000, 300, 0.4
    searches = np.minimum(1 + np.floor(rng.pareto(1.6, (logs, users)) * 3), 400)
    habit = rng.beta(0.6, 0.9, (logs, users))
    clicks = rng.binomial(searches.astype(np.int64), habit).astype(np.float64)
    held = naive = 0
    for above, below in zip(clicks, searches, strict=True):
        found = ratio_interval(moments(above, below), 0.0, 1.0)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
        rate, n = above.sum() / below.sum(), below.sum()
        naive += abs(rate - truth) <= 1.959964 * math.sqrt(rate * (1 - rate) / n)
    assert 0.90 <= held / logs <= 0.97
    assert naive / logs < 0.5
