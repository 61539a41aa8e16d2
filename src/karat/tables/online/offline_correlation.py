"""Correlation of offline measures and online metrics, query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Weighting = Literal["queries", "searches"]
"""Whether each query counts once, or as often as it was searched for."""


@dataclass(frozen=True, slots=True)
class MetricValue:
    """An online metric of a query or slice."""

    value: float | None  # its value; None (not 0) if there is none
    low: float | None  # lower end of its 95 % interval; None without an interval
    high: float | None  # upper end
    n: int  # number of units: searches, clicks, sessions or users


@dataclass(frozen=True, slots=True)
class JudgedAndSearched:
    """One query that was both judged and searched for."""

    query_id: str
    text: str  # its text in the queries
    slice: str | None  # its value of the attribute sliced by; None without slices
    searches: int
    users: int  # number of users who made them
    offline: Mapping[str, float | None]  # value of each measure; None without a value
    online: Mapping[str, MetricValue]  # value of each metric
    p50_ms: float | None  # median response time, in milliseconds; None if unknown
    p95_ms: float | None  # 95th percentile, in milliseconds; None if unknown
    position: int | None  # median position of its clicks; None without clicks


@dataclass(frozen=True, slots=True)
class WorldSlice:
    """The queries of a slice that were both judged and searched for."""

    slice: str | None  # value of the attribute; None for all queries
    queries: int
    searches: int  # number of searches for them
    offline: Mapping[str, float | None]  # mean of each measure over the queries, each counting once
    weighted: Mapping[str, float | None]  # the same, each query weighted by its number of searches
    # Each metric over the searches; for all queries without an interval
    online: Mapping[str, MetricValue]
    p50_ms: float | None  # median response time, in milliseconds; None if unknown
    p95_ms: float | None  # 95th percentile, in milliseconds; None if unknown


@dataclass(frozen=True, slots=True)
class Concord:
    """Correlation of a measure with an online metric over queries."""

    measure: str  # the offline measure
    metric: str  # the online metric
    # Which direction of the metric is better; if `lower`, a negative correlation is agreement
    direction: str
    slice: str | None  # value of the attribute; None for all queries
    # `queries`: each query counts once · `searches`: each counts as often as it was searched for
    weighting: Weighting
    n: int  # number of queries with both values and enough searches
    spearman: float | None  # rank correlation, -1 to 1; None if undefined
    # Lower end of its 95 % interval, by resampling queries; None without an interval
    spearman_low: float | None
    spearman_high: float | None  # upper end
    kendall: float | None  # Kendall's tau-b, -1 to 1; None if undefined
    kendall_low: float | None  # lower end of its 95 % interval; None without an interval
    kendall_high: float | None  # upper end
    reason: str = ""  # why something is None; empty if nothing is


@dataclass(frozen=True, slots=True)
class Discord:
    """A query or slice that ranks high offline and low online, or the reverse."""

    # `judges`: good offline, bad online · `users`: good online, bad offline
    kind: Literal["judges", "users"]
    query_id: str | None  # the query; None for a slice
    name: str  # text of the query, or value of the slice
    offline: float  # value of the measure
    offline_rank: float  # its rank by the measure, from 1 (best); ties get the mean of their ranks
    online: float  # value of the metric
    online_rank: float  # its rank by the metric, in the same way
    of: int  # number of queries or slices ranked
    searches: int
    sentence: str  # a summary in words
    reasons: Sequence[str]  # possible reasons, in sentences


@dataclass(frozen=True)
class OfflineCorrelation:
    """Offline measures of a run and online metrics, side by side."""

    run: str
    measures: tuple[str, ...]  # offline measures; `discord` uses the first
    metrics: tuple[str, ...]  # online metrics; `discord` uses the first that is available
    by: str | None  # attribute of the queries to slice by; None without slices
    # A row for each query that was judged and searched for, the most frequent first
    queries: Sequence[JudgedAndSearched]
    slices: Sequence[WorldSlice]  # a row for all queries, then one for each slice
    concord: Sequence[Concord]  # a row for each measure, metric, slice and weighting
    discord: Sequence[Discord]  # queries on which the two disagree most
    discord_slices: Sequence[Discord]  # slices on which the two disagree most
    judged_only: int  # number of judged queries without searches
    searched_only: int  # number of queries with searches that are not judged
    searched_only_searches: int  # number of searches for those
    min_searches: int  # minimum number of searches of a query in `concord` and `discord`
    enough: int  # number of queries with at least as many
    rules: str  # the rules (`Rules.id`)
    period: tuple[str, str] | None  # first and last day, as `2026-11-01`; None without events
    notes: Sequence[str]  # sentences a reader must know
    simulated: bool  # whether any of the events are simulated

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return asdict(self)
