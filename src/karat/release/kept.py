"""Promised and measured: what releases promised, what came, and how online gains follow offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karat.release.pipeline import ReleaseState
from karat.stats.student import t_quantile
from karat.tables.release.pipeline import AB, SHADOW, Kept, Relation

LEAST = 10  # releases below which the relation of offline to online gains is not computed


def kept_by(state: ReleaseState) -> Kept:
    """What a release promised, and what was measured so far."""
    promise, gain = state.opening.policy.promise, state.opening.review.gain
    decided = _decision(state)
    return Kept(
        name=state.name,
        state=state.state,
        ended_us=state.last_us,
        measure=promise.measure,
        promised=promise.gain,
        offline=gain.value,
        offline_low=gain.ci_low,
        offline_high=gain.ci_high,
        metric=str(decided.get("metric", "")),
        online=decided.get("relative"),
        online_low=decided.get("relative_low"),
        online_high=decided.get("relative_high"),
        promised_ms=promise.latency_ms,
        measured_ms=_latency(state),
    )


def _decision(state: ReleaseState) -> Mapping[str, Any]:
    """The effect on the first decision metric, in the A/B test if there was one; empty without."""
    latest = sorted(state.evidence, key=lambda stage: (stage != AB, -state.gathered[stage]))
    for stage in latest:
        for effect in state.evidence[stage].result.get("effects", ()):
            if effect["role"] == "decision" and effect["relative"] is not None:
                return dict(effect)
    return {}


def _latency(state: ReleaseState) -> float | None:
    """Change of the 95th percentile in shadow, in ms."""
    evidence = state.evidence.get(SHADOW)
    rows = () if evidence is None else evidence.result.get("differences", ())
    values = [row["value"] for row in rows if row["what"] == "p95" and row["value"] is not None]
    return values[0] if values else None


def relation(rows: Sequence[Kept]) -> Relation:
    """How online gains follow offline gains: least squares over releases, with a t interval.

    Releases that were not shipped count too: leaving them out would bias the slope. The gains are
    measured with error, which flattens it.
    """
    from scipy.stats import linregress  # slow to import

    pairs = [
        (row.offline, row.online) for row in rows
        if row.offline is not None and row.online is not None
    ]  # fmt: skip
    n = len(pairs)
    if n < LEAST:
        return Relation(n, None, None, None, f"{n} of the {LEAST} releases that it needs")
    x, y = zip(*pairs, strict=True)
    if len(set(x)) == 1:
        return Relation(n, None, None, None, "all offline gains are the same")
    line = linregress(x, y)
    slope, half = float(line.slope), t_quantile(0.975, n - 2) * float(line.stderr)
    return Relation(n, slope, slope - half, slope + half)
