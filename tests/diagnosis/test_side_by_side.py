"""Rankings side by side: by hand, and the law that what is shown adds up to the difference."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.diagnosis.side_by_side import Placed, alone, side_by_side
from karat.measures import parse
from karat.measures.judged_join import reduce
from karat.measures.run_pair import Pair
from karat.tables import Qrels, Run

Rankings = dict[str, list[str]]


def run(rankings: Rankings, name: str) -> Run:
    scores = {
        query: {doc: -float(rank) for rank, doc in enumerate(docs)}
        for query, docs in rankings.items()
    }
    return Run.from_dict(scores, name)


def pair_of(old: list[str], new: list[str], grades: dict[str, float]) -> Pair:
    return Pair.of(run({"q": old}, "old"), run({"q": new}, "new"), Qrels.from_dict({"q": grades}))


def test_each_document_has_its_rank_grade_move_and_share() -> None:
    pair = pair_of(["a", "u", "b", "c"], ["u", "c", "x", "b"], {"a": 1, "b": 1, "c": 0})
    ((old, new),) = side_by_side(parse("P@2"), pair, [0], 2, 1.0)
    assert old.top == [Placed("a", 1, 1.0, None, None), Placed("u", 2, None, 1, None)]
    assert new.top == [Placed("u", 1, None, 2, 0.0), Placed("c", 2, 0.0, 4, 0.0)]
    # P@2 from 1/2 to 0: a is gone. b was not in the baseline's top 2 and adds nothing.
    assert new.below == [Placed("a", None, 1.0, 1, -0.5)]
    assert (old.returned, new.returned, new.rest, new.unlisted) == (4, 4, 0.0, 0)


def test_what_is_not_listed_is_counted_and_summed() -> None:
    docs = list("abcdef")
    pair = pair_of(docs, [], dict.fromkeys(docs, 1.0))
    ((_, new),) = side_by_side(parse("P@6"), pair, [0], 3, 1.0, most=2)
    # Each of six takes 1/6; two are listed.
    assert [placed.doc_id for placed in new.below] == ["a", "b"]
    assert new.unlisted == 4
    assert new.rest == pytest.approx(-4 / 6)


def test_condensed_rankings_leave_out_the_unjudged() -> None:
    pair = pair_of(["u", "a", "v", "b"], ["b", "u", "a"], {"a": 1, "b": 0})
    ((old, new),) = side_by_side(parse("Bpref"), pair, [0], 5, 1.0, condensed=True)
    assert [(p.doc_id, p.rank, p.other) for p in old.top] == [("a", 1, 2), ("b", 2, 1)]
    assert [(p.doc_id, p.rank, p.other) for p in new.top] == [("b", 1, 2), ("a", 2, 1)]


def test_no_sum_has_no_shares() -> None:
    pair = pair_of(["a"], ["b", "a"], {"a": 1})
    ((_, new),) = side_by_side(parse("AP"), pair, [0], 5, 1.0)
    assert [placed.effect for placed in new.top] == [None, None]
    assert new.rest is None


def test_alone_what_documents_add_is_the_value() -> None:
    qrels = Qrels.from_dict({"q": {"a": 1, "b": 1, "late": 1}})
    one = run({"q": ["x", "a", "b", "late"]}, "one")
    pair = alone(one, qrels, reduce(one, qrels))
    ((_, ranking),) = side_by_side(parse("P@3"), pair, [0], 3, 1.0)
    # P@3 = 2/3, a third from a and from b; the third relevant one stands below.
    assert [placed.effect for placed in ranking.top] == [0.0, 1 / 3, 1 / 3]
    assert [(placed.doc_id, placed.rank) for placed in ranking.below] == [("late", 4)]


DOCS = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


@FEW
@given(
    old=DOCS,
    new=DOCS,
    grades=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), min_size=1),
    measure=st.sampled_from(["nDCG@3", "P@4", "R@3", "nDCG", "RBP(p=0.8)"]),
    k=st.integers(1, 5),
    most=st.integers(0, 3),
)
def test_what_is_shown_adds_up_to_the_difference(
    old: list[str], new: list[str], grades: dict[str, int], measure: str, k: int, most: int
) -> None:
    grades["always"] = 1  # else nothing is relevant
    pair = pair_of(old, new, {doc: float(grade) for doc, grade in grades.items()})
    asked = parse(measure)
    before, after = (asked(evidence)[0] for evidence in (pair.of_baseline, pair.of_candidate))
    ((_, ranking),) = side_by_side(asked, pair, [0], k, 1.0, most=most)
    shown = [placed.effect or 0.0 for placed in (*ranking.top, *ranking.below)]
    assert math.fsum([*shown, ranking.rest or 0.0]) == pytest.approx(after - before, abs=1e-9)
    assert len(ranking.below) <= most
    assert [placed.rank for placed in ranking.top] == list(range(1, min(k, len(new)) + 1))
