"""Agreement of system orders: by hand, against published vectors, over all ways to break ties."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.errors import UsageError
from karat.stats.leaderboard import OrderAgreement, order_agreement, tau_ap


def numbers(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


# --- by hand ---


def test_by_hand() -> None:
    # The reference has a b c d, the estimate b a c d. At its second rank a has b above, wrongly:
    # 0 of 1. c has both above it, rightly: 2 of 2; d 3 of 3. Tau_AP = 2/3 x (0 + 1 + 1) - 1.
    # One of 6 pairs is discordant: tau = 4/6. Spearman = 1 - 6 x 2 / (4 x 15) = .8.
    got = order_agreement(numbers(4, 3, 2, 1), numbers(3, 4, 2, 1))
    assert got.n == 4
    assert got.tau_ap == pytest.approx(1 / 3, rel=1e-15)
    assert got.kendall == pytest.approx(2 / 3, rel=1e-15)
    assert got.spearman == pytest.approx(0.8, rel=1e-15)


def test_an_exchange_at_the_top_costs_more_than_one_at_the_bottom() -> None:
    # c and d exchanged: b 1 of 1, d 2 of 2, c has d above, wrongly: 2 of 3. Kendall is as above.
    top, bottom = numbers(3, 4, 2, 1), numbers(4, 3, 1, 2)
    at_bottom = order_agreement(numbers(4, 3, 2, 1), bottom)
    assert at_bottom.tau_ap == pytest.approx(2 / 3 * (1 + 1 + 2 / 3) - 1, rel=1e-15)
    assert at_bottom.kendall == order_agreement(numbers(4, 3, 2, 1), top).kendall


def test_a_tie_by_hand() -> None:
    # The estimate has a, then b and c tied; the reference a b c. Broken rightly tau_AP is 1;
    # broken wrongly c is right (1 of 1) and b has a and c above it (1 of 2): 1 + 1/2 - 1 = 1/2.
    assert tau_ap(numbers(3, 2, 1), numbers(2, 1, 1)) == pytest.approx(3 / 4, rel=1e-15)


# --- published numbers ---

# R package ircor 1.0, tests/testthat/helper_data.R and test_tauAP.R, whose values have 4 digits.
SETS = [
    (
        (0.897, 0.372, 0.908, 0.898, 0.661, 0.062, 0.177, 0.384, 0.498, 0.992),
        (0.82, 0.406, 0.817, 0.953, 0.673, 0.073, 0.364, 0.547, 0.589, 0.988),
        (0.8, 0.4, 0.8, 1, 0.7, 0.1, 0.4, 0.5, 0.6, 1),
        (0.8519, 0.7454),
    ),
    (
        (0.266, 0.573, 0.202, 0.945, 0.629, 0.206, 0.687, 0.77, 0.718, 0.38),
        (0.263, 0.843, 0.728, 0.928, 0.08, 0.114, 0.467, 0.641, 0.973, 0.644),
        (0.3, 0.8, 0.7, 0.9, 0.1, 0.1, 0.5, 0.6, 1, 0.6),
        (0.2504, 0.2692),
    ),
    (
        (0.185, 0.573, 0.944, 0.129, 0.468, 0.553, 0.761, 0.405, 0.976, 0.445),
        (0.845, 0.272, 0.275, 0.924, 0.605, 0.334, 0.162, 0.872, 0.018, 0.25),
        (0.8, 0.3, 0.3, 0.9, 0.6, 0.3, 0.2, 0.9, 0, 0.2),
        (-0.6971, -0.5558),
    ),
]


@pytest.mark.parametrize(("reference", "untied", "tied", "expected"), SETS)
def test_as_published(
    reference: tuple[float, ...],
    untied: tuple[float, ...],
    tied: tuple[float, ...],
    expected: tuple[float, float],
) -> None:
    truth = numbers(*reference)
    assert tau_ap(truth, numbers(*untied)) == pytest.approx(expected[0], abs=5.1e-5)
    assert tau_ap(truth, numbers(*tied)) == pytest.approx(expected[1], abs=5.1e-5)


# --- every way to break ties ---

FEW = st.integers(2, 5).flatmap(
    lambda s: st.tuples(*[st.lists(st.integers(0, 2), min_size=s, max_size=s)] * 2)
)


def unbroken(truth: tuple[int, ...], shown: tuple[int, ...]) -> float:
    """The definition, word by word; each holds the systems, best first."""
    total = 0.0
    for i in range(1, len(shown)):
        above = [truth.index(system) < truth.index(shown[i]) for system in shown[:i]]
        total += sum(above) / i
    return 2 * total / (len(shown) - 1) - 1


def ways(values: list[int]) -> list[tuple[int, ...]]:
    systems = range(len(values))
    return [
        order
        for order in itertools.permutations(systems)
        if all(values[a] >= values[b] for a, b in itertools.pairwise(order))
    ]


@given(FEW)
def test_ties_are_the_mean_over_every_way_to_break_them(columns: tuple[list[int], ...]) -> None:
    x, y = columns
    every = [unbroken(a, b) for a in ways(x) for b in ways(y)]
    expected = sum(every) / len(every)
    assert tau_ap(numbers(*x), numbers(*y)) == pytest.approx(expected, abs=1e-12)


# --- laws ---

VALUES = st.integers(2, 30).flatmap(
    lambda s: st.tuples(*[st.lists(st.integers(-9, 9), min_size=s, max_size=s)] * 2)
)


@given(VALUES)
def test_laws(columns: tuple[list[int], ...]) -> None:
    x, y = (numbers(*column) for column in columns)
    got = order_agreement(x, y)
    if len(set(columns[0])) == 1 or len(set(columns[1])) == 1:
        assert got == OrderAgreement(
            len(x), None, None, None, "all systems are equal in one of the orders"
        )
        return
    assert got.kendall == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
    assert got.spearman == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert got.tau_ap is not None
    assert -1 <= got.tau_ap <= 1
    assert tau_ap(-x, y) == pytest.approx(-got.tau_ap, abs=1e-12)  # the reference turned round
    assert tau_ap(np.exp(x), y) == got.tau_ap


@given(st.permutations(range(12)))
def test_an_order_without_ties_is_wholly_like_itself(order: list[int]) -> None:
    x = numbers(*order)
    assert order_agreement(x, x) == OrderAgreement(12, 1.0, pytest.approx(1), 1.0)
    assert order_agreement(x, -x) == OrderAgreement(12, -1.0, pytest.approx(-1), -1.0)


# --- where there is none ---


def test_systems_that_lack_either_are_left_out() -> None:
    nan = math.nan
    holed = order_agreement(numbers(4, nan, 3, 2, 1, 7), numbers(3, 5, 4, 2, 1, nan))
    assert holed == order_agreement(numbers(4, 3, 2, 1), numbers(3, 4, 2, 1))
    assert order_agreement(numbers(1, nan), numbers(1, 2)).reason == (
        "no two systems have both values"
    )


def test_columns_of_two_lengths_are_refused() -> None:
    with pytest.raises(UsageError, match=r"\(3,\) and \(2,\)"):
        order_agreement(numbers(1, 2, 3), numbers(1, 2))
