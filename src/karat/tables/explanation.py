"""Explanation: how the value of one query comes about, rank by rank."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from karat.tables.results import State


@dataclass(frozen=True, slots=True)
class Line:
    """One document of the ranking."""

    rank: int | None  # from 1; None for a relevant document that was not retrieved
    doc_id: str  # the document
    score: float | None  # the system's score; None if it was not retrieved
    grade: float | None  # its judgment; None if unjudged
    gain: float | None  # its gain; None if the measure is not a sum over documents
    discount: float | None  # the factor for its rank
    # What it adds to the value. Contributions add up to the value exactly.
    contribution: float | None
    tied: bool  # whether its score equals a neighbour's


@dataclass(frozen=True, slots=True)
class Explanation:
    """How the value of one query comes about."""

    run: str
    measure: str  # canonical name of the measure
    query_id: str
    value: float | None  # its value, or None with the reason in `state`
    state: State  # how the query was answered (`results.State`)
    lines: list[Line]  # the top of the ranking, and every document below it that contributes
    missed: list[Line]  # relevant documents that were not retrieved, best first
    hidden: int  # number of documents of the ranking that are not shown
    notes: list[str]  # sentences a reader must know
    text: str | None = None  # text of the query; None if unknown

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, with null for infinite scores, which JSON does not support."""
        out = asdict(self)
        for line in (*out["lines"], *out["missed"]):
            if line["score"] is not None and math.isinf(line["score"]):
                line["score"] = None
        return out
