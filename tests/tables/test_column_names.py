from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest

from karat import formats
from karat.errors import InputError
from karat.tables.column_names import choose


@pytest.mark.parametrize("query", ["query_id", "query-id", "qid", "topic", "q_id", "Query ID"])
@pytest.mark.parametrize("doc", ["doc_id", "corpus-id", "docid", "docno", "pid", "doc"])
def test_usual_spellings(query: str, doc: str) -> None:
    for score in ("score", "sim"):
        assert choose([query, doc, score], "run", "x")["score"] == score
    for grade in ("grade", "relevance", "rel", "label", "score"):
        found = choose([query, doc, grade], "qrels", "x")
        assert found == {"query_id": query, "doc_id": doc, "grade": grade}


def test_the_canonical_name_wins() -> None:
    names = ["doc", "doc_id", "qid", "rel", "score"]
    found = choose(names, "qrels", "x")
    assert found == {"query_id": "qid", "doc_id": "doc_id", "grade": "rel"}


def test_the_number_of_pyterrier_is_not_the_document() -> None:
    assert choose(["qid", "docid", "docno", "score"], "run", "x")["doc_id"] == "docno"
    assert choose(["qid", "docid", "score"], "run", "x")["doc_id"] == "docid"
    with pytest.raises(InputError, match="'docno' and 'pid' both mean doc_id"):
        choose(["qid", "docno", "pid", "score"], "run", "x")


def test_a_rank_alone_is_a_score(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("qid,docno,rank\n1,a,1\n1,b,2\n")
    assert formats.read_run(tmp_path / "x.csv").to_dict() == {"1": {"a": -1.0, "b": -2.0}}


def test_a_missing_column_names_the_nearest() -> None:
    with pytest.raises(InputError, match="'scored'") as caught:
        choose(["qid", "docno", "scored"], "run", "x")
    assert caught.value.fix == "rename 'scored' to 'score'"


def test_numbers_as_ids(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("qid,docno,score\n007,1e5,1\nNA,null,2\n")
    assert formats.read_run(tmp_path / "x.csv").to_dict() == {
        "007": {"1e5": 1.0},
        "NA": {"null": 2},
    }
    (tmp_path / "x.jsonl").write_text(
        '{"qid": 7, "docno": 12345678901234567890123, "score": 1}\n'
        '{"qid": "NA", "docno": "x", "score": 2}\n'
    )
    assert formats.read_run(tmp_path / "x.jsonl").to_dict() == {
        "7": {"12345678901234567890123": 1.0},
        "NA": {"x": 2.0},
    }
    out = io.BytesIO()
    pl.DataFrame({"qid": [7], "docno": [2**60], "score": [1]}).write_parquet(out)
    (tmp_path / "x.parquet").write_bytes(out.getvalue())
    assert formats.read_run(tmp_path / "x.parquet").to_dict() == {"7": {str(2**60): 1.0}}


def test_answers_in_rows(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        "query_id,doc_id,score,state,latency_us,error\n"
        "1,a,2,ok,1200,\n1,b,1,,,\n2,,,empty,5,\n3,,,failed,,timeout\n"
    )
    run = formats.read_run(tmp_path / "x.csv")
    assert run.answers.select("query_id", "state", "returned", "latency_us", "error").rows() == [
        ("1", "ok", 2, 1200, None),
        ("2", "empty", 0, 5, None),
        ("3", "failed", 0, None, "timeout"),
    ]


def test_answers_between_lines_of_json(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(
        '{"query_id": "1", "doc_id": "a", "score": 2, "rank": 1}\n'
        '{"query_id": "1", "doc_id": "b", "score": 1}\n'
        '{"query_id": "2", "state": "failed", "error": "timeout"}\n'
    )
    run = formats.read_run(tmp_path / "x.jsonl")
    assert run.to_dict() == {"1": {"a": 2.0, "b": 1.0}}
    assert run.answers.select("query_id", "state").rows() == [("1", "ok"), ("2", "failed")]
