"""Explanation: why one query scored what it did, rank by rank."""

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
        grade: Its judgment; None if nobody judged it.
        gain: What it is worth to the measure; None where the measure is not a sum.
        discount: What its rank leaves of that.
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
    """Why one query scored what it did.

    Attributes:
        run: Name of the run.
        measure: Canonical name.
        query_id: The query.
        value: Its value, or None with the reason in ``state``.
        state: What became of the query.
        lines: The top of the ranking, and every document below it that contributes.
        missed: Relevant documents that were not retrieved, best first.
        hidden: Documents of the ranking that are not shown.
        notes: What a reader must know.
        text: What was typed, if known.
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
        """As JSON has it, which knows no infinity: such a score is null."""
        out = asdict(self)
        for line in (*out["lines"], *out["missed"]):
            if line["score"] is not None and math.isinf(line["score"]):
                line["score"] = None
        return out
