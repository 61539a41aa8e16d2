"""Searched: what came of asking a search function all queries of a set."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from karat.tables.about import facts
from karat.tables.results import Latency
from karat.tables.run import Run


@dataclass(frozen=True)
class Reason:
    """Why queries failed.

    Attributes:
        error: The error, as the first of these queries got it.
        queries: How many failed for it.
        query_id: The first of them.
        place: File and line of the search where it was raised; None if not known.
    """

    error: str
    queries: int
    query_id: str
    place: str | None


@dataclass(frozen=True)
class Searched:
    """What came of asking.

    Attributes:
        run: The run, its ``about`` filled in.
        queries: Queries asked.
        ok: Answered with documents.
        empty: Answered with nothing.
        failed: Not answered.
        reasons: Why they failed, the most common first.
        latency: Of the answers; None if none has a time.
        notes: What a person should know, in sentences.
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
