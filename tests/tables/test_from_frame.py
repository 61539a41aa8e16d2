"""Anybody's frames at the door: ids come through letter by letter, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from karat.errors import InputError
from karat.tables import Documents, Qrels, Queries, Run

Columns = dict[str, list[Any]]
IDS = ["007", "NA", "nan", "None", "1e5", "é"]


def with_pandas(columns: Columns) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


def with_pyarrow(columns: Columns) -> Any:
    return pytest.importorskip("pyarrow").table(columns)


def with_duckdb(columns: Columns) -> Any:
    duckdb = pytest.importorskip("duckdb")
    table = pytest.importorskip("pyarrow").table(columns)
    return duckdb.from_arrow(table)


def with_polars(columns: Columns) -> Any:
    return pl.DataFrame(columns)


@pytest.fixture(params=[with_pandas, with_pyarrow, with_duckdb, with_polars])
def frame_of(request: pytest.FixtureRequest) -> Callable[[Columns], Any]:
    made: Callable[[Columns], Any] = request.param
    return made


def test_ids_stay_as_they_are(frame_of: Callable[[Columns], Any]) -> None:
    grades = [0.0, 1.0, 2.0, 0.5, -1.0, 3.0]
    frame = frame_of({"query_id": ["007"] * 6, "doc_id": IDS, "grade": grades, "more": IDS})
    expected = dict(zip(IDS, grades, strict=True))
    assert Qrels.from_frame(frame).to_dict() == {"007": expected}
    frame = frame_of({"query_id": IDS, "doc_id": IDS, "score": grades})
    assert Run.from_frame(frame, name="mine").to_dict() == {
        doc: {doc: score} for doc, score in expected.items()
    }
    assert Queries.from_frame(frame_of({"query_id": IDS})).frame["query_id"].to_list() == IDS
    assert Documents.from_frame(frame_of({"doc_id": IDS})).frame["doc_id"].to_list() == IDS


def test_whole_numbers_become_ids_and_numbers(frame_of: Callable[[Columns], Any]) -> None:
    frame = frame_of({"query_id": [1, 2], "doc_id": [70, 10], "grade": [1, 0]})
    assert Qrels.from_frame(frame).to_dict() == {"1": {"70": 1.0}, "2": {"10": 0.0}}
    frame = frame_of({"query_id": [1, 1], "doc_id": [7, 10], "score": [1, 2], "rank": [1, 2]})
    run = Run.from_frame(frame)
    assert run.to_dict() == {"1": {"10": 2.0, "7": 1.0}}
    assert run.contradicted == 1


def test_ids_with_a_decimal_point_are_refused(frame_of: Callable[[Columns], Any]) -> None:
    # What pandas makes of whole numbers with one missing.
    frame = frame_of({"query_id": [1.0, 2.0], "doc_id": ["a", "b"], "grade": [1.0, 2.0]})
    with pytest.raises(InputError) as caught:
        Qrels.from_frame(frame, source="qrels.parquet")
    assert str(caught.value) == (
        "qrels.parquet: column 'query_id' has numbers with a decimal point; ids are strings\n"
        "  fix: read 'query_id' as text; then 007 stays 007"
    )


@pytest.mark.parametrize("empty", [None, ""])
def test_an_id_that_is_not_there_is_refused(
    frame_of: Callable[[Columns], Any], empty: str | None
) -> None:
    columns: Columns = {"query_id": ["q", empty], "doc_id": ["a", "b"], "grade": [1.0, 2.0]}
    with pytest.raises(InputError, match="row 2: query_id is empty"):
        Qrels.from_frame(frame_of(columns))
    columns = {"query_id": ["q", "q"], "doc_id": ["a", empty], "score": [1.0, 2.0]}
    with pytest.raises(InputError, match="row 2: doc_id is empty"):
        Run.from_frame(frame_of(columns))


def test_a_number_that_is_not_there_is_refused(frame_of: Callable[[Columns], Any]) -> None:
    columns: Columns = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "grade": [1.0, None]}
    with pytest.raises(InputError, match="document b is not a finite number") as caught:
        Qrels.from_frame(frame_of(columns))
    assert caught.value.query == "q"
    columns = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.0, None]}
    with pytest.raises(InputError, match="the score of document b is not a number"):
        Run.from_frame(frame_of(columns))


def test_numbers_written_as_text_are_read(frame_of: Callable[[Columns], Any]) -> None:
    columns: Columns = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "grade": ["1", "0.5"]}
    assert Qrels.from_frame(frame_of(columns)).to_dict() == {"q": {"a": 1.0, "b": 0.5}}
    columns["grade"] = ["1", "good"]
    with pytest.raises(InputError, match="row 2: grade 'good' is not a number"):
        Qrels.from_frame(frame_of(columns))


def test_a_missing_column_names_the_nearest(frame_of: Callable[[Columns], Any]) -> None:
    frame = frame_of({"queryno": ["q"], "doc_id": ["a"], "score": [1.0]})
    with pytest.raises(InputError) as caught:
        Run.from_frame(frame, name="mine")
    assert str(caught.value) == (
        "mine: no column 'query_id'; there are 'queryno', 'doc_id', 'score'\n"
        "  fix: rename 'queryno' to 'query_id'"
    )
    with pytest.raises(InputError, match="no column 'doc_id'; there are 'x'"):
        Documents.from_frame(frame_of({"x": ["a"]}))


def test_frames_of_pyterrier(frame_of: Callable[[Columns], Any]) -> None:
    # Its runs have Terrier's own number of each document as docid, and ranks from 0.
    qrels = frame_of({"qid": ["q1", "q1"], "docno": ["a", "b"], "label": [2, 0]})
    assert Qrels.from_frame(qrels).to_dict() == {"q1": {"a": 2.0, "b": 0.0}}
    columns: Columns = {"qid": ["q1"] * 2, "docid": [70, 3], "docno": ["b", "a"]}
    columns |= {"rank": [0, 1], "score": [2.5, 1.5], "query": ["red shoes"] * 2}
    run = Run.from_frame(frame_of(columns))
    assert run.to_dict() == {"q1": {"b": 2.5, "a": 1.5}}
    assert run.contradicted == 0
    del columns["score"]
    assert list(Run.from_frame(frame_of(columns)).to_dict()["q1"]) == ["b", "a"]
    topics = Queries.from_frame(frame_of({"qid": ["q1"], "query": ["red shoes"], "kind": ["x"]}))
    assert (topics.texts(), topics.attributes) == ({"q1": "red shoes"}, ["kind"])
    documents = Documents.from_frame(frame_of({"docno": ["a"], "body": ["A shoe"]}))
    assert documents.frame.row(0, named=True) == {"doc_id": "a", "text": "A shoe"}


def test_frames_of_ir_measures(frame_of: Callable[[Columns], Any]) -> None:
    columns: Columns = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "relevance": [1, 0]}
    columns["iteration"] = ["0", "0"]
    qrels = Qrels.from_frame(frame_of(columns))
    assert (qrels.to_dict(), qrels.subtopics) == ({"q": {"a": 1.0, "b": 0.0}}, None)


def test_a_rank_that_is_not_a_number_is_refused(frame_of: Callable[[Columns], Any]) -> None:
    frame = frame_of({"qid": ["q", "q"], "docno": ["a", "b"], "rank": ["1", "second"]})
    with pytest.raises(InputError, match="the score of document b is not a number"):
        Run.from_frame(frame)


def test_categories_are_text() -> None:
    pd = pytest.importorskip("pandas")
    ids = pd.Categorical(["007", "NA"])
    frame = pd.DataFrame({"query_id": ids, "doc_id": ids, "grade": [1, 2]})
    assert Qrels.from_frame(frame).to_dict() == {"007": {"007": 1.0}, "NA": {"NA": 2.0}}
    with_type = pl.DataFrame({"query_id": ["007"], "doc_id": ["a"], "grade": [1]}).cast(
        {"query_id": pl.Categorical}
    )
    assert Qrels.from_frame(with_type).to_dict() == {"007": {"a": 1.0}}


def test_an_index_of_pandas_does_not_matter() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"query_id": ["q", "q"], "doc_id": ["a", "b"], "grade": [1, 2]}, index=[7, 3]
    )
    assert Qrels.from_frame(frame).to_dict() == {"q": {"a": 1.0, "b": 2.0}}


def test_a_plan_is_no_data_and_a_list_no_frame() -> None:
    plan = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "grade": [1]}).lazy()
    with pytest.raises(InputError, match=r"fix: call \.collect\(\) on it"):
        Qrels.from_frame(plan)
    with pytest.raises(InputError, match="a list is not a data frame"):
        Qrels.from_frame([("q", "a", 1)])
