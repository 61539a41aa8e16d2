"""Slices that need no attribute: frequency bands, and the rank of the first relevant document."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.diagnosis.query_slices import BANDS, by_first_relevant, by_frequency
from karat.errors import InputError, UsageError
from karat.measures import parse
from karat.measures.scores import Rules, score
from karat.tables import Qrels, Queries, Run

Pairs = dict[str, dict[str, float]]


def frequencies(*often: float | str | None, name: str = "frequency") -> dict[str, str]:
    """The queries of each band, one frequency for each of a, b, c …"""
    ids = [chr(ord("a") + i) for i in range(len(often))]
    queries = Queries(pl.DataFrame({"query_id": ids, name: often}))
    found = by_frequency(queries, ids, np.ones(len(ids), np.bool_))
    return {name: "".join(np.array(ids)[mask]) for name, mask in found}


def ranks(qrels: Pairs, *runs: Pairs, **rules: Any) -> dict[str, str]:
    """The queries of each band of ranks, their ids (of one letter) put together."""
    judged = Qrels.from_dict(qrels)
    scores = [score(Run.from_dict(run), judged, [parse("RR")], Rules(**rules)) for run in runs]
    found = by_first_relevant(scores, np.ones(len(qrels), np.bool_))
    ids = np.array(scores[0].evidence.query_ids)
    return {name: "".join(ids[mask]) for name, mask in found}


def test_head_torso_and_tail_are_shares_of_the_searches() -> None:
    # Of 100 searches: a 50, b 80, c 90, d 95, e 100 with all before them.
    assert frequencies(50, 30, 10, 6, 4) == {"head": "a", "torso": "bc", "tail": "de"}
    assert frequencies(4, 50, 10, 6, 30, name="count") == {"head": "b", "torso": "ce", "tail": "ad"}
    assert frequencies("50", "30", "10", "6", "4") == frequencies(50, 30, 10, 6, 4)


def test_equally_frequent_queries_stay_together() -> None:
    # 4 + 6 × 1: the ones are 40 to 100 %, their middle is at 70 %.
    assert frequencies(4, *[1] * 6) == {"head": "a", "torso": "bcdefg"}
    assert frequencies(1, 1) == {"head": "ab"}
    assert frequencies(0, 0) == {"tail": "ab"}


def test_a_query_without_a_frequency() -> None:
    # Of 6 searches: the middle of a's is at 42 %, of c's at 92 %.
    assert frequencies(5, None, 1) == {"head": "a", "tail": "c", "(none)": "b"}


def test_queries_nobody_judged_have_their_share() -> None:
    queries = Queries(pl.DataFrame({"query_id": ["a", "z"], "frequency": [1, 99]}))
    [(name, _)] = by_frequency(queries, ["a"], np.ones(1, np.bool_))
    assert name == "tail"


def test_frequencies_that_are_none() -> None:
    with pytest.raises(UsageError, match=r"frequency holds head, tail(?s:.*)fix: --by frequency"):
        frequencies("head", "tail")
    with pytest.raises(UsageError, match="fix: a column frequency or count"):
        frequencies(1, name="often")
    with pytest.raises(InputError, match=r"queries: frequency -1 is not a number from 0 \(query b"):
        frequencies(1, -1)


def test_by_the_best_rank_of_all_runs() -> None:
    qrels = {query: {"r": 1.0, "other": 0.0} for query in "abcde"}
    at = {"a": 1, "b": 2, "c": 11, "d": 5}
    first = {
        q: {f"x{i}" if i != r else "r": -float(i) for i in range(1, 13)} for q, r in at.items()
    }
    first["e"] = {"other": 1.0}
    bands = {"1": "a", "2 to 3": "b", "4 to 10": "d", "11 and below": "c", "none": "e"}
    assert ranks(qrels, first) == bands
    second = {"c": {"r": 1.0}, "e": {"x": 2.0, "r": 1.0}}
    better = {"1": "ac", "2 to 3": "be", "4 to 10": "d"}
    assert ranks(qrels, first, second) == better
    assert ranks(qrels, second, first) == better
    assert ranks(qrels, first, depth=4)["none"] == "cde"


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_frequency_bands_follow_the_frequencies(often: list[int]) -> None:
    found = frequencies(*often)
    band = {ord(q) - ord("a"): i for i, name in enumerate(BANDS) for q in found.get(name, "")}
    assert sorted(band) == list(range(len(often)))
    for one, place in band.items():
        for two, other in band.items():
            if often[one] >= often[two]:
                assert place <= other
