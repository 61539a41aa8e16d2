"""Quepid's books: several judges, and what they could not judge."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from karat.errors import InputError
from karat.formats.exchange.catalogue import read_exchange, write_exchange

SHEET = "query,docid,Ann Lee,Anonymous, =Bob\na,x,3.0,,1.0\na,x,3.0,,1.0\na,y,,2.0,\n"


def pair(*judgements: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"query_text": "a", "doc_id": "x", "judgements": list(judgements), **others}


def book(folder: Path, *pairs: dict[str, Any], **others: Any) -> Path:
    path = folder / "book.json"
    path.write_text(json.dumps({"name": "b", "query_doc_pairs": list(pairs), **others}))
    return path


def test_a_column_for_each_judge(tmp_path: Path) -> None:
    path = tmp_path / "book.csv"
    path.write_text(SHEET)  # Quepid's join writes a pair once for each of its judgements
    found = read_exchange(path)
    assert found.format == "quepid-book-csv"
    assert found.judgments is not None
    assert found.judgments.select("doc_id", "grade", "rater").rows() == [
        ("x", 3.0, "Ann Lee"),
        ("x", 1.0, "=Bob"),
        ("y", 2.0, None),
    ]
    out = tmp_path / "out.csv"
    write_exchange(found, out, "quepid-book-csv")
    assert out.read_text() == "query,docid,Ann Lee, =Bob,Anonymous\na,x,3,1,\na,y,,,2\n"


def test_a_book_that_nobody_has_rated(tmp_path: Path) -> None:
    path = tmp_path / "book.csv"
    path.write_text("query,docid\na,x\n")
    with pytest.raises(InputError, match="the book has no ratings yet"):
        read_exchange(path)
    path.write_text("query,docid,Ann\na,x,\na,y,\n")
    for found in (read_exchange(path), read_exchange(book(tmp_path, pair(), pair()))):
        assert found.judgments is None
        assert "documents without a rating, 2 times" in found.lost
        assert "the file has no ratings yet: no judgments are imported" in found.assumed


def test_two_judges_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "book.csv"
    path.write_text("query,docid,Ann,Ann\na,x,3,1\n")
    found = read_exchange(path)
    assert found.judgments is not None
    assert found.judgments["rater"].to_list() == ["Ann", "Ann (2)"]
    assert any("several judges are called Ann" in said for said in found.assumed)


def test_a_book_says_who_why_and_what_cannot_be_judged(tmp_path: Path) -> None:
    fields = json.dumps({"title": "T", "year": 1977, "genres": ["sf"], "doc_id": "inner"})
    found = read_exchange(
        book(
            tmp_path,
            pair(
                {
                    "rating": 2.0,
                    "user_email": "a@x.org",
                    "explanation": "close",
                    "unrateable": False,
                },
                {"rating": None, "unrateable": True, "user_email": "b@x.org"},
                {"rating": None, "judge_later": True, "user_email": "c@x.org"},
                {"rating": 1.0},
                {"rating": 3.0},
                information_need="find a",
                options="{}",
                document_fields=fields,
                position=1,
            ),
            pair(doc_id="y", document_fields="{broken"),
            show_rank=True,
        )
    )
    assert found.judgments is not None
    assert found.judgments.select("grade", "rater", "reason").rows() == [
        (2.0, "a@x.org", "close"),
        (None, "b@x.org", None),
        (1.0, None, None),
        (3.0, "anonymous 2", None),
    ]
    assert found.queries is not None
    assert found.queries.row(0, named=True) == {"query_id": "q1", "text": "a", "need": "find a"}
    assert found.documents is not None
    assert found.documents.row(0, named=True) == {
        "doc_id": "x",
        "title": "T",
        "year": 1977,
        "genres": '["sf"]',
        "field.doc_id": "inner",
    }
    assert set(found.lost) == {
        "'name' of the book",
        "'show_rank' of the book",
        "'position' of a pair",
        "judgments postponed",
        "documents without a rating",
        "'document_fields' that are not an object",
    }


def test_a_book_goes_out_in_a_zip_file_and_comes_back(tmp_path: Path) -> None:
    fields = {"title": "T", "year": 1977, "genres": ["sf"]}
    judgement = {"rating": 2.0, "user_email": "a@x.org", "explanation": "close"}
    first = read_exchange(
        book(
            tmp_path,
            pair(judgement, document_fields=json.dumps(fields), notes="n", options='{"a": 1}'),
        )
    )
    out = tmp_path / "book.json.zip"
    told = write_exchange(first, out, "quepid-book")
    with zipfile.ZipFile(out) as folder:
        written = json.loads(folder.read("book.json"))["query_doc_pairs"][0]
    assert json.loads(written["document_fields"]) == fields
    assert (written["notes"], written["options"]) == ("n", {"a": 1})
    assert told.lost == ["the ids of queries: the format identifies them by their text"]
    back = read_exchange(out)
    for table in ("judgments", "documents"):
        assert getattr(back, table).equals(getattr(first, table))


def test_any_number_of_people_may_be_anonymous(tmp_path: Path) -> None:
    found = read_exchange(book(tmp_path, pair(*({"rating": grade} for grade in range(7)))))
    assert found.judgments is not None
    assert found.judgments["rater"].to_list() == [
        None,
        *(f"anonymous {place}" for place in range(2, 8)),
    ]


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (pair({"rating": "x"}), r"\.query_doc_pairs\[0\]\.judgements\[0\]\.rating is \"x\", not a"),
        (pair({"rating": True}), "not a finite number"),
        (pair({"rating": 1, "unrateable": "no"}), 'unrateable is "no", not true or false'),
        (pair({"rating": 1, "user_email": 3}), "user_email is 3, not text"),
        (pair(doc_id=1.5), "doc_id is 1.5, not text"),
        (pair(query_text=" "), 'query_text is " ", not text'),
        (pair({"rating": 1, "user_email": "a"}, {"rating": 2, "user_email": "a"}), "twice by a"),
        ({"doc_id": "x"}, "has no key 'query_text'"),
    ],
)
def test_damage_is_named_by_its_place(value: dict[str, Any], match: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=match):
        read_exchange(book(tmp_path, value))
