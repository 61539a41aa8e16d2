"""Shadow traffic: is a candidate, asked next to the baseline, safe to show to users."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, fields

import numpy as np
import polars as pl

from karat.experiments._shadow_checks import Seen, checks, percent, verdict
from karat.experiments._shadow_evidence import Answers, Evidence, Mask, answers_of
from karat.experiments._shadow_rows import (
    bounded_interval,
    differences,
    latency_changes,
)
from karat.stats.quantiles import latency_row
from karat.tables.experiments.shadow import (
    KINDS,
    LATE_US,
    SIDES,
    Increase,
    Observed,
    ShadowBar,
    ShadowGroup,
    ShadowLimits,
    ShadowPair,
    ShadowPhase,
    ShadowQuery,
    ShadowResult,
    ShadowSide,
)

_SAYS = (
    "engine", "engine_version", "index", "index_fingerprint", "template", "parameters", "function",
    "commit", "settings", "embed",
)  # fmt: skip
"""Keys of ``about`` that say what a side is."""
_BARS = 10
Slices = Sequence[tuple[str, str, Mask]]
"""Attribute, value, and which of the queries have it; shape (queries,)."""


def queries_of(observed: Observed) -> pl.DataFrame:
    """The queries that count: `query`, `query_id` and `requests`, in the order of slices."""
    evidence = Evidence.of(observed, 1)
    return pl.DataFrame(
        {"query": evidence.names, "query_id": evidence.query_ids, "requests": evidence.sizes},
        schema={"query": pl.String, "query_id": pl.String, "requests": pl.Int64},
    )


def analyze(
    observed: Observed,
    limits: ShadowLimits,
    *,
    k: int = 10,
    slices: Slices = (),
    explained: str = "",
    judged: Collection[tuple[str | None, str]] = frozenset(),
    most: int = 20,
    judge_next: int = 0,
) -> ShadowResult:
    """The result, without quality and hashes of files.

    Args:
        observed: What both sides answered.
        limits: Of the candidate.
        k: Depth of the top.
        slices: Of the queries of ``queries_of``.
        explained: Why answers differ as much as they do; empty if not explained.
        judged: Pairs of query and document that have a judgment.
        most: Number of changed queries to list.
        judge_next: Number of unjudged documents to list.
    """
    evidence = Evidence.of(observed, k)
    latency = latency_changes(evidence)
    rows = differences(evidence, latency) if len(evidence.query) else []
    late = _late(evidence.requests)
    asked = _asked(observed)
    planned = observed.planned
    planned = observed.requests.height + observed.dropped if planned is None else planned
    seen = Seen(evidence, limits, latency, rows, planned, asked, late, explained)
    found = checks(seen)
    decided, reason = verdict(found)
    return ShadowResult(
        verdict=decided,
        reason=reason,
        checks=found,
        k=k,
        requests=len(evidence.query),
        queries=len(evidence.names),
        dropped=observed.dropped,
        late=late,
        sides=[*_sides(evidence)],
        differences=rows,
        by_phase=_phases(observed),
        quality=None,
        quality_slices=[],
        most_changed=_most_changed(evidence, most),
        groups=[*_groups(evidence, slices)],
        histogram=_histogram(evidence),
        judge_next=_judge_next(evidence, judged, judge_next),
        hashes=_hashes(observed, limits),
        runs={},
        explained=explained,
        notes=[*observed.notes, *_notes(evidence, late)],
    )


def limits_text(limits: ShadowLimits) -> str:
    """The limits in a line, as a file has them."""
    texts = []
    for each in fields(limits):
        value = getattr(limits, each.name)
        if isinstance(value, Increase):
            text = percent(value.size) if value.relative else f"{value.size:g} ms"
        elif value is None:
            continue
        else:
            whole = each.name in {"min_requests", "max_p95_ms"}
            text = f"{value:g}" if whole or each.name == "min_overlap" else percent(value)
        texts.append(f"{each.name} {text}")
    return ", ".join(texts)


def _asked(observed: Observed) -> int:
    """Requests that both sides were asked, cold ones included."""
    ids = observed.requests["id"].to_list()
    one, other = (answers_of(observed.runs[side], ids) for side in SIDES[:2])
    return int((one.asked & other.asked).sum())


def _late(requests: pl.DataFrame) -> int:
    return int((requests["late_us"] > LATE_US).sum())


def _notes(evidence: Evidence, late: int) -> Iterator[str]:
    if evidence.again is None:
        yield (
            "the baseline was asked once, so its own noise is unknown: overlap, RBO and "
            "displacement have no test"
        )
    if late:
        yield (
            f"{late:,} of {len(evidence.query):,} requests were sent more than 50 ms late, because "
            "all workers waited for answers: the load was lower than planned"
        )
    uneven = evidence.sizes.max(initial=0)
    if uneven > 1:
        yield "requests of one query are averaged: intervals and tests count queries, not requests"


def _sides(evidence: Evidence) -> Iterator[ShadowSide]:
    for side, answers in evidence.answers.items():
        p50, p95, p99 = _quantiles(answers)
        yield ShadowSide(
            side, evidence.observed.names[side], int(answers.answered.sum()),
            int(answers.empty.sum()), int(answers.failed.sum()),
            int(answers.timed_out.sum()), p50, p95, p99,
            dict(evidence.observed.about.get(side, {})),
        )  # fmt: skip


def _quantiles(answers: Answers) -> tuple[float | None, float | None, float | None]:
    """Quantiles of the latency of its answers, in microseconds."""
    times = np.round(answers.ms[answers.timed] * 1000).astype(np.int64)
    row = latency_row("", times)
    return (None, None, None) if row is None else (row.p50_us, row.p95_us, row.p99_us)


def _phases(observed: Observed) -> list[ShadowPhase]:
    phases = observed.requests["phase"].unique(maintain_order=True).to_list()
    if len(phases) < 2:
        return []
    found = []
    for phase in phases:
        part = observed.requests.filter(pl.col("phase") == phase)
        for side in SIDES[:2]:
            answers = answers_of(observed.runs[side], part["id"].to_list())
            found.append(
                ShadowPhase(
                    phase, side, int(answers.asked.sum()), int(answers.failed.sum()),
                    int(answers.timed_out.sum()), _late(part), *_quantiles(answers),
                )
            )  # fmt: skip
    return found


def _most_changed(evidence: Evidence, most: int) -> list[ShadowQuery]:
    order = evidence.by_traffic()[:most]
    rbo, shared = (
        evidence.means(values, ~np.isnan(values))
        for values in (evidence.compared.rbo, evidence.compared.overlap)
    )
    return [
        ShadowQuery(
            evidence.names[at], evidence.query_ids[at], int(evidence.sizes[at]),
            float(evidence.change[at]), _number(rbo[at]), _number(shared[at]),
            KINDS[evidence.kinds[at]], *tops,
        )
        for at, tops in zip(order, evidence.tops(order), strict=True)
    ]  # fmt: skip


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _groups(evidence: Evidence, slices: Slices) -> Iterator[ShadowGroup]:
    if not evidence.names:
        return
    shared = evidence.means(evidence.compared.overlap, ~np.isnan(evidence.compared.overlap))
    everything = np.ones(len(evidence.names), np.bool_)
    for attribute, value, chosen in ((None, None, everything), *slices):
        counts = np.bincount(evidence.kinds[chosen], minlength=len(KINDS)).tolist()
        held = shared[chosen & ~np.isnan(shared)]
        span = bounded_interval(held, 1.0)
        yield ShadowGroup(
            attribute, value, int(chosen.sum()), int(evidence.sizes[chosen].sum()),
            dict(zip(KINDS, counts, strict=True)), float(held.mean()) if len(held) else None,
            span.low, span.high,
        )  # fmt: skip


def _histogram(evidence: Evidence) -> list[ShadowBar]:
    values = evidence.compared.overlap
    shared = evidence.means(values, ~np.isnan(values))
    known = ~np.isnan(shared)
    place = np.floor(shared[known] * _BARS + 1e-9).astype(np.int64)
    queries = np.bincount(place, minlength=_BARS + 1)
    requests = np.bincount(place, evidence.sizes[known], _BARS + 1)
    return [
        ShadowBar(at / _BARS, min((at + 1) / _BARS, 1.0), int(queries[at]), int(requests[at]))
        for at in range(_BARS + 1)
    ]


def _judge_next(
    evidence: Evidence, judged: Collection[tuple[str | None, str]], count: int
) -> list[ShadowPair]:
    found: list[ShadowPair] = []
    if not count:
        return found
    order = evidence.by_traffic()[:count]
    for at, (old, new) in zip(order, evidence.tops(order), strict=True):
        query = evidence.query_ids[at]
        ranks = [{doc: rank for rank, doc in enumerate(docs, 1)} for docs in (old, new)]
        # First those that the candidate adds, then those that it moves or leaves out.
        docs = sorted(dict.fromkeys([*new, *old]), key=lambda doc: doc in ranks[0])
        for doc in docs:
            before, after = (rank.get(doc) for rank in ranks)
            if before != after and (query, doc) not in judged:
                size = int(evidence.sizes[at])
                pair = ShadowPair(query, evidence.names[at], doc, before, after, size)
                found.append(pair)
    return found[:count]


def _hashes(observed: Observed, limits: ShadowLimits) -> dict[str, str | None]:
    asked = observed.requests.select(pl.coalesce("query_id", "query").unique().sort())
    return {
        "baseline": side_digest(observed.about.get("baseline", {})),
        "candidate": side_digest(observed.about.get("candidate", {})),
        "queries": _digest(asked.to_series().to_list()),
        "judgments": None,
        "policy": _digest(asdict(limits)),
    }


def side_digest(about: Mapping[str, str]) -> str | None:
    """SHA-256 of what a side says about itself; None if it says nothing that identifies it."""
    said = {key: value for key, value in about.items() if key.split(".")[0] in _SAYS}
    return _digest(said) if said else None


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
