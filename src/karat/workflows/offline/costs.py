"""What a candidate costs against the baseline: latency, sizes, price, and people's judgments.

Latency by stage is added where the traces of both runs have times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from karat.diagnosis.slices import Slice
from karat.measures.evidence import Floats
from karat.measures.scores import Scores
from karat.stats.quantiles import quantile_change, quantile_changes, times_of
from karat.tables import Run
from karat.tables.about import short
from karat.tables.comparison import AnswerChange, Comparison, CostChange, Costs
from karat.tables.judgments import Judgments
from karat.tables.records import shared

LATENCIES = (("latency p50", 0.5), ("latency p95", 0.95), ("latency p99", 0.99))
_DECLARED = {
    "index": ("index_bytes", "bytes"),
    "memory": ("memory_bytes", "bytes"),
    "price": ("price_per_1000", ""),
}
"""What ``about`` may declare: its key and unit; the unit of the price is ``currency``."""
TIMES = ("query_id", "stage", "state", "latency_us")
"""Columns of a trace with the times of its stages."""


def times_of_both(baseline: Run, candidate: Run) -> tuple[list[str], Floats, Floats]:
    """The queries timed in both runs, and their times in each, in milliseconds."""
    old, new = times_of(baseline), times_of(candidate)
    shared = sorted(old.keys() & new.keys())
    before, after = (np.array([times[q] for q in shared]) / 1000 for times in (old, new))
    return shared, before, after


def costs_of(
    first: Scores, candidate: Run, answers: Sequence[AnswerChange], slices: Sequence[Slice]
) -> Costs:
    """The costs that both runs say; ``answers`` has the latency over all queries."""
    names = {name for name, _ in LATENCIES}
    changes = [
        CostChange(unit="ms", **shared(row, CostChange)) for row in answers if row.what in names
    ]
    changes += _declared(first.run, candidate)
    changes += _sliced(first, candidate, slices) if slices else []
    return Costs(first.run.name, candidate.name, changes)


def _declared(baseline: Run, candidate: Run) -> Iterator[CostChange]:
    currencies = [run.about.get("currency", "") for run in (baseline, candidate)]
    for what, (key, unit) in _DECLARED.items():
        before, after = (_number(run.about.get(key)) for run in (baseline, candidate))
        if before is None or after is None:
            continue
        if what == "price" and currencies[0] != currencies[1]:
            continue
        money = short(currencies[0]) if what == "price" else unit
        yield CostChange(what, money, before, after, after - before, None, None, None)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None


def unreadable(runs: Sequence[Run]) -> list[str]:
    """Notes on declared costs that are not numbers, or not in one currency."""
    notes = [
        f"{key} of {run.name} is {short(run.about[key])!r}, not a number of 0 or more: left out"
        for run in runs
        for key, _ in _DECLARED.values()
        if key in run.about and _number(run.about[key]) is None
    ]
    priced = [run.about.get("currency", "") for run in runs if "price_per_1000" in run.about]
    if len(set(priced)) > 1:
        notes.append("prices are in different currencies, and are not compared")
    return notes


def _sliced(first: Scores, candidate: Run, slices: Sequence[Slice]) -> Iterator[CostChange]:
    shared, before, after = times_of_both(first.run, candidate)
    place = {query: at for at, query in enumerate(shared)}
    ids = first.evidence.query_ids
    for attribute, value, chosen in slices:
        own = [place[ids[at]] for at in np.flatnonzero(chosen) if ids[at] in place]
        if own:
            change = quantile_change(before[own], after[own])
            old, new, span = change.before, change.after, change.difference
            yield CostChange(
                "latency p95", "ms", old, new, new - old, span.low, span.high, len(own),
                attribute, value,
            )  # fmt: skip


def with_judgments(comparison: Comparison, runs: Sequence[Run], judgments: Judgments) -> Comparison:
    """The comparison, with people's judgments of documents that only a candidate returns.

    ``runs`` are its runs, the baseline first.
    """
    by_people = judgments.frame.filter(pl.col("source") == "human")
    pair, k = ["query_id", "doc_id"], comparison.settings.k
    tops = [run.frame().filter(pl.col("rank") <= k).select(pair) for run in runs]
    known = {costs.candidate: costs for costs in comparison.costs}
    out = []
    for run, top in zip(runs[1:], tops[1:], strict=True):
        new = top.join(tops[0], on=pair, how="anti")
        rows = by_people.join(new, on=pair, how="semi")
        costs = known.get(run.name, Costs(runs[0].name, run.name, []))
        if rows.height:
            timed = rows["seconds"].drop_nulls()
            added = [CostChange("judgments", "judgments", None, None, rows.height, *[None] * 3)]
            if len(timed):
                spent = float(timed.sum())
                added.append(CostChange("judging", "s", None, None, spent, None, None, len(timed)))
            overall = [row for row in costs.changes if row.attribute is None and not row.stage]
            rest = [row for row in costs.changes if row.attribute is not None or row.stage]
            costs = replace(costs, changes=[*overall, *added, *rest])
        out += [costs] if costs.changes else []
    return replace(comparison, costs=out)


def with_stages(comparison: Comparison, traces: Mapping[str, pl.DataFrame]) -> Comparison:
    """The comparison, with the latency of each stage where both runs have a trace with times.

    ``traces`` has the columns ``TIMES``, by run.
    """
    times = {run: _by_stage(trace) for run, trace in traces.items()}
    before = times.get(comparison.baseline)
    known = {each.candidate: each for each in comparison.costs}
    out = []
    for name in dict.fromkeys(row.candidate for row in comparison.differences):
        after = times.get(name)
        costs = known.get(name, Costs(comparison.baseline, name, []))
        if before and after:
            costs = replace(costs, changes=[*costs.changes, *_stages(before, after)])
        out += [costs] if costs.changes else []
    return replace(comparison, costs=out)


def _by_stage(trace: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Stage → query → its time in milliseconds; failed stages have none."""
    timed = trace.filter((pl.col("state") != "failed") & pl.col("latency_us").is_not_null())
    rows = timed.select("stage", "query_id", pl.col("latency_us") / 1000).rows()
    out: dict[str, dict[str, float]] = {}
    for stage, query, time in rows:
        out.setdefault(stage, {})[query] = time
    return out


def _stages(
    before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]
) -> Iterator[CostChange]:
    shares = [share for _, share in LATENCIES]
    for stage in dict.fromkeys([*after, *before]):
        old, new = before.get(stage), after.get(stage)
        shared = sorted((old or new or {}).keys() & (new or old or {}).keys())
        if not shared:
            continue
        first, second = (
            np.array([0.0 if times is None else times[query] for query in shared])
            for times in (old, new)
        )
        changes = quantile_changes(first, second, shares)
        for (what, _), change in zip(LATENCIES, changes, strict=True):
            span = change.difference
            yield CostChange(
                what, "ms", None if old is None else change.before,
                None if new is None else change.after, change.after - change.before, span.low,
                span.high, len(shared), stage=stage,
            )  # fmt: skip
