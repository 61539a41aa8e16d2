"""Worst queries: where searches are lost, query by query, and for want of what."""

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
"""How a search is lost; one that is lost in several ways counts as the first of these."""

Order = Literal["lost", "zero", "abandoned", "reformulated"]
ORDERS: tuple[Order, ...] = ("lost", "zero", "abandoned", "reformulated")
"""What worst queries are sorted by."""


@dataclass(frozen=True, slots=True)
class LostQuery:
    """One query (in one slice, if it is sliced), and what became of its searches.

    Attributes:
        query: Its folded form, under which spellings are one.
        text: It as it was typed most often.
        slice: Dimension to value; empty without a slicing. A value the log lacks is left out.
        searches: Searches (intents, not requests) that were answered.
        users: People behind them.
        failed: How many of them failed, each counted once.
        by_failure: Those, by how they failed.
        zero: How many were served nothing; None if the log does not say.
        abandoned: How many had results and no action; None likewise.
        terminal: Of the abandoned, those that were not said again in other words; None likewise.
        reformulated: How many were said again in other words.
        clicked: Share with a click, of those that had results; None if there is none such, or the
            log holds no clicks.
        satisfied: Share with a satisfied click, of the same; None likewise.
        share: Share of its searches that fail, 0 to 1, drawn towards that of all queries as far
            as few people have searched for it.
        low: Lower end of the 95 % interval of ``share``; None where queries differ no more than
            luck makes them, or are too few to say: ``WorstQueries.prior`` is None then.
        high: Upper end.
        lost: ``searches`` times ``share``: searches lost.
        reason: How most of the failed failed; empty if none did.
        why: The same as a sentence with its numbers.
        next_queries: What people searched for next where they said it in other words or had found
            nothing, with how often, the most frequent first.
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
    """What a slice loses in all.

    Attributes:
        slice: Dimension to value; empty if the log lacks it.
        queries: Queries searched for in it.
        searches: Searches that were answered.
        failed: How many of them failed.
        share: ``failed / searches``; None without searches.
    """

    slice: Mapping[str, str]
    queries: int
    searches: int
    failed: int
    share: float | None


@dataclass(frozen=True)
class WorstQueries:
    """The queries that lose most, worst first.

    Attributes:
        queries: A row for each query, and each of its slices.
        groups: A row for each slice, that which loses most first; empty without a slicing.
        by: What it is sliced by; None if it is not.
        sort: What the rows are sorted by.
        searches: Searches of the log that were answered.
        failed: How many of them failed.
        share: ``failed / searches``, towards which queries are drawn; None without searches.
        prior: How many people of its own a query needs to be drawn half way only; None if the
            queries differ no more than luck makes them, and each is drawn there whole.
        all_queries: Queries of the log (and slices of these).
        hidden: Rows that are left out here: fewer searches than asked for, nothing lost, or
            beyond the limit.
        rules: The rules, as ``Rules.id`` says them.
        period: First and last day, as ``2026-11-01``; None without events.
        notes: What is to be known of it, in sentences.
        simulated: Whether any of it was simulated.
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
        """As JSON has it."""
        return asdict(self)
