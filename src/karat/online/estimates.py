"""Estimates from evidence: a row for each metric and slice, with its interval or a reason.

Ratios use the delta method over users; distributions use Kaplan-Meier for censored times, and
resampled buckets of users. Null is not 0: a row without a value has a reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import polars as pl

from karat.online.distributions import Statistic, Times
from karat.online.evidence import Cut, Evidence
from karat.online.metrics.entry import Distribution, Metric, Ratio
from karat.online.metrics.expressions import counted_over, to_count, why_unknown
from karat.online.rules import Rules
from karat.stats.bucket_resampling import Draws
from karat.stats.intervals import TRUSTED_FROM, UserMoments, ratio_interval
from karat.tables.notes import Concern, Note
from karat.tables.online.evaluation import OnlineResult
from karat.tables.online.events import EventLog

NOT_SAID = ""  # the value of the slice of missing values, which are null in evidence
_POSITIONS = "ClickPosition"
_NO_INTERVAL = "a share of clicks by position has no interval"
_WITHOUT = {
    "dwell": "clicks",
    "first_click": "searches with results seen",
    "latency": "searches with a latency",
}
_NUMBERS = ("value", "low", "high", "least", "most", "total")
Slice = tuple[str, ...]


def needed(metrics: Sequence[Metric]) -> list[Metric]:
    """The metrics to reduce for some metrics: these, and counts for distributions.

    Histograms have buckets of users and not users; a ratio for each counts the users.
    """
    counting = {
        counts_name(metric.compute): _counting(metric.compute)
        for metric in metrics
        if isinstance(metric.compute, Distribution)
    }
    return [*metrics, *counting.values()]


def _counting(compute: Distribution) -> Metric:
    """The number of times in a distribution; for a mean only those that ended."""

    def known() -> nw.Expr:
        counts = compute.value() >= 0
        if compute.statistic == "mean" and compute.censored is not None:
            counts = counts & (compute.censored() == 0)
        return nw.when(counts).then(1).otherwise(0)

    return to_count(counts_name(compute), Ratio(compute.facts, known, known))


def counts_name(compute: Distribution) -> str:
    """The name of the ratio that counts the users of a distribution."""
    return f"n({compute.name}, ended)" if compute.statistic == "mean" else f"n({compute.name})"


def estimate(
    evidence: Evidence,
    metrics: Sequence[Metric],
    cut: Cut,
    log: EventLog,
    rules: Rules,
    *,
    seed: int = 0,
) -> list[OnlineResult]:
    """The values of metrics in the slices of a cut, slice by slice.

    Args:
        evidence: Evidence for ``needed(metrics)`` and this cut.
        metrics: Metrics to estimate, in order.
        cut: Dimensions to slice by; () for all.
        log: Summary of the event log, which determines the metrics it has no data for.
        rules: The rules of the evidence.
        seed: Seed of the draws of buckets; the draws of a slice do not depend on other slices.

    Returns:
        A row for each slice and metric; for ``ClickPosition`` one for each position, which is then
        part of the slice.
    """
    tables = _Tables(evidence, cut, log, rules, Draws(seed))
    return [
        row for part in tables.slices for metric in metrics for row in tables.rows(metric, part)
    ]


def trust(results: Sequence[OnlineResult]) -> list[str]:
    """A note on intervals that are not reliable; none if all are."""
    few = [r for r in results if r.low is not None and r.users < TRUSTED_FROM]
    if not few:
        return []
    names = list(dict.fromkeys(row.metric for row in few))
    slices = {tuple(row.slice.items()) for row in few} - {()}
    where = f" in {len(slices):,} slice{'s' * (len(slices) > 1)}" if slices else ""
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    text = f"intervals over fewer than {TRUSTED_FROM} users are not reliable ({shown}{where})"
    return [Note(text, Concern.FEW)]


def censoring(evidence: Evidence, metrics: Sequence[Metric]) -> list[str]:
    """The share of times without a known end, in a sentence for each distribution."""
    sentences = []
    for metric in metrics:
        compute, frame = metric.compute, evidence.histograms[()]
        if not isinstance(compute, Distribution) or compute.censored is None:
            continue
        counts = frame.filter(pl.col("name") == compute.name).group_by("censored")
        by_end = dict(counts.agg(pl.col("count").sum()).iter_rows())
        censored, every = by_end.get(1, 0), sum(by_end.values())
        if censored:
            share = f"{100 * censored / every:.0f} %"
            sentence = {
                "dwell": f"{censored:,} of {every:,} clicks ({share}) have no known end",
                "first_click": f"{censored:,} of {every:,} searches ({share}) were left without a "
                "click",
            }.get(compute.name, "")
            sentences.append(f"{sentence}: they count as censored, not as 0")
    return list(dict.fromkeys(sentences))


@dataclass
class _Tables:
    """The evidence of one cut, by slice."""

    evidence: Evidence
    cut: Cut
    log: EventLog
    rules: Rules
    draws: Draws

    @cached_property
    def slices(self) -> list[Slice]:
        """The slices that occur, in order; without a cut the one of all."""
        if not self.cut:
            return [()]
        parts = {
            self._part(row)
            for frame in (self.evidence.moments[self.cut], self.evidence.histograms[self.cut])
            for row in frame.select(self.cut).unique().iter_rows(named=True)
        }
        return sorted(parts, key=lambda part: [_order(value) for value in part])

    @cached_property
    def moments(self) -> dict[tuple[Slice, str, str], dict[str, Any]]:
        rows = self.evidence.moments[self.cut].iter_rows(named=True)
        return {(self._part(row), row["metric"], row["term"]): row for row in rows}

    @cached_property
    def times(self) -> dict[tuple[Slice, str], Times]:
        frame = self.evidence.histograms[self.cut]
        times: dict[tuple[Slice, str], Times] = {}
        for keys, part in frame.group_by([*self.cut, "name"], maintain_order=True):
            values = dict(zip((*self.cut, "name"), keys, strict=True))
            times[self._part(values), str(values["name"])] = Times(part)
        return times

    @cached_property
    def clicks(self) -> dict[Slice, list[tuple[int, int]]]:
        known = self.evidence.positions[self.cut].drop_nulls("position").sort("position")
        clicks: dict[Slice, list[tuple[int, int]]] = {}
        for row in known.iter_rows(named=True):
            clicks.setdefault(self._part(row), []).append((row["position"], row["clicks"]))
        return clicks

    def _part(self, row: Mapping[str, Any]) -> Slice:
        return tuple(NOT_SAID if row[name] is None else str(row[name]) for name in self.cut)

    def rows(self, metric: Metric, part: Slice) -> Iterator[OnlineResult]:
        """The rows of a metric in a slice: one, except for positions."""
        unknown = why_unknown(metric, self.log)
        if unknown:
            yield _row(metric, self._slice(part), state="unknown", reason=unknown)
        elif metric.name == _POSITIONS:
            yield from self._positions(metric, part)
        elif isinstance(metric.compute, Ratio):
            yield self._ratio(metric, part)
        else:
            yield self._distribution(metric, metric.compute, part)

    def _slice(self, part: Slice) -> dict[str, str]:
        return dict(zip(self.cut, part, strict=True))

    def _ratio(self, metric: Metric, part: Slice) -> OnlineResult:
        values = self._slice(part)
        row = self.moments.get((part, metric.name, "value"))
        if row is None or not row["users"] or not row["denominator"]:
            return _row(metric, values, state="none", reason=f"no {counted_over(metric)}")
        over = float(row["denominator"])
        ends = [self.moments.get((part, metric.name, term)) for term in ("least", "most")]
        least, most = (None if end is None else float(end["numerator"]) / over for end in ends)
        counts: dict[str, Any] = {"n": round(over), "users": int(row["users"])}
        counts |= {"least": least, "most": most}
        if not metric.point and least != most:
            reason = "the log does not determine it: only bounds are known"
            return _row(metric, values, state="unknown", reason=reason, **counts)
        highest = 1.0 if metric.unit == "share" else metric.highest
        interval = ratio_interval(
            UserMoments.of(row), None if metric.unit == "money" else 0.0, highest
        )
        return _row(
            metric,
            values,
            value=float(row["numerator"]) / over,
            low=interval.low,
            high=interval.high,
            method="users" if interval.low is not None else None,
            total=float(row["numerator"]),
            reason=interval.reason,
            **counts,
        )

    def _distribution(self, metric: Metric, compute: Distribution, part: Slice) -> OnlineResult:
        values = self._slice(part)
        times = self.times.get((part, compute.name))
        if times is None:
            reason = f"no {_WITHOUT[compute.name]}"
            return _row(metric, values, state="none", reason=reason)
        unit = 1e3 if metric.unit == "milliseconds" else 1e6  # microseconds in it
        result = times.read(Statistic.of(compute, self.rules), self.draws)
        counted = self.moments.get((part, counts_name(compute), "value"))
        users = int(counted["users"]) if counted else times.buckets  # a lower bound
        n = times.without_end if compute.statistic == "mean" else times.n
        scaled = {
            name: None if (value := getattr(result, name)) is None else value / unit
            for name in ("value", "low", "high", "least", "most")
        }
        return _row(
            metric,
            values,
            **scaled,
            method="buckets" if result.low is not None else None,
            n=n,
            users=users,
            state=result.state,
            reason=result.reason,
        )

    def _positions(self, metric: Metric, part: Slice) -> Iterator[OnlineResult]:
        values = self._slice(part)
        clicks = self.clicks.get(part, [])
        total = sum(count for _, count in clicks)
        if not total:
            yield _row(metric, values, state="none", reason="no clicks at a known position")
            return
        counted = self.moments.get((part, metric.name, "value"))
        for position, count in clicks:
            yield _row(
                metric,
                {**values, "position": str(position)},
                value=count / total,
                n=total,
                users=int(counted["users"]) if counted else 0,
                total=float(count),
                reason=_NO_INTERVAL,
            )


def _row(metric: Metric, values: Mapping[str, str], **fields: Any) -> OnlineResult:
    numbers = (fields.get(name) for name in _NUMBERS)
    if not all(math.isfinite(number) for number in numbers if number is not None):
        counts: dict[str, Any] = {name: fields[name] for name in ("n", "users") if name in fields}
        fields = {**counts, "state": "none", "reason": "the log has numbers too large to add up"}
    defaults = {**dict.fromkeys((*_NUMBERS, "method")), "n": 0, "users": 0, "state": "ok"}
    return OnlineResult(
        metric=metric.name, version=metric.version, slice=dict(values), **{**defaults, **fields}
    )


def _order(value: str) -> tuple[int, float, str]:
    """Numbers by value, then texts, and missing values last."""
    if value == NOT_SAID:
        return 2, 0.0, ""
    return (0, float(value), "") if value.isdecimal() else (1, 0.0, value)
