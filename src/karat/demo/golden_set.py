"""The golden set that comes with karat: 30 queries and their graded documents.

`golden/README.md` beside this file says how the documents were found and graded.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import NamedTuple


class Query(NamedTuple):
    """One query. kind: exact_name, misspelt, ambiguous or task (`class` in the file)."""

    query_id: str
    text: str
    need: str
    kind: str
    origin: str


class Judgment(NamedTuple):
    """grade: 3 exactly what the person needs, 2 clearly helps, 1 related, 0 not relevant."""

    query_id: str
    doc_id: str
    grade: int


def queries() -> list[Query]:
    """The 30 queries, by query_id."""
    found = [json.loads(line) for line in lines("queries.jsonl")]
    return [
        Query(row["query_id"], row["text"], row["need"], row["class"], row["origin"])
        for row in found
    ]


def judgments() -> list[Judgment]:
    """All grades, by query_id and then best first."""
    rows = [line.split("\t") for line in lines("qrels.tsv")[1:]]
    return [Judgment(query_id, doc_id, int(grade)) for query_id, doc_id, grade in rows]


def lines(name: str) -> list[str]:
    """The lines of a file of the golden set."""
    return (files("karat.demo") / "golden" / name).read_text(encoding="utf-8").splitlines()
