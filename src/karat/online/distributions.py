"""Statistics of histograms of times: quantiles, Kaplan-Meier, restricted means, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.online.metrics.entry import Distribution
from karat.online.rules import Rules
from karat.stats.bucket_resampling import Draws, percentile_interval
from karat.tables.online.evaluation import OnlineState

Floats = NDArray[np.float64]

_ROUNDING = 1e-9  # rounding error of a product of many factors


def kaplan_meier(events: Floats, censored: Floats) -> Floats:
    """Share that lasts longer than each time; shape of the arguments.

    Args:
        events: How many ended at each time, times ascending; shape (…, times).
        censored: How many were last seen at each time; events at the same time come first.

    Source: Kaplan & Meier 1958, JASA 53, 457-481.
    """
    alive = (events + censored)[..., ::-1]
    risk: Floats = np.cumsum(alive, axis=-1, dtype=np.float64)[..., ::-1]
    stays = 1.0 - events / np.maximum(risk, np.finfo(np.float64).tiny)  # none ends without risk
    curve: Floats = np.cumprod(stays, axis=-1, dtype=np.float64)
    return curve


def survival_quantile(times: Floats, survival: Floats, level: float) -> Floats:
    """The smallest time by which a share has ended; infinite if the curve does not reach it.

    Without censoring it is the smallest time that the share did not exceed (Hyndman and Fan 1996,
    definition 1), without interpolation.

    Args:
        times: Ascending; shape (times,).
        survival: From ``kaplan_meier``; shape (…, times).
        level: Above 0 and below 1; 0.5 for the median.

    Returns:
        Shape (…).
    """
    reached = survival <= 1 - level + _ROUNDING
    return np.where(reached.any(axis=-1), times[reached.argmax(axis=-1)], np.inf)


def restricted_mean(
    times: Floats, survival: Floats, last: Floats | float, up_to: float
) -> tuple[Floats, Floats]:
    """Bounds of the mean of the smaller of the time and ``up_to``: the area under the curve.

    They are equal if any time reaches ``up_to``, or all have ended. Otherwise the rest ended, at
    the earliest, when last seen and, at the latest, at ``up_to``.

    Args:
        times: Ascending; shape (times,).
        survival: From ``kaplan_meier``; shape (…, times).
        last: The longest time seen, ended or not; shape (…).
        up_to: In the unit of the times.

    Returns:
        Lower and upper bound, each of shape (…).

    Source: Irwin 1949, J. Hyg. 47; Royston & Parmar 2013, BMC Med. Res. Methodol. 13:152.
    """
    before = np.concatenate([np.ones_like(survival[..., :1]), survival[..., :-1]], axis=-1)
    area = ((before - survival) * np.minimum(times, up_to)).sum(axis=-1)
    rest = survival[..., -1]
    return area + rest * np.minimum(last, up_to), area + rest * up_to


_BLOCK = 1 << 16  # numbers per block of curves: a block that fits the CPU cache is fastest
_ROWS = 32  # bins per block of draws: as above


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic of a distribution."""

    kind: Literal["mean", "median", "restricted_mean", "quantile"]  # as in `Distribution`
    level: float = 0.5  # of a quantile, from 0 to 1
    up_to: int = 0  # of a restricted mean, in microseconds

    @classmethod
    def of(cls, compute: Distribution, rules: Rules) -> Statistic:
        """The statistic of a metric; the rules limit restricted means."""
        up_to = rules.first_click_mean if compute.name == "first_click" else rules.dwell_mean
        return cls(compute.statistic, compute.level or 0.5, up_to)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The value of a statistic, in microseconds: fields as in ``OnlineResult``."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    least: float | None = None
    most: float | None = None
    state: OnlineState = "ok"
    reason: str = ""


class _Counts:
    """Sparse counts by bucket of users and bin."""

    def __init__(
        self,
        row: NDArray[np.int64],
        column: NDArray[np.int64],
        count: Floats,
        shape: tuple[int, int],
    ) -> None:
        self._cells = (count, (column, row))
        self._shape = shape
        self.of_bins = np.bincount(column, count, minlength=shape[1]).astype(np.float64)
        self.of_buckets = np.bincount(row, count, minlength=shape[0]).astype(np.float64)

    @cached_property
    def _matrix(self) -> Any:
        from scipy import sparse  # a tenth of a second, and not all statistics need it

        return sparse.csr_array(self._cells, shape=self._shape[::-1])

    def drawn(self, weights: Floats) -> Floats:
        """Counts of each bin with buckets weighted by each draw; shape (draws, bins)."""
        if not len(self._cells[0]):
            return np.zeros((len(weights), self._shape[1]))
        return np.ascontiguousarray((self._matrix @ np.ascontiguousarray(weights.T)).T)

    def part(self, first: int, end: int) -> Any:
        """Counts of some bins by bucket; sparse, shape (bins, buckets)."""
        return self._matrix[first:end]


class Times:
    """The times of one slice of one distribution.

    Args:
        histogram: ``user_bucket``, ``bin_us``, ``censored``, ``count``, ``sum_us``; a row for each
            bucket of users, bin and whether it is censored.
    """

    def __init__(self, histogram: pl.DataFrame) -> None:
        frame = histogram.select(
            pl.col("user_bucket", "bin_us", "censored").cast(pl.Int64),
            pl.col("count", "sum_us").cast(pl.Float64),
        )
        bucket, bins = frame["user_bucket"].to_numpy(), frame["bin_us"].to_numpy()
        count, total = frame["count"].to_numpy(), frame["sum_us"].to_numpy()
        censored = frame["censored"].to_numpy() == 1
        known, row = np.unique(bucket, return_inverse=True)
        times, column = np.unique(bins, return_inverse=True)
        self.buckets = len(known)
        self._shape = (len(known), len(times))
        ends = ~censored
        self._events = _Counts(row[ends], column[ends], count[ends], self._shape)
        self._censored = _Counts(row[censored], column[censored], count[censored], self._shape)
        self._sums = np.bincount(row[~censored], total[~censored], minlength=len(known))
        self.n = round(float(count.sum()))
        self.without_end = round(float(count[~censored].sum()))
        # The time of a bin is the mean of the ended times in it; of all if none has ended.
        ended, sums = self._events.of_bins, self._by_bin(column, ~censored, total)
        others, rest = self._censored.of_bins, self._by_bin(column, censored, total)
        counted = np.where(ended > 0, ended, others)
        self._times: Floats = np.where(ended > 0, sums, rest) / counted
        longest = np.where(others > 0, rest / np.maximum(others, 1), 0.0)
        self._last: Floats = np.maximum(longest, np.where(ended > 0, self._times, 0.0))

    def _by_bin(self, column: NDArray[np.int64], which: NDArray[np.bool_], total: Floats) -> Floats:
        return np.bincount(column[which], total[which], self._shape[1]).astype(np.float64)

    @cached_property
    def _survival(self) -> Floats:
        return kaplan_meier(self._events.of_bins, self._censored.of_bins)

    def read(self, statistic: Statistic, draws: Draws) -> Estimate:
        """A statistic with its interval, or the reason why it has none."""
        buckets = self.buckets
        if statistic.kind == "mean":  # of those that ended
            if not self.without_end:
                return Estimate(state="none", reason="all are censored")
            buckets = int(np.count_nonzero(self._events.of_buckets))
        least, most = self._bounds(statistic)
        if np.isinf(least):
            share = 1 - self.without_end / self.n
            median = statistic.level == 0.5
            half = "more than half are censored" if median else "too many are censored"
            reason = f"{half} ({100 * share:.0f} % of {self.n:,}): it is not reached"
            return Estimate(state="unknown", reason=reason)
        if most - least > 1e-9 * statistic.up_to:
            reason = f"none was followed for {statistic.up_to / 1e6:g} s: only bounds are known"
            return Estimate(least=least, most=most, state="unknown", reason=reason)
        if reason := self._no_draws(buckets):
            return Estimate(least, reason=reason)
        span = percentile_interval(*self._drawn_bounds(statistic, draws))
        return Estimate(least, span.low, span.high, reason=span.reason)

    def quantile(self, level: float) -> float:
        """A quantile without an interval, in microseconds; infinite if it is not reached."""
        return float(survival_quantile(self._times, self._survival, level))

    def drawn(self, statistic: Statistic, draws: Draws) -> tuple[float, Floats]:
        """A statistic and its value in each draw of buckets, in microseconds.

        NaN or infinite where it has no value; of bounds it is the middle.
        """
        whole, ends = self._bounds(statistic), self._drawn_bounds(statistic, draws)
        return float(np.mean(whole)), np.mean(ends, axis=0)

    def _bounds(self, statistic: Statistic) -> tuple[float, float]:
        """The lower and upper bound of a statistic; equal but for restricted means."""
        if statistic.kind == "restricted_mean":
            ends = restricted_mean(self._times, self._survival, self._last[-1], statistic.up_to)
            return float(ends[0]), float(ends[1])
        mean = float(self._sums.sum() / max(self.without_end, 1))
        value = mean if statistic.kind == "mean" else self.quantile(statistic.level)
        return value, value

    def _drawn_bounds(self, statistic: Statistic, draws: Draws) -> tuple[Floats, Floats]:
        """The bounds in each draw of buckets."""
        weights = draws.of(self.buckets)
        if statistic.kind == "restricted_mean":
            ends = [
                restricted_mean(self._times, curves, last, statistic.up_to)
                for last, curves in self._curves(weights)
            ]
            lows, highs = zip(*ends, strict=True)
            return np.concatenate(lows), np.concatenate(highs)
        if statistic.kind == "mean":
            with np.errstate(invalid="ignore", divide="ignore"):
                values = (weights @ self._sums) / (weights @ self._events.of_buckets)
        else:
            values = self._quantiles(statistic.level, weights)
        return values, values

    def _quantiles(self, level: float, weights: Floats) -> Floats:
        """A quantile in each draw; infinite if it is not reached.

        As by ``kaplan_meier`` and ``survival_quantile``, but bin by bin for all draws, until each
        has reached it; without censoring from the last bin, as high levels are near it.
        """
        bins, tiny = self._shape[1], np.finfo(np.float64).tiny
        total = weights @ (self._events.of_buckets + self._censored.of_buckets)
        drawn = np.ascontiguousarray(weights.T)
        before = np.zeros(len(weights), dtype=np.int64)
        if self.without_end == self.n:
            bound, ended = (level - _ROUNDING) * np.maximum(total, tiny), total
            before += bins
            for end in range(bins, 0, -_ROWS):
                for events in (self._events.part(max(0, end - _ROWS), end) @ drawn)[::-1]:
                    reached = ended >= bound
                    before -= reached
                    ended -= events
                if not reached.any():
                    break
        else:
            risk, survival, stays = total, np.ones(len(weights)), np.empty(len(weights))
            for top in range(0, bins, _ROWS):
                ending = self._events.part(top, top + _ROWS) @ drawn
                leaving = ending + self._censored.part(top, top + _ROWS) @ drawn
                for events, gone in zip(ending, leaving, strict=True):
                    np.divide(events, np.maximum(risk, tiny, out=stays), out=stays)
                    survival *= np.subtract(1.0, stays, out=stays)
                    lasts = survival > 1 - level + _ROUNDING
                    before += lasts
                    risk -= gone
                if not lasts.any():
                    break
        return np.append(self._times, np.inf)[before]

    def _no_draws(self, buckets: int) -> str:
        """The reason for no interval over this many buckets; empty if there can be one."""
        if buckets < 2:
            return "one user, or few in one bucket"
        if self._shape[1] == 1:
            return "all times are equal"
        return ""

    def _curves(self, weights: Floats) -> Iterator[tuple[Floats, Floats]]:
        """The longest time and the curve of each draw of buckets, in blocks."""
        height = max(1, _BLOCK // self._shape[1])
        for top in range(0, len(weights), height):
            block = weights[top : top + height]
            events, censored = self._events.drawn(block), self._censored.drawn(block)
            occupied = (events + censored) > 0
            last = self._last[occupied.shape[1] - 1 - occupied[:, ::-1].argmax(axis=1)]
            yield last, kaplan_meier(events, censored)
