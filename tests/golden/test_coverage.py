"""How much of what runs show an edition has grades for, against the measure of that name."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.errors import UsageError
from karat.golden.coverage import coverage
from karat.tables import Run

QUERIES = pl.DataFrame({"query_id": ["q1", "q2", "q3"]})
GRADES = pl.DataFrame(
    {
        "query_id": ["q1", "q1", "q1", "q2"],
        "doc_id": ["a", "b", "n", "x"],
        "grade": [2.0, 0.0, -1.0, 1.0],
    }
)
ONE = Run.from_dict({"q1": {"a": 3, "c": 2, "b": 1}, "q2": {"x": 2}, "q9": {"z": 1}}, "one")
OTHER = Run.from_dict({"q1": {"n": 3, "c": 2, "a": 1}, "q2": {}, "q3": {"y": 1}}, "other")


def test_by_hand() -> None:
    found = coverage(QUERIES, GRADES, [ONE, OTHER], k=2)
    assert found.queries.rows() == [
        ("one", "q1", 2, 1, 0.5),
        ("one", "q2", 1, 1, 1.0),
        ("one", "q3", 0, 0, None),
        ("other", "q1", 2, 0, 0.0),  # n was pooled, not judged
        ("other", "q2", 0, 0, None),
        ("other", "q3", 1, 0, 0.0),
    ]
    assert found.runs.rows() == [("one", 3, 2, 0.75, 1), ("other", 3, 2, 0.0, 3)]
    assert found.unjudged.frame.rows() == [
        ("q1", "c", 2, ["one", "other"]),
        ("q1", "n", 1, ["other"]),
        ("q3", "y", 1, ["other"]),
    ]


documents = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9), min_size=1)


@given(documents, documents, st.integers(1, 7))
def test_it_is_the_measure_judged(
    grades: dict[str, float], scores: dict[str, float], k: int
) -> None:
    grades = {**grades, "z": 1}  # the measure leaves out queries without a relevant document
    result = karat.evaluate({"q": grades}, {"q": scores}, measures=[f"Judged@{k}"])
    frame = pl.DataFrame(
        {"query_id": "q", "doc_id": list(grades), "grade": [float(g) for g in grades.values()]}
    )
    run = Run.from_dict({"q": scores})
    found = coverage(pl.DataFrame({"query_id": ["q"]}), frame, [run], k)
    assert found.runs["judged"][0] == pytest.approx(result.value(f"Judged@{k}"))
    left = int(found.runs["unjudged"][0])
    assert left == len(found.unjudged) == int((found.queries["shown"] - found.queries["graded"])[0])


def test_nothing_to_look_at() -> None:
    none = coverage(QUERIES, GRADES, [])
    assert not none.runs.height + none.queries.height + len(none.unjudged)
    empty = coverage(QUERIES, GRADES.clear(), [Run.from_dict({"q7": {"a": 1}}, "r")])
    assert empty.runs.rows() == [("r", 3, 0, None, 0)]


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="not a whole number from 1"):
        coverage(QUERIES, GRADES, [ONE], 0)
    with pytest.raises(UsageError, match="two runs have the same name"):
        coverage(QUERIES, GRADES, [ONE, ONE])
