"""Quepid's snapshots: rankings by place."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError
from karat.formats.exchange.catalogue import read_exchange, write_exchange
from karat.tables import Run
from karat.tables.golden.golden_sets import Exchange

HEADER = "Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position"


def order(frame: pl.DataFrame) -> list[tuple[str, str]]:
    """Query and document as karat ranks them."""
    return Run.from_frame(frame).frame().select("query_id", "doc_id").rows()


def test_a_sheet_of_two_snapshots_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(f"{HEADER},title\nold,t,5,a,y,2,Y\nold,t,5,a,x,1,X\nnew,t,5,a,y,1,Y\n")
    found = read_exchange(path)
    assert found.format == "quepid-snapshot-csv"
    assert order(found.runs["old"]) == [("q1", "x"), ("q1", "y")]
    assert order(found.runs["new"]) == [("q1", "y")]
    assert found.documents is not None
    assert found.documents["title"].to_list() == ["Y", "X"]
    assert "the time of a snapshot" in found.lost


@pytest.mark.parametrize("header", ["Query Text,Doc ID,Doc Position", "query,doc,position"])
def test_a_sheet_without_a_name_is_called_as_its_file(header: str, tmp_path: Path) -> None:
    path = tmp_path / "static.csv"
    path.write_text(f"{header}\na,x,1\n")
    assert list(read_exchange(path).runs) == ["static"]


def test_an_exported_snapshot_has_ids_and_ratings(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    snapshot = {
        "id": 1,
        "name": "old",
        "docs": {"7": [{"id": "b", "fields": {"title": "B"}}, {"id": "a"}], "8": []},
        "queries": [{"query_id": 7, "query_text": "q", "ratings": {"a": 3}}],
        "scores": [{"query_id": 7, "score": 0.5}],
    }
    path.write_text(json.dumps(snapshot))
    found = read_exchange(path)
    assert found.format == "quepid-snapshot"
    assert order(found.runs["old"]) == [("7", "b"), ("7", "a")]
    assert found.judgments is not None
    assert found.judgments.rows() == [("7", "a", 3.0, None, None)]
    assert "queries answered with nothing" in found.lost


@pytest.mark.parametrize("name", ["quepid-snapshot", "quepid-snapshot-csv"])
def test_a_run_goes_out_in_its_order_and_comes_back(name: str, tmp_path: Path) -> None:
    # Equal scores: karat ranks the higher id first, and so must the snapshot.
    run = pl.DataFrame(
        {"query_id": ["1", "1", "1"], "doc_id": ["a", "b", "c"], "score": [1.0, 1.0, 2.0]}
    )
    queries = pl.DataFrame({"query_id": ["1", "2"], "text": ["=x", "y"]})
    documents = pl.DataFrame({"doc_id": ["a", "z"], "title": ["=A", "Z"]})
    path = tmp_path / "out"
    given = Exchange("made", queries=queries, documents=documents, runs={"r": run})
    told = write_exchange(given, path, name)
    back = read_exchange(path)
    assert back.format == name
    assert [doc for _, doc in order(back.runs["r"])] == ["c", "b", "a"]
    assert back.queries is not None
    assert back.queries["text"].to_list() == ["=x"]
    assert back.documents is not None
    assert back.documents.rows() == [("a", "=A")]
    assert "scores: the format stores positions" in told.lost
    assert "1 query in no run" in told.lost
    assert "1 document in no run" in told.lost


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (f"{HEADER}\nold,t,5,a,x,first\n", "line 2: the position 'first' is not a number"),
        (f"{HEADER}\nold,t,5,a,x,1\nold,t,5,a,x,2\n", "duplicate document x in the ranking"),
        (f"{HEADER}\nold,t,5,,x,1\n", "line 2: the query or the name is empty"),
    ],
)
def test_damaged_sheets_are_refused(text: str, match: str, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=match):
        read_exchange(path)


def test_without_a_run_there_is_nothing_to_write(tmp_path: Path) -> None:
    judged = pl.DataFrame({"query_id": ["1"], "doc_id": ["a"], "grade": [1.0]})
    with pytest.raises(InputError, match="no runs to write"):
        write_exchange(Exchange("made", judgments=judged), tmp_path / "x", "quepid-snapshot")
