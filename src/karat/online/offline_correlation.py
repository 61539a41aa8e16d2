"""Correlation of offline measures with online metrics over queries, and disagreements of the two.

**Weights.** A query counts once, or in proportion to its searches: the first shows whether a
measure ranks queries as users do, the second whether it ranks searches so.

**Intervals** resample queries, the unit of sampling. Correlations are not corrected for attenuation
by noise of single queries: with few searches each, even a perfect measure correlates weakly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.online.distributions import Times
from karat.online.estimates import estimate
from karat.online.evidence import Cut, Evidence
from karat.online.metrics.entry import Metric
from karat.online.metrics.expressions import EVERY_SEARCH
from karat.online.rules import Rules
from karat.stats.averages import Floats
from karat.stats.correlation import outcome
from karat.stats.intervals import Interval, resample
from karat.tables import Queries
from karat.tables.online.events import EventLog
from karat.tables.online.offline_correlation import (
    Concord,
    JudgedAndSearched,
    MetricValue,
    Weighting,
    WorldSlice,
)

RESAMPLES = 1000
LEAST = 4  # least number of queries for an interval
LEAST_DISCORD = 0.4
"""Least difference of two ranks, as a share of all ranks, that is a disagreement."""
_PAIRS = 1500  # queries up to which all pairs fit in memory
_BLOCK = 1_000_000  # cells per block

_UNEXPLAINED = (
    "the log does not explain it: check the judgments, and that the run is what was served"
)
_DEEP = 4  # a position that many users do not look at
_SLOW = 1.5  # latency relative to that of all
_OFTEN, _TWICE = 0.1, 2.0
_JUDGED = 0.5

Ints = NDArray[np.int64]


def concord(
    offline: Floats, online: Floats, searches: Floats, *, weighted: bool, seed: int = 0
) -> tuple[Interval, Interval, float | None, float | None, str]:
    """Spearman's and Kendall's correlation of two columns with their intervals.

    Args:
        offline: A measure of each query, no NaN; shape (n,).
        online: A metric of each query; shape (n,).
        searches: Searches of each query, above 0; shape (n,).
        weighted: Whether queries are weighted by their searches.
        seed: Seed of the resamples.

    Returns:
        The intervals of Spearman's and Kendall's correlation, both values (None if a column is
        constant), and the reason if one is None.

    Source: Spearman by midranks and Kendall's tau-b, of a sample in which each query is repeated
    according to its weight; Efron & Tibshirani 1993, ch. 13, for the intervals.
    """
    n = len(offline)
    none = Interval(None, None)
    plain = outcome(offline, online)
    if plain.spearman is None:
        return none, none, None, None, plain.reason
    weights = searches if weighted else np.ones(n)
    spearman, kendall = plain.spearman, plain.kendall
    left, right = _places(offline), _places(online)
    if weighted:
        spearman = float(weighted_spearman(left, right, weights[None])[0])
        pairs = _Pairs.of(left, right) if n <= _PAIRS else None
        kendall = None if pairs is None else float(pairs.tau(weights[None])[0])
    if n < LEAST:
        return none, none, spearman, kendall, f"an interval needs {LEAST} queries"
    drawn = resample(n, RESAMPLES, np.random.default_rng(seed)) * weights
    of_spearman = _between(weighted_spearman(left, right, drawn))
    if n > _PAIRS:
        reason = f"over {_PAIRS:,} queries: Kendall's tau has no interval here"
        return of_spearman, none, spearman, kendall, reason
    of_kendall = _between(_Pairs.of(left, right).tau(drawn))
    return of_spearman, of_kendall, spearman, kendall, of_spearman.reason


def _places(values: Floats) -> Ints:
    """Rank of each value from 0; equal values share one."""
    _, place = np.unique(values, return_inverse=True)
    return place


def weighted_spearman(left: Ints, right: Ints, weights: Floats) -> Floats:
    """Correlation of weighted midranks; NaN if a column is constant.

    Args:
        left: Ranks from 0, shared by equal values; shape (n,).
        right: Ranks of the other column; shape (n,).
        weights: Weights, 0 or more; a row for each sample, shape (b, n).

    Returns:
        The correlation in each sample; shape (b,).
    """
    out = np.empty(len(weights))
    height = max(1, _BLOCK // max(len(left), 1))
    for top in range(0, len(weights), height):
        rows = weights[top : top + height]
        total = rows.sum(1, keepdims=True)
        ranks = [_midranks(place, rows) - total / 2 for place in (left, right)]
        products = [
            np.einsum("bn,bn,bn->b", rows, one, other)
            for one, other in ((ranks[0], ranks[1]), (ranks[0], ranks[0]), (ranks[1], ranks[1]))
        ]
        spread = np.sqrt(products[1] * products[2])
        with np.errstate(invalid="ignore", divide="ignore"):
            # The variance of equal ranks is a rounding error, of the size of total³.
            flat = spread <= 1e-12 * total[:, 0] ** 3
            out[top : top + height] = np.where(
                flat, np.nan, np.clip(products[0] / spread, -1.0, 1.0)
            )
    return out


def _midranks(place: Ints, weights: Floats) -> Floats:
    """Weight below each rank plus half of that at it; the weighted mean is half the total."""
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    sizes = np.add.reduceat(weights[:, order], starts, axis=1)
    middle: Floats = np.cumsum(sizes, axis=1) - sizes / 2
    return middle[:, place]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """All pairs of queries: 1 if both columns order them alike, -1 if not, 0 if tied."""

    alike: Floats
    left: Floats
    right: Floats

    @classmethod
    def of(cls, left: Ints, right: Ints) -> _Pairs:
        """The pairs of two columns of ranks."""
        one, other = (np.sign(place[:, None] - place[None]) for place in (left, right))
        return cls(
            (one * other).astype(np.float64),
            np.abs(one).astype(np.float64),
            np.abs(other).astype(np.float64),
        )

    def tau(self, weights: Floats) -> Floats:
        """Tau-b of each sample; NaN if a column is constant; shape (b,)."""
        alike, left, right = (
            ((weights @ pairs) * weights).sum(1) for pairs in (self.alike, self.left, self.right)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            tau: Floats = np.where(left * right > 0, alike / np.sqrt(left * right), np.nan)
        return np.clip(tau, -1.0, 1.0)


def _between(drawn: Floats) -> Interval:
    drawn = drawn[~np.isnan(drawn)]
    if len(drawn) < RESAMPLES / 2:
        return Interval(None, None, "most resamples of the queries have no order")
    if np.ptp(drawn) < 1e-12:
        return Interval(None, None, "the two orders agree (or disagree) in every pair")
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(float(low), float(high))


def concords(
    rows: Sequence[JudgedAndSearched],
    measures: Sequence[str],
    metrics: Sequence[tuple[str, str]],
    *,
    seed: int = 0,
) -> list[Concord]:
    """The correlation of each measure with each metric: over all queries, and in each slice.

    Args:
        rows: Queries with enough searches.
        measures: Names of the offline measures.
        metrics: Names of the online metrics, each with its direction.
        seed: Seed of the resamples.
    """
    weightings: tuple[Weighting, ...] = ("queries", "searches")
    parts: list[tuple[str | None, list[JudgedAndSearched]]] = [(None, list(rows))]
    parts += [
        (name, [row for row in rows if row.slice == name])
        for name in sorted({row.slice for row in rows if row.slice is not None})
    ]
    correlations = []
    choices = product(parts, measures, metrics, weightings)
    for (name, part), measure, (metric, direction), weighting in choices:
        both = _both(part, measure, metric)
        spearman, kendall, rho, tau, reason = concord(
            *both, weighted=weighting == "searches", seed=seed
        )
        correlations.append(
            Concord(
                measure=measure,
                metric=metric,
                direction=direction,
                slice=name,
                weighting=weighting,
                n=len(both[0]),
                spearman=rho,
                spearman_low=spearman.low,
                spearman_high=spearman.high,
                kendall=tau,
                kendall_low=kendall.low,
                kendall_high=kendall.high,
                reason=reason,
            )
        )
    return correlations


def _both(
    rows: Sequence[JudgedAndSearched], measure: str, metric: str
) -> tuple[Floats, Floats, Floats]:
    """Values of the queries with both, and their searches."""
    pairs = [
        (offline, online, float(row.searches))
        for row in rows
        if (offline := row.offline[measure]) is not None
        and (online := row.online[metric].value) is not None
    ]
    table = np.array(pairs, np.float64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def best_first(values: Floats, *, higher: bool) -> Floats:
    """Rank of each from 1, the best; ties have the mean of their ranks; shape (n,)."""
    place = _places(-values if higher else values)
    sizes = np.bincount(place)
    ranks: Floats = (np.cumsum(sizes) - (sizes - 1) / 2)[place]
    return ranks


def apart(offline: Floats, online: Floats, *, higher: tuple[bool, bool]) -> Floats:
    """Difference of the ranks online and offline, as a share of all ranks: -1 to 1; shape (n,).

    Above 0, the query does better with raters than with users.

    Args:
        offline: A measure of each query; shape (n,).
        online: A metric of each query; shape (n,).
        higher: Whether higher is better, for each of the two.
    """
    n = len(offline)
    if n < 2:
        return np.zeros(n)
    one, other = best_first(offline, higher=higher[0]), best_first(online, higher=higher[1])
    gap: Floats = (other - one) / (n - 1)
    return gap


def surely_off(
    row: JudgedAndSearched | WorldSlice, metric: str, whole: float, gap: float, *, higher: bool
) -> bool:
    """Whether a metric's whole interval is on the side of the overall value that its gap indicates.

    Args:
        row: The query, or the slice.
        metric: Name of the metric.
        whole: Its value over all these queries.
        gap: From ``apart``.
        higher: Whether higher is better.
    """
    figure = row.online[metric]
    if figure.value is None:
        return False
    low = figure.value if figure.low is None else figure.low
    high = figure.value if figure.high is None else figure.high
    bad = gap > 0
    return high < whole if bad == higher else low > whole


def reasons(
    row: JudgedAndSearched, whole: WorldSlice, kind: str, judged: float | None
) -> list[str]:
    """Possible reasons for a disagreement about a query, the simplest first; sentences.

    Args:
        row: The query.
        whole: All judged queries with searches.
        kind: As in ``Discord``.
        judged: Share of the run's top documents for it that is judged; None if unknown.
    """
    explanations = _served_badly(row, whole) if kind == "judges" else []
    if kind == "users" and judged is not None and judged < _JUDGED:
        explanations.append(
            f"only {100 * judged:.0f} % of the run's top documents are judged: its value may be "
            "too low"
        )
    return explanations or [_UNEXPLAINED]


def _served_badly(row: JudgedAndSearched, whole: WorldSlice) -> list[str]:
    problems = []
    for metric, problem in (
        ("ZeroResults", "of its searches had no results"),
        ("Reformulation", "of its searches were reformulated"),
    ):
        mine, all_ = (world.online.get(metric) for world in (row, whole))
        if mine is None or all_ is None or mine.value is None or all_.value is None:
            continue
        if mine.value >= _OFTEN and mine.value >= _TWICE * all_.value:
            problems.append(
                f"{100 * mine.value:.0f} % {problem} (of all: {100 * all_.value:.0f} %)"
            )
    if row.p95_ms is not None and whole.p95_ms and row.p95_ms >= _SLOW * whole.p95_ms:
        problems.append(f"it is slow: p95 {row.p95_ms:,.0f} ms (of all: {whole.p95_ms:,.0f} ms)")
    if row.position is not None and row.position >= _DEEP:
        problems.append(
            f"half of its clicks are at position {row.position} or below: relevant documents rank "
            "low"
        )
    return problems


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
        about: Queries,
        parts: Mapping[str, str],
    ) -> list[JudgedAndSearched]:
        """A row for each judged query with searches, most searches first."""
        texts = about.texts()
        only = Evidence({QUERY: self.moments}, {QUERY: self.bins}, {QUERY: self.positions}, {})
        figures = self._figures(only, QUERY)
        counted = self.moments.filter(pl.col("metric") == EVERY_SEARCH.name)
        bins, places = _by_query(self.bins), _by_query(self.positions)
        joined = []
        for key, searches, users in counted.select("query", "denominator", "users").iter_rows():
            query = self.of_key[key]
            p50_ms, p95_ms = _latencies(bins.get(key))
            joined.append(
                JudgedAndSearched(
                    query_id=query,
                    text=texts[query],
                    slice=parts.get(query),
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
        figures = {} if by is None else self._figures(self.evidence, CLASS)
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

    def _figures(self, evidence: Evidence, cut: Cut) -> dict[str, dict[str, MetricValue]]:
        """Each metric by slice."""
        figures: dict[str, dict[str, MetricValue]] = {}
        for row in estimate(evidence, self.ratios, cut, self.log, self.rules):
            figure = MetricValue(row.value, row.low, row.high, row.n)
            figures.setdefault(row.slice[cut[0]], {})[row.metric] = figure
        return figures

    def _pooled(self, rows: Sequence[JudgedAndSearched]) -> dict[str, MetricValue]:
        """Each metric over all searches for the judged queries."""
        pooled = {}
        for metric in self.ratios:
            sums = self.moments.filter(pl.col("metric") == metric.name)
            over = float(sums["denominator"].sum())
            value = float(sums["numerator"].sum()) / over if over else None
            n = sum(row.online[metric.name].n for row in rows)
            pooled[metric.name] = MetricValue(value, None, None, n)
        return pooled


def _by_query(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {
        str(query): part for (query,), part in frame.partition_by("query", as_dict=True).items()
    }


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
