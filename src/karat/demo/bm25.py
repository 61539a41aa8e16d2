"""The first search system: BM25, as SQLite's full-text index FTS5 computes it.

Words are lower-cased, split at everything that is neither letter nor digit, and stemmed
(Porter), so `read_text` and `pathlib.Path` are found by their parts. FTS5 fixes k1 = 1.2 and
b = 0.75; the title counts as much as the text.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing

import polars as pl

DEPTH = 100


def rank(
    documents: pl.DataFrame, queries: Mapping[str, str], depth: int = DEPTH
) -> dict[str, list[tuple[str, float]]]:
    """Rank the documents (doc_id, title, text) for each query text: at most ``depth``, best first.

    Ties by doc_id descending, by bytes. Scores are above 0.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        index(connection, documents)
        return {query_id: answer(connection, text, depth) for query_id, text in queries.items()}


def index(connection: sqlite3.Connection, documents: pl.DataFrame) -> None:
    """Make the full-text index ``pages`` of documents (doc_id, title, text)."""
    connection.execute(
        "CREATE VIRTUAL TABLE pages USING fts5("
        "doc_id UNINDEXED, title, text, tokenize = 'porter unicode61')"
    )
    connection.executemany(
        "INSERT INTO pages VALUES (?, ?, ?)",
        documents.select("doc_id", "title", "text").iter_rows(),
    )


def answer(connection: sqlite3.Connection, text: str, depth: int) -> list[tuple[str, float]]:
    """The best documents for one query text, out of an index that `rank` has filled."""
    expression = match_expression(text)
    if not expression:
        return []
    # FTS5's bm25() is negative, better is smaller. Rounded, so that ties are ties everywhere.
    return connection.execute(
        "SELECT doc_id, round(-bm25(pages), 6) AS score FROM pages WHERE pages MATCH ?"
        " ORDER BY score DESC, doc_id DESC LIMIT ?",
        (expression, depth),
    ).fetchall()


def match_expression(text: str) -> str:
    """What a person typed, as an FTS5 expression: any of its words, none of FTS5's operators.

    An identifier counts as its words and as the phrase they make:
    `json.dumps indent` becomes `"json" OR "dumps" OR "json dumps" OR "indent"`.
    """
    terms: list[str] = []
    for typed in text.split():
        words = re.findall(r"[^\W_]+", typed)
        terms += words
        if len(words) > 1:
            terms.append(" ".join(words))
    return " OR ".join(f'"{term}"' for term in dict.fromkeys(terms))
