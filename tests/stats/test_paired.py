"""Paired tests against SciPy's, against every arrangement, and on runs that are alike."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.errors import UsageError
from karat.stats import paired, resample, t_interval
from karat.stats.paired import (
    bootstrap,
    equivalence,
    non_inferiority,
    randomisation,
    sign_test,
    t_test,
    wilcoxon,
)

EIGHTHS = st.integers(-8, 8).map(lambda k: k / 8)
FEW = st.lists(EIGHTHS, min_size=1, max_size=9)


def sample(n: int, shift: float = 0.0, seed: int = 20_260_101) -> np.ndarray:
    return np.random.default_rng(seed).normal(shift, 1, n)


# --- randomisation ---


def every_arrangement(difference: np.ndarray, weights: np.ndarray) -> float:
    """Signs one by one; sums of eighths times whole weights are exact."""
    product = (difference * weights).tolist()
    seen = abs(sum(product))
    signs = itertools.product([1, -1], repeat=len(product))
    beyond = [abs(sum(s * v for s, v in zip(row, product, strict=True))) >= seen for row in signs]
    return sum(beyond) / len(beyond)


@given(FEW, st.data())
def test_exact_is_every_arrangement(values: list[float], data: st.DataObject) -> None:
    difference, size = np.array(values), len(values)
    weights = data.draw(st.lists(st.integers(1, 5), min_size=size, max_size=size))
    weight = np.array(weights, np.float64)
    found = randomisation(difference, seed=0, weights=weight)
    assert float(found) == every_arrangement(difference, weight)
    assert float(randomisation(difference, seed=0)) == every_arrangement(difference, np.ones(size))


def test_exact_as_scipys() -> None:
    difference = sample(12, 0.4)
    result = stats.permutation_test(
        (difference,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert float(randomisation(difference, seed=0)) == pytest.approx(result.pvalue, abs=1e-12)


def test_sums_that_tie_but_for_rounding_count() -> None:
    # .1 + .2 - .3 is 0 but comes out as 5e-17: no arrangement is nearer to 0.
    assert float(randomisation(np.array([0.1, 0.2, -0.3]), seed=0)) == 1.0
    # Only +++ and --- are as far as .6.
    assert float(randomisation(np.array([0.1, 0.2, 0.3]), seed=0)) == 2 / 8
    # Seen: .3. The two of .3 make ±.6 in 8 of 16 arrangements, which stay beyond .3 with whatever
    # .2 and .1 make; in the other 8 they make 0, and .2 and .1 make ±.3 in half: 8 + 4.
    assert float(randomisation(np.array([0.3, 0.2, 0.1, -0.3]), seed=0)) == 12 / 16


def test_drawn_with_ties_is_as_exact() -> None:
    # 20 queries of ±.1, 14 up and 6 down: |sum| >= .8 is the binomial's two tails. Drawn 20,000
    # times, the share has an error of .0023.
    difference = np.where(np.arange(20) < 14, 0.1, -0.1)
    expected = stats.binomtest(14, 20).pvalue
    found = float(randomisation(difference, resamples=20_000, seed=3))
    assert found == pytest.approx(expected, abs=0.01)


def test_few_that_differ_are_exact_among_many_that_do_not() -> None:
    difference = np.zeros(500)
    difference[[3, 77, 130, 420]] = [0.5, 0.25, 0.125, 1.0]
    assert float(randomisation(difference, seed=0)) == 2 / 16


def test_drawn_is_near_the_truth_and_never_0() -> None:
    difference = sample(13, 0.5)
    signs = np.array(list(itertools.product([1, -1], repeat=13)))
    exact = float((np.abs(signs @ difference) >= abs(difference.sum()) - 1e-9).mean())
    found = float(randomisation(difference, resamples=40_000, seed=1))
    assert found == pytest.approx(exact, abs=4 * math.sqrt(exact / 40_000))
    assert float(randomisation(np.full(100, 0.1), resamples=999, seed=0)) == 1 / 1000


def test_columns_share_their_arrangements_and_change_nothing() -> None:
    columns = np.column_stack([sample(90, 0.2, seed) for seed in range(6)])
    columns[8:, 4] = 0  # this one is exact
    columns[:, 5] = 0
    weights = np.random.default_rng(2).uniform(0.5, 2, 90)
    together = randomisation(columns, resamples=3000, seed=11, weights=weights)
    assert together.shape == (6,)
    alone = [
        float(randomisation(column, resamples=3000, seed=11, weights=weights))
        for column in columns.T
    ]
    assert together.tolist() == alone
    assert together[5] == 1.0


@pytest.mark.parametrize("block", [1, 640, 1 << 24])
def test_blocks_change_nothing(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = np.column_stack([sample(90, 0.2, seed) for seed in range(3)])
    expected = randomisation(columns, resamples=500, seed=4).tolist()
    monkeypatch.setattr(paired, "_BLOCK", block)
    assert randomisation(columns, resamples=500, seed=4).tolist() == expected


def test_seeds_repeat_and_differ() -> None:
    difference = sample(60, 0.2)
    first, again, other = (float(randomisation(difference, seed=s)) for s in (5, 5, 6))
    generator = float(randomisation(difference, seed=np.random.default_rng(5)))
    assert first == again == generator != other


def test_runs_that_are_alike_are_found_as_often_as_the_level_says() -> None:
    # 2000 columns whose signs are chance: an error of .005 at .05.
    columns = np.random.default_rng(9).exponential(1, (30, 2000))
    columns *= np.random.default_rng(10).choice([-1, 1], (30, 2000))
    p = randomisation(columns, resamples=1999, seed=0)
    for level in (0.01, 0.05, 0.2):
        error = math.sqrt(level * (1 - level) / 2000)
        assert float((p <= level).mean()) == pytest.approx(level, abs=4 * error)


def test_no_queries_and_no_resamples() -> None:
    assert math.isnan(float(randomisation(np.array([]), seed=0)))
    assert np.isnan(randomisation(np.zeros((0, 3)), seed=0)).all()
    with pytest.raises(UsageError, match="0 resamples"):
        randomisation(np.ones(3), resamples=0, seed=0)


# --- the bootstrap ---


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("stratified", [False, True])
def test_the_bootstrap_is_a_loop_over_t(weighed: bool, stratified: bool) -> None:
    # Each resample written out, and its t by t_test: (c + 1) / (B + 1) of those as far as seen.
    difference = sample(24, 0.2)
    weights = np.random.default_rng(1).uniform(0.5, 3, 24) if weighed else None
    strata = np.repeat([4, 2, 9], [10, 8, 6]) if stratified else None
    difference += 0 if strata is None else strata / 10
    shifted = difference - np.average(difference, weights=weights)
    seen = t_test(difference, weights, strata).statistic
    assert seen is not None
    beyond = 0
    for row in resample(24, 300, np.random.default_rng(5), strata).astype(int):
        each = [None if of is None else np.repeat(of, row) for of in (shifted, weights, strata)]
        t = t_test(*each).statistic  # type: ignore[arg-type]
        assert t is not None
        beyond += abs(t) >= abs(seen)
    found = bootstrap(difference, resamples=300, seed=5, weights=weights, strata=strata)
    assert float(found) == (beyond + 1) / 301
    assert 1 < beyond < 299


@given(st.integers(2, 30), st.integers(0, 1000), st.integers(-20, 20), st.booleans())
def test_laws_of_the_bootstrap(n: int, seed: int, power: int, weighed: bool) -> None:
    rng = np.random.default_rng(seed)
    difference = rng.integers(-3, 5, (n, 3)) / 4
    weights = rng.integers(1, 4, n).astype(np.float64) if weighed else None
    p = bootstrap(difference, resamples=99, seed=seed, weights=weights)
    for times in (-1.0, 2.0**power, 0.3):
        again = bootstrap(times * difference, resamples=99, seed=seed, weights=weights)
        np.testing.assert_array_equal(again, p)
    doubled = None if weights is None else 2 * weights
    again = bootstrap(difference, resamples=99, seed=seed, weights=doubled)
    np.testing.assert_array_equal(again, p)
    for column, found in zip(difference.T, p, strict=True):
        assert math.isnan(found) == (t_test(column, weights).reason not in ("", "identical"))
        assert math.isnan(found) or 0 < found <= 1


@pytest.mark.parametrize("block", [1, 640, 1 << 24])
def test_blocks_and_columns_change_nothing_in_the_bootstrap(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = np.column_stack([sample(90, 0.2, seed) for seed in range(3)])
    strata = np.arange(90) % 4
    alone = [float(bootstrap(c, resamples=500, seed=4, strata=strata)) for c in columns.T]
    monkeypatch.setattr(paired, "_BLOCK", block)
    assert bootstrap(columns, resamples=500, seed=4, strata=strata).tolist() == alone
    assert bootstrap(columns, resamples=500, seed=5, strata=strata).tolist() != alone


def test_the_bootstrap_of_many_is_near_t() -> None:
    # Of 300 normal differences t is exact. The share of 20,000 has an error of .0035 at most, and
    # what the sample is not normal by adds some.
    columns = np.column_stack([sample(300, shift) for shift in (-0.05, 0.05, 0.1, 0.15)])
    expected = [t_test(column).p for column in columns.T]
    found = bootstrap(columns, resamples=20_000, seed=0)
    assert found == pytest.approx(expected, abs=0.02)


@pytest.mark.deep  # a level
def test_the_bootstrap_finds_runs_that_are_alike_as_often_as_the_level_says() -> None:
    # 2000 columns of 40 normal differences: an error of .005 at .05. Few queries cost a little.
    columns = np.random.default_rng(9).normal(0, 1, (40, 2000))
    p = bootstrap(columns, resamples=999, seed=0)
    for level in (0.01, 0.05, 0.2):
        error = math.sqrt(level * (1 - level) / 2000)
        assert float((p <= level).mean()) == pytest.approx(level, abs=4 * error + level / 10)


def test_where_few_queries_differ_the_bootstrap_finds_nothing() -> None:
    # A resample misses all two with a chance of (1 - 2/50)^50 = .13, and is then without spread.
    difference = np.zeros(50)
    difference[[7, 30]] = 0.5
    assert float(bootstrap(difference, resamples=2000, seed=0)) > 0.1


def test_what_the_bootstrap_cannot_tell() -> None:
    assert float(bootstrap(np.zeros(30), seed=0)) == 1.0  # as randomisation says
    assert float(bootstrap(np.array([0.1 + 0.2 - 0.3, 0.0]), seed=0)) == 1.0
    for nothing in (np.array([]), np.array([0.4]), np.full(9, 0.4), np.array([0.3, 0.1 + 0.2])):
        assert math.isnan(float(bootstrap(nothing, resamples=9, seed=0)))
    mixed = np.column_stack([np.zeros(9), np.full(9, 0.4), sample(9, 1)])
    one, nan, some = bootstrap(mixed, resamples=99, seed=0).tolist()
    assert (one, math.isnan(nan)) == (1.0, True)
    assert some < 1
    with pytest.raises(UsageError, match="0 resamples"):
        bootstrap(np.ones(3), resamples=0, seed=0)


# --- Student's t ---


@pytest.mark.parametrize("n", [2, 3, 10, 31, 400, 5000])
@pytest.mark.parametrize("shift", [0.0, 0.1, 1.0, 5.0])
def test_t_is_scipys(n: int, shift: float) -> None:
    difference = sample(n, shift)
    expected = stats.ttest_1samp(difference, 0)
    found = t_test(difference)
    assert (found.name, found.n, found.reason) == ("t", n, "")
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-8, abs=1e-300)


@given(st.integers(3, 40), st.integers(0, 1000), st.floats(0.5, 0.999), st.booleans())
def test_t_finds_what_the_interval_leaves_out(
    n: int, seed: int, confidence: float, stratified: bool
) -> None:
    rng = np.random.default_rng(seed)
    difference, weights = rng.normal(0.3, 1, n), rng.uniform(0.2, 3, n)
    strata = rng.integers(0, 4, n) if stratified else None
    span = t_interval(difference, weights, strata, confidence)
    found = t_test(difference, weights, strata)
    if span.low is None or span.high is None:
        assert (found.p, found.reason) == (None, span.reason)
        return
    assert found.p is not None
    assert (found.p < 1 - confidence) == (span.low > 0 or span.high < 0)


# --- Wilcoxon ---


@pytest.mark.parametrize("n", [1, 2, 5, 12, 24, 25])
@pytest.mark.parametrize("shift", [0.0, 0.3, 2.0])
def test_wilcoxon_exact_is_scipys(n: int, shift: float) -> None:
    difference = sample(n, shift, n)
    expected = stats.wilcoxon(difference, method="exact")
    found = wilcoxon(np.append(difference, [0.0, 1e-17]))  # zeros are dropped
    assert (found.statistic, found.n) == (expected.statistic, n)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-12)


@pytest.mark.parametrize("n", [26, 60, 1000])
def test_wilcoxon_of_many_is_scipys(n: int) -> None:
    difference = sample(n, 0.2)
    expected = stats.wilcoxon(difference, method="asymptotic", correction=True)
    found = wilcoxon(difference)
    assert found.statistic == expected.statistic
    assert found.p == pytest.approx(expected.pvalue, rel=1e-12)


@given(st.lists(EIGHTHS, min_size=2, max_size=60))
def test_wilcoxon_with_ties_is_scipys(values: list[float]) -> None:
    difference = np.array(values)
    sizes = np.abs(difference[difference != 0])
    if len(sizes) == 0:
        assert wilcoxon(difference).reason == "identical"
        return
    tied = len(set(sizes.tolist())) < len(sizes)
    settings = {"method": "asymptotic", "correction": True} if tied else {"method": "exact"}
    expected = stats.wilcoxon(difference[difference != 0], **settings)
    found = wilcoxon(difference)
    assert found.statistic == expected.statistic
    assert found.p == pytest.approx(expected.pvalue, rel=1e-10)


def test_wilcoxon_by_hand() -> None:
    # Ranks 1 2 3 (4): the negative ones sum to 1. Of 16 subsets, {} and {1} sum to no more: 4/16.
    assert wilcoxon(np.array([-0.1, 0.2, 0.3, 0.4])).p == 4 / 16
    # Sizes that tie but for rounding tie: .1 + .2 and .3 share the rank 1.5.
    assert wilcoxon(np.array([0.1 + 0.2, -0.3, 0.5])).statistic == 1.5


# --- signs ---


@pytest.mark.parametrize(
    ("wins", "losses"),
    [(1, 0), (0, 1), (5, 5), (9, 1), (30, 12), (1000, 900), (51_000, 50_000), (0, 60)],
)
def test_signs_are_scipys_binomial(wins: int, losses: int) -> None:
    difference = np.repeat([0.3, -0.2, 0.0, 1e-16], [wins, losses, 7, 2])
    found = sign_test(difference)
    assert (found.statistic, found.n) == (wins, wins + losses)
    expected = stats.binomtest(wins, wins + losses).pvalue
    assert found.p == pytest.approx(expected, rel=1e-9)
    assert found.p is not None
    assert found.p <= 1


# --- what cannot be tested ---


@pytest.mark.parametrize("test", [t_test, wilcoxon, sign_test])
def test_identical_runs_are_identical(test: object) -> None:
    for zeros in (np.zeros(30), np.zeros(1), np.array([0.1 + 0.2 - 0.3, 0.0])):
        found = test(zeros)  # type: ignore[operator]
        assert (found.p, found.statistic, found.reason) == (None, None, "identical")
    assert test(np.array([])).reason == "no query has a value"  # type: ignore[operator]


def test_t_needs_spread() -> None:
    assert t_test(np.array([0.4])).reason == "one query has no spread"
    assert t_test(np.full(9, 0.4)).reason == "all values are equal"
    assert t_test(np.array([0.3, 0.1 + 0.2, 0.3])).reason == "all values are equal"


@given(FEW)
def test_swapping_the_runs_changes_no_p(values: list[float]) -> None:
    difference = np.array(values)
    assert randomisation(difference, seed=0) == randomisation(-difference, seed=0)
    for test in (t_test, wilcoxon, sign_test):
        assert test(difference).p == test(-difference).p


# --- margins ---


def test_margins_as_statsmodels() -> None:
    # statsmodels 0.15.0: DescrStatsW(d).ttost_mean(-.05, .05), tconfint_mean(.1) and
    # ttest_mean(-.02, alternative="larger").
    difference = np.array([0.02, -0.01, 0.05, 0.0, 0.03, -0.02, 0.01, 0.04])
    found = equivalence(difference, 0.05)
    assert found.p == pytest.approx(0.002461902126100833, rel=1e-9)
    ends = (-0.001407532014744313, 0.03140753201474431)
    assert (found.low, found.high) == pytest.approx(ends, rel=1e-9)
    assert (found.name, found.margin, found.n, found.reason) == ("equivalence", 0.05, 8, "")
    found = non_inferiority(difference, 0.02)
    assert found.p == pytest.approx(0.002461902126100833, rel=1e-9)
    assert found.low == pytest.approx(ends[0], rel=1e-9)
    assert (found.name, found.high) == ("non-inferiority", None)


@given(st.integers(3, 40), st.integers(0, 500), st.floats(0.05, 2), st.floats(0.01, 0.3))
def test_p_and_interval_say_the_same(n: int, seed: int, margin: float, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    difference, weights, strata = rng.normal(0.1, 1, n), rng.uniform(0.2, 3, n), np.arange(n) % 2
    both = equivalence(difference, margin, weights, strata, alpha=alpha)
    span = t_interval(difference, weights, strata, confidence=1 - 2 * alpha)
    assert (both.low, both.high) == pytest.approx((span.low, span.high), rel=1e-9, abs=1e-12)
    assert both.p is not None
    assert both.low is not None
    assert both.high is not None
    assert (both.p < alpha) == (-margin < both.low and both.high < margin)
    one = non_inferiority(difference, margin, weights, strata, alpha=alpha)
    other = non_inferiority(-difference, margin, weights, strata, alpha=alpha)
    assert one.p is not None
    assert other.p is not None
    assert (one.p < alpha) == (both.low > -margin)
    assert both.p == pytest.approx(max(one.p, other.p), rel=1e-9)


@pytest.mark.deep  # a level
def test_a_difference_of_the_margin_is_called_equivalent_as_often_as_alpha_says() -> None:
    # 4000 samples whose true mean is the margin; an error of .0035.
    drawn = np.random.default_rng(6).normal(0.5, 0.4, (4000, 25))
    share = np.mean([equivalence(row, 0.5).p <= 0.05 for row in drawn])  # type: ignore[operator]
    assert share == pytest.approx(0.05, abs=0.014)


def test_margins_of_identical_runs() -> None:
    for test in (equivalence, non_inferiority):
        found = test(np.zeros(12), 0.1)
        assert (found.p, found.low, found.high, found.reason) == (None, None, None, "identical")


@pytest.mark.parametrize("margin", [0.0, -1.0, math.nan, math.inf])
def test_a_margin_is_above_0(margin: float) -> None:
    with pytest.raises(UsageError, match="is not above 0"):
        equivalence(sample(9), margin)
    with pytest.raises(UsageError, match="is not above 0"):
        non_inferiority(sample(9), margin)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_alpha_lies_below_a_half(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha"):
        equivalence(sample(9), 0.1, alpha=alpha)
