"""Searched: the outcome of sending a set of queries to a search function."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from karat.tables.about import facts
from karat.tables.results import Latency
from karat.tables.run import Run


@dataclass(frozen=True)
class Reason:
    """An error that made queries fail."""

    error: str  # the error message of the first of these queries
    queries: int  # number of queries that failed with it
    query_id: str  # the first of them
    place: str | None  # file and line of the search function that raised it; None if unknown


@dataclass(frozen=True)
class Searched:
    """The outcome of a benchmark run."""

    run: Run  # the run, with its metadata in `about`
    queries: int
    ok: int  # queries with documents
    empty: int  # queries with an empty answer
    failed: int  # queries without an answer
    reasons: list[Reason]  # the errors, the most common first
    latency: Latency | None  # response times; None if no answer has one
    notes: list[str]  # sentences a reader must know
    file: str | None = None  # where the run was written; None if it was not
    server: Latency | None = None  # times that the engine itself reports

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
            "server_latency": None if self.server is None else asdict(self.server),
            "about": facts(self.run.about),
            "notes": self.notes,
        }
