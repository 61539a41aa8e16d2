from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.stats import quantiles
from karat.stats.quantiles import latency_of, quantile_change, quantile_changes, swap_p
from karat.tables import Run
from karat.tables.results import Latency


def timed(times: list[int | None]) -> Run:
    ids = [f"q{i}" for i in range(len(times))]
    answers = pl.DataFrame(
        {"query_id": ids, "state": ["empty"] * len(ids), "latency_us": times},
        schema={"query_id": pl.String, "state": pl.String, "latency_us": pl.Int64},
    )
    return Run.from_batches("bm25", [], answers=answers)


def test_quantiles_are_times_that_were_seen() -> None:
    # Of 1 … 200: half are at most 100, 95 % (190) at most 190, 99 % (198) at most 198.
    found = latency_of(timed([*range(200, 0, -1), None]))
    assert found == Latency("bm25", 200, 100.0, 190.0, 198.0, 200.0)


def test_of_one_answer_every_quantile_is_its_time() -> None:
    assert latency_of(timed([7])) == Latency("bm25", 1, 7.0, 7.0, 7.0, 7.0)


@pytest.mark.parametrize("run", [timed([]), timed([None, None]), Run.from_dict({"q": {"a": 1.0}})])
def test_a_run_without_times_has_none(run: Run) -> None:
    assert latency_of(run) is None


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60))
def test_each_is_the_least_that_its_share_does_not_exceed(times: list[int]) -> None:
    found = latency_of(timed(list(times)))
    assert found is not None
    for percent, value in ((50, found.p50_us), (95, found.p95_us), (99, found.p99_us)):
        # In whole numbers: 0.95 * 20 is not 19 as a float.
        enough = [t for t in times if 100 * sum(u <= t for u in times) >= percent * len(times)]
        assert value == min(enough)
    assert (found.n, found.max_us) == (len(times), max(times))


def test_an_increase_of_all_times_is_the_same_in_every_draw() -> None:
    before = np.arange(1.0, 201.0)  # p95: the 190th of 200
    found = quantile_change(before, 3 * before)
    assert (found.before, found.after, found.n) == (190.0, 570.0, 200)
    assert (found.increase.low, found.increase.high) == (2.0, 2.0)
    low, high = found.difference.low, found.difference.high
    # Twice the interval of the 95th percentile itself: by the binomial (n 200, p .95) order
    # statistics 184 to 196 hold it in 95 % of samples (scipy.stats.binom.interval: 183 to 195).
    assert low == pytest.approx(2 * 184, abs=4)
    assert high == pytest.approx(2 * 196, abs=4)


def test_under_100_queries_there_is_no_interval() -> None:
    found = quantile_change(np.ones(99), np.ones(99))
    assert (found.before, found.after, found.increase.low) == (1.0, 1.0, None)
    assert "fewer than 100" in found.increase.reason
    assert quantile_change(np.zeros(100), np.ones(100)).increase.low is None
    assert quantile_change(np.zeros(100), np.ones(100)).difference.low == 1.0


@pytest.mark.deep  # coverage
def test_the_interval_of_an_increase_holds_the_truth() -> None:
    # A small part of benchmarks/latency_coverage.py; 96.8 % there. The standard error of 95 % over
    # 150 samples is 1.8 %.
    rng = np.random.default_rng(0)
    held = 0
    for seed in range(150):
        one, other = np.exp(0.7 * rng.normal(size=(2, 100)))
        found = quantile_change(one, 1.3 * other, seed).increase
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.3 <= found.high
    assert held / 150 >= 0.90


def test_draws_in_parts_are_those_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    before, after = rng.random((2, 150))
    whole = quantile_change(before, after)
    monkeypatch.setattr(quantiles, "_BLOCK", 1000)
    assert quantile_change(before, after) == whole


def test_times_that_are_drawn_together_say_less() -> None:
    draws = np.random.default_rng(0)
    clusters = np.repeat(np.arange(50), 20)
    before = draws.lognormal(size=50)[clusters] + draws.random(1000) / 10
    after = before * 1.1
    alone = quantile_changes(before, after, [0.95])[0].level
    together = quantile_changes(before, after, [0.95], clusters=clusters)[0].level
    assert alone.low is not None
    assert alone.high is not None
    assert together.low is not None
    assert together.high is not None
    assert together.high - together.low > 2 * (alone.high - alone.low)
    few = quantile_changes(before, after, [0.95], clusters=clusters % 20)[0].level
    assert few.reason == "fewer than 25 timed queries"


def test_swapping_the_sides_of_equal_runs() -> None:
    draws = np.random.default_rng(0)
    clusters = np.repeat(np.arange(60), 2)
    p = [
        swap_p(*draws.lognormal(size=(2, 120)), [0.5, 0.95], clusters, resamples=199, seed=at)
        for at in range(100)
    ]
    # 100 tests at .1: 10 expected; 99.9 % of binomials (100, .1) are below 21.
    assert ((np.array(p) <= 0.1).sum(axis=0) <= 20).all()
    times = draws.lognormal(size=120)
    slower = swap_p(times, times * 3, [0.5], clusters, resamples=999)
    assert slower[0] < 0.05
    assert swap_p(times, times, [0.5], clusters) == [1.0]
