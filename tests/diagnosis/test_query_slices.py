"""Slices that need no attribute: frequency bands, and the rank of the first relevant document."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.diagnosis._query_slices import by_first_relevant, by_frequency
from karat.errors import InputError, UsageError
from karat.golden.traffic import with_bands
from karat.measures import parse
from karat.measures.scores import Rules, score
from karat.tables import Qrels, Queries, Run

Pairs = dict[str, dict[str, float]]
BANDS = ("head", "torso", "tail", "all")


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


def test_head_torso_and_tail_are_thirds_of_the_searches() -> None:
    # Of 100 searches, the middles: a 25, b 60, c 77.5, d 88 % and e at the end.
    assert frequencies(50, 20, 15, 6, 9) == {"head": "a", "torso": "b", "tail": "cde"}
    assert frequencies(9, 50, 15, 20, name="count") == {"head": "b", "torso": "d", "tail": "ac"}
    assert frequencies("50", "20", "15", "6") == frequencies(50, 20, 15, 6)


def test_equally_frequent_queries_stay_together() -> None:
    # 4 + 6 × 1: the ones are 40 to 100 %, and the least asked are the tail.
    assert frequencies(4, *[1] * 6) == {"head": "a", "tail": "bcdefg"}
    assert frequencies(1, 1) == frequencies(0, 0) == {"all": "ab"}


def test_a_query_without_a_frequency() -> None:
    assert frequencies(5, None, 1) == {"head": "a", "tail": "c", "(none)": "b"}


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_a_query_has_the_band_it_has_in_a_log(often: list[int]) -> None:
    ids = [f"q{i}" for i in range(len(often))]
    log = with_bands(pl.DataFrame({"query_id": ids, "count": often}))
    found = by_frequency(Queries(log.drop("band")), ids, np.ones(len(ids), np.bool_))
    stored = dict(log.select("query_id", "band").iter_rows())
    assert {ids[at]: name for name, mask in found for at in mask.nonzero()[0]} == stored


def test_a_stored_band_goes_first() -> None:
    # A sample: its own counts would make b the torso.
    frame = pl.DataFrame({"query_id": ["a", "b", "c"], "count": [9, 3, 1]})
    drawn = frame.with_columns(band=pl.Series(["top", "tail", None]), probability=pl.lit(0.5))
    cases = [
        (drawn, {"tail": "b", "top": "a", "(none)": "c"}),
        (frame.with_columns(band=pl.Series(["tail", "torso", ""])),
         {"torso": "b", "tail": "a", "(none)": "c"}),
        (frame.with_columns(band=pl.Series(["Queen", "Abba", None])),
         {"head": "a", "tail": "bc"}),
        (frame.with_columns(count=pl.Series(["head", "tail", "head"])),
         {"head": "ac", "tail": "b"}),
    ]  # fmt: skip
    for queries, expected in cases:
        found = by_frequency(Queries(queries), list("abc"), np.ones(3, np.bool_))
        assert {name: "".join(np.array(list("abc"))[mask]) for name, mask in found} == expected


def test_queries_nobody_judged_have_their_share() -> None:
    queries = Queries(pl.DataFrame({"query_id": ["a", "z"], "frequency": [1, 99]}))
    [(name, _)] = by_frequency(queries, ["a"], np.ones(1, np.bool_))
    assert name == "tail"


def test_frequencies_that_are_none() -> None:
    with pytest.raises(
        UsageError, match=r"frequency holds high, low(?s:.*)fix: slice by frequency"
    ):
        frequencies("high", "low")
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
