"""The golden set that comes with karat: queries and their graded documents.

`golden/README.md` describes how the documents were found and graded.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import NamedTuple


class Query(NamedTuple):
    """One query.

    kind: exact_name, misspelt, ambiguous, task or no_answer (`class` in the file).
    frequency: head, torso or tail: a guess at how often it is asked.
    no_answer: True if no document can be right.
    """

    query_id: str
    text: str
    need: str
    kind: str
    origin: str
    frequency: str
    no_answer: bool


class Judgment(NamedTuple):
    """grade: 3 exactly what the person needs, 2 clearly helps, 1 related, 0 not relevant."""

    query_id: str
    doc_id: str
    grade: int
    grader: str


def queries() -> list[Query]:
    rows = [json.loads(line) for line in lines("queries.jsonl")]
    return [
        Query(
            query_id=row["query_id"],
            text=row["text"],
            need=row["need"],
            kind=row["class"],
            origin=row["origin"],
            frequency=row["frequency"],
            no_answer=row.get("no_answer", False),
        )
        for row in rows
    ]


def judgments() -> list[Judgment]:
    """All grades, by query_id and then best first."""
    return _read("qrels.tsv")


def second_judgments() -> list[Judgment]:
    """The grades of the second grader, for a sample of the same pairs."""
    return _read("second.tsv")


def _read(name: str) -> list[Judgment]:
    rows = [line.split("\t") for line in lines(name)[1:]]
    return [Judgment(query_id, doc_id, int(grade), who) for query_id, doc_id, grade, who in rows]


def lines(name: str) -> list[str]:
    return (files("karat.demo") / "golden" / name).read_text(encoding="utf-8").splitlines()
