"""Slices: by attributes, and by what needs no attribute."""

from __future__ import annotations

import polars as pl
import pytest

from karat.errors import UsageError
from karat.tables import Queries
from karat.workflows.evaluate import evaluate

QRELS = {"a": {"d": 1}, "b": {f"d{i}": 1 for i in range(3)}, "c": {f"d{i}": 1 for i in range(20)}}
RUN = {query: {"d": 1.0, "d0": 0.5} for query in QRELS}
QUERIES = Queries(
    pl.DataFrame(
        {
            "query_id": ["a", "b", "c"],
            "text": ["one", "one two three four", None],
            "kind": ["x", "", "x"],
        }
    )
)


def sliced(by: str, queries: Queries | None = QUERIES) -> list[tuple[str | None, int]]:
    rows = evaluate(QRELS, RUN, "RR", queries=queries, by=by).slices
    return [(row.slice, row.n) for row in rows]


def test_by_an_attribute() -> None:
    assert sliced("kind") == [("(none)", 1), ("x", 2)]


def test_by_how_much_there_is_to_find() -> None:
    assert sliced("relevant_documents") == [("1", 1), ("2 to 3", 1), ("11 and more", 1)]
    assert sliced("relevant_documents", None) == sliced("relevant_documents")


def test_by_the_length_of_the_query() -> None:
    assert sliced("query_length") == [("1 word", 1), ("3 to 4 words", 1)]  # c has no text


def test_an_attribute_of_ones_own_goes_first() -> None:
    own = Queries(QUERIES.frame.with_columns(query_length=pl.Series(["s", "l", "l"])))
    assert sliced("query_length", own) == [("l", 2), ("s", 1)]


def test_what_is_lacking_is_told() -> None:
    with pytest.raises(UsageError, match="needs the queries"):
        sliced("kind", None)
    with pytest.raises(UsageError, match="needs the texts"):
        sliced("query_length", Queries(QUERIES.frame.drop("text")))
