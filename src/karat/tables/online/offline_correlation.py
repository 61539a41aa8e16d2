"""Correlation of offline measures and online metrics, query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Weighting = Literal["queries", "searches"]
"""Whether each query counts once, or as often as it was searched for."""


@dataclass(frozen=True, slots=True)
class Figure:
    """An online metric of a query or slice.

    Attributes:
        value: Its value; None (not 0) if there is none.
        low: Lower end of its 95 % interval; None without an interval.
        high: Upper end.
        n: Number of units: searches, clicks, sessions or users.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class JudgedAndSearched:
    """One query that was both judged and searched for.

    Attributes:
        query_id: Id of the judged query.
        text: Its text in the queries.
        slice: Its value of the attribute sliced by; None without slices.
        searches: Number of searches for it.
        users: Number of users who made them.
        offline: Value of each measure; None without a value.
        online: Value of each metric.
        p50_ms: Median response time, in milliseconds; None if unknown.
        p95_ms: 95th percentile, in milliseconds; None if unknown.
        position: Median position of its clicks; None without clicks.
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
    """The queries of a slice that were both judged and searched for.

    Attributes:
        slice: Value of the attribute; None for all queries.
        queries: Number of queries.
        searches: Number of searches for them.
        offline: Mean of each measure over the queries, each counting once.
        weighted: The same, each query weighted by its number of searches.
        online: Each metric over the searches; for all queries without an interval.
        p50_ms: Median response time, in milliseconds; None if unknown.
        p95_ms: 95th percentile, in milliseconds; None if unknown.
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
    """Correlation of a measure with an online metric over queries.

    Attributes:
        measure: The offline measure.
        metric: The online metric.
        direction: Which direction of the metric is better; if ``lower``, a negative correlation is
            agreement.
        slice: Value of the attribute; None for all queries.
        weighting: ``queries``: each query counts once · ``searches``: each counts as often as it
            was searched for.
        n: Number of queries with both values and enough searches.
        spearman: Rank correlation, -1 to 1; None if undefined.
        spearman_low: Lower end of its 95 % interval, by resampling queries; None without an
            interval.
        spearman_high: Upper end.
        kendall: Kendall's tau-b, -1 to 1; None if undefined.
        kendall_low: Lower end of its 95 % interval; None without an interval.
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
    """A query or slice that ranks high offline and low online, or the reverse.

    Attributes:
        kind: ``judges``: good offline, bad online · ``users``: good online, bad offline.
        query_id: The query; None for a slice.
        name: Text of the query, or value of the slice.
        offline: Value of the measure.
        offline_rank: Its rank by the measure, from 1 (best); ties get the mean of their ranks.
        online: Value of the metric.
        online_rank: Its rank by the metric, in the same way.
        of: Number of queries or slices ranked.
        searches: Number of searches for it.
        sentence: A summary in words.
        reasons: Possible reasons, in sentences.
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
class OfflineCorrelation:
    """Offline measures of a run and online metrics, side by side.

    Attributes:
        run: Name of the run.
        measures: Offline measures; ``discord`` uses the first.
        metrics: Online metrics; ``discord`` uses the first that is available.
        by: Attribute of the queries to slice by; None without slices.
        queries: A row for each query that was judged and searched for, the most frequent first.
        slices: A row for all queries, then one for each slice.
        concord: A row for each measure, metric, slice and weighting.
        discord: Queries on which the two disagree most.
        discord_slices: Slices on which the two disagree most.
        judged_only: Number of judged queries without searches.
        searched_only: Number of queries with searches that are not judged.
        searched_only_searches: Number of searches for those.
        min_searches: Minimum number of searches of a query in ``concord`` and ``discord``.
        enough: Number of queries with at least as many.
        rules: The rules (``Rules.id``).
        period: First and last day, as ``2026-11-01``; None without events.
        notes: Sentences a reader must know.
        simulated: Whether any of the events are simulated.
    """

    run: str
    measures: tuple[str, ...]
    metrics: tuple[str, ...]
    by: str | None
    queries: Sequence[JudgedAndSearched]
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
        """The JSON object."""
        return asdict(self)
