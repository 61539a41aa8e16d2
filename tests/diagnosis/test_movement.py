"""Documents that moved: by hand, and the law that their effects add up to the difference."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.diagnosis.movement import SUMS, effects, moves
from karat.measures import parse
from karat.measures.run_pair import Pair
from karat.tables import Qrels, Run

Rankings = dict[str, list[str]]
Grades = dict[str, dict[str, float]]


def run(rankings: Rankings, name: str) -> Run:
    scores = {
        query: {doc: -float(rank) for rank, doc in enumerate(docs)}
        for query, docs in rankings.items()
    }
    return Run.from_dict(scores, name)


def pair_of(baseline: Rankings, candidate: Rankings, grades: Grades) -> Pair:
    return Pair.of(run(baseline, "old"), run(candidate, "new"), Qrels.from_dict(grades))


@pytest.fixture
def pair() -> Pair:
    """In query p, top falls from 1 to 2, good is lost at 2, late is gained at 3, low stays at 4,
    deep moves from 5 to 6, bad comes in at 1; u is not judged.
    """
    return pair_of(
        {"p": ["top", "good", "u", "low", "deep"], "q": ["a", "b"]},
        {"p": ["bad", "top", "late", "low", "u", "deep"], "q": ["a", "b"]},
        {
            "p": {"top": 3, "good": 1, "late": 2, "low": 1, "deep": 1, "bad": 0, "u": -1, "far": 1},
            "q": {"a": 1},
        },
    )


def test_moves_by_hand(pair: Pair) -> None:
    # Ideal of grades 3 2 1 1 at ranks 1 to 4: 3 + 2 / log2(3) + 1/2 + 1 / log2(5).
    ideal = 3 + 2 / math.log2(3) + 1 / 2 + 1 / math.log2(5)
    rows = moves(parse("nDCG@4"), pair, [0], most=10)
    assert [(row.doc_id, row.grade, row.baseline_rank, row.candidate_rank) for row in rows] == [
        ("top", 3.0, 1, 2),
        ("late", 2.0, None, 3),
        ("good", 1.0, 2, None),
        ("bad", 0.0, None, 1),
    ]  # low has not moved, and deep has, but below the cutoff
    assert [row.effect for row in rows] == [
        pytest.approx((3 / math.log2(3) - 3) / ideal),  # -1.107
        pytest.approx(1 / ideal),  # 2 / log2(4)
        pytest.approx(-1 / math.log2(3) / ideal),  # -0.631
        0.0,
    ]
    first = rows[0]
    assert (first.candidate, first.measure, first.query_id) == ("new", "nDCG@4", "p")
    assert moves(parse("nDCG@4"), pair, [0]) == rows[:3]
    assert moves(parse("nDCG@4"), pair, [0], most=0) == []


def test_a_bad_document_must_come_into_the_top() -> None:
    baseline, grades = {"q": ["good", "bad", "x"]}, {"q": {"good": 1, "bad": 0, "x": 0}}
    fallen = pair_of(baseline, {"q": ["bad", "x", "good"]}, grades)
    rows = moves(parse("P@2"), fallen, [0])
    # bad was in the top 2 already, x was not.
    assert [(row.doc_id, row.effect) for row in rows] == [("good", -0.5), ("x", 0.0)]
    # P@2 does not care for the order of the first two.
    same = pair_of(baseline, {"q": ["bad", "good", "x"]}, grades)
    assert moves(parse("P@2"), same, [0]) == []


def test_other_measures_go_by_gain_and_change_of_place(pair: Pair) -> None:
    # Changes of 1 / log2(1 + rank): top .369, good .631, late .5, deep .387 - .356 = .031.
    rows = moves(parse("AP"), pair, [0], most=10)
    assert [row.doc_id for row in rows] == ["good", "late", "top", "deep", "bad"]
    assert {row.effect for row in rows} == {None}
    # RR@2 sees nothing of late (third) and deep; with rel=3 only top is relevant, and the others
    # are as good as bad: late comes in third, below the cutoff.
    assert [row.doc_id for row in moves(parse("RR@2"), pair, [0])] == ["good", "top", "bad"]
    assert [row.doc_id for row in moves(parse("RR(rel=3)@2"), pair, [0])] == ["top", "bad"]
    # ERR: gains are grades: 3 x .369, 2 x .5, .631.
    assert [row.doc_id for row in moves(parse("ERR"), pair, [0])] == ["top", "late", "good"]


def test_queries_come_in_the_order_given(pair: Pair) -> None:
    both = pair_of(
        {"p": ["a"], "q": ["b", "c"], "r": []},
        {"p": ["x", "a"], "q": ["c", "b"], "r": ["a"]},
        {"p": {"a": 1}, "q": {"b": 1, "c": 1}, "r": {"a": 1}},
    )
    rows = moves(parse("DCG"), both, [2, 0, 1])
    # In q both lose or gain as much: the document goes by name.
    assert [(row.query_id, row.doc_id) for row in rows] == [
        ("r", "a"), ("p", "a"), ("q", "b"), ("q", "c"),
    ]  # fmt: skip
    assert moves(parse("DCG"), pair, []) == []
    assert moves(parse("nDCG@4"), pair, [1]) == []  # nothing moved


def test_a_query_without_a_value_has_no_moves() -> None:
    # Nothing is relevant, so nDCG and recall have no value; bad documents that came in are named.
    pair = pair_of({"q": ["a"]}, {"q": ["b"]}, {"q": {"a": 0, "b": 0}})
    for name in ("nDCG@5", "R@5"):
        assert [(row.doc_id, row.effect) for row in moves(parse(name), pair, [0])] == [("b", 0.0)]


# --- the law ---

NAMES = (
    *("P@2", "SetP", "SetP(rel=2)", "RBP(p=0.8)", "RBP(p=0.5, max=3)@3", "DCG", "DCG(gain=exp)@3"),
    *("nDCG", "nDCG@2", "nDCG(gain=exp)@3", "nDCG(discount=jk, base=2)@2", "R@2", "R(rel=2)@3"),
    *("SetR", "Rcap@1", "nDCG(gain={0: 1, 1: 5})@3"),
)


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    docs = st.lists(st.sampled_from("abcdefg"), unique=True, max_size=7)
    queries = ["p", "q", "r"]
    old, new = ({query: draw(docs) for query in queries} for _ in range(2))
    grade = st.sampled_from([-1.0, 0.0, 1.0, 2.0, 3.0])
    grades = {
        query: draw(st.dictionaries(st.sampled_from("abcdefghi"), grade, min_size=1))
        for query in queries
    }
    pair = pair_of(old, new, grades)
    depth = draw(st.sampled_from([None, 1, 3]))
    pair = Pair.of(pair.baseline, pair.candidate, pair.qrels, depth)
    if not draw(st.booleans()):
        return pair
    return dataclasses.replace(
        pair,
        of_baseline=pair.of_baseline.only_judged(),
        of_candidate=pair.of_candidate.only_judged(),
    )


@FEW
@given(pairs(), st.sampled_from(NAMES))
def test_effects_add_up_to_the_difference(pair: Pair, name: str) -> None:
    measure = parse(name)
    assert measure.entry.symbol in SUMS
    queries = np.array([0, 2])
    table = effects(measure, pair, queries)
    total = np.zeros(2)
    np.add.at(total, table["query"].to_numpy(), table["effect"].to_numpy())
    difference = (measure(pair.of_candidate) - measure(pair.of_baseline))[queries]
    np.testing.assert_allclose(total, np.nan_to_num(difference), atol=1e-12)


@FEW
@given(pairs(), st.sampled_from([*NAMES, "AP", "RR@3", "ERR", "SetF"]))
def test_what_is_listed(pair: Pair, name: str) -> None:
    measure = parse(name)
    every = moves(measure, pair, [0, 1, 2], most=100)
    for query in pair.query_ids:
        rows = [row for row in every if row.query_id == query]
        assert len({row.doc_id for row in rows}) == len(rows)
        assert all(row.baseline_rank != row.candidate_rank for row in rows)
        known = pair.qrels.to_dict()[query]
        assert all(row.grade == known[row.doc_id] >= 0 for row in rows)
        sizes = [abs(row.effect) for row in rows if row.effect is not None]
        assert sizes == pytest.approx(sorted(sizes, reverse=True), abs=1e-11)
    few = moves(measure, pair, [0, 1, 2], most=1)
    assert few == [next(r for r in every if r.query_id == q) for q in dict.fromkeys(
        row.query_id for row in every)]  # fmt: skip
