"""Worst queries: the queries with the most failed searches, and how they fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Failure = Literal["zero results", "nobody clicks", "clicks without satisfaction", "reformulated"]
FAILURES: tuple[Failure, ...] = (
    "zero results",
    "reformulated",
    "clicks without satisfaction",
    "nobody clicks",
)
"""How a search fails; if in several ways, the first of these counts."""

Order = Literal["lost", "zero", "abandoned", "reformulated"]
ORDERS: tuple[Order, ...] = get_args(Order)
"""Sort orders of worst queries."""


@dataclass(frozen=True, slots=True)
class LostQuery:
    """The searches of one query (in one slice, if sliced), and how many fail."""

    query: str  # its normalised form, equal for equivalent spellings
    text: str  # its most frequent spelling
    # Dimension to value; empty without slices. Values that are not logged are left out.
    slice: Mapping[str, str]
    searches: int  # searches (intents, not requests) that were answered
    users: int  # number of users who made them
    failed: int  # searches that failed, each counted once
    by_failure: Mapping[Failure, int]  # failed searches by the kind of failure
    zero: int | None  # searches with zero results; None if not logged
    abandoned: int | None  # searches with results but without an action; None if not logged
    terminal: int | None  # abandoned searches that were not reformulated; None if not logged
    reformulated: int  # searches that were reformulated
    # Share of the searches with results that have a click, 0 to 1; None without such searches, or
    # if clicks are not logged
    clicked: float | None
    # Share of the searches with results that have a satisfied click, 0 to 1; None in the same cases
    satisfied: float | None
    # Share of its searches that fail, 0 to 1, shrunk towards that of all queries, more so the fewer
    # users it has
    share: float
    # Lower end of the 95 % interval of `share`; None if queries do not differ significantly, or are
    # too few (`WorstQueries.prior` is None)
    low: float | None
    high: float | None  # upper end
    lost: float  # `searches` times `share`: expected failed searches
    reason: Failure | Literal[""]  # the most frequent failure; empty if none failed
    why: str  # the same as a sentence with counts
    # The next queries after a reformulation or zero results, with counts, the most frequent first
    next_queries: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class LostGroup:
    """Failed searches of a slice."""

    slice: Mapping[str, str]  # dimension to value; empty if not logged
    queries: int  # number of distinct queries
    searches: int  # searches that were answered
    failed: int  # searches that failed
    share: float | None  # `failed / searches`, 0 to 1; None without searches


@dataclass(frozen=True)
class WorstQueries:
    """The queries with the most failed searches, worst first."""

    queries: Sequence[LostQuery]  # a row for each query, and each of its slices
    # A row for each slice, the most failed searches first; empty without slices
    groups: Sequence[LostGroup]
    by: str | None  # dimension sliced by; None without slices
    sort: Order  # sort order of the rows
    searches: int  # searches of the log that were answered
    failed: int  # searches that failed
    # `failed / searches`, 0 to 1, towards which queries are shrunk; None without searches
    share: float | None
    # Number of users at which a query is shrunk half way; None if the queries do not differ
    # significantly, and all are shrunk completely
    prior: float | None
    all_queries: int  # number of queries of the log (times slices)
    hidden: int  # number of rows left out: too few searches, no failures, or beyond the limit
    rules: str  # the rules (`Rules.id`)
    period: tuple[str, str] | None  # first and last day, as `2026-11-01`; None without events
    notes: Sequence[str]  # sentences a reader must know
    simulated: bool  # whether any of the events are simulated

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return asdict(self)
