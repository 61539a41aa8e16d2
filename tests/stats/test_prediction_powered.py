"""Means from people's and a machine's grades: vectors of ppi_py, and coverage by simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.stats.intervals import Interval
from karat.stats.prediction_powered import (
    Pairs,
    Powered,
    Stratum,
    best_weight,
    effective_after,
    effective_queries,
    mean_ideal,
    pair_terms,
    powered_mean,
    powered_pairs_mean,
    powered_ratio,
    weight_of_machine,
)
from karat.stats.student import t_quantile

Z = 1.959963984540054  # ppi_py's quantile at 95 %


def floats(*values):
    return np.array(values, dtype=np.float64)


# Points, λ and 95 % intervals of ppi_py 0.2.3 (ppi_mean_pointestimate, ppi_mean_ci), whose
# intervals use z and divide by n: so only its errors are compared, from our own parts.
V1 = Stratum(
    floats(1, 0, 1, 1, 0, 1, 0, 1),
    floats(0.9, 0.2, 0.8, 0.6, 0.3, 0.9, 0.4, 0.7),
    floats(0.8, 0.1, 0.7, 0.9, 0.2, 0.5, 0.6, 0.3, 0.95, 0.4, 0.85, 0.15),
)
DIFFERENCES = Stratum(
    floats(0.12, -0.05, 0.30, 0, 0.08, 0.21),
    floats(0.10, -0.02, 0.22, 0.05, 0.04, 0.25),
    floats(0.07, 0.11, -0.03, 0.19, 0.02, 0, 0.14, 0.06, -0.08, 0.09),
)
WRONG_WAY = Stratum(
    floats(0.2, 0.4, 0.6, 0.8), floats(0.9, 0.7, 0.4, 0.1), floats(0.5, 0.6, 0.7, 0.3, 0.2)
)


@pytest.mark.parametrize(
    ("sample", "lam", "point", "low"),
    [
        (V1, 0.0, 0.625, 0.2895261),
        (V1, 1.0, 0.5625, 0.31108931),
        (V1, 0.8172043011, 0.57392473, 0.32201978),
        (WRONG_WAY, 0.0, 0.5, 0.28086936),
        (WRONG_WAY, 1.0, 0.435, -0.1056757),
    ],
)
def test_points_and_errors_are_those_of_ppi_py(sample, lam, point, low):
    found = powered_mean([sample], lam=lam)
    assert found.estimate == pytest.approx(point, abs=1e-8)
    n, further = len(sample.human), len(sample.unjudged)
    theirs = np.var(sample.human - lam * sample.machine) / n + lam**2 * (
        np.var(sample.unjudged) / further
    )
    assert point - Z * math.sqrt(theirs) == pytest.approx(low, abs=1e-7)  # the vector is theirs
    # Ours: n - 1 and N - 1 in place of n and N, and t.
    ours = np.var(sample.human - lam * sample.machine, ddof=1) / n + lam**2 * (
        np.var(sample.unjudged, ddof=1) / further
    )
    assert found.interval.low < low
    rest = np.var(sample.human - lam * sample.machine, ddof=1) / n
    df = int(ours**2 / (ours**2 / (n - 1)))
    assert found.interval.low == pytest.approx(point - t_quantile(0.975, df) * math.sqrt(ours))
    assert rest <= ours


@pytest.mark.parametrize(
    ("sample", "lam", "point"),
    [
        (V1, 0.8172043011, 0.5739247312),
        (DIFFERENCES, 0.7974105858, 0.07039527),
        (WRONG_WAY, 0.0, 0.5),
    ],
)
def test_the_weight_is_that_of_ppi_py(sample, lam, point):
    assert weight_of_machine(sample.human, sample.machine, sample.unjudged) == pytest.approx(lam)
    assert powered_mean([sample]).estimate == pytest.approx(point, abs=1e-8)


def test_effective_queries():
    # ppi_power's figures for n = 50, N = 1000
    assert effective_queries(50, 1000, 0.7) == pytest.approx(93.75)
    assert effective_queries(50, 1000, 0.5) == pytest.approx(65.625)
    assert effective_queries(50, 1000, -0.9) == pytest.approx(50)


def test_effective_after_more_judging():
    # 50 of 1050 queries with rho .7 are worth 93.75 by the formula, and here 60 as measured. 1000
    # more of the machine: 50 · 2050 / (50 + .51 · 2000) = 95.794; 10 more of people, from those
    # that the machine graded: 60 · 1050 / (60 + .51 · 990) = 111.524.
    found = Powered(0.0, Interval(None, None), 1.0, 0.7, 60.0, 50, 1000)
    assert effective_after(found, machine_only=1000) == pytest.approx(60 * 95.794 / 93.75, rel=1e-5)
    assert effective_after(found, judged=10) == pytest.approx(60 * 111.524 / 93.75, rel=1e-5)
    assert effective_after(found) == pytest.approx(60)
    assert effective_after(replace(found, rho=None), judged=10) is None


def test_a_machine_that_says_nothing_changes_nothing():
    alone = Stratum(V1.human, np.zeros(8), np.zeros(12))
    found = powered_mean([alone])
    assert (found.lam, found.rho, found.effective) == (0.0, None, 8.0)
    assert found.estimate == pytest.approx(V1.human.mean())


def test_strata_are_weighted_and_their_freedom_is_that_of_satterthwaite():
    other = Stratum(WRONG_WAY.human, WRONG_WAY.machine, WRONG_WAY.unjudged, weight=1.0)
    head = Stratum(V1.human, V1.machine, V1.unjudged, weight=3.0)
    one, two, both = powered_mean([head]), powered_mean([other]), powered_mean([head, other])
    assert both.estimate == pytest.approx(0.75 * one.estimate + 0.25 * two.estimate)
    assert both.lam == pytest.approx(0.75 * one.lam + 0.25 * two.lam)

    def variance(found, n):
        return ((found.interval.high - found.estimate) / t_quantile(0.975, n - 2)) ** 2

    parts = 0.75**2 * variance(one, 8), 0.25**2 * variance(two, 4)
    df = int(sum(parts) ** 2 / (parts[0] ** 2 / 6 + parts[1] ** 2 / 2))
    reach = t_quantile(0.975, df) * math.sqrt(sum(parts))
    assert both.interval.high == pytest.approx(both.estimate + reach)


def test_too_few_queries_give_a_reason_and_no_interval():
    few = Stratum(V1.human[:2], V1.machine[:2], V1.unjudged)
    assert powered_mean([few]).interval.reason == "people judged 2 queries: too few"


# --- pairs ---

DISCOUNTS = 1 / np.log2(np.arange(2, 7))
# Own code with numpy, by the formulas of the difference estimator: five documents of four queries.
BY_PEOPLE = floats(3, 0, 1, 0, 2, 1, 1, 0, 0, 0, 2, 3, 0, 1, 0, 0, 0, 2, 0, 0)
BY_MACHINE = floats(3, 1, 1, 0, 1, 2, 1, 0, 1, 0, 2, 2, 1, 1, 0, 1, 0, 1, 0, 0)
JUDGED = [0, 4, 6, 7, 10, 11, 17, 18]


def four_queries():
    human = np.full(20, np.nan)
    human[JUDGED] = BY_PEOPLE[JUDGED]
    return Pairs(
        np.repeat(np.arange(4), 5), np.tile(DISCOUNTS, 4), BY_MACHINE, human, np.full(20, 0.4), 4
    )


@pytest.mark.parametrize(
    ("lam", "values", "mean", "low", "high"),
    [
        (
            0.0,
            (9.43426404, 1.57732438, 9.73197315, 2.5),
            5.8108903930,
            -1.1487058461,
            12.7704866321,
        ),
        (1.0, (5.48491458, 3.06160631, 5.76986045, 2.75), 4.2665953349, 1.7512934867, 6.78189718),
        (0.5, None, 5.0387428639, 0.3151046452, 9.7623810826),
    ],
)
def test_pairs_by_the_difference_estimator(lam, values, mean, low, high):
    own, added = pair_terms(four_queries())
    if values is not None:
        assert own + lam * added == pytest.approx(values, abs=1e-8)
    found = powered_pairs_mean(four_queries(), lam=lam)
    assert found.estimate == pytest.approx(mean, abs=1e-9)
    assert found.interval.low == pytest.approx(low, abs=1e-8)
    assert found.interval.high == pytest.approx(high, abs=1e-8)
    assert (found.judged, found.machine_only) == (8, 12)


def test_the_best_weight_of_pairs():
    assert best_weight(*pair_terms(four_queries())) == pytest.approx(1.5384821917)


def test_over_all_samples_the_mean_is_the_truth_whatever_the_machine_says():
    # V19: gains 7, 0, 3, 1, 0; two of five judged, each pair with chance 2/5. The true DCG is
    # 7/log2(2) + 3/log2(4) + 1/log2(5) = 8.9306765581; the machine alone gives 10.7796.
    gains, machine = floats(7, 0, 3, 1, 0), floats(7, 3, 3, 0, 1)
    values = {0.0: [], 1.0: []}
    for sample in combinations(range(5), 2):
        human = np.full(5, np.nan)
        human[list(sample)] = gains[list(sample)]
        pairs = Pairs(np.zeros(5, np.int64), DISCOUNTS, machine, human, np.full(5, 0.4), 1)
        own, added = pair_terms(pairs)
        for lam, found in values.items():
            found.append(float(own[0] + lam * added[0]))
    for found in values.values():
        assert np.mean(found) == pytest.approx(8.9306765581)
    assert np.std(values[1.0]) == pytest.approx(2.462, abs=5e-4)
    assert np.std(values[0.0]) == pytest.approx(8.157, abs=5e-4)
    assert float(DISCOUNTS @ machine) == pytest.approx(10.7796, abs=5e-5)


@given(st.lists(st.floats(-3, 3), min_size=3, max_size=12), st.floats(0.5, 2), st.floats(-1, 1))
def test_law_units_of_the_machine_do_not_matter(values, scale, shift):
    """λ has the inverse unit, while it is not limited; the estimate has none."""
    human = np.array(values)
    machine = human * 0.5 + np.linspace(-1, 1, len(values))
    unjudged = np.linspace(-2, 2, 9)
    own = weight_of_machine(human, machine, unjudged)
    other = weight_of_machine(human, machine * scale + shift, unjudged * scale + shift)
    if 0 < own < 1 and 0 < other < 1:
        one = powered_mean([Stratum(human, machine, unjudged)])
        two = powered_mean([Stratum(human, machine * scale + shift, unjudged * scale + shift)])
        assert two.estimate == pytest.approx(one.estimate)
        assert two.lam * scale == pytest.approx(one.lam)


JUDGES = {
    "good": lambda truth, rng: truth + rng.normal(0, 0.1, truth.shape),
    "poor": lambda truth, rng: rng.normal(0.5, 0.25, truth.shape) + 0.1 * truth,
    "adversarial": lambda truth, rng: 1 - truth + rng.normal(0, 0.05, truth.shape),
}


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("n", [10, pytest.param(20, marks=pytest.mark.deep), 50])
def test_intervals_hold_the_truth_and_are_hardly_wider_than_those_of_people(judge, n, deep):
    """Values of nDCG, shape Beta(2, 2); 200 further queries; 95 %: mean .5."""
    rounds = 10_000 if deep else 400
    rng = np.random.default_rng([n, list(JUDGES).index(judge)])
    held, width, alone = 0, 0.0, 0.0
    for _ in range(rounds):
        truth = rng.beta(2, 2, n + 200)
        machine = JUDGES[judge](truth, rng)
        found = powered_mean([Stratum(truth[:n], machine[:n], machine[n:])]).interval
        held += found.low <= 0.5 <= found.high
        width += found.high - found.low
        alone += 2 * t_quantile(0.975, n - 1) * truth[:n].std(ddof=1) / math.sqrt(n)
    spread = 4 * math.sqrt(0.95 * 0.05 / rounds)  # of the simulation itself
    low, high = (0.93, 0.97) if n == 10 else (0.94, 0.96)
    if not deep:
        low, high = low - spread, high + spread
    assert low <= held / rounds <= high
    assert width / alone <= (1.10 if n == 10 else 1.05)


# --- nDCG of pairs ---

DISCOUNTS = 1 / np.log2(np.arange(2, 7))


def sampled(rng, queries, documents, judged, noise):
    """Pairs of a world where queries differ, and the true ratio of its mean DCG to the ideal."""
    base = rng.normal(0, 1, (queries, documents)) + rng.normal(0, 0.7, (queries, 1))
    truth = np.digitize(base, [0, 0.8, 1.6]).astype(np.float64)
    seen = base + rng.normal(0, 0.2, (queries, 1)) + rng.normal(0, noise, base.shape)
    machine = np.digitize(seen, [0, 0.8, 1.6]).astype(np.float64)
    order = np.argsort(-(truth + rng.normal(0, 1.5, truth.shape)), axis=1)[:, :5]
    weight = np.zeros(truth.shape)
    np.put_along_axis(weight, order, np.tile(DISCOUNTS, (queries, 1)), axis=1)
    drawn = np.argsort(rng.random(truth.shape), axis=1) < judged
    pairs = Pairs(
        np.repeat(np.arange(queries), documents),
        weight.ravel(),
        machine.ravel(),
        np.where(drawn, truth, np.nan).ravel(),
        np.full(truth.size, judged / documents),
        queries,
    )
    best = -np.sort(-truth, axis=1)[:, :5] @ DISCOUNTS
    return pairs, truth, (weight * truth).sum(axis=1), best


def test_the_ideal_is_exact_where_people_judged_all_or_the_machine_is_always_right():
    pairs, truth, _, best = sampled(np.random.default_rng(3), 20, 8, 4, 0.5)
    everything = replace(pairs, human=truth.ravel(), chance=np.ones(truth.size))
    assert mean_ideal(everything, DISCOUNTS).value == pytest.approx(best)
    right = replace(pairs, machine=truth.ravel())
    assert mean_ideal(right, DISCOUNTS).value == pytest.approx(best)
    found = powered_ratio(right, *[mean_ideal(right, DISCOUNTS)] * 2, lam=1.0)
    assert found.estimate == pytest.approx((pairs.weight * truth.ravel()).sum() / best.sum())


def test_the_ideal_of_two_queries_by_hand():
    # One level of gain 1, discounts 1 and .5 (so reached: 0, 1, 1.5). Of 4 pairs 2 are judged, one
    # of them relevant: about 2 of 4 are, the ideal is 1.5. Without the first: 4 of 4, also 1.5;
    # without the second: 0 of 4, 0. The mean .75 is .75 less; times (4 - 2)(2 - 1) / 4 = .5 that
    # is .375 on top. The second query has a certain relevant pair alone: 1.
    pairs = Pairs(
        np.array([0, 0, 0, 0, 1]),
        np.ones(5),
        np.zeros(5),
        np.array([1, 0, np.nan, np.nan, 1]),
        np.array([0.5, 0.5, 0.5, 0.5, 1]),
        2,
    )
    found = mean_ideal(pairs, np.array([1, 0.5]))
    assert found.plain == pytest.approx([1.5, 1])
    assert found.value == pytest.approx([1.875, 1])


def test_intervals_of_a_ratio_hold_the_truth(deep):
    simulations = 2000 if deep else 150
    rng = np.random.default_rng(7)
    for noise, judged in ((0.4, 3), (0.4, 5), (1.5, 4)):
        *_, value, best = sampled(rng, 40_000, 10, 1, noise)
        truth, held = value.sum() / best.sum(), 0
        for _ in range(simulations):
            pairs, *_ = sampled(rng, 40, 10, judged, noise)
            ideals = [mean_ideal(pairs, DISCOUNTS), mean_ideal(pairs, DISCOUNTS, lam=0.0)]
            found = powered_ratio(pairs, *ideals).interval
            held += found.low <= truth <= found.high
        assert held / simulations >= (0.92 if deep else 0.88)
