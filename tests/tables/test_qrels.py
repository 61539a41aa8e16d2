"""Qrels: judgments, each once, each a finite number."""

from __future__ import annotations

import math

import polars as pl
import pytest

from karat.errors import InputError
from karat.tables import Qrels


def test_there_and_back() -> None:
    grades = {"q2": {"b": 0.0, "a": 1.5}, "q1": {"a": -1.0}, "10": {"é": 3.0}}
    qrels = Qrels.from_dict(grades)
    assert qrels.to_dict() == grades
    assert qrels.query_ids == ["10", "q1", "q2"]
    assert len(qrels) == 4
    assert repr(qrels) == "<Qrels qrels: 4 judgments, 3 queries>"
    assert qrels.frame.schema == {
        "query_id": pl.String,
        "doc_id": pl.String,
        "grade": pl.Float64,
    }


def test_queries_are_sorted_by_bytes_and_documents_stay_in_order() -> None:
    qrels = Qrels.from_dict(
        {"𝄞": {"a": 1}, "\ue000": {"a": 1}, "b": {"z": 1, "a": 1}, "B": {"x": 1}}
    )
    assert qrels.query_ids == ["B", "b", "\ue000", "𝄞"]
    assert qrels.frame["doc_id"].to_list() == ["x", "z", "a", "a", "a"]


def test_no_judgments_are_qrels_too() -> None:
    assert len(Qrels.from_dict({})) == 0
    assert Qrels.from_dict({"q": {}}).query_ids == []


def test_a_pair_judged_twice_is_refused() -> None:
    frame = pl.DataFrame(
        {"query_id": ["q", "r", "q"], "doc_id": ["a", "a", "a"], "grade": [1, 1, 1]}
    )
    with pytest.raises(InputError) as caught:
        Qrels(frame, source="test.qrels")
    assert str(caught.value) == (
        "test.qrels: document a is judged twice (query q)\n"
        "  fix: keep one judgment for each query and document"
    )
    assert (caught.value.query, caught.value.doc_id) == ("q", "a")


@pytest.mark.parametrize("grade", [math.nan, math.inf, -math.inf, None])
def test_a_grade_that_is_not_finite_is_refused(grade: float | None) -> None:
    frame = pl.DataFrame(
        {"query_id": ["q", "q"], "doc_id": ["a", "b"], "grade": [1.0, grade]},
        schema_overrides={"grade": pl.Float64},
    )
    with pytest.raises(InputError, match="of document b is not a finite number"):
        Qrels(frame)


@pytest.mark.parametrize("grades", [{1: {"a": 1}}, {"q": {1: 1}}, {None: {"a": 1}}])
def test_ids_that_are_no_strings_are_refused(grades: dict[str, dict[str, float]]) -> None:
    with pytest.raises(InputError, match="ids are strings"):
        Qrels.from_dict(grades)


def test_a_missing_column_names_the_nearest() -> None:
    frame = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "grades": [1]})
    with pytest.raises(InputError, match="fix: rename 'grades' to 'grade'"):
        Qrels(frame)
    with pytest.raises(InputError, match="no column 'query_id'; there are none"):
        Qrels(pl.DataFrame())
