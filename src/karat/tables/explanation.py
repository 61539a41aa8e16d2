"""Explanation: how the value of one query comes about, rank by rank."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from karat.tables.results import State


@dataclass(frozen=True, slots=True)
class Line:
    """One document of the ranking.

    Attributes:
        rank: From 1; None for a relevant document that was not retrieved.
        doc_id: The document.
        score: The system's score; None if it was not retrieved.
        grade: Its judgment; None if unjudged.
        gain: Its gain; None if the measure is not a sum over documents.
        discount: The factor for its rank.
        contribution: What it adds to the value. Contributions add up to the value exactly.
        tied: Whether its score equals a neighbour's.
    """

    rank: int | None
    doc_id: str
    score: float | None
    grade: float | None
    gain: float | None
    discount: float | None
    contribution: float | None
    tied: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """How the value of one query comes about.

    Attributes:
        run: Name of the run.
        measure: Canonical name of the measure.
        query_id: The query.
        value: Its value, or None with the reason in ``state``.
        state: How the query was answered (``results.State``).
        lines: The top of the ranking, and every document below it that contributes.
        missed: Relevant documents that were not retrieved, best first.
        hidden: Number of documents of the ranking that are not shown.
        notes: Sentences a reader must know.
        text: Text of the query; None if unknown.
    """

    run: str
    measure: str
    query_id: str
    value: float | None
    state: State
    lines: list[Line]
    missed: list[Line]
    hidden: int
    notes: list[str]
    text: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, with null for infinite scores, which JSON does not support."""
        out = asdict(self)
        for line in (*out["lines"], *out["missed"]):
            if line["score"] is not None and math.isinf(line["score"]):
                line["score"] = None
        return out
