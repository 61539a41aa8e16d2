"""Offline beside online: what judges say of a run, and what users did, query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Weighting = Literal["queries", "searches"]
"""Whether each query counts once, or each search."""


@dataclass(frozen=True, slots=True)
class Figure:
    """An online metric of a query or slice.

    Attributes:
        value: Its value; None if there is none, which is not 0.
        low: Lower end of its 95 % interval; None without.
        high: Upper end.
        n: What it is over.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class BothWorlds:
    """One query that was judged and searched for.

    Attributes:
        query_id: Of the judged query.
        text: It as the queries have it.
        slice: Its value of the attribute sliced by; None without.
        searches: Searches for it.
        users: People behind them.
        offline: Value of each measure; None where it has none.
        online: Each metric.
        p50_ms: Half of its searches were answered at least so quickly; None if nobody knows.
        p95_ms: 95 % of them.
        position: Half of its clicks were at this position or above; None without clicks.
    """

    query_id: str
    text: str
    slice: str | None
    searches: int
    users: int
    offline: Mapping[str, float | None]
    online: Mapping[str, Figure]
    p50_ms: float | None
    p95_ms: float | None
    position: int | None


@dataclass(frozen=True, slots=True)
class WorldSlice:
    """The queries of a slice in both worlds; None of what counts only in one.

    Attributes:
        slice: Value of the attribute; None for all.
        queries: Queries in both worlds.
        searches: Searches for them.
        offline: Mean over the queries, each counting once.
        weighted: The same, each counting as often as it was searched for.
        online: Each metric, over the searches for them; for all queries without an interval.
        p50_ms: As in ``BothWorlds``.
        p95_ms: Likewise.
    """

    slice: str | None
    queries: int
    searches: int
    offline: Mapping[str, float | None]
    weighted: Mapping[str, float | None]
    online: Mapping[str, Figure]
    p50_ms: float | None
    p95_ms: float | None


@dataclass(frozen=True, slots=True)
class Concord:
    """How a measure goes with an online metric, query by query.

    Attributes:
        measure: Offline.
        metric: Online.
        direction: Which way is better of the metric: of one that is better lower, agreement is a
            correlation below 0.
        slice: Value of the attribute; None for all queries.
        weighting: ``queries``, each counting once, or ``searches``, each counting as often as it
            was searched for.
        n: Queries with both, and enough searches.
        spearman: Rank correlation, -1 to 1; None where it has none.
        spearman_low: Lower end of its 95 % interval, by resampling queries; None without.
        spearman_high: Upper end.
        kendall: Kendall's tau-b, -1 to 1; None likewise.
        kendall_low: Lower end of its interval.
        kendall_high: Upper end.
        reason: Why something is None; empty if nothing is.
    """

    measure: str
    metric: str
    direction: str
    slice: str | None
    weighting: Weighting
    n: int
    spearman: float | None
    spearman_low: float | None
    spearman_high: float | None
    kendall: float | None
    kendall_low: float | None
    kendall_high: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Discord:
    """A query or a slice that one world ranks high and the other low.

    Attributes:
        kind: ``judges`` like it and users do not, or ``users`` do and judges do not.
        query_id: The query; None for a slice.
        name: Text of the query, or value of the slice.
        offline: Value of the measure.
        offline_rank: From 1, the best; equal ones at the mean of their ranks.
        online: Value of the metric.
        online_rank: Likewise.
        of: How many are ranked.
        searches: For it.
        sentence: The above in words.
        reasons: What may be behind it, in sentences.
    """

    kind: Literal["judges", "users"]
    query_id: str | None
    name: str
    offline: float
    offline_rank: float
    online: float
    online_rank: float
    of: int
    searches: int
    sentence: str
    reasons: Sequence[str]


@dataclass(frozen=True)
class Against:
    """Both worlds side by side.

    Attributes:
        run: Name of the run.
        measures: Offline measures; discord is about the first.
        metrics: Online metrics; discord is about the first that the log can say.
        by: Attribute of the queries that it is sliced by; None without.
        queries: A row for each query in both worlds, most searched for first.
        slices: All, and then a row for each slice.
        concord: A row for each measure, metric, slice and weighting.
        discord: Queries on which the worlds disagree most.
        discord_slices: Slices on which they do.
        judged_only: Judged queries nobody searched for.
        searched_only: Queries searched for that are not judged.
        searched_only_searches: Searches for those.
        min_searches: Searches that a query needs for concord and discord.
        enough: Queries in both worlds that have as many.
        rules: The rules, as ``Rules.id`` says them.
        period: First and last day; None without events.
        notes: What is to be known of it, in sentences.
        simulated: Whether any of the log was simulated.
    """

    run: str
    measures: tuple[str, ...]
    metrics: tuple[str, ...]
    by: str | None
    queries: Sequence[BothWorlds]
    slices: Sequence[WorldSlice]
    concord: Sequence[Concord]
    discord: Sequence[Discord]
    discord_slices: Sequence[Discord]
    judged_only: int
    searched_only: int
    searched_only_searches: int
    min_searches: int
    enough: int
    rules: str
    period: tuple[str, str] | None
    notes: Sequence[str]
    simulated: bool

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)
