"""Every column of every table, on one page: type, meaning, allowed values.

Ids are strings always: ``007`` stays ``007`` and ``NA`` stays ``NA``. Times are int64
microseconds UTC. A column marked optional may be absent; ``Queries`` and ``Documents`` keep any
further columns as attributes, and those are the slices.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Column:
    """One column of one table."""

    name: str
    dtype: pl.DataType
    meaning: str
    optional: bool = False


QRELS = (
    Column("query_id", pl.String(), "the query"),
    Column("doc_id", pl.String(), "the document judged for it"),
    Column(
        "grade",
        pl.Float64(),
        "how relevant it is; 0 is judged and not relevant; below 0 means pooled but not judged, "
        "as in TREC; fractions allowed",
    ),
    Column(
        "subtopic",
        pl.String(),
        "the part of the query the grade is about, for measures of diversity; a document may "
        "stand under several, and its grade is the best of them elsewhere",
        optional=True,
    ),
)

RANKINGS = (
    Column("query_id", pl.String(), "the query"),
    Column("doc_id", pl.String(), "the document returned for it"),
    Column("score", pl.Float64(), "the system's score, higher is better; never NaN"),
    Column("rank", pl.UInt32(), "from 1; score descending, then doc_id descending by bytes"),
)

ANSWERS = (
    Column("query_id", pl.String(), "the query asked"),
    Column("state", pl.String(), "ok | empty (answered with nothing) | failed (no answer)"),
    Column("returned", pl.Int64(), "documents returned"),
    Column("latency_us", pl.Int64(), "time to the answer in microseconds", optional=True),
    Column("error", pl.String(), "why it failed", optional=True),
)

QUERIES = (
    Column("query_id", pl.String(), "the query"),
    Column("text", pl.String(), "what was typed", optional=True),
    Column("need", pl.String(), "what the person wanted", optional=True),
    Column(
        "weight",
        pl.Float64(),
        "its weight in every mean; 0: in slices of such queries only",
        optional=True,
    ),
    Column("stratum", pl.String(), "the sampling stratum it was drawn from", optional=True),
    Column("origin", pl.String(), "log | interview | written | synthetic | clicks", optional=True),
    Column(
        "no_answer",
        pl.Boolean(),
        "true: the query has no right answer, and a good system returns nothing",
        optional=True,
    ),
)

DOCUMENTS = (
    Column("doc_id", pl.String(), "the document"),
    Column("parent_id", pl.String(), "the document this chunk is part of", optional=True),
    Column("title", pl.String(), "its title", optional=True),
    Column("text", pl.String(), "its text", optional=True),
)

PAIRS = (
    Column("query_id", pl.String(), "the query"),
    Column("doc_id", pl.String(), "the document to be judged for it"),
)

JUDGMENTS = (
    Column("judgment", pl.Int64(), "number of the fact; later ones have higher numbers"),
    Column("query_id", pl.String(), "the query"),
    Column("doc_id", pl.String(), "the document judged for it"),
    Column("grade", pl.Float64(), "how relevant it is; null if it could not be judged"),
    Column("state", pl.String(), "graded | cannot_judge"),
    Column("reason", pl.String(), "why it cannot be judged, or why this grade", optional=True),
    Column("rater", pl.String(), "who judged"),
    Column("source", pl.String(), "human | clicks | llm | import"),
    Column(
        "kind",
        pl.String(),
        "rating | repeat (the same rater again, unknowingly) | gold (its grade was known) | "
        "adjudication (a disagreement settled)",
    ),
    Column("time_us", pl.Int64(), "when, in microseconds UTC"),
    Column("seconds", pl.Float64(), "how long it took", optional=True),
    Column("guideline", pl.String(), "version of the guideline in force", optional=True),
    Column("document_hash", pl.String(), "SHA-256 of the document as shown", optional=True),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "qrels": QRELS,
    "rankings": RANKINGS,
    "answers": ANSWERS,
    "queries": QUERIES,
    "documents": DOCUMENTS,
    "pairs": PAIRS,
    "judgments": JUDGMENTS,
}
