"""Differences between both sides of shadow traffic, with intervals and tests over queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from karat.experiments._shadow_evidence import EMPTY, OK, Answers, Evidence, Mask
from karat.stats.averages import Floats, mean
from karat.stats.intervals import (
    LEAST,
    Interval,
    paired_share_interval,
    share_interval,
    shown,
    t_interval,
)
from karat.stats.multiplicity import holm
from karat.stats.paired import randomisation, sign_test
from karat.stats.quantiles import LEAST as TIMED
from karat.stats.quantiles import QuantileChange, quantile_changes, swap_p
from karat.tables.experiments.shadow import ShadowDifference

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
LEVEL = 0.05
_RESAMPLES = 10_000
_NONE = Interval(None, None)


def differences(evidence: Evidence, latency: list[QuantileChange]) -> list[ShadowDifference]:
    """All rows, p-values corrected over those that are tested."""
    rows = [*_latencies(evidence, latency), *_failures(evidence)]
    if (evidence.baseline.answered & evidence.candidate.answered).any():
        rows += [*_zero_results(evidence), *_distances(evidence)]
    corrected = holm([row.p for row in rows])
    return [
        replace(row, p_corrected=p, different=None if p is None else p < LEVEL)
        for row, p in zip(rows, corrected, strict=True)
    ]


def latency_changes(evidence: Evidence, other: Answers | None = None) -> list[QuantileChange]:
    """Change of each quantile from the baseline to the other side; none without times."""
    other = evidence.candidate if other is None else other
    timed = evidence.baseline.timed & other.timed
    if not timed.any():
        return []
    before, after = evidence.baseline.ms[timed], other.ms[timed]
    shares = list(QUANTILES.values())
    return quantile_changes(before, after, shares, clusters=_clusters(evidence, timed))


def _clusters(evidence: Evidence, used: Mask) -> np.ndarray:
    """The query of each of these requests, counted from 0."""
    return np.unique(evidence.query[used], return_inverse=True)[1].astype(np.int64)


def _latencies(evidence: Evidence, latency: list[QuantileChange]) -> Iterator[ShadowDifference]:
    if not latency:
        return
    timed = evidence.baseline.timed & evidence.candidate.timed
    clusters = _clusters(evidence, timed)
    before, after = evidence.baseline.ms[timed], evidence.candidate.ms[timed]
    p: list[float | None] = [None] * len(QUANTILES)
    if len(before) >= TIMED:
        p = [*swap_p(before, after, list(QUANTILES.values()), clusters)]
    noise = [] if evidence.again is None else latency_changes(evidence, evidence.again)
    for at, (name, change) in enumerate(zip(QUANTILES, latency, strict=True)):
        quiet = noise[at] if noise else None
        value = change.after - change.before
        of_noise = None if quiet is None else quiet.after - quiet.before
        beyond = None if of_noise is None else value - of_noise
        span, noise_span = change.difference, _NONE if quiet is None else quiet.difference
        yield ShadowDifference(
            name, value, span.low, span.high, of_noise, noise_span.low, noise_span.high, beyond,
            p[at], None, None, int(clusters.max()) + 1,
        )  # fmt: skip


def _failures(evidence: Evidence) -> Iterator[ShadowDifference]:
    sides = {"errors": "failed", "timeouts": "timed_out"}
    for what, field in sides.items():
        before, after = (getattr(each, field) for each in (evidence.baseline, evidence.candidate))
        everywhere = np.ones(len(before), np.bool_)
        change = evidence.means(after.astype(np.float64) - before, everywhere)
        if not len(change):
            continue
        quiet = None
        if evidence.again is not None and evidence.again.asked.any():
            again = getattr(evidence.again, field).astype(np.float64) - before
            quiet = _known(evidence.means(again, evidence.again.asked))
        yield _row(what, change, _change_interval, quiet, _sign_p(change))


def _change_interval(values: Floats) -> Interval:
    """Interval of the mean of changes of shares, one for each query."""
    if np.isin(values, (-1.0, 0.0, 1.0)).all():
        more, fewer = int((values > 0).sum()), int((values < 0).sum())
        return paired_share_interval(more, fewer, len(values))
    return shown(t_interval(values), values, -1.0, 1.0)


def _zero_results(evidence: Evidence) -> Iterator[ShadowDifference]:
    both = evidence.baseline.answered & evidence.candidate.answered
    shares = [_known(each) for each in _zeros(evidence, evidence.candidate, both)]
    again = evidence.again
    all_three = None if again is None else both & again.answered
    for at, name in enumerate(("zero_results_gained", "zero_results_lost")):
        quiet, p, beyond = None, None, None
        if again is not None and all_three is not None and all_three.any():
            quiet, mine = (
                _known(_zeros(evidence, side, all_three)[at])
                for side in (again, evidence.candidate)
            )
            p, beyond = _sign_p(mine - quiet), mean(mine - quiet)
        elif name == "zero_results_gained":
            p = _sign_p(shares[0] - shares[1])
        yield _row(name, shares[at], _share_interval, quiet, p, beyond)


def _share_interval(values: Floats) -> Interval:
    """Interval of the mean of shares, one for each query."""
    return share_interval(mean(values), len(values))


def _zeros(evidence: Evidence, other: Answers, used: Mask) -> tuple[Floats, Floats]:
    """Share of the requests of each query that lose all results, and that gain some."""
    was, now = evidence.baseline.state, other.state
    pairs = (was == OK) & (now == EMPTY), (was == EMPTY) & (now == OK)
    gained, lost = (evidence.means(mask.astype(np.float64), used) for mask in pairs)
    return gained, lost


def _distances(evidence: Evidence) -> Iterator[ShadowDifference]:
    k = evidence.k
    for name, what, most in (
        ("overlap", f"overlap@{k}", 1.0), ("rbo", "rbo", 1.0),
        ("displacement", f"displacement@{k}", float(k)),
    ):  # fmt: skip
        values: Floats = getattr(evidence.compared, name)
        quiet, p, beyond = None, None, None
        if evidence.noise is not None:
            again: Floats = getattr(evidence.noise, name)
            used = ~np.isnan(values) & ~np.isnan(again)
            if used.any():
                mine, quiet = (_known(evidence.means(each, used)) for each in (values, again))
                p, beyond = _randomised_p(mine - quiet), mean(mine - quiet)
        per_query = _known(evidence.means(values, ~np.isnan(values)))
        yield _row(what, per_query, partial(bounded_interval, most=most), quiet, p, beyond)


def bounded_interval(values: Floats, most: float) -> Interval:
    """95 % interval of the mean of values from 0 to ``most``.

    If all are equal, Student's interval has no width. Then by Clopper and Pearson at least
    0.025^(1/n) of all queries have this value, and the others any.
    """
    if len(values) < LEAST:
        return Interval(None, None, f"fewer than {LEAST} queries")
    if np.ptp(values) > 1e-12:
        return shown(t_interval(values), values, 0.0, most)
    value, share = float(values[0]), 0.025 ** (1 / len(values))
    return Interval(value * share, value * share + most * (1 - share))


def _sign_p(values: Floats) -> float:
    """P of the sign test; 1 if nothing differs."""
    p = sign_test(values).p
    return 1.0 if p is None else p


def _randomised_p(values: Floats) -> float:
    held = np.where(np.abs(values) <= 1e-12, 0.0, values)
    return float(randomisation(held, resamples=_RESAMPLES, seed=0))


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _row(
    what: str,
    values: Floats,
    interval: Callable[[Floats], Interval],
    quiet: Floats | None,
    p: float | None,
    beyond: float | None = None,
) -> ShadowDifference:
    """The mean of a value of each query, and that of the baseline's own noise, if it is known."""
    value, span = mean(values), interval(values)
    noise, noise_span = (None, _NONE) if quiet is None else (mean(quiet), interval(quiet))
    if noise is not None and beyond is None:
        beyond = value - noise
    ends = noise_span.low, noise_span.high
    return ShadowDifference(
        what, value, span.low, span.high, noise, *ends, beyond, p, None, None, len(values)
    )
