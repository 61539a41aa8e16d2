"""Sheets of judgments, TREC qrels, BEIR folders, and Rankquest's cases."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from karat import formats
from karat.errors import InputError
from karat.formats.exchange.catalogue import read_exchange, write_exchange
from karat.tables.golden.golden_sets import Exchange

JUDGED = pl.DataFrame(
    {
        "query_id": ["1", "1", "1", "2"],
        "doc_id": ["a", "a", "b", "a"],
        "grade": [3.0, 2.0, None, 0.5],
        "rater": ["ann", "bob", "ann", None],
        "reason": ["why, so", None, "no text", None],
    }
)
QUERIES = pl.DataFrame({"query_id": ["1", "2", "3"], "text": ["star wars", None, "dune"]})


@pytest.mark.parametrize("name", ["out.csv", "out.tsv"])
def test_a_sheet_holds_everything_that_is_judged(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    told = write_exchange(Exchange("made", queries=QUERIES, judgments=JUDGED), path, "csv")
    back = read_exchange(path)
    assert back.format == "csv"
    assert back.judgments is not None
    assert back.judgments.equals(JUDGED)
    assert back.queries is not None
    assert back.queries.equals(QUERIES)
    assert told.lost == []


@pytest.mark.parametrize(
    "header",
    [
        "query_id,doc_id,grade,grader",
        "qid\tdocid\trating\tassessor",
        "Query-ID,Document,Relevance,Judge",
    ],
)
def test_columns_may_be_called_otherwise(header: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(f"{header}\n" + ("\t" if "\t" in header else ",").join("7a2m") + "\n")
    found = read_exchange(path)
    assert found.judgments is not None
    assert found.judgments.rows() == [("7", "a", 2.0, "m", None)]


def test_a_text_without_an_id_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("query,doc,rater,grade,mood\nstar wars,a,ann,3,good\n")
    found = read_exchange(path)
    assert found.judgments is not None
    assert found.judgments.rows() == [("q1", "a", 3.0, "ann", None)]
    assert any("rename it to query_id if it is the id" in said for said in found.assumed)
    assert found.lost == ["the column 'mood'"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("query_id,doc_id,grade\n1,a,high\n", "line 2: the rating 'high' is not a number"),
        ("query_id,doc_id,grade\n,a,1\n", "line 2: the query is empty"),
        ("query_id,doc_id,grade\n1,,1\n", "line 2: a grade without a document"),
        ("query_id,doc_id,grade,rater\n1,a,1,m\n1,a,2,m\n", "line 3: .* twice by m: 1 and 2"),
        ("query_id,query,doc_id,grade\n1,x,a,1\n1,y,b,2\n", "the query id has two texts"),
        ("query_id,doc_id\n1,a\n", "no column 'grade'"),
        ("query_id,doc_id,grade\nq,a,1\nq,b", r"line 3: the row ends before its grade"),
    ],
)
def test_a_damaged_sheet_is_refused_where_it_is(text: str, match: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=match):
        read_exchange(path, "csv")


ONE = JUDGED.filter(pl.col("rater").is_null() | (pl.col("rater") == "ann"))


def test_trec_qrels_keep_grades_and_say_what_else_there_was(tmp_path: Path) -> None:
    path = tmp_path / "out"
    told = write_exchange(Exchange("made", queries=QUERIES, judgments=ONE), path, "trec")
    assert path.read_text() == "1 0 a 3.0\n2 0 a 0.5\n"
    back = read_exchange(path)
    assert back.format == "trec"
    assert back.kept == ["2 judgments of 2 queries and 1 document"]
    assert set(told.lost) == {
        "that 1 document could not be judged",
        "the reasons of 1 judgment",
        "the names of 1 rater",
        "1 query without judgments",
        "'text' of 1 query",
    }


def test_trec_ids_hold_no_white_space(tmp_path: Path) -> None:
    judged = pl.DataFrame({"query_id": ["a b"], "doc_id": ["x"], "grade": [1.0]})
    with pytest.raises(InputError, match=r"white space separates(?s:.*)fix: use the format csv"):
        write_exchange(Exchange("made", judgments=judged), tmp_path / "x", "trec")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_line_of_trec_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.qrels"
    path.write_text("1 0 a 3\n1 0 b\n")
    with pytest.raises(InputError, match="line 2"):
        read_exchange(path)
    path.write_text("1 0 a 3\n1 0 b 1\n\n1 0 a 2\n")
    with pytest.raises(InputError, match=r"line 4: .*judged twice"):
        read_exchange(path)


def test_a_beir_folder_goes_out_and_comes_back(tmp_path: Path) -> None:
    documents = pl.DataFrame({"doc_id": ["a", "z"], "title": ["A", "Z"], "year": [1977, 1980]})
    folder = tmp_path / "set"
    given = Exchange("made", queries=QUERIES, documents=documents, judgments=ONE)
    told = write_exchange(given, folder, "beir")
    back = read_exchange(folder)
    assert back.judgments is not None
    assert back.judgments.select("query_id", "doc_id", "grade").rows() == [
        ("1", "a", 3.0),
        ("2", "a", 0.5),
    ]
    assert back.documents is not None
    assert back.documents.select("doc_id", "title", "year").equals(documents)
    assert formats.read_queries(folder).frame["text"].to_list() == ["star wars", "2", "dune"]
    assert any("1 query without text" in said for said in told.assumed)
    with pytest.raises(InputError, match="the folder already exists"):
        write_exchange(given, folder, "beir")
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_folder_that_is_no_beir_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a BEIR folder"):
        read_exchange(tmp_path)


def test_rankquest_cases(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    rating = {"documentId": "a", "rating": 5, "label": "x", "comment": "why"}
    case = {
        "id": "1",
        "searchContext": {"q": "star wars", "size": "10"},
        "ratings": [rating],
        "tags": ["sf", "old"],
        "comment": "c",
    }
    path.write_text(json.dumps([case]))
    found = read_exchange(path)
    assert found.format == "rankquest"
    assert found.judgments is not None
    assert found.judgments.rows() == [("1", "a", 5.0, None, "why")]
    assert found.queries is not None
    assert found.queries.rows() == [("1", "star wars", "c", "sf, old")]
    assert found.lost == ["'size' of a search", "'label' of a rating"]
