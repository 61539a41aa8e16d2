"""Plain functions on one ranking: the numbers of karat's measures, by arithmetic of their own."""

from __future__ import annotations

import doctest
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.errors import InputError, UsageError
from karat.measures import (
    _one_ranking,
    average_precision,
    dcg_at_k,
    ndcg_at_k,
    parse_all,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
    reduce,
)
from karat.tables import Qrels, Run

K = (1, 2, 3, 5, 20)
MEASURES = ["RR", "AP", *(f"{m}@{k}" for k in K for m in ("P", "R", "nDCG", "nDCG(gain=exp)"))]


def test_they_are_found_in_the_package() -> None:
    assert karat.__getattr__("measures").recall_at_k is recall_at_k
    assert karat.measures.ndcg_at_k is ndcg_at_k


def test_the_examples_of_the_docstrings() -> None:
    found = doctest.testmod(_one_ranking, optionflags=doctest.ELLIPSIS)
    assert (found.failed, found.attempted) == (0, 9)


@settings(max_examples=40 if settings.default.max_examples > 25 else 12, deadline=None)
@given(
    st.lists(st.sampled_from("abcdefghijkl"), max_size=14),
    st.dictionaries(
        st.sampled_from("abcdefghijkl"), st.sampled_from([-1.0, 0, 0.5, 1, 1, 2, 3]), min_size=1
    ),
)
def test_they_agree_with_the_measures(retrieved: list[str], grades: dict[str, float]) -> None:
    # Documents may be listed more than once: for both the first place counts.
    evidence = reduce(Run.from_dict({"q": retrieved}), Qrels.from_dict({"q": grades}))
    expected = {str(measure): float(measure(evidence)[0]) for measure in parse_all(MEASURES)}
    relevant = {doc for doc, grade in grades.items() if grade >= 1}
    ranked = [grades.get(doc, 0) for doc in dict.fromkeys(retrieved)]
    found: dict[str, float | None] = {
        "RR": reciprocal_rank(retrieved, relevant),
        "AP": average_precision(retrieved, relevant),
    }
    for k in K:
        found[f"P@{k}"] = precision_at_k(retrieved, relevant, k)
        found[f"R@{k}"] = recall_at_k(retrieved, relevant, k)
        found[f"nDCG@{k}"] = ndcg_at_k(ranked, grades.values(), k)
        found[f"nDCG(gain=exp)@{k}"] = ndcg_at_k(ranked, grades.values(), k, gain="exp")
    assert found.keys() == expected.keys()
    for name, value in found.items():
        known = expected[name]
        assert (value is None) == math.isnan(known), name
        assert value is None or value == pytest.approx(known, rel=0, abs=1e-12), name


def test_without_relevant_documents_there_is_no_recall() -> None:
    assert recall_at_k(["a"], [], 1) is None
    assert average_precision(["a"], ()) is None
    assert ndcg_at_k([0], [0, -1], 1) is None
    assert ndcg_at_k([], [], 1) is None
    # 0 of k places, and 0 for a first relevant document that never comes: these have a value.
    assert (precision_at_k(["a"], set(), 1), reciprocal_rank(["a"], set())) == (0.0, 0.0)


def test_an_empty_ranking_scores_0() -> None:
    assert (recall_at_k([], {"a"}, 3), precision_at_k([], {"a"}, 3)) == (0.0, 0.0)
    assert (reciprocal_rank([], {"a"}), average_precision([], {"a"})) == (0.0, 0.0)
    assert (dcg_at_k([], 3), ndcg_at_k([], [1], 3)) == (0.0, 0.0)


def test_precision_divides_by_k() -> None:
    assert precision_at_k(["a", "b"], {"a", "b"}, 5) == 2 / 5


def test_ids_may_be_anything_hashable() -> None:
    assert recall_at_k([7, 8], {7}, 1) == 1.0
    assert recall_at_k(np.array(["a", "b"]), ("b",), 2) == 1.0
    assert reciprocal_rank([("x", 1), ("y", 2)], {("y", 2)}) == 0.5
    assert recall_at_k(["a"], ["a", "a", "b"], 1) == 0.5  # a is one relevant document


def test_a_negative_grade_gains_nothing() -> None:
    # 2/log2(3), over 2/log2(2)
    assert ndcg_at_k([-1, 2], [-1, 2], 2) == pytest.approx(1 / math.log2(3))


def test_gains_of_both_kinds() -> None:
    assert dcg_at_k([3, 2], 2) == pytest.approx(3 + 2 / math.log2(3))
    assert dcg_at_k([3, 2], 2, gain="exp") == pytest.approx(7 + 3 / math.log2(3))
    assert dcg_at_k([3, 2], 1) == 3.0


@pytest.mark.parametrize("k", [0, -1, 2.0, "3", None, True, math.nan])
def test_a_cutoff_is_a_whole_number_from_1(k: Any) -> None:
    for call in (
        lambda: recall_at_k(["a"], {"a"}, k),
        lambda: precision_at_k(["a"], {"a"}, k),
        lambda: dcg_at_k([1], k),
        lambda: ndcg_at_k([1], [1], k),
    ):
        with pytest.raises(UsageError, match=r"k is .*, not a whole number from 1\n  fix: k=10"):
            call()
    assert recall_at_k(["a"], {"a"}, np.int64(1)) == 1.0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("retrieved", "relevant", "says"),
    [
        ({"a", "b"}, {"a"}, "retrieved is a set, which is not a ranking"),
        ({"a": 1.5}, {"a"}, "retrieved is a dict, which is not a ranking"),
        ("ab", {"a"}, r"retrieved is 'ab', not a list of ids\n  fix: retrieved=\["),
        (None, {"a"}, "retrieved is None, not a list"),
        (["a"], "a", "relevant is 'a', not a list"),
        (["a"], {"a": 0}, "relevant is a dict; expected the ids of relevant documents"),
        ([{"id": "a"}], {"a"}, "retrieved contains something other than ids: .*unhashable"),
        (
            [("a", 1.5)],
            {"a"},
            r"retrieved has tuple ids and relevant has str ids.*\n  fix: .*pairs",
        ),
        ([1, 2], ["1"], "retrieved has int ids and relevant has str ids, so none can match"),
    ],
)
def test_what_is_not_a_ranking_is_refused(retrieved: Any, relevant: Any, says: str) -> None:
    for call in (
        lambda: recall_at_k(retrieved, relevant, 3),
        lambda: precision_at_k(retrieved, relevant, 3),
        lambda: reciprocal_rank(retrieved, relevant),
        lambda: average_precision(retrieved, relevant),
    ):
        with pytest.raises(UsageError, match=says):
            call()


@pytest.mark.parametrize("grades", [[math.nan], [None], ["good"], [[1]], [math.inf]])
def test_a_grade_is_a_finite_number(grades: Any) -> None:
    with pytest.raises(UsageError, match="grades must be a list of finite numbers"):
        dcg_at_k(grades, 3)
    with pytest.raises(UsageError, match="ideal must be a list of finite numbers"):
        ndcg_at_k([1], grades, 3)


def test_an_ideal_that_is_not_all_grades_is_refused() -> None:
    # Otherwise nDCG were above 1, or silently relative to what this ranking found.
    with pytest.raises(UsageError, match="ideal has fewer documents with a grade above 0"):
        ndcg_at_k([3, 3], [3, 2], 2)
    with pytest.raises(UsageError, match="unknown gain 'log'; did you mean linear or exp"):
        dcg_at_k([1], 3, gain="log")
    with pytest.raises(InputError, match="too high for gain=exp"):
        dcg_at_k([2000], 3, gain="exp")
