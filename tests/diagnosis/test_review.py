"""Review lists: by hand, against the definition, and laws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.diagnosis.review import PER_QUERY, review_lists
from karat.errors import UsageError
from karat.measures import parse
from karat.measures.run_pair import Pair
from karat.measures.scores import Rules, Scores, score
from karat.tables import Qrels, Run
from karat.tables.comparison import Review

Rankings = dict[str, list[str] | None]
EVERY = (None, None, np.ones(2, np.bool_))


def run(rankings: Rankings, name: str) -> Run:
    return Run.from_dict(
        {
            query: None if docs is None else {doc: -float(at) for at, doc in enumerate(docs)}
            for query, docs in rankings.items()
        },
        name,
    )


def asked(
    baseline: Rankings, candidate: Rankings, grades: dict[str, dict[str, float]], **rules: Any
) -> tuple[Scores, Pair]:
    runs, qrels = [run(baseline, "old"), run(candidate, "new")], Qrels.from_dict(grades)
    first, second = (score(each, qrels, [parse("P@2")], Rules(**rules)) for each in runs)
    pair = Pair(first.run, second.run, qrels, first.evidence, second.evidence, rules.get("depth"))
    return second, pair


def listed(rows: list[Review], kind: str) -> list[tuple[Any, ...]]:
    return [
        (row.query_id, row.doc_id, row.grade, row.baseline_rank, row.candidate_rank)
        for row in rows
        if row.kind == kind
    ]


GRADES = {
    "p": {"a": 0.0, "b": 0.0, "c": 2.0, "d": 1.0, "u": -1.0, "e": 2.0},
    "q": {"a": 0.0, "c": 3.0, "d": 1.0, "f": 2.0},
}
OLD: Rankings = {"p": ["a", "c", "d", "e"], "q": ["x", "f", "d"]}
NEW: Rankings = {"p": ["a", "b", "u", "e", "c"], "q": ["a", "d", "x", "c"]}


def test_lists_by_hand() -> None:
    rows = review_lists(*asked(OLD, NEW, GRADES), 3, 1.0, [EVERY], 10)
    # At rank 1: the baseline lacks a of q and has a of p first. u was pooled, not judged.
    assert listed(rows, "bad") == [
        ("q", "a", 0.0, None, 1),
        ("p", "a", 0.0, 1, 1),
        ("p", "b", 0.0, None, 2),
    ]
    # Grade 3, then grade 2 as the baseline has it: c and f second, e fourth; then grade 1. d of q
    # is in the top 3.
    assert listed(rows, "missed") == [
        ("q", "c", 3.0, None, 4),
        ("p", "c", 2.0, 2, 5),
        ("q", "f", 2.0, 2, None),
        ("p", "e", 2.0, 4, 4),
        ("p", "d", 1.0, 3, None),
    ]
    assert [row.kind for row in rows] == ["bad"] * 3 + ["missed"] * 5
    assert {(row.candidate, row.attribute, row.slice) for row in rows} == {("new", None, None)}
    # From grade 2 on: d of q is bad now, and nobody misses that of p.
    rows = review_lists(*asked(OLD, NEW, GRADES), 3, 2.0, [EVERY], 10)
    assert listed(rows, "bad")[2:] == [("q", "d", 1.0, 3, 2), ("p", "b", 0.0, None, 2)][::-1]
    assert len(listed(rows, "missed")) == 4


def test_two_of_a_query_unless_there_is_nothing_else() -> None:
    rows = review_lists(*asked(OLD, NEW, GRADES), 3, 1.0, [EVERY], 3)
    assert [row[:2] for row in listed(rows, "missed")] == [("q", "c"), ("p", "c"), ("q", "f")]
    # Of p the third, d, gives way to nobody: what is left after four is d alone.
    grades = {"p": {"a": 3.0, "b": 3.0, "c": 3.0, "d": 3.0}, "q": {"a": 1.0}}
    given_ = asked({"p": ["z"], "q": ["z"]}, {"p": ["z"], "q": ["z"]}, grades)
    spread = [
        [row[:2] for row in listed(review_lists(*given_, 3, 1.0, [EVERY], most), "missed")]
        for most in (0, 2, 3, 4, 9)
    ]
    a_and_b = [("p", "a"), ("p", "b")]
    assert spread == [
        [],
        a_and_b,
        [*a_and_b, ("q", "a")],
        [*a_and_b, ("p", "c"), ("q", "a")],
        [*a_and_b, ("p", "c"), ("p", "d"), ("q", "a")],
    ]


def test_slices() -> None:
    parts = [EVERY, ("kind", "first", np.array([True, False])), ("kind", "no", np.zeros(2, bool))]
    rows = review_lists(*asked(OLD, NEW, GRADES), 3, 1.0, parts, 2)
    first = [row for row in rows if row.slice == "first"]
    assert {row.query_id for row in first} == {"p"}
    assert {row.attribute for row in first} == {"kind"}
    assert [row.doc_id for row in first] == ["a", "b", "c", "e"]
    assert [row.slice for row in rows] == [None] * 4 + ["first"] * 4


def test_queries_that_do_not_count() -> None:
    def queries(old: Rankings, new: Rankings, **rules: Any) -> set[str]:
        rows = review_lists(*asked(old, new, GRADES, **rules), 3, 1.0, [EVERY], 10)
        return {row.query_id for row in rows}

    assert queries(OLD, NEW) == {"p", "q"}
    assert queries(OLD | {"q": None}, NEW) == {"p"}  # failed
    assert queries(OLD, NEW | {"q": None}) == {"p"}
    assert queries(OLD, NEW | {"q": []}) == {"p", "q"}  # answered with nothing: all is missed
    # Nothing in q reaches 1, so it is not a topic; complete, it is.
    grades = GRADES | {"q": {"a": 0.0}}
    for rules, count in (({}, 2), ({"complete": True}, 3)):
        rows = review_lists(*asked(OLD, NEW, grades, **rules), 3, 1.0, [EVERY], 10)
        assert len(listed(rows, "bad")) == count


def test_ranks_are_those_that_were_measured() -> None:
    # Cut after 3, e of rank 4 was not returned. Only judged ones: u is gone, e is third.
    rows = review_lists(*asked(OLD, NEW, GRADES, depth=3), 3, 1.0, [EVERY], 10)
    assert ("p", "e", 2.0, None, None) in listed(rows, "missed")
    rows = review_lists(*asked(OLD, NEW, GRADES, judged_only=True), 3, 1.0, [EVERY], 10)
    assert "e" not in [row.doc_id for row in rows]


def test_a_depth_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="k is 0"):
        review_lists(*asked(OLD, NEW, GRADES), 0, 1.0, [EVERY], 1)


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[Rankings, Rankings, dict[str, dict[str, float]]]:
    docs = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)
    old, new = ({query: draw(docs) for query in "pq"} for _ in range(2))
    grades = {
        query: draw(
            st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from([-1.0, 0.0, 1.0, 2.0]))
        )
        | {"always": 2.0}
        for query in "pq"
    }
    return dict(old), dict(new), grades


@FEW
@given(comparisons(), st.integers(1, 4), st.sampled_from([1.0, 2.0]), st.integers(0, 6))
def test_as_defined(
    given_: tuple[Rankings, Rankings, dict[str, dict[str, float]]], k: int, rel: float, most: int
) -> None:
    old, new, grades = given_
    wanted: dict[str, list[tuple[Any, ...]]] = {"bad": [], "missed": []}
    for query, judged in grades.items():
        for doc, grade in judged.items():
            at = [
                ranking.index(doc) + 1 if doc in ranking else None
                for ranking in (old[query] or [], new[query] or [])
            ]
            before, now = (math.inf if rank is None else rank for rank in at)
            row = (query, doc, grade, *at)
            if 0 <= grade < rel and now <= k:
                wanted["bad"].append(((now, -before, query, doc), row))
            if grade >= rel and now > k:
                wanted["missed"].append(((-grade, before, query, doc), row))
    rows = review_lists(*asked(old, new, grades), k, rel, [EVERY], most)
    for kind, keyed in wanted.items():
        every = [row for _, row in sorted(keyed)]
        nth = [sum(row[0] == other[0] for other in every[:i]) for i, row in enumerate(every)]
        first = [i for i, place in enumerate(nth) if place < PER_QUERY]
        further = [i for i, place in enumerate(nth) if place >= PER_QUERY]
        assert listed(rows, kind) == [every[i] for i in sorted([*first, *further][:most])]
