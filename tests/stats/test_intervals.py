"""Intervals against SciPy, against formulas, and against the truth they should hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from karat.stats import Interval, bca_interval, intervals, mean, resample, t_interval, t_quantile
from karat.stats.intervals import bca_intervals, estimate, pooled_strata, resampled_estimates

RNG_SEED = 20_260_101


def sample(n: int, seed: int = RNG_SEED) -> np.ndarray:
    """Values as measures give them: skewed, between 0 and 1."""
    return np.random.default_rng(seed).beta(0.7, 1.8, n)


# --- Student's t ---


@pytest.mark.parametrize("n", [2, 3, 25, 400])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_plain_case_is_scipys(n: int, confidence: float) -> None:
    values = sample(n)
    expected = stats.t.interval(confidence, n - 1, loc=values.mean(), scale=stats.sem(values))
    got = t_interval(values, confidence=confidence)
    assert (got.low, got.high) == pytest.approx(expected, rel=1e-10)
    assert got.reason == ""


def test_equal_weights_and_one_stratum_are_the_plain_case() -> None:
    values = sample(30)
    plain = t_interval(values)
    again = t_interval(values, np.full(30, 2.5), np.full(30, 7))
    assert (again.low, again.high) == pytest.approx((plain.low, plain.high), rel=1e-12)


def test_weights_go_by_the_linearised_ratio() -> None:
    # Cochran 1977, 6.3: the weighted mean m = sum w y / sum w is a ratio of two means, and its
    # variance is n/(n-1) sum (w (y - m) / sum w)^2; the pulls w (y - m) add up to 0.
    values, weights = sample(40), np.random.default_rng(1).uniform(0.5, 4, 40)
    centre = float((weights * values).sum() / weights.sum())
    pull = weights * (values - centre) / weights.sum()
    reach = t_quantile(0.975, 39) * math.sqrt(40 / 39 * float((pull**2).sum()))
    got = t_interval(values, weights)
    assert (got.low, got.high) == pytest.approx((centre - reach, centre + reach), rel=1e-11)


def test_strata_go_by_the_stratified_mean() -> None:
    # Cochran 1977, 5.4 without the finite population correction: with shares W_h = n_h / n the
    # variance of the mean is the sum of W_h^2 s_h^2 / n_h, and n - H degrees of freedom are left.
    values = np.concatenate([sample(12, 1), sample(20, 2) + 3, sample(8, 3) - 2])
    strata = np.repeat([5, 1, 9], [12, 20, 8])
    variance = sum(
        (np.sum(strata == h) / 40) ** 2 * values[strata == h].var(ddof=1) / np.sum(strata == h)
        for h in (1, 5, 9)
    )
    reach = t_quantile(0.975, 40 - 3) * math.sqrt(variance)
    got = t_interval(values, strata=strata)
    expected = (values.mean() - reach, values.mean() + reach)
    assert (got.low, got.high) == pytest.approx(expected, rel=1e-11)
    # What lies between strata is no uncertainty.
    plain = t_interval(values)
    assert got.high - got.low < (plain.high - plain.low) / 3
    # Rows in another order, the same interval.
    order = np.random.default_rng(4).permutation(40)
    shuffled = t_interval(values[order], strata=strata[order])
    assert (shuffled.low, shuffled.high) == pytest.approx(expected, rel=1e-11)


def test_weighted_strata_are_the_textbook_case_too() -> None:
    # Sampled at rates that differ: weight N_h / n_h. The mean is sum (N_h / N) mean_h and its
    # variance sum (N_h / N)^2 s_h^2 / n_h (Cochran 5.4), because weights are equal in a stratum.
    sizes, population = (10, 15), (900.0, 100.0)
    values = np.concatenate([sample(10, 1), sample(15, 2) + 1])
    strata = np.repeat([0, 1], sizes)
    weights = np.repeat([900 / 10, 100 / 15], sizes)
    share = np.array(population) / 1000
    means = [values[strata == h].mean() for h in (0, 1)]
    variance = sum(share[h] ** 2 * values[strata == h].var(ddof=1) / sizes[h] for h in (0, 1))
    centre = float(share @ means)
    reach = t_quantile(0.975, 23) * math.sqrt(variance)
    got = t_interval(values, weights, strata)
    assert (got.low, got.high) == pytest.approx((centre - reach, centre + reach), rel=1e-11)


def test_strata_of_one_are_pooled() -> None:
    values = np.array([0.1, 0.3, 0.7, 0.2, 0.9])
    pooled = t_interval(values, strata=np.array([0, 0, 0, 1, 1]))
    got = t_interval(values, strata=np.array([4, 4, 4, 7, 8]))
    assert (got.low, got.high) == pytest.approx((pooled.low, pooled.high), rel=1e-12)
    # Every stratum holds one: the plain case.
    plain = t_interval(values)
    got = t_interval(values, strata=np.arange(5))
    assert (got.low, got.high) == pytest.approx((plain.low, plain.high), rel=1e-12)


def test_a_single_stratum_of_one_joins_the_smallest_other() -> None:
    # On its own it would add a value and no variance, and the interval would be too narrow.
    values = np.array([0.1, 0.3, 0.7, 0.2, 0.5, 0.9])
    joined = t_interval(values, strata=np.array([0, 0, 0, 1, 1, 1]))
    got = t_interval(values, strata=np.array([0, 0, 0, 1, 1, 2]))
    assert (got.low, got.high) == pytest.approx((joined.low, joined.high), rel=1e-12)


NOTHING = np.array([])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (NOTHING, "no query has a value"),
        (np.array([0.5]), "one query has no spread"),
        (np.array([0.1, 0.1, 0.1]), "all values are equal"),
        (np.zeros(40), "all values are equal"),
    ],
)
def test_no_interval_and_the_reason(values: np.ndarray, reason: str) -> None:
    assert t_interval(values) == Interval(None, None, reason)
    drawn = np.ones((10, len(values)))
    assert bca_interval(values, drawn) == Interval(None, None, reason)


def test_strata_without_any_spread_within_have_no_interval() -> None:
    values, strata = np.array([0.1, 0.1, 0.1, 1.0, 1.0]), np.array([0, 0, 0, 1, 1])
    reason = "all values of a stratum are equal, in every stratum"
    assert t_interval(values, strata=strata) == Interval(None, None, reason)
    drawn = resample(5, 50, np.random.default_rng(0), strata)
    assert bca_interval(values, drawn).low is None


def test_two_queries_have_one_degree_of_freedom() -> None:
    # s^2 / n = .5 / 2, so 0.5 ± 12.7062 x 0.5; with one degree of freedom t is a tangent.
    got = t_interval(np.array([0.0, 1.0]))
    assert got.low == pytest.approx(0.5 - math.tan(math.pi * 0.475) / 2, rel=1e-11)


# --- the bootstrap ---


def test_every_resample_has_as_many_queries() -> None:
    rng = np.random.default_rng(RNG_SEED)
    drawn = resample(30, 200, rng)
    assert drawn.shape == (200, 30)
    assert (drawn.sum(axis=1) == 30).all()
    assert (drawn >= 0).all()
    assert (drawn == drawn.round()).all()
    # Each query is drawn once on average: the mean of 200 counts of variance 29/30 lies within
    # five standard errors.
    assert (np.abs(drawn.mean(axis=0) - 1) < 5 * math.sqrt(29 / 30 / 200)).all()


def test_strata_are_resampled_each_on_its_own() -> None:
    strata = np.array([3, 1, 3, 1, 1, 3, 3, 1])
    drawn = resample(8, 100, np.random.default_rng(RNG_SEED), strata)
    for stratum in (1, 3):
        assert (drawn[:, strata == stratum].sum(axis=1) == 4).all()


def test_queries_are_drawn_evenly_within_strata() -> None:
    # 20,000 counts of each: the chi-squared of all cells at once, 8 less 2 degrees of freedom.
    strata = np.array([3, 1, 3, 1, 1, 3, 3, 3])
    drawn = resample(8, 20_000, np.random.default_rng(RNG_SEED), strata).sum(axis=0)
    assert stats.chi2.sf(float(((drawn - 20_000) ** 2 / 20_000).sum()), 6) > 0.001
    # As often together as chance says: the variance of a count is n/n x (1 - 1/n) = 4/5.
    counts = resample(5, 20_000, np.random.default_rng(RNG_SEED))
    assert counts.var(axis=0) == pytest.approx(np.full(5, 0.8), abs=0.04)


@pytest.mark.parametrize("block", [1, 50, 1 << 20])
def test_resamples_drawn_in_parts_are_those_drawn_at_once(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    strata = np.arange(9) % 2
    whole = resample(9, 40, np.random.default_rng(RNG_SEED), strata)
    monkeypatch.setattr("karat.stats.intervals._BLOCK", block)
    rng = np.random.default_rng(RNG_SEED)
    parts = [resample(9, count, rng, strata) for count in (1, 24, 0, 15)]
    assert (np.vstack(parts) == whole).all()
    assert resample(0, 3, rng).shape == (3, 0)


def test_the_same_seed_gives_the_same_resamples() -> None:
    one, two = (resample(20, 50, np.random.default_rng(seed)) for seed in (1, 1))
    assert (one == two).all()
    assert (one != resample(20, 50, np.random.default_rng(2))).any()
    values = sample(20)
    assert bca_interval(values, one) == bca_interval(values, two)


@pytest.mark.parametrize("n", [15, 60])
def test_bca_is_scipys(n: int) -> None:
    values = sample(n)
    count = 20_000
    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=count, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    got = bca_interval(values, resample(n, count, np.random.default_rng(2)))
    # Both ends are quantiles of 20,000 random means: their own standard error is about
    # sqrt(.025 x .975 / 20,000) / density = .02 standard errors of the mean; allow five of both.
    allowed = 5 * math.sqrt(2) * 0.02 * values.std(ddof=1) / math.sqrt(n)
    assert got.low == pytest.approx(expected.low, abs=allowed)
    assert got.high == pytest.approx(expected.high, abs=allowed)
    assert got.low < mean(values) < got.high
    # It leans to the long tail, as the t interval cannot.
    assert got.high - mean(values) > mean(values) - got.low


def test_bca_with_weights_is_the_interval_of_the_weighted_mean() -> None:
    values, weights = sample(50), np.random.default_rng(3).uniform(0.5, 2, 50)
    drawn = resample(50, 5000, np.random.default_rng(4))
    got, plain = bca_interval(values, drawn, weights), t_interval(values, weights)
    assert got.low < mean(values, weights) < got.high
    # As wide as the linearised one, within a fifth.
    assert (got.high - got.low) / (plain.high - plain.low) == pytest.approx(1, abs=0.2)
    doubled = bca_interval(values, drawn, weights * 2)
    assert (doubled.low, doubled.high) == pytest.approx((got.low, got.high), rel=1e-12)


def test_bca_looks_only_at_resamples_that_hold_a_value() -> None:
    drawn = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    got = bca_interval(np.array([0.0, 1.0]), drawn)
    assert got.low is not None
    assert 0 <= got.low <= got.high <= 1


def test_all_resamples_on_one_side_have_no_interval() -> None:
    values = np.array([0.0, 0.3, 1.0])  # means 0 and .1, both below .4333
    got = bca_interval(values, np.array([[3.0, 0.0, 0.0], [2.0, 1.0, 0.0]]))
    assert got == Interval(None, None, "every resample is on one side of the mean")
    got = bca_interval(values, np.ones((5, 3)))
    assert got == Interval(None, None, "every resample has the same mean")


def test_bca_of_columns_is_that_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karat.stats.intervals._COLUMNS", 3)
    rng = np.random.default_rng(RNG_SEED)
    columns = rng.normal(0.1, 1, (40, 8))
    columns[:, 2] = 0.5
    columns[:, 5] = rng.integers(-5, 6, 40) / 10  # resamples whose mean is the mean itself
    weights, strata = rng.uniform(0.5, 2, 40), np.arange(40) % 3
    for weighing in ((None, None), (weights, None), (None, strata), (weights, strata)):
        drawn = resample(40, 400, np.random.default_rng(1), weighing[1])
        together = bca_intervals(columns, drawn, *weighing)
        alone = [bca_interval(column, drawn, *weighing) for column in columns.T]
        assert together[2] == alone[2] == Interval(None, None, "all values are equal")
        for k in (0, 1, 3, 4, 5, 6, 7):
            ends = (together[k].low, together[k].high)
            assert ends == pytest.approx((alone[k].low, alone[k].high), rel=1e-9)
    assert bca_intervals(np.zeros((0, 2)), np.zeros((9, 0)))[1].reason == "no query has a value"
    assert bca_intervals(np.zeros((4, 0)), np.ones((9, 4))) == []


def test_bca_turns_with_the_sign_and_grows_with_the_size() -> None:
    # Means of tenths often are the mean itself but for rounding; they count half either way.
    values = np.random.default_rng(8).integers(-4, 7, 30) / 10
    drawn = resample(30, 999, np.random.default_rng(1))
    got, turned, thrice = bca_intervals(values[:, None] * [1, -1, 3], drawn)
    assert (turned.high, turned.low) == pytest.approx((-got.low, -got.high), rel=1e-9)
    assert (thrice.low, thrice.high) == pytest.approx((3 * got.low, 3 * got.high), rel=1e-9)


def test_bca_within_strata_knows_only_what_varies_there() -> None:
    values = np.concatenate([sample(30, 1), sample(30, 2) + 3])
    strata = np.repeat([0, 1], 30)
    drawn = resample(60, 4000, np.random.default_rng(2), strata)
    got, linear = bca_interval(values, drawn, None, strata), t_interval(values, strata=strata)
    assert (got.high - got.low) / (linear.high - linear.low) == pytest.approx(1, abs=0.1)
    # What the strata differ by is no skew: moved apart, the interval moves along.
    apart = bca_interval(values + 100 * strata, drawn, None, strata)
    assert (apart.low, apart.high) == pytest.approx((got.low + 50, got.high + 50), rel=1e-9)
    # A stratum of one has joined another, and leaves no gap behind.
    lone = np.append(strata[:-1], 7)
    drawn = resample(60, 500, np.random.default_rng(2), lone)
    assert bca_interval(values, drawn, None, lone).reason == ""


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("stratified", [False, True])
def test_estimates_of_resamples_are_those_of_the_rows_written_out(
    weighed: bool, stratified: bool
) -> None:
    values = np.column_stack([sample(20, 1), sample(20, 2) - 0.3])
    weights = np.random.default_rng(3).uniform(0.5, 2, 20) if weighed else None
    strata = np.repeat([0, 5, 7], [9, 6, 5]) if stratified else None
    drawn = resample(20, 60, np.random.default_rng(4), strata)
    means, variances = resampled_estimates(values, drawn, weights, strata)
    for row, found, squares in zip(drawn.astype(int), means, variances, strict=True):
        others = [None if of is None else np.repeat(of, row) for of in (weights, strata)]
        for k in (0, 1):
            expected = estimate(np.repeat(values[:, k], row), *others)
            assert not isinstance(expected, str)
            assert found[k] == pytest.approx(expected.centre, rel=1e-12)
            assert squares[k] == pytest.approx(expected.error**2, rel=1e-9)


def test_strata_of_one_query_are_pooled() -> None:
    assert pooled_strata(None, 3).tolist() == [0, 0, 0]
    same = pooled_strata(np.array([4, 4, 9, 9, 1, 2]), 6)
    assert same[0] == same[1] != same[2] == same[3] != same[4] == same[5] != same[0]
    joined = pooled_strata(np.array([4, 4, 4, 9, 9, 1]), 6)  # alone, it joins the smallest
    assert joined[5] == joined[4] == joined[3] != joined[0]


# --- the truth ---


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    # 400 samples of 50 queries from Beta(0.7, 1.8), whose mean is .7 / 2.5 = .28. If 95 % hold it,
    # 400 of them have a standard error of sqrt(.95 x .05 / 400) = .011; skew costs a little.
    rng = np.random.default_rng(RNG_SEED)
    drawn = resample(50, 500, rng)
    hits = {"t": 0, "bca": 0}
    for _ in range(400):
        values = rng.beta(0.7, 1.8, 50)
        for name, interval in (("t", t_interval(values)), ("bca", bca_interval(values, drawn))):
            assert interval.low is not None
            hits[name] += interval.low <= 0.28 <= interval.high
    assert 0.90 < hits["t"] / 400 < 0.985
    assert 0.89 < hits["bca"] / 400 < 0.985


def test_stratified_intervals_hold_the_truth_too() -> None:
    # Three strata with means .2, .5 and .8, sampled 10 each: truth .5. Ignoring strata would hold
    # it always; 300 samples at 95 % have a standard error of .0126.
    rng = np.random.default_rng(RNG_SEED + 1)
    strata = np.repeat([0, 1, 2], 10)
    hits = 0
    for _ in range(300):
        values = rng.normal(np.array([0.2, 0.5, 0.8])[strata], 0.1)
        interval = t_interval(values, strata=strata)
        assert interval.low is not None
        hits += interval.low <= 0.5 <= interval.high
    assert 0.90 < hits / 300 < 0.99


def test_a_share_has_the_interval_of_clopper_and_pearson() -> None:
    for hits, n in ((0, 10), (3, 10), (10, 10), (1, 500)):
        found = intervals.share_interval(hits / n, n)
        theirs = stats.binomtest(hits, n).proportion_ci(0.95, "exact")
        assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))


def test_the_effective_number_of_clusters() -> None:
    assert intervals.effective(np.full(7, 3.0)) == pytest.approx(7)
    assert intervals.effective(np.array([1000.0, 1.0])) == pytest.approx(1.002, abs=1e-5)
