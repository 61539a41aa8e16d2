"""Correlations against SciPy's, against counting by hand, and against the truth they estimate."""

from __future__ import annotations

import math
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.choosing import FEW

from karat.stats import Interval
from karat.stats.correlation import Correlation, outcome, spearman_interval

RNG_SEED = 20_260_101


def numbers(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


# --- by hand ---


def test_by_hand_without_ties() -> None:
    # Ranks 1 2 3 4 5 and 2 1 3 5 4: the differences are 1 1 0 1 1, so Spearman is
    # 1 - 6 x 4 / (5 x 24) = .8. Of 10 pairs 2 are discordant: tau = (8 - 2) / 10.
    got = outcome(numbers(0.1, 0.2, 0.3, 0.4, 0.5), numbers(20, 10, 30, 50, 40))
    assert got.spearman == pytest.approx(0.8, rel=1e-15)
    assert got.kendall == pytest.approx(0.6, rel=1e-15)
    assert (got.n, got.auc, got.reason) == (5, None, "")
    # z = atanh .8 = 1.098612, its error sqrt((1 + .32) / 2) = .812404, times 1.959964.
    assert got.ci_low == pytest.approx(math.tanh(1.0986123 - 1.9599640 * 0.8124038), abs=1e-6)
    assert got.ci_high == pytest.approx(math.tanh(1.0986123 + 1.9599640 * 0.8124038), abs=1e-6)


def test_by_hand_with_yes_and_no() -> None:
    # Yes has .5 and .9, no has .1, .5 and .5. Pairs of yes and no: .9 above all three; .5 above
    # .1 and tied with two: 3 + 1 + 2/2 = 5 of 6. Tau-b: 4 concordant, none discordant; 7 of 10
    # pairs differ in value, 6 in outcome: 4 / sqrt(42).
    got = outcome(numbers(0.5, 0.9, 0.1, 0.5, 0.5), np.array([True, True, False, False, False]))
    assert got.auc == pytest.approx(5 / 6, rel=1e-15)
    assert got.kendall == pytest.approx(4 / math.sqrt(42), rel=1e-15)


def test_the_published_example() -> None:
    # R package statpsych, ci.spear: the example of its help page, with the values it prints.
    y = numbers(21, 4, 9, 12, 35, 18, 10, 22, 24, 1, 6, 8, 13, 16, 19)
    x = numbers(67, 28, 30, 28, 52, 40, 25, 37, 44, 10, 14, 20, 28, 40, 51)
    got = outcome(y, x)
    assert got.spearman == pytest.approx(0.8699639, abs=5e-8)
    assert got.ci_low == pytest.approx(0.5840951, abs=5e-8)
    assert got.ci_high == pytest.approx(0.9638297, abs=5e-8)


# --- against SciPy ---


@FEW
@given(st.data(), st.integers(2, 60))
def test_as_scipy_on_anything(data: st.DataObject, n: int) -> None:
    few = st.integers(-3, 3).map(float)
    any_number = st.floats(allow_nan=False, allow_infinity=False)
    columns = [
        data.draw(st.lists(st.one_of(few, any_number), min_size=n, max_size=n)) for _ in "xy"
    ]
    x, y = (numbers(*values) for values in columns)
    got = outcome(x, y)
    if len(set(columns[0])) == 1 or len(set(columns[1])) == 1:
        assert got.spearman is got.kendall is None
        return
    # Spearman is Pearson's of midranks; SciPy's own spearmanr is that.
    assert got.spearman == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert got.kendall == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize("n", [10, 400, 5000])
@pytest.mark.parametrize("levels", [2, 6, 100_000])
def test_as_scipy_on_what_measures_give(n: int, levels: int) -> None:
    rng = np.random.default_rng(RNG_SEED + n + levels)
    values = np.round(rng.beta(0.7, 1.8, n) * (levels - 1)) / (levels - 1)
    yes = rng.random(n) < 0.2 + 0.6 * values
    got = outcome(values, yes)
    assert got.spearman == pytest.approx(stats.spearmanr(values, yes).statistic, abs=1e-12)
    assert got.kendall == pytest.approx(stats.kendalltau(values, yes).statistic, abs=1e-12)
    u = stats.mannwhitneyu(values[yes], values[~yes]).statistic
    assert got.auc == pytest.approx(u / (yes.sum() * (~yes).sum()), abs=1e-12)


def test_infinite_values_have_a_place_too() -> None:
    got = outcome(numbers(-math.inf, 0, 1, math.inf, math.inf), numbers(1, 2, 3, 4, 5))
    again = outcome(numbers(-9, 0, 1, 9, 9), numbers(1, 2, 3, 4, 5))
    assert got == again


# --- laws ---

PAIRS = st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 1)), min_size=4, max_size=30)


@FEW
@given(PAIRS)
def test_laws(pairs: list[tuple[int, int]]) -> None:
    x, y = (numbers(*column) for column in zip(*pairs, strict=True))
    got = outcome(x, y)
    flipped = outcome(-x, y)
    assert outcome(np.exp(x), y) == got  # any rising function of the values
    order = np.random.default_rng(1).permutation(len(x))
    shuffled = outcome(x[order], y[order])
    if got.spearman is None or got.kendall is None:
        assert got.reason
        assert shuffled == got
        return
    assert shuffled.spearman == pytest.approx(got.spearman, abs=1e-15)
    assert shuffled.kendall == got.kendall
    assert shuffled.auc == got.auc
    assert flipped.spearman == pytest.approx(-got.spearman, abs=1e-15)
    assert flipped.kendall == -got.kendall
    assert got.auc is not None
    assert flipped.auc == pytest.approx(1 - got.auc, abs=1e-15)
    assert outcome(y, x).spearman == pytest.approx(got.spearman, abs=1e-15)
    assert outcome(y, x).kendall == got.kendall
    # All three are of one sign, for a yes or no: each is a difference of the same mean midranks.
    assert np.sign(round(got.spearman, 12)) == np.sign(got.kendall) == np.sign(got.auc - 0.5)
    if got.ci_low is not None and got.ci_high is not None:
        assert -1 < got.ci_low < got.spearman < got.ci_high < 1
    counted = [(a > b) + (a == b) / 2 for a, yes in pairs if yes for b, no in pairs if not no]
    assert got.auc == pytest.approx(sum(counted) / len(counted), abs=1e-15)


# --- where there is none ---


def test_queries_that_lack_either_are_left_out() -> None:
    full = outcome(numbers(1, 2, 3, 4, 5), numbers(1, 0, 1, 1, 0))
    nan = math.nan
    holed = outcome(numbers(1, nan, 2, 3, 9, 4, 5), numbers(1, 1, 0, 1, nan, 1, 0))
    assert holed == full
    assert full.n == 5


NO = numbers()


@pytest.mark.parametrize(
    ("values", "outcomes", "reason"),
    [
        (NO, NO, "no query has both"),
        (numbers(math.nan), numbers(1), "no query has both"),
        (numbers(1), numbers(1), "one query has no order"),
        (numbers(2, 2, 2, 2), numbers(1, 2, 3, 4), "all values are equal"),
        (numbers(1, 2, 3, 4), numbers(3, 3, 3, 3), "all outcomes are equal"),
        (numbers(1, 2, 3, 4), numbers(1, 1, 1, 1), "all outcomes are equal"),
        (numbers(0.0, -0.0), numbers(1, 2), "all values are equal"),
    ],
)
def test_no_correlation_and_the_reason(
    values: np.ndarray, outcomes: np.ndarray, reason: str
) -> None:
    n = 0 if reason == "no query has both" else len(values)
    assert outcome(values, outcomes) == Correlation(n, None, None, None, None, None, reason)


def test_equal_values_part_yes_from_no_half_the_time() -> None:
    got = outcome(numbers(7, 7, 7), numbers(0, 1, 1))
    assert (got.spearman, got.auc, got.reason) == (None, 0.5, "all values are equal")


@pytest.mark.parametrize("outcomes", [numbers(1, 2, 1, 2), numbers(0, 1, 0.5, 1)])
def test_only_0_and_1_are_no_and_yes(outcomes: np.ndarray) -> None:
    assert outcome(numbers(1, 2, 3, 4), outcomes).auc is None


def test_full_agreement_has_no_interval() -> None:
    rng = np.random.default_rng(RNG_SEED)
    for n in (5, 77, 1000):
        values = rng.integers(0, n // 2, n).astype(float)
        for sign in (1, -1):
            got = outcome(values, sign * values**3)
            assert (got.spearman, got.kendall) == (sign, sign)
            assert got.ci_low is got.ci_high is None
            assert got.reason == "the two orders agree (or disagree) in every pair"


def test_three_queries_have_no_interval() -> None:
    got = outcome(numbers(1, 2, 3), numbers(1, 3, 2))
    assert (got.spearman, got.kendall) == pytest.approx((0.5, 1 / 3), rel=1e-15)
    assert (got.ci_low, got.reason) == (None, "an interval of a correlation needs 4 queries")
    assert spearman_interval(0.5, 3) == Interval(None, None, got.reason)
    assert spearman_interval(0.5, 4).low is not None


# --- the truth ---


@pytest.mark.deep  # a simulation; by hand: above
def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    # Pairs of normal numbers with correlation rho have Spearman 6/pi asin(rho/2) in the whole
    # population (Pearson 1907). 2000 samples at 95 % have a standard error of .005. Fisher's own
    # variance, 1 / (n - 3), would hold it too rarely: the simulation is able to tell.
    rng, rho, n, count = np.random.default_rng(RNG_SEED), 0.85, 40, 2000
    truth = 6 / math.pi * math.asin(rho / 2)
    held = held_by_fisher = 0
    for _ in range(count):
        x, noise = rng.normal(size=(2, n))
        got = outcome(x, rho * x + math.sqrt(1 - rho**2) * noise)
        assert got.spearman is not None
        assert got.ci_low is not None
        assert got.ci_high is not None
        held += got.ci_low <= truth <= got.ci_high
        off = abs(math.atanh(got.spearman) - math.atanh(truth))
        held_by_fisher += off <= 1.959964 / math.sqrt(n - 3)
    assert 0.938 < held / count < 0.972
    assert held_by_fisher / count < 0.938


def test_a_lower_confidence_holds_it_more_rarely() -> None:
    wide, narrow = spearman_interval(0.3, 50), spearman_interval(0.3, 50, confidence=0.8)
    assert wide.low is not None
    assert narrow.low is not None
    # In z the widths are as the normal quantiles, 1.959964 and 1.281552.
    widths = [math.atanh(i.high or 0) - math.atanh(i.low or 0) for i in (wide, narrow)]
    assert widths[0] / widths[1] == pytest.approx(1.959964 / 1.281552, rel=1e-6)


# --- cost ---


def test_scipy_is_not_loaded() -> None:
    asks = "import sys, karat.stats.correlation; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asks], check=False).returncode == 0


def test_pairs_are_not_counted_one_by_one() -> None:
    # 50,000 queries have 1.25 thousand million pairs: as a table of them, 10 GB and more.
    rng = np.random.default_rng(RNG_SEED)
    started = time.process_time()
    got = outcome(rng.random(50_000), rng.random(50_000))
    assert time.process_time() - started < 2
    assert got.kendall == pytest.approx(0, abs=0.02)  # its standard error is 2/3 / sqrt(n) = .003
