"""Queries: attributes to slice by, weights above 0."""

from __future__ import annotations

import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.tables import Queries

FRAME = pl.DataFrame(
    {
        "query_id": ["q1", "q2", "q3"],
        "text": ["one", "two", "three"],
        "weight": [1.0, 2.0, 0.5],
        "stratum": ["head", "tail", None],
        "words": [1, 2, 3],
    }
)


def test_every_further_column_is_an_attribute() -> None:
    queries = Queries(FRAME)
    assert queries.attributes == ["stratum", "words"]
    assert queries.attribute("stratum") == {"q1": "head", "q2": "tail"}
    assert queries.attribute("words") == {"q1": "1", "q2": "2", "q3": "3"}
    assert queries.weights() == {"q1": 1.0, "q2": 2.0, "q3": 0.5}
    assert len(queries) == 3
    assert "attributes ['stratum', 'words']" in repr(queries)


def test_without_weights_there_are_none() -> None:
    assert Queries(FRAME.drop("weight")).weights() == {}


def test_an_unknown_attribute_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="they have stratum, words; did you mean stratum"):
        Queries(FRAME).attribute("strata")
    with pytest.raises(UsageError, match="queries have no attributes"):
        Queries(FRAME.select("query_id")).attribute("strata")
    # The text is not something to slice by.
    with pytest.raises(UsageError):
        Queries(FRAME).attribute("text")


def test_a_query_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"duplicate query id \(query q1\)"):
        Queries(pl.concat([FRAME, FRAME]))


@pytest.mark.parametrize("weight", [-1.0, -1e-300, 1e-10, 1e308, float("nan"), float("inf"), None])
def test_a_weight_must_be_0_or_above_and_within_reason(weight: float | None) -> None:
    frame = pl.DataFrame(
        {"query_id": ["a", "b"], "weight": [1.0, weight]}, schema_overrides={"weight": pl.Float64}
    )
    with pytest.raises(InputError, match="is neither 0 nor a number from 1e-9 to 1e9") as caught:
        Queries(frame, source="queries.csv")
    assert caught.value.query == "b"


def test_a_weight_of_0_is_one() -> None:
    frame = pl.DataFrame({"query_id": ["a", "b"], "weight": [2.0, 0.0]})
    assert Queries(frame).weights() == {"a": 2.0, "b": 0.0}
    assert Queries(pl.DataFrame({"query_id": ["a"], "weight": [0]})).weights() == {"a": 0.0}


def test_no_id_column_and_empty_ids_are_refused() -> None:
    with pytest.raises(InputError, match="fix: rename 'Query_ID' to 'query_id'"):
        Queries(pl.DataFrame({"Query_ID": ["a"]}))
    with pytest.raises(InputError, match="row 1: query_id is empty"):
        Queries(pl.DataFrame({"query_id": [None]}, schema={"query_id": pl.String}))


@pytest.mark.parametrize(
    "marks",
    [
        [True, False, None],
        ["true", "no", ""],
        [1, 0, None],
        [1.0, 0.0, None],
        [" Yes", "0", "FALSE"],
    ],
)
def test_no_answer_is_read_however_it_is_spelt(marks: list[object]) -> None:
    queries = Queries(pl.DataFrame({"query_id": ["1", "2", "3"], "no_answer": marks}))
    assert queries.no_answer() == {"1"}
    assert queries.frame["no_answer"].to_list() == [True, False, False]
    assert queries.attribute("no_answer") == {"1": "true", "2": "false", "3": "false"}


def test_without_the_column_every_query_has_an_answer() -> None:
    assert Queries(pl.DataFrame({"query_id": ["1"]})).no_answer() == set()


@pytest.mark.parametrize("mark", ["maybe", 2, 0.5])
def test_a_mark_that_is_neither_is_refused(mark: object) -> None:
    with pytest.raises(InputError, match=r"is neither true nor false.*query 2"):
        Queries(pl.DataFrame({"query_id": ["1", "2"], "no_answer": [None, mark]}))
