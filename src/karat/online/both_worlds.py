"""Judged queries joined with online metrics: rows and slices of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from karat.online.distributions import Times
from karat.online.estimates import estimate
from karat.online.evidence import Cut, Evidence
from karat.online.metrics.counts import EVERY_SEARCH
from karat.online.metrics.entry import Metric
from karat.online.rules import Rules
from karat.tables import Queries
from karat.tables.online.events import EventLog
from karat.tables.online.offline_correlation import Figure, JudgedAndSearched, WorldSlice

QUERY: Cut = ("query",)
CLASS: Cut = ("class",)


@dataclass
class Worlds:
    """Online evidence on the judged queries."""

    # Cut by `QUERY`, and by `CLASS` if there are slices; only judged queries have a class
    evidence: Evidence
    log: EventLog  # summary of the event log
    rules: Rules  # the rules of the evidence
    ratios: Sequence[Metric]
    of_key: Mapping[str, str]  # folded text to id of the judged query

    def __post_init__(self) -> None:
        judged = pl.col("query").is_in(list(self.of_key))
        self.moments = self.evidence.moments[QUERY].filter(judged, pl.col("term") == "value")
        self.bins = self.evidence.histograms[QUERY].filter(judged)
        self.positions = self.evidence.positions[QUERY].filter(judged)

    def rows(
        self,
        offline: Mapping[str, Mapping[str, float | None]],
        names: Sequence[str],
        about: Queries | None,
        parts: Mapping[str, str] | None,
    ) -> list[JudgedAndSearched]:
        """A row for each judged query with searches, most searches first."""
        texts = {} if about is None else about.texts()
        only = Evidence({QUERY: self.moments}, {QUERY: self.bins}, {}, {})
        figures: dict[str, dict[str, Figure]] = {}
        for row in estimate(only, self.ratios, QUERY, self.log, self.rules):
            figure = Figure(row.value, row.low, row.high, row.n)
            figures.setdefault(row.slice["query"], {})[row.metric] = figure
        counted = self.moments.filter(pl.col("metric") == EVERY_SEARCH.name)
        bins = dict(_split(self.bins))
        places = dict(_split(self.positions))
        joined = []
        for key, searches, users in counted.select("query", "denominator", "users").iter_rows():
            query = self.of_key[key]
            p50_ms, p95_ms = _latencies(bins.get(key))
            joined.append(
                JudgedAndSearched(
                    query_id=query,
                    text=texts[query],
                    slice=None if parts is None else parts.get(query),
                    searches=round(searches),
                    users=int(users),
                    offline={name: offline[query][name] for name in names},
                    online=figures[key],
                    p50_ms=p50_ms,
                    p95_ms=p95_ms,
                    position=_middle(places.get(key)),
                )
            )
        return sorted(joined, key=lambda row: (-row.searches, row.query_id))

    def others(self) -> tuple[int, int]:
        """Number of queries that are not judged, and of searches for them."""
        frame = self.evidence.moments[QUERY].filter(
            pl.col("metric") == EVERY_SEARCH.name,
            pl.col("query").is_not_null(),
            ~pl.col("query").is_in(list(self.of_key)),
        )
        return frame.height, round(float(frame["denominator"].sum()))

    def slices(
        self, rows: Sequence[JudgedAndSearched], names: Sequence[str], by: str | None
    ) -> list[WorldSlice]:
        """All judged queries, and each slice."""
        key_of = {query: key for key, query in self.of_key.items()}
        figures: dict[str, dict[str, Figure]] = {}
        if by is not None:
            for row in estimate(self.evidence, self.ratios, CLASS, self.log, self.rules):
                figure = Figure(row.value, row.low, row.high, row.n)
                figures.setdefault(row.slice["class"], {})[row.metric] = figure
        parts = Counter(row.slice for row in rows if row.slice is not None)
        summaries = []
        for name in (None, *sorted(parts)):
            mine = [row for row in rows if name is None or row.slice == name]
            bins = self.bins.filter(pl.col("query").is_in([key_of[row.query_id] for row in mine]))
            p50_ms, p95_ms = _latencies(bins)
            summaries.append(
                WorldSlice(
                    slice=name,
                    queries=len(mine),
                    searches=sum(row.searches for row in mine),
                    offline={measure: _mean(mine, measure, weighted=False) for measure in names},
                    weighted={measure: _mean(mine, measure, weighted=True) for measure in names},
                    online=self._pooled(mine) if name is None else figures[name],
                    p50_ms=p50_ms,
                    p95_ms=p95_ms,
                )
            )
        return summaries

    def _pooled(self, rows: Sequence[JudgedAndSearched]) -> dict[str, Figure]:
        """Each metric over all searches for the judged queries."""
        pooled = {}
        for metric in self.ratios:
            figures = [row.online[metric.name] for row in rows]
            sums = self.moments.filter(pl.col("metric") == metric.name)
            over = float(sums["denominator"].sum())
            value = float(sums["numerator"].sum()) / over if over else None
            pooled[metric.name] = Figure(value, None, None, sum(figure.n for figure in figures))
        return pooled


def _split(frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    parts = frame.partition_by("query", as_dict=True)
    return [(str(key[0]), part) for key, part in parts.items()]


def _latencies(bins: pl.DataFrame | None) -> tuple[float | None, float | None]:
    """Median and 95th percentile of latencies, in milliseconds; None without any."""
    if bins is None or bins.is_empty():
        return None, None
    times = Times(bins)
    return times.quantile(0.5) / 1000, times.quantile(0.95) / 1000


def _middle(places: pl.DataFrame | None) -> int | None:
    """The median position of clicks; None without any."""
    known = None if places is None else places.drop_nulls("position").sort("position")
    if known is None or known.is_empty():
        return None
    reached = known["clicks"].cum_sum() * 2 >= known["clicks"].sum()
    return int(known["position"][int(reached.arg_max() or 0)])


def _mean(rows: Sequence[JudgedAndSearched], name: str, *, weighted: bool) -> float | None:
    pairs = [
        (value, row.searches if weighted else 1)
        for row in rows
        if (value := row.offline[name]) is not None
    ]
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total else None
