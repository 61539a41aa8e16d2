"""The search that benchmarks/gate_breaks.py breaks, and what a break is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from karat.demo import bm25

DEPTH = 100
Ranking = list[tuple[str, Any]]
Search = Callable[[str], Any]


@dataclass(frozen=True)
class World:
    """A search, and what is known of it.

    Attributes:
        texts: Query id to what was typed.
        grades: Query id to document to grade.
        documents: Document id to title and text.
        over: The search over some of the documents: text to a ranking.
        pause_ms: How long a live query takes beside its work; median.
    """

    texts: Mapping[str, str]
    grades: Mapping[str, Mapping[str, float]]
    documents: Mapping[str, tuple[str, str]]
    over: Callable[[Mapping[str, tuple[str, str]]], Search]
    pause_ms: float = 60.0


@dataclass(frozen=True)
class Answer:
    """The answer to a query as it is written to a run file."""

    docs: Ranking
    ms: float | None
    state: str = "ok"
    repeated: int = 0


Run = dict[str, Answer]
InFile = Callable[[Run, World, Random], Run | bytes]
Live = Callable[[Search, World, Random], Search]


@dataclass(frozen=True)
class Break:
    """A way of breaking a search.

    Attributes:
        name: What is done.
        how: Does it, to a run or to a search.
        live: Whether it is done to a search.
        harmless: Whether no user would be worse off, so that a gate should let it pass.
        why: Why it passes although users are worse off, if it does.
    """

    name: str
    how: Any
    live: bool
    harmless: bool = False
    why: str = ""


def scored(docs: list[str]) -> Ranking:
    """Documents best first, with scores that say so."""
    return [(doc, float(len(docs) - place)) for place, doc in enumerate(docs)]


def rows(run: Run) -> Iterator[dict[str, Any]]:
    """The lines of a run file."""
    for query, answer in run.items():
        told: dict[str, Any] = {"query_id": query}
        if answer.ms is not None:
            told["latency_us"] = round(1000 * answer.ms)
        if answer.repeated:
            told["repeated"] = answer.repeated
        if answer.state != "ok" or not answer.docs:
            yield told | {"state": "empty" if answer.state == "ok" else answer.state}
        for doc, score in answer.docs if answer.state == "ok" else ():
            yield told | {"doc_id": doc, "score": score}


def written(run: Run) -> bytes:
    """A run file."""
    return "".join(f"{json.dumps(row)}\n" for row in rows(run)).encode()


def cranfield(folder: Path) -> World:
    """Cranfield: 1,400 abstracts, 225 questions; each twelfth ends in a character beyond ASCII."""
    corpus = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    grades: dict[str, dict[str, float]] = {}
    for line in (folder / "qrels/test.tsv").read_text().splitlines()[1:]:
        query, doc, grade = line.split("\t")
        grades.setdefault(f"q{query}", {})[f"cran/{doc}"] = float(grade)
    return World(
        texts={
            f"q{row['_id']}": row["text"] + (" …" if place % 12 == 0 else "")
            for place, row in enumerate(asked)
        },
        grades=grades,
        documents={f"cran/{row['_id']}": (row["title"], row["text"]) for row in corpus},
        over=by_bm25,
    )


_KNOWN: dict[int, dict[str, Ranking]] = {}
"""Rankings by documents and text, so that live times are those of the pause."""


def by_bm25(documents: Mapping[str, tuple[str, str]]) -> Search:
    """The demo's first system over documents."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    with closing(connection.cursor()) as cursor:
        cursor.execute(
            "CREATE VIRTUAL TABLE pages USING fts5("
            "doc_id UNINDEXED, title, text, tokenize = 'porter unicode61')"
        )
        cursor.executemany(
            "INSERT INTO pages VALUES (?, ?, ?)", [(d, *texts) for d, texts in documents.items()]
        )
    known = _KNOWN.setdefault(hash(frozenset(documents.items())), {})

    def found(text: str) -> Ranking:
        if text not in known:
            known[text] = bm25.answer(connection, text, DEPTH)
        return list(known[text])

    return found
