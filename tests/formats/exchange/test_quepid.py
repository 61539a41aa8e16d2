"""Quepid's ratings, in the shapes of its own exports."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError
from karat.formats.exchange.catalogue import read_exchange, write_exchange
from karat.tables.golden.golden_sets import Exchange

# As ratings_controller.rb writes it: an unrated query is padded, a formula has a space in front,
# there is no line end at the end.
BASIC = 'query,docid,rating\nstar wars,11,3\nstar wars,1891,0\n" =1+1, or",7,1.0\ndune,,'


def rows(found: Exchange) -> list[tuple[object, ...]]:
    """Judgments as query text, document, grade."""
    assert found.queries is not None
    assert found.judgments is not None
    texts = dict(found.queries.select("query_id", "text").iter_rows())
    judged = found.judgments.select("query_id", "doc_id", "grade").iter_rows()
    return [(texts[query], doc, grade) for query, doc, grade in judged]


def test_the_basic_sheet(tmp_path: Path) -> None:
    path = tmp_path / "case.csv"
    path.write_text(BASIC)
    found = read_exchange(path)
    assert found.format == "quepid-csv"
    assert rows(found) == [
        ("star wars", "11", 3.0),
        ("star wars", "1891", 0.0),
        ("=1+1, or", "7", 1.0),
    ]
    assert found.queries is not None
    assert found.queries["query_id"].to_list() == ["q1", "q2", "q3"]
    assert found.kept[0] == "3 judgments of 2 queries and 3 documents"
    assert any("q1, q2, …" in said for said in found.assumed)
    assert any("1 cell with a space before =" in said for said in found.assumed)


def test_what_karat_writes_is_what_quepid_writes(tmp_path: Path) -> None:
    source, out = tmp_path / "case.csv", tmp_path / "out.csv"
    source.write_text(BASIC)
    told = write_exchange(read_exchange(source), out, "quepid-csv")
    assert out.read_text() == BASIC.replace("1.0", "1")
    assert any("1 cell that a spreadsheet would run as a formula" in said for said in told.assumed)


@pytest.mark.parametrize("cell", ["=1", "+1", "-1", "@a", "\tx", "\rx", " =1", "  -a"])
def test_no_cell_is_a_formula(cell: str, tmp_path: Path) -> None:
    judged = pl.DataFrame({"query_id": ["1"], "doc_id": [cell], "grade": [1.0]})
    queries = pl.DataFrame({"query_id": ["1"], "text": [cell]})
    path = tmp_path / "out.csv"
    write_exchange(Exchange("made", queries=queries, judgments=judged), path, "quepid-csv")
    text = path.read_bytes().decode().partition("\n")[2]
    assert text.replace('"', "").startswith(" ")
    assert rows(read_exchange(path)) == [(cell, cell, 1.0)]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("query,docid,rating\na,b,x\n", "line 2: the rating 'x' is not a number"),
        ("query,docid,rating\na,b,NaN\n", "line 2: the rating 'NaN' is not a number"),
        ("query,docid,rating\na,b,1e999\n", "is not a number"),
        ("query,docid,rating\n,b,1\n", "line 2: the query is empty"),
        ("query,docid,rating\na,,1\n", "line 2: a rating without a document"),
        ("query,docid,rating\na,b,1\na,b,2\n", "line 3: document b is judged twice: 1 and 2"),
        ("query,docid,rating\na,b,1,2\n", "line 2: 4 cells where there are 3 columns"),
        ("query,docid,rating\n", "contains no queries"),
    ],
)
def test_a_damaged_sheet_is_refused_where_it_is(text: str, match: str, tmp_path: Path) -> None:
    path = tmp_path / "case.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=match):
        read_exchange(path)


def test_the_same_judgment_twice_counts_once_and_is_said(tmp_path: Path) -> None:
    path = tmp_path / "case.csv"
    path.write_text("query,docid,rating\na,b,1\na,b,1.0\n")
    found = read_exchange(path)
    assert rows(found) == [("a", "b", 1.0)]
    assert "1 judgment repeated with the same grade: counted once" in found.assumed


def test_json_without_ratings_and_with_null(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(
        '{"queries": [{"query": "a", "ratings": {"x": 2, "y": null}}, {"query": "b"}, '
        '{"query": "a", "ratings": {"z": "1"}}]}'
    )
    found = read_exchange(path)
    assert rows(found) == [("a", "x", 2.0), ("a", "z", 1.0)]
    assert found.lost == ["documents without a rating"]
    assert any("the entries of 1 text were merged" in said for said in found.assumed)


@pytest.mark.parametrize(
    "sent",
    [
        {"file_format": "hash", "ratings": [{"query_text": "a b", "doc_id": 7, "rating": "2"}]},
        {"ratings": [{"query_text": "a b", "doc_id": "7", "rating": 2}]},
        {"file_format": "ltr", "ltr_text": "2 qid:1 # 7 a b"},
        {
            "file_format": "rre",
            "rre_json": json.dumps(
                {"queries": [{"placeholders": {"$query": "a b"}, "relevant_documents": {"2": [7]}}]}
            ),
        },
    ],
)
def test_what_the_ratings_import_takes(sent: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "sent.json"
    path.write_text(json.dumps({"case_id": 5, **sent}))
    found = read_exchange(path)
    assert found.format == "quepid-api"
    assert rows(found) == [("a b", "7", 2.0)]
    assert "the number of the case" in found.lost


def test_lines_for_learning_to_rank(tmp_path: Path) -> None:
    path = tmp_path / "case.txt"
    path.write_text(
        "\n\n3 qid:1 # 1370 star trek\n\n0.5 qid:2 1:0.3 # x7 dune\n"
    )  # as erb leaves it
    found = read_exchange(path)
    assert found.format == "quepid-ltr"
    assert rows(found) == [("star trek", "1370", 3.0), ("dune", "x7", 0.5)]
    assert found.lost == ["features of a line"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("3 qid:1 # 7 a\n3 qid:1\n", "line 2: expected a line such as"),
        ("3 qid:1 # 7 a\n3 qid:1 # 8 b\n", "line 2: qid:1 has two queries, 'a' and 'b'"),
        ("3 qid:1 # 7 a\nhigh qid:1 # 8 a\n", "line 2: the rating 'high' is not a number"),
    ],
)
def test_damaged_lines_are_named(text: str, match: str, tmp_path: Path) -> None:
    path = tmp_path / "case.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=match):
        read_exchange(path)


def test_a_document_id_with_a_blank_cannot_stand_on_a_line(tmp_path: Path) -> None:
    judged = pl.DataFrame({"query_id": ["1"], "doc_id": ["a b"], "grade": [1.0]})
    with pytest.raises(InputError, match="cannot be stored in a line of ratings"):
        write_exchange(Exchange("made", judgments=judged), tmp_path / "x.txt", "quepid-ltr")
    assert list(tmp_path.iterdir()) == []


def test_a_decimal_comma_between_commas_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "case.csv"
    path.write_text('query,docid,rating\nstar wars,11,"1,5"\n')
    with pytest.raises(
        InputError, match=r"line 2: .*'1,5' is not a number.*\n.*write 1\.5, or separate"
    ):
        read_exchange(path)
    path.write_text("query;docid;rating\nstar wars;11;1,5\nstar wars;12;1.5\n")
    found = read_exchange(path)
    assert (found.format, rows(found)) == (
        "quepid-csv",
        [("star wars", "11", 1.5), ("star wars", "12", 1.5)],
    )
    assert found.lines == {("q1", "11", None): 2, ("q1", "12", None): 3}
    path.write_text("query;docid;rating\nstar wars;11;1.234,5\n")
    with pytest.raises(InputError, match=r"the rating '1\.234,5' is not a number"):
        read_exchange(path)
    # Semicolons help in a sheet with commas alone.
    for name, text in (
        ("case.txt", "1,5 qid:1 # 11 star wars\n"),
        ("case.tsv", "query\tdocid\trating\nstar wars\t11\t1,5\n"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=r"'1,5' is not a number.*\n  fix: write 1\.5$"):
            read_exchange(tmp_path / name)
