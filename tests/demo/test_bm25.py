"""BM25: what it finds, and that nothing a person types breaks it."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.demo import bm25

PAGES = pl.DataFrame(
    {
        "doc_id": ["json.dumps", "pathlib.Path.read_text", "queue", "b.twin", "a.twin"],
        "title": ["json.dumps(obj)", "pathlib.Path.read_text()", "queue", "twin", "twin"],
        "text": ["Serialize obj, indented.", "Open, read and close.", "Ünïcode 🥕", "same", "same"],
    }
)


def found(text: str) -> list[str]:
    return [doc_id for doc_id, _ in bm25.rank(PAGES, {"q": text})["q"]]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("json.dumps", "json.dumps"),
        ("JSON Dumps", "json.dumps"),
        ("indenting", "json.dumps"),  # Porter: indented and indenting are both indent
        ("read_text", "pathlib.Path.read_text"),
        ("unicode", "queue"),  # FTS5's unicode61 drops accents
        ("the queue, please!", "queue"),
    ],
)
def test_words_and_parts_of_identifiers_are_found(text: str, first: str) -> None:
    assert found(text)[0] == first


def test_scores_are_positive_and_ties_go_by_doc_id_descending() -> None:
    assert found("same") == ["b.twin", "a.twin"]
    scores = [score for _, score in bm25.rank(PAGES, {"q": "same json obj"})["q"]]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0


@pytest.mark.parametrize("text", ["", "   ", "!?", "_", '"', "🥕🥕", "zzzz"])
def test_a_query_without_known_words_has_an_empty_list(text: str) -> None:
    assert bm25.rank(PAGES, {"q": text}) == {"q": []}


@pytest.mark.parametrize(
    "text",
    [
        *("json AND", "OR", "NOT queue", "NEAR(json obj, 5)", "title:json", "json*", '"json'),
        *("(json", "-json", "^json", "json + obj", "'; DROP TABLE pages; --", "json\x00dumps"),
        "a" * 10_000,
    ],
)
def test_no_operator_of_fts5_gets_through(text: str) -> None:
    for doc_id in found(text):
        assert doc_id in set(PAGES["doc_id"])


@given(st.text())
def test_any_text_is_answered(text: str) -> None:
    assert set(found(text)) <= set(PAGES["doc_id"])


def test_an_expression_is_quoted_words_and_phrases() -> None:
    expected = '"json" OR "dumps" OR "json dumps" OR "indent"'
    assert bm25.match_expression("json.dumps indent") == expected


def test_at_most_depth_documents() -> None:
    pages = pl.DataFrame(
        {"doc_id": [f"d{i}" for i in range(150)], "title": ["t"] * 150, "text": ["carrot"] * 150}
    )
    assert len(bm25.rank(pages, {"q": "carrot"})["q"]) == 100
    assert len(bm25.rank(pages, {"q": "carrot"}, depth=3)["q"]) == 3
