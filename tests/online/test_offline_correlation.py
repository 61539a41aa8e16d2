"""Offline against online: correlations, weights, and where the two worlds part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.online import offline_correlation
from karat.stats.correlation import outcome
from karat.tables.online.offline_correlation import JudgedAndSearched, MetricValue, WorldSlice

numbers = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 4)), min_size=2, max_size=25
)


def world(**said: object) -> JudgedAndSearched:
    usual: dict[str, object] = {
        "query_id": "q", "text": "pump", "slice": None, "searches": 100, "users": 90,
        "offline": {"nDCG@10": 0.9}, "online": {}, "p50_ms": 100.0, "p95_ms": 200.0, "position": 1,
    }  # fmt: skip
    return JudgedAndSearched(**(usual | said))  # type: ignore[arg-type]


def figure(value: float | None, low: float | None = None, high: float | None = None) -> MetricValue:
    return MetricValue(value, low, high, 100)


@given(numbers)
def test_a_weight_is_as_many_queries(rows: list[tuple[int, int, int]]) -> None:
    """Weighted by w, a query is as if it stood w times: SciPy has those correlations."""
    table = np.array(rows, np.float64)
    left, right, weights = table.T
    times = weights.astype(int)
    many = np.repeat(left, times), np.repeat(right, times)
    _, _, rho, tau, _ = offline_correlation.concord(left, right, weights, weighted=True)
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert rho is tau is None
        return
    assert rho == pytest.approx(stats.spearmanr(*many).statistic, abs=1e-9)
    assert tau == pytest.approx(stats.kendalltau(*many).statistic, abs=1e-9)


@given(numbers)
def test_without_weights_it_is_the_correlation_there_is(rows: list[tuple[int, int, int]]) -> None:
    left, right, weights = np.array(rows, np.float64).T
    plain = outcome(left, right)
    spearman, _, rho, tau, _ = offline_correlation.concord(left, right, weights, weighted=False)
    assert (rho, tau) == (plain.spearman, plain.kendall)
    if spearman.low is not None and spearman.high is not None:
        assert -1 <= spearman.low <= spearman.high <= 1
    # Each query as often as any other: the same, weighted or not.
    _, _, rho, tau, _ = offline_correlation.concord(
        left, right, np.full(len(left), 7.0), weighted=True
    )
    for one, other in ((rho, plain.spearman), (tau, plain.kendall)):
        assert one == (None if other is None else pytest.approx(other, abs=1e-9))


def test_weights_by_hand() -> None:
    # Places (0, 1, 2) against (0, 2, 1), weights (1, 1, 2). Midranks .5, 1.5, 3 and .5, 3.5, 2;
    # about 2: -1.5, -.5, 1 and -1.5, 1.5, 0. Σw xy = 2.25 - .75 + 0 = 1.5;
    # Σw x² = 2.25 + .25 + 2 = 4.5; Σw y² = 2.25 + 2.25 = 4.5: 1/3.
    # Pairs: (0,1) alike, weight 1; (0,2) alike, 2; (1,2) not, 2. Tau: (1 + 2 - 2) / 5.
    values = np.array([1.0, 2, 3]), np.array([1.0, 3, 2]), np.array([1.0, 1, 2])
    _, _, rho, tau, reason = offline_correlation.concord(*values, weighted=True)
    assert (rho, tau) == (pytest.approx(1 / 3), pytest.approx(1 / 5))
    assert reason == "an interval needs 4 queries"


@pytest.mark.deep  # coverage
def test_intervals_hold_the_truth() -> None:
    """60 normal pairs with correlation .6: Spearman's is 6/π·asin(.3) = .582.

    Of 80 intervals of 95 %, 76 ± 3·1.95; the percentile bootstrap is a little narrow.
    """
    rng, held = np.random.default_rng(4), 0
    for seed in range(80):
        x = rng.normal(size=60)
        y = 0.6 * x + 0.8 * rng.normal(size=60)
        found, *_ = offline_correlation.concord(x, y, np.ones(60), weighted=False, seed=seed)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 6 / np.pi * np.arcsin(0.3) <= found.high
    assert 69 <= held <= 79


def test_what_has_no_correlation_says_why() -> None:
    same = offline_correlation.concord(np.ones(5), np.arange(5.0), np.ones(5), weighted=False)
    assert (same[2], same[4]) == (None, "all values are equal")
    agree = offline_correlation.concord(np.arange(9.0), np.arange(9.0), np.ones(9), weighted=False)
    assert agree[2] == 1
    assert agree[0].low is None
    assert "agree" in agree[4]


def test_many_queries_have_no_interval_of_tau() -> None:
    x = np.arange(2000.0)
    found = offline_correlation.concord(x, -x + 300 * np.sin(x), np.ones(2000), weighted=False)
    assert found[0].low is not None
    assert found[1].low is None
    assert "over 1,500 queries" in found[4]


def test_ranks_and_how_far_apart() -> None:
    judges, users = np.array([0.9, 0.5, 0.5, 0.1]), np.array([0.0, 0.3, 0.2, 0.9])
    assert offline_correlation.best_first(judges, higher=True).tolist() == [1, 2.5, 2.5, 4]
    # Ranks 1, 2.5, 2.5, 4 and 4, 2, 3, 1: differences over 3.
    gap = offline_correlation.apart(judges, users, higher=(True, True))
    assert gap.tolist() == pytest.approx([1, -0.5 / 3, 0.5 / 3, -1])
    # Where lower is better, the same users agree with the judges.
    agree = offline_correlation.apart(judges, users, higher=(True, False))
    assert np.abs(agree).max() < 0.4
    assert offline_correlation.apart(judges[:1], users[:1], higher=(True, True)).tolist() == [0]


def test_few_searches_are_no_disagreement() -> None:
    sure = world(online={"SAT": figure(0.1, 0.05, 0.2)})
    unsure = world(online={"SAT": figure(0.1, 0.0, 0.7)})
    assert offline_correlation.surely_off(sure, "SAT", 0.5, 1.0, higher=True)
    assert not offline_correlation.surely_off(unsure, "SAT", 0.5, 1.0, higher=True)
    assert not offline_correlation.surely_off(sure, "SAT", 0.5, -1.0, higher=True)
    assert offline_correlation.surely_off(sure, "SAT", 0.5, -1.0, higher=False)
    assert not offline_correlation.surely_off(
        world(online={"SAT": figure(None)}), "SAT", 0.5, 1, higher=True
    )


def test_reasons() -> None:
    whole = WorldSlice(
        None, 10, 1000, {}, {},
        {"ZeroResults": figure(0.02), "Reformulation": figure(0.1)}, 100.0, 200.0,
    )  # fmt: skip
    fine = {"ZeroResults": figure(0.03), "Reformulation": figure(0.15)}
    bad = {"ZeroResults": figure(0.5), "Reformulation": figure(0.4)}
    assert offline_correlation.reasons(world(online=fine), whole, "judges", 1.0) == [
        offline_correlation._UNEXPLAINED
    ]
    found = offline_correlation.reasons(
        world(online=bad, p95_ms=900.0, position=7), whole, "judges", 1.0
    )
    assert found == [
        "50 % of its searches had no results (of all: 2 %)",
        "40 % of its searches were reformulated (of all: 10 %)",
        "it is slow: p95 900 ms (of all: 200 ms)",
        "half of its clicks are at position 7 or below: relevant documents rank low",
    ]
    # What users like is not explained by what would put them off.
    liked = offline_correlation.reasons(world(online=bad, p95_ms=900.0), whole, "users", 0.25)
    assert liked == [("only 25 % of the run's top documents are judged: its value may be too low")]
