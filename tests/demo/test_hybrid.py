"""The third system: what the other two found, fused."""

from __future__ import annotations

from karat.demo import hybrid
from karat.demo.build import Demo
from karat.formats import read_run
from karat.fusion import reciprocal_rank


def test_both_before_one() -> None:
    by_words = {"q": [("a", 9.0), ("b", 8.0)], "r": []}
    by_meaning = {"q": [("b", 0.9), ("c", 0.8)], "r": []}
    # b has ranks 2 and 1, a has 1, c has 2.
    assert hybrid.rank([by_words, by_meaning]) == {
        "q": [("b", 1 / 61 + 1 / 62), ("a", 1 / 61), ("c", 1 / 62)],
        "r": [],
    }


def test_at_most_depth() -> None:
    one = {"q": [(f"a{at:03}", 200.0 - at) for at in range(150)]}
    two = {"q": [(f"b{at:03}", 200.0 - at) for at in range(150)]}
    found = hybrid.rank([one, two])["q"]
    # One of each in turn, b before a where they tie, and so 50 of each.
    assert [doc for doc, _ in found[:4]] == ["b000", "a000", "b001", "a001"]
    assert len(found) == 100
    assert len(hybrid.rank([one, two], depth=7)["q"]) == 7


def test_the_folder_can_be_fused_again_to_the_same_numbers(demo: Demo) -> None:
    by_words, by_meaning, both = (read_run(path) for path in demo.runs)
    again = reciprocal_rank([by_words, by_meaning], depth=100)
    assert again.frame().sort("query_id", "rank").equals(both.frame().sort("query_id", "rank"))
