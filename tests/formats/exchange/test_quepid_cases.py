"""Quepid's cases: ratings with who gave them, and nothing of the search engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karat.errors import InputError
from karat.formats.exchange.catalogue import read_exchange, write_exchange

CASE = {
    "case_name": "c",
    "scorer": {"name": "nDCG@10"},
    "queries": [
        {
            "arranged_at": 0,
            "arranged_next": 1,
            "query_text": "a",
            "options": {"k": 1},
            "notes": None,
            "information_need": "find a",
            "ratings": [
                {"doc_id": "x", "rating": 0, "user_email": "a@x.org"},
                {"doc_id": "y", "rating": None},
            ],
        }
    ],
    "try": {"search_endpoint": {"basic_auth_credential": "user:secret"}},
}


def test_a_case_comes_in_and_goes_out_without_its_password(tmp_path: Path) -> None:
    path, out = tmp_path / "case.json", tmp_path / "out.json"
    path.write_text(json.dumps(CASE))
    found = read_exchange(path)
    assert found.format == "quepid-case"
    assert found.judgments is not None
    assert found.judgments.rows() == [("q1", "x", 0.0, "a@x.org", None)]
    assert "secret" not in repr(found)
    assert found.lost == [
        "the try, with its search endpoint (karat engine import takes it)",
        "the scorer",
        "'case_name' of the case",
        "the display order of a query",
        "documents without a rating",
    ]
    told = write_exchange(found, out, "quepid-case")
    written = json.loads(out.read_text())
    assert written["queries"][0]["options"] == {"k": 1}
    assert written["queries"][0]["ratings"] == [
        {"doc_id": "x", "rating": 0, "user_email": "a@x.org"}
    ]
    assert any("scorer is nDCG@10" in said for said in told.assumed)
    assert read_exchange(out).queries is not None


def test_the_detailed_sheet_is_judgments_documents_and_a_run(tmp_path: Path) -> None:
    path = tmp_path / "detail.csv"
    path.write_text(
        "Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating,year\n"
        "T,C,5,a,x,1,The x,3,1977\nT,C,5,a,y,2,The y,,1980\n"
    )
    found = read_exchange(path)
    assert found.format == "quepid-case-csv"
    assert found.judgments is not None
    assert found.judgments.select("doc_id", "grade").rows() == [("x", 3.0)]
    assert found.runs["detail"].rows() == [("q1", "x", -1.0), ("q1", "y", -2.0)]
    assert found.documents is not None
    assert found.documents.columns == ["doc_id", "title", "year"]


@pytest.mark.parametrize(
    "header",
    [
        "Team Name,Case Name,Case ID,Query Text,Score,Date Last Scored,Count,Information Need",
        "query,information_need",
    ],
)
def test_the_other_sheets_are_queries_with_their_need(header: str, tmp_path: Path) -> None:
    path = tmp_path / "general.csv"
    cells = "T,C,5,a,0.5,2026,10,find a" if "Team" in header else "a,find a"
    path.write_text(f"{header}\n{cells}\n")
    found = read_exchange(path)
    assert found.format == "quepid-case-csv"
    assert found.judgments is None
    assert found.queries is not None
    assert found.queries.row(0, named=True) == {"query_id": "q1", "text": "a", "need": "find a"}


def test_ratings_of_the_wrong_type_are_named(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text('{"case_name": "c", "queries": [{"query_text": "a", "ratings": 3}]}')
    with pytest.raises(InputError, match=r"\.queries\[0\]\.ratings is 3, not an array"):
        read_exchange(path)
