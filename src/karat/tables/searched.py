"""Searched: the outcome of sending a set of queries to a search function."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from karat.tables.about import facts
from karat.tables.results import Latency
from karat.tables.run import Run


@dataclass(frozen=True)
class Reason:
    """An error that made queries fail.

    Attributes:
        error: The error message of the first of these queries.
        queries: Number of queries that failed with it.
        query_id: The first of them.
        place: File and line of the search function that raised it; None if unknown.
    """

    error: str
    queries: int
    query_id: str
    place: str | None


@dataclass(frozen=True)
class Searched:
    """The outcome of a benchmark run.

    Attributes:
        run: The run, with its metadata in ``about``.
        queries: Number of queries.
        ok: Queries with documents.
        empty: Queries with an empty answer.
        failed: Queries without an answer.
        reasons: The errors, the most common first.
        latency: Response times; None if no answer has one.
        notes: Sentences a reader must know.
        file: Where the run was written; None if it was not.
    """

    run: Run
    queries: int
    ok: int
    empty: int
    failed: int
    reasons: list[Reason]
    latency: Latency | None
    notes: list[str]
    file: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat search --format json`` (docs/reference/json.md)."""
        return {
            "run": self.run.name,
            "file": self.file,
            "queries": self.queries,
            "ok": self.ok,
            "empty": self.empty,
            "failed": self.failed,
            "reasons": [asdict(reason) for reason in self.reasons],
            "latency": None if self.latency is None else asdict(self.latency),
            "about": facts(self.run.about),
            "notes": self.notes,
        }
