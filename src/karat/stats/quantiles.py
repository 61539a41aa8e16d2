"""Quantiles of latencies of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.stats.averages import Floats
from karat.stats.intervals import RESAMPLES, TRUSTED_FROM, Interval, resample
from karat.tables import Run
from karat.tables.results import Latency

Clusters = NDArray[np.int64]
LEAST = 100  # number of timed queries below which a quantile has no interval
_BLOCK = 1 << 20  # numbers in memory at once while drawing


@dataclass(frozen=True, slots=True)
class QuantileChange:
    """The change of a latency quantile between two runs timed on the same queries."""

    before: float  # the quantile of the first run, in the unit of the times
    after: float  # of the second
    n: int  # number of queries timed in both
    difference: Interval  # 95 % interval of `after - before`; no ends below `LEAST` queries
    increase: Interval  # 95 % interval of `after / before - 1`; likewise, and if `before` is 0
    level: Interval  # 95 % interval of `after`; no ends below `LEAST` queries


def quantile_change(
    before: Floats, after: Floats, seed: int = 0, *, share: float = 0.95
) -> QuantileChange:
    """A quantile of the times of two runs, and intervals of its change; see ``quantile_changes``.

    Args:
        before: Times of one run, one for each query; at least one; shape (n,).
        after: Of the other, in the same order; shape (n,).
        seed: Random seed.
        share: Share of the answers that do not exceed the quantile.
    """
    [change] = quantile_changes(before, after, [share], seed)
    return change


def quantile_changes(
    before: Floats,
    after: Floats,
    shares: Sequence[float],
    seed: int = 0,
    *,
    clusters: Clusters | None = None,
) -> list[QuantileChange]:
    """Quantiles of the times of two runs, and intervals of their changes, from the same draws.

    Queries are drawn with replacement, with both of their times, 2,000 times; the interval is from
    the 2.5th to the 97.5th percentile of the draws, without interpolation. It reflects the sampling
    of queries, not the load of the machine during either run.

    Args:
        before: Times of one run, one for each query; at least one; shape (n,).
        after: Of the other, in the same order; shape (n,).
        shares: Of each quantile the share of the answers that do not exceed it.
        seed: Random seed.
        clusters: Times that are drawn together, such as those of all requests of one query; shape
            (n,), whole numbers from 0. Each time by itself if None. Fewer than
            ``intervals.TRUSTED_FROM`` of them give no interval.

    Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, ch. 13. Its coverage is
    measured by benchmarks/latency_coverage.py (docs/explanation/intervals.md).
    """
    n = len(before)
    one = np.ones((1, n))
    first, second = (_drawn_quantiles(times, one, shares)[:, 0] for times in (before, after))
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    units = n if clusters is None else int(clusters.max(initial=-1)) + 1
    few = Interval(None, None, f"fewer than {LEAST} timed queries")
    if clusters is not None and units < TRUSTED_FROM <= n:
        few = Interval(None, None, f"fewer than {TRUSTED_FROM} timed queries")
    if n < LEAST or (clusters is not None and units < TRUSTED_FROM):
        return [QuantileChange(was, now, n, few, few, few) for was, now in pairs]
    old, new = _resampled(before, after, np.random.default_rng(seed), shares, clusters, units)
    zero = Interval(None, None, "a quantile of 0")
    return [
        QuantileChange(
            was, now, n, _outer(late - early), _outer(late / early - 1) if early.min() else zero,
            _outer(late),
        )
        for (was, now), early, late in zip(pairs, old, new, strict=True)
    ]  # fmt: skip


def swap_p(
    before: Floats,
    after: Floats,
    shares: Sequence[float],
    clusters: Clusters,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> list[float]:
    """P-values of the permutation test of the change of quantiles, two-sided.

    If the two runs are equally fast, the two times of a cluster may as well be swapped. The p-value
    is (c + 1) / (resamples + 1), with c the number of random swaps whose quantiles differ as much.

    Args:
        before: Times of one run; at least one; shape (n,).
        after: Of the other, in the same order; shape (n,).
        shares: As in ``quantile_changes``.
        clusters: Times that are swapped together; shape (n,), whole numbers from 0.
        resamples: Number of random swaps.
        seed: Random seed.

    Source: Phipson & Smyth 2010, doi:10.2202/1544-6115.1585, for (c + 1).
    """
    n, rng = len(before), np.random.default_rng(seed)
    at = [max(0, math.ceil(share * n - 1e-9) - 1) for share in shares]

    def changes(swapped: NDArray[np.bool_]) -> Floats:
        sides = (np.where(swapped, after, before), np.where(swapped, before, after))
        one, other = (np.partition(times, at, axis=1)[:, at] for times in sides)
        gaps: Floats = np.abs(other - one)
        return gaps

    seen = changes(np.zeros((1, n), np.bool_))[0]
    beyond = np.zeros(len(at), np.int64)
    units, height = int(clusters.max()) + 1, max(1, _BLOCK // n)
    for top in range(0, resamples, height):
        rows = min(height, resamples - top)
        swapped = rng.random((rows, units)) < 0.5
        beyond += (changes(swapped[:, clusters]) >= seen * (1 - 1e-12)).sum(axis=0)
    p: list[float] = ((beyond + 1) / (resamples + 1)).tolist()
    return p


def _resampled(
    before: Floats,
    after: Floats,
    rng: np.random.Generator,
    shares: Sequence[float],
    clusters: Clusters | None,
    units: int,
) -> tuple[Floats, Floats]:
    """The quantiles of both runs in each draw of queries; shape (shares, draws) each."""
    quantiles = []
    height = max(1, _BLOCK // len(before))
    for top in range(0, RESAMPLES, height):
        drawn = resample(units, min(height, RESAMPLES - top), rng)
        drawn = drawn if clusters is None else drawn[:, clusters]
        quantiles.append([_drawn_quantiles(times, drawn, shares) for times in (before, after)])
    old, new = zip(*quantiles, strict=True)
    return np.concatenate(old, axis=1), np.concatenate(new, axis=1)


def _drawn_quantiles(times: Floats, drawn: Floats, shares: Sequence[float]) -> Floats:
    """The smallest times that these shares of each draw do not exceed; shape (shares, draws)."""
    order = np.argsort(times, kind="stable")
    ranked, counts = times[order].astype(np.float64), np.cumsum(drawn[:, order], axis=1)
    totals = drawn.sum(axis=1)[:, None]
    return np.stack([ranked[(counts >= s * totals - 1e-9).argmax(axis=1)] for s in shares])


def _outer(values: Floats) -> Interval:
    low, high = np.quantile(values, (0.025, 0.975), method="inverted_cdf")
    return Interval(float(low), float(high))


def times_of(run: Run) -> dict[str, float]:
    """Latency by query, in microseconds; failed queries have none."""
    if "latency_us" not in run.answers.columns:
        return {}
    timed = run.answers.filter((pl.col("state") != "failed") & pl.col("latency_us").is_not_null())
    return {
        query: float(time) for query, time in timed.select("query_id", "latency_us").iter_rows()
    }


def latency_of(run: Run) -> Latency | None:
    """The latency row of a run; None if none of its answers has a time.

    A quantile is the smallest observed time that the share of answers did not exceed (NumPy's
    method ``inverted_cdf``, Hyndman and Fan 1996, definition 1), without interpolation. Failed
    queries that have a time count; one that timed out took at least that time.
    """
    if "latency_us" not in run.answers.columns:
        return None
    times = run.answers["latency_us"].drop_nulls().to_numpy()
    return latency_row(run.name, times)


def latency_row(name: str, times: NDArray[np.int64]) -> Latency | None:
    """The latency row of times in microseconds; None without any."""
    if not len(times):
        return None
    p50, p95, p99 = np.quantile(times, (0.5, 0.95, 0.99), method="inverted_cdf")
    return Latency(name, len(times), float(p50), float(p95), float(p99), float(np.max(times)))
