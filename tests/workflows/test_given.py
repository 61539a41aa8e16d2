"""Given: whatever a caller may hand over becomes a table, or an error that says what may."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError
from karat.tables import Documents, Qrels, Queries, Run
from karat.workflows import given

FRAME = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "grade": [1], "score": [1.0]})


def test_tables_stay_what_they_are() -> None:
    qrels, run = Qrels.from_frame(FRAME), Run.from_frame(FRAME)
    queries = Queries(pl.DataFrame({"query_id": ["q"]}))
    documents = Documents(pl.DataFrame({"doc_id": ["a"]}))
    assert given.qrels(qrels) is qrels
    assert given.runs(run) == [run]
    assert given.runs((run, run)) == [run, run]
    assert given.queries(queries) is queries
    assert given.documents(documents) is documents


def test_nothing_stays_nothing() -> None:
    assert given.queries(None) is None
    assert given.documents(None) is None


@pytest.mark.parametrize("kind", [str, Path])
def test_paths_are_read(kind: type, tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text(json.dumps({"query_id": "q", "kind": "x"}) + "\n")
    (tmp_path / "documents.jsonl").write_text(json.dumps({"doc_id": "a", "title": "A"}) + "\n")
    (tmp_path / "bm25.trec").write_text("q Q0 a 1 1.5 tag\n")
    (tmp_path / "qrels.trec").write_text("q 0 a 2\n")
    queries = given.queries(kind(tmp_path / "queries.jsonl"))
    assert queries is not None
    assert queries.attribute("kind") == {"q": "x"}
    documents = given.documents(kind(tmp_path / "documents.jsonl"))
    assert documents is not None
    assert len(documents) == 1
    assert given.qrels(kind(tmp_path / "qrels.trec")).to_dict() == {"q": {"a": 2.0}}
    [run] = given.runs([kind(tmp_path / "bm25.trec")])
    assert (run.name, run.to_dict()) == ("bm25", {"q": {"a": 1.5}})


def test_dicts_and_frames_are_read() -> None:
    assert given.qrels({"q": {"a": 1}}).to_dict() == {"q": {"a": 1.0}}
    assert given.qrels(FRAME).to_dict() == {"q": {"a": 1.0}}
    assert [run.to_dict() for run in given.runs([{"q": {"a": 1.0}}, FRAME])] == (
        [{"q": {"a": 1.0}}] * 2
    )
    queries = given.queries(pl.DataFrame({"query_id": ["q"]}))
    assert queries is not None
    assert len(queries) == 1
    documents = given.documents(pl.DataFrame({"doc_id": ["a"]}))
    assert documents is not None
    assert len(documents) == 1


def test_anything_else_is_refused() -> None:
    with pytest.raises(InputError, match="a int is not a data frame"):
        given.qrels(7)
    with pytest.raises(InputError, match="pass a path, a dict, or a frame"):
        given.runs({"q", "r"})


def test_runs_may_come_with_names() -> None:
    run = {"q1": {"a": 2.0, "b": 1.0}}
    named = given.runs({"bm25": run, "dense": Run.from_dict(run)})
    assert [one.name for one in named] == ["bm25", "dense"]
    assert [one.name for one in given.runs(run)] == ["run"]
    assert [one.name for one in given.runs({"q1": {}, "q2": None})] == ["run"]
