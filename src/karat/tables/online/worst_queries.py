"""Worst queries: the queries with the most failed searches, and how they fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Failure = Literal["zero results", "nobody clicks", "clicks without satisfaction", "reformulated"]
FAILURES: tuple[Failure, ...] = (
    "zero results",
    "reformulated",
    "clicks without satisfaction",
    "nobody clicks",
)
"""How a search fails; if in several ways, the first of these counts."""

Order = Literal["lost", "zero", "abandoned", "reformulated"]
ORDERS: tuple[Order, ...] = ("lost", "zero", "abandoned", "reformulated")
"""Sort orders of worst queries."""


@dataclass(frozen=True, slots=True)
class LostQuery:
    """The searches of one query (in one slice, if sliced), and how many fail.

    Attributes:
        query: Its normalised form, equal for equivalent spellings.
        text: Its most frequent spelling.
        slice: Dimension to value; empty without slices. Values that are not logged are left out.
        searches: Searches (intents, not requests) that were answered.
        users: Number of users who made them.
        failed: Searches that failed, each counted once.
        by_failure: Failed searches by the kind of failure.
        zero: Searches with zero results; None if not logged.
        abandoned: Searches with results but without an action; None if not logged.
        terminal: Abandoned searches that were not reformulated; None if not logged.
        reformulated: Searches that were reformulated.
        clicked: Share of the searches with results that have a click, 0 to 1; None without such
            searches, or if clicks are not logged.
        satisfied: Share of the searches with results that have a satisfied click, 0 to 1; None in
            the same cases.
        share: Share of its searches that fail, 0 to 1, shrunk towards that of all queries, more so
            the fewer users it has.
        low: Lower end of the 95 % interval of ``share``; None if queries do not differ
            significantly, or are too few (``WorstQueries.prior`` is None).
        high: Upper end.
        lost: ``searches`` times ``share``: expected failed searches.
        reason: The most frequent failure; empty if none failed.
        why: The same as a sentence with counts.
        next_queries: The next queries after a reformulation or zero results, with counts, the most
            frequent first.
    """

    query: str
    text: str
    slice: Mapping[str, str]
    searches: int
    users: int
    failed: int
    by_failure: Mapping[Failure, int]
    zero: int | None
    abandoned: int | None
    terminal: int | None
    reformulated: int
    clicked: float | None
    satisfied: float | None
    share: float
    low: float | None
    high: float | None
    lost: float
    reason: Failure | Literal[""]
    why: str
    next_queries: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class LostGroup:
    """Failed searches of a slice.

    Attributes:
        slice: Dimension to value; empty if not logged.
        queries: Number of distinct queries.
        searches: Searches that were answered.
        failed: Searches that failed.
        share: ``failed / searches``, 0 to 1; None without searches.
    """

    slice: Mapping[str, str]
    queries: int
    searches: int
    failed: int
    share: float | None


@dataclass(frozen=True)
class WorstQueries:
    """The queries with the most failed searches, worst first.

    Attributes:
        queries: A row for each query, and each of its slices.
        groups: A row for each slice, the most failed searches first; empty without slices.
        by: Dimension sliced by; None without slices.
        sort: Sort order of the rows.
        searches: Searches of the log that were answered.
        failed: Searches that failed.
        share: ``failed / searches``, 0 to 1, towards which queries are shrunk; None without
            searches.
        prior: Number of users at which a query is shrunk half way; None if the queries do not
            differ significantly, and all are shrunk completely.
        all_queries: Number of queries of the log (times slices).
        hidden: Number of rows left out: too few searches, no failures, or beyond the limit.
        rules: The rules (``Rules.id``).
        period: First and last day, as ``2026-11-01``; None without events.
        notes: Sentences a reader must know.
        simulated: Whether any of the events are simulated.
    """

    queries: Sequence[LostQuery]
    groups: Sequence[LostGroup]
    by: str | None
    sort: Order
    searches: int
    failed: int
    share: float | None
    prior: float | None
    all_queries: int
    hidden: int
    rules: str
    period: tuple[str, str] | None
    notes: Sequence[str]
    simulated: bool

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return asdict(self)
