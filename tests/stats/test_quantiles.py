from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.stats.quantiles import latency_of
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
