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


def test_documents_judged_for_some_queries() -> None:
    qrels = Qrels.from_dict(
        {
            "p": {"z": 0.0, "x": -1.0, "far": 2.0, "a": 1.0},
            "q": {"b": 0.0, "a": 3.0},
            "r": {"a": 1.0},
        }
    )
    found = qrels.judged(["q", "none", "p"])
    assert found.schema == {"query": pl.Int64, "doc_id": pl.String, "grade": pl.Float64}
    assert found.rows() == [
        (0, "a", 3.0), (0, "b", 0.0), (2, "a", 1.0), (2, "far", 2.0), (2, "z", 0.0),
    ]  # fmt: skip
    assert qrels.judged(["q", "p"], 2.0).rows() == [(0, "a", 3.0), (1, "far", 2.0)]
    assert qrels.judged(["p"], -5.0).height == 3  # pooled is not judged
    assert qrels.judged([]).rows() == []


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


# --- subtopics ---


def by_subtopic(rows: str, source: str = "qrels") -> Qrels:
    split = [row.split() for row in rows.split(",")]
    frame = pl.DataFrame(
        [(query, subtopic, doc, float(grade)) for query, subtopic, doc, grade in split],
        schema=["query_id", "subtopic", "doc_id", "grade"],
        orient="row",
    )
    return Qrels(frame, source)


def test_a_document_counts_once_at_its_best_grade() -> None:
    qrels = by_subtopic("2 1 a 1,1 1 b -2,1 2 a 0,1 1 a 2,1 2 b 1")
    assert qrels.to_dict() == {"1": {"b": 1.0, "a": 2.0}, "2": {"a": 1.0}}
    assert len(qrels) == 3
    assert qrels.frame.columns == ["query_id", "doc_id", "grade"]
    assert qrels.subtopics is not None
    assert qrels.subtopics.rows() == [
        ("1", "1", "b", -2.0),
        ("1", "2", "a", 0.0),
        ("1", "1", "a", 2.0),
        ("1", "2", "b", 1.0),
        ("2", "1", "a", 1.0),
    ]
    assert qrels.rows is qrels.subtopics
    # Qrels of the frame alone have none; and a scale keeps them.
    assert Qrels(qrels.frame).subtopics is None
    scaled = qrels.on_scale((0, 3))
    assert scaled.subtopics is not None
    assert scaled.subtopics.equals(qrels.subtopics)
    assert scaled.scale == (0, 3)


def test_a_subtopic_that_never_changes_is_none() -> None:
    qrels = by_subtopic("1 0 a 1,2 0 a 1")
    assert qrels.subtopics is None
    assert qrels.rows is qrels.frame
    with pytest.raises(InputError, match="document a is judged twice \\(query 1\\)"):
        by_subtopic("1 0 a 1,1 0 a 1")
    empty = pl.DataFrame({"query_id": ["q"], "subtopic": [None], "doc_id": ["a"], "grade": [1]})
    assert Qrels(empty).subtopics is None
    assert Qrels(empty.clear()).subtopics is None


def test_subtopics_are_kept_where_no_document_is_under_two() -> None:
    qrels = by_subtopic("1 4 a 1,2 7 a 0")
    assert qrels.subtopics is not None
    assert qrels.to_dict() == {"1": {"a": 1.0}, "2": {"a": 0.0}}
    qrels.refuse_repeats("trec_eval 9")


def test_a_document_twice_under_one_subtopic_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        by_subtopic("1 4 a 1,1 5 a 1,1 4 a 0")
    assert str(caught.value) == (
        "qrels: document a is judged twice for subtopic 4 (query 1)\n"
        "  fix: keep one judgment for each query, subtopic and document"
    )


@pytest.mark.parametrize("lacking", [None, ""])
def test_a_subtopic_in_some_rows_only_is_refused(lacking: str | None) -> None:
    frame = pl.DataFrame(
        {"query_id": ["q", "q"], "subtopic": ["1", lacking], "doc_id": ["a", "b"], "grade": [1, 1]}
    )
    with pytest.raises(InputError, match="document b has no subtopic, but others have one"):
        Qrels(frame)


def test_repeats_are_refused_for_a_tool_without_subtopics() -> None:
    with pytest.raises(InputError) as caught:
        by_subtopic("1 4 b 1,1 4 a 1,1 5 a 1", "x.qrels").refuse_repeats("trec_eval 10")
    said = str(caught.value)
    assert said.startswith(
        "x.qrels: trec_eval 10 does not support subtopics and aborts here (exit 4)"
    )
    assert "document a is judged for several of them" in said
    Qrels.from_dict({"q": {"a": 1.0}}).refuse_repeats("trec_eval 10")


def test_subtopics_that_are_numbers_become_text() -> None:
    frame = pl.DataFrame(
        {"query_id": ["q", "q"], "doc_id": ["a", "a"], "subtopic": [1, 2], "grade": [0, 1]}
    )
    subtopics = Qrels.from_frame(frame).subtopics
    assert subtopics is not None
    assert subtopics["subtopic"].to_list() == ["1", "2"]
