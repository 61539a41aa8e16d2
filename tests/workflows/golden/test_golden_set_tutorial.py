"""The golden set of tutorials: put together from manual and click data, saved, and read by others.

The calls are those that tutorials make, with their names and shapes; the numbers are worked out by
hand in comments.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import log2
from pathlib import Path

import pytest

import karat
from karat.errors import InputError, UsageError


def built() -> karat.GoldenSet:
    """A test set from manual judgments and from a query log."""
    golden = karat.GoldenSet("test set", scale=(0, 3))
    golden.add_manual(
        query="python list comprehension",
        relevance={"doc_1": 3, "doc_2": 2, "doc_3": 0},
        category="how-to",
        difficulty="easy",
    )
    golden.add_manual("segfault in numpy", {"doc_9": 1}, "error", "hard")
    golden.add_from_query_log(
        query="sort a dict by value",
        clicked_docs=["doc_5"],
        shown_docs=["doc_4", "doc_5", "doc_6"],
    )
    return golden


RETURNED = {
    "python list comprehension": ["doc_3", "doc_1", "doc_7"],
    "segfault in numpy": ["doc_9"],
    "sort a dict by value": ["doc_4", "doc_6", "doc_5"],
}


def test_a_test_set_from_manual_and_click_data_is_measured() -> None:
    golden = built()
    assert [query.query_id for query in golden] == ["q1", "q2", "q3"]
    assert golden["q3"].grades == {"doc_4": 0.0, "doc_5": 2.0, "doc_6": 0.0}
    results = karat.benchmark(golden, RETURNED.__getitem__, ["nDCG@3", "RR@3"], per_query=True)
    # q1: doc_1 (3) at rank 2, doc_2 (2) not returned: 3/log2(3) of 3 + 2/log2(3).
    # q2: its document is first: 1. q3: doc_5 (2) at rank 3: 2/log2(4) of 2.
    ndcg = [(3 / log2(3)) / (3 + 2 / log2(3)), 1.0, 1 / log2(4)]
    values = {row.query_id: row.value for row in results.per_query if row.measure == "nDCG@3"}
    assert list(values.values()) == pytest.approx(ndcg)
    assert results.value("nDCG@3") == pytest.approx(sum(ndcg) / 3)
    assert results.value("RR@3") == pytest.approx((1 / 2 + 1 + 1 / 3) / 3)
    sliced = karat.benchmark(golden, RETURNED.__getitem__, ["RR@3"], by="category").slices
    assert {row.slice: row.value for row in sliced} == {
        "how-to": 1 / 2,
        "error": 1.0,
        "(none)": 1 / 3,
    }


@dataclass
class GoldenQuery:
    """What somebody's own evaluation keeps of a query."""

    query: str
    relevant_docs: dict[str, int]
    category: str | None
    difficulty: str | None


def load_golden_set(path: Path) -> list[GoldenQuery]:
    """A loader as somebody would write it who has never heard of karat."""
    with path.open(encoding="utf-8") as file:
        data = json.load(file)
    return [GoldenQuery(**item) for item in data]


def test_a_saved_golden_set_is_read_by_a_loader_of_ten_lines(tmp_path: Path) -> None:
    golden, path = built(), tmp_path / "golden.json"
    lost = golden.save(path, form="list")
    loaded = load_golden_set(path)
    assert loaded[0] == GoldenQuery(
        "python list comprehension", {"doc_1": 3, "doc_2": 2, "doc_3": 0}, "how-to", "easy"
    )
    assert loaded[2].relevant_docs == {"doc_4": 0, "doc_5": 2, "doc_6": 0}
    assert (loaded[2].category, loaded[2].difficulty) == (None, None)
    assert lost == ["attributes: origin", "the sources of grades", "the scale 0-3"]
    # And karat reads it back: the same queries, under the same ids, with the same grades.
    again = karat.GoldenSet.load(path)
    assert again.qrels.to_dict() == golden.qrels.to_dict()
    assert again.queries.attribute("category") == golden.queries.attribute("category")
    mine, theirs = (
        karat.benchmark(each, RETURNED.__getitem__, ["nDCG@3"]).value("nDCG@3")
        for each in (golden, path)
    )
    assert mine == theirs


def test_what_a_list_cannot_hold_is_named(tmp_path: Path) -> None:
    golden = built()
    golden.remove("q2")
    golden.add("not judged yet")
    golden.add("bake a cake", no_answer=True)
    assert golden.save(tmp_path / "g.json", form="list") == [
        "the ids of queries: when read, they become q1, q2, …",
        "queries that are not judged yet: 1",
        "the no_answer marks: 1",
        "attributes: origin",
        "the sources of grades",
        "the scale 0-3",
    ]
    assert [query.query for query in load_golden_set(tmp_path / "g.json")] == [
        "python list comprehension",
        "sort a dict by value",
        "bake a cake",
    ]
    assert golden.save(tmp_path / "g.json") == []
    golden.add("bake a cake", ["a"], query_id="other")
    with pytest.raises(InputError, match="q5 and other have the same text"):
        golden.save(tmp_path / "g.json", form="list")
    with pytest.raises(UsageError, match="unknown form 'lst'; did you mean list"):
        golden.save(tmp_path / "g.json", form="lst")


def test_a_click_counts_by_how_long_the_user_stayed() -> None:
    golden = karat.GoldenSet("clicks")
    golden.add_from_query_log("tea", {"a": 29.9, "b": 30.0, "c": None}, list("abcd"), dwell_s=30)
    [tea] = golden
    assert tea.grades == {"a": 0.0, "b": 2.0, "c": 2.0, "d": 0.0}  # of c nothing else is known
    rows = [
        {"query": "tea", "doc_id": "d", "clicked": True, "dwell_s": 45},
        {"query": "milk", "doc_id": "m", "clicked": True, "dwell_s": 2},
    ]
    added = golden.add_from_query_log(rows, dwell_s=30)
    assert (added.clicks, added.short_clicks, len(golden)) == (1, 1, 2)
    assert golden[tea.query_id].grades["d"] == 2.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((["a"], ["a", "b"]), "dwell time on each document"),
        ((["a"],), "needs clicked_docs and shown_docs"),
    ],
)
def test_what_a_dwell_needs_is_named(arguments: tuple[list[str], ...], says: str) -> None:
    with pytest.raises(karat.UsageError, match=says):
        karat.GoldenSet("clicks").add_from_query_log("tea", *arguments, dwell_s=30)  # type: ignore[call-overload]


def test_dwell_times_may_be_a_list_beside_the_clicks() -> None:
    golden = karat.GoldenSet("clicks")
    row = {"query": "tea", "clicked_docs": ["a", "b"], "shown_docs": list("abc")}
    added = golden.add_from_logs([row | {"dwell_s": [82.5, 3.0]}], dwell_s=30)
    assert (added.clicks, added.short_clicks, added.unknown_dwell) == (1, 1, 0)
    [tea] = golden
    assert tea.grades == {"a": 2.0, "b": 0.0, "c": 0.0}
    with pytest.raises(InputError, match="dwell_s has 1 values for 2 clicked documents"):
        golden.add_from_logs([row | {"dwell_s": [82.5]}])
