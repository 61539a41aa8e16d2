"""Review: the one page on a change that a team discusses before releasing it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from karat.engines.frames.engine import Engine
from karat.errors import KaratError
from karat.formats.own.traces import read_trace
from karat.measures import lower_is_better
from karat.reports.phrases.numbers import counted, signed
from karat.tables import Qrels, Run, records
from karat.tables.comparison import Comparison, Costs, Difference
from karat.tables.days import day_text
from karat.tables.diagnosis.traces import Trace
from karat.tables.judgments import Judgments
from karat.tables.online.events import EventLog
from karat.tables.online.watch import Change, Watched
from karat.tables.release.review import (
    DesignReview,
    ModeChange,
    ReviewGain,
    ReviewSlice,
    RollbackSignal,
)
from karat.workflows.diagnosis.diagnose import BELOW, diagnose
from karat.workflows.offline import inputs
from karat.workflows.offline.compare import compare
from karat.workflows.offline.costs import with_judgments, with_stages

WINDOW = "1d"  # window of an online signal
_SIGNALS = ("SAT", "Abandonment", "Reformulation", "CTR", "MRCR", "ZeroResults")
"""Online metrics that a change of ranking moves."""


def usual(log: EventLog, engine: Engine, by: Sequence[str], **settings: Any) -> Watched:
    """The metrics of the latest whole day of a log, with their usual ranges.

    Sliced by those of ``by`` that the log has; ``settings`` are other arguments of ``watch``.
    """
    from karat.workflows.online.watch import last_whole_day, watch  # needs the store of events

    settings |= {"window": WINDOW, "until": day_text(last_whole_day(log))}
    known = [name for name in by if name in log.attributes or name == "class"]
    with suppress(KaratError):  # the queries may have no texts or classes
        return watch(log, engine, by=known, **settings)
    return watch(log, engine, **settings | {"queries": None})


def review(
    qrels: Qrels,
    baseline: Run,
    candidate: Run,
    measures: Sequence[str] = ("nDCG@10",),
    *,
    traces: Mapping[str, Any] | None = None,
    below: float = BELOW,
    judgments: Judgments | None = None,
    watched: Watched | None = None,
    **settings: Any,
) -> DesignReview:
    """Review a change; the first measure decides."""
    texts = {} if (about := inputs.about(settings.get("queries"), qrels)) is None else about.texts()
    traces = {side: _read(trace, texts) for side, trace in (traces or {}).items()}
    found = compare(qrels, baseline, [candidate], measures, **settings)
    if judgments is not None:
        found = with_judgments(found, [baseline, candidate], judgments)
    first = found.differences[0]
    sides = {"baseline": first.baseline, "candidate": first.candidate}
    found = with_stages(found, {sides[side]: trace.frame for side, trace in traces.items()})
    shared = {name: settings.get(name) for name in ("queries", "documents", "rel")}
    return review_of(
        found,
        qrels,
        baseline,
        candidate,
        traces,
        below,
        judgments,
        watched,
        commands=True,
        **shared,
    )


def review_of(
    found: Comparison,
    qrels: Qrels,
    baseline: Run,
    candidate: Run,
    traces: Mapping[str, Trace],
    below: float = BELOW,
    judgments: Judgments | None = None,
    watched: Watched | None = None,
    *,
    commands: bool,
    **shared: Any,
) -> DesignReview:
    """Review a change by its comparison, which has one candidate.

    ``shared`` are arguments of ``diagnose``; with ``commands``, what was not measured names the
    options that would.
    """
    first = found.differences[0]
    shared |= {"measures": [first.measure], "below": below, "judgments": judgments}
    fixed, broken, bad = _crossed(found, first, below)
    notes = [*found.notes, *_other_measures(found)]
    if watched is not None and watched.simulated:
        notes.append("the events behind the rollback signal are simulated")
    lacking = _not_measured(found, first, traces, fixed, broken, watched)
    return DesignReview(
        baseline=first.baseline,
        candidate=first.candidate,
        measure=first.measure,
        gain=ReviewGain(first.difference, **records.shared(first, ReviewGain)),
        below=below,
        bad=bad,
        catches=_modes(fixed, qrels, baseline, traces.get("baseline"), shared),
        worse=_modes(broken, qrels, candidate, traces.get("candidate"), shared),
        slice=_first_slice(found, first),
        costs=found.costs[0] if found.costs else None,
        rollback=_rollback(found, first, watched),
        not_measured=[f"{text}{command if commands else ''}" for text, command in lacking],
        notes=notes,
    )


def _read(trace: Any, texts: Mapping[str, str]) -> Trace:
    return trace if isinstance(trace, Trace) else read_trace(trace, texts)


def _crossed(
    found: Comparison, first: Difference, below: float
) -> tuple[list[str], list[str], int]:
    """Bad queries that become good, good ones that become bad, and the number of bad ones before.

    None where less is better: a low value is not a bad one.
    """
    if lower_is_better(first.measure):
        return [], [], 0
    rows = [row for row in found.queries if row.measure == first.measure]
    fixed = [r.query_id for r in rows if r.baseline_value < below <= r.candidate_value]
    broken = [r.query_id for r in rows if r.candidate_value < below <= r.baseline_value]
    return fixed, broken, sum(row.baseline_value < below for row in rows)


def _modes(
    query_ids: Sequence[str], qrels: Qrels, run: Run, trace: Any, shared: Mapping[str, Any]
) -> list[ModeChange]:
    """These queries by the mode in which the run fails them, the most frequent first."""
    if not query_ids:
        return []
    rows = {row.query_id: row for row in diagnose(qrels, run, trace=trace, **shared).queries}
    modes: dict[Any, list[str]] = {}
    for query in query_ids:
        modes.setdefault(rows[query].mode if query in rows else "cannot_tell", []).append(query)
    return [
        ModeChange(
            mode,
            own,
            max(len(own), sum(row.mode == mode for row in rows.values())),
            rows[own[0]].evidence if own[0] in rows else "not diagnosed",
        )
        for mode, own in sorted(modes.items(), key=lambda item: -len(item[1]))
    ]


def _first_slice(found: Comparison, first: Difference) -> ReviewSlice | None:
    """The slice that gains most: those that are significantly better first."""

    def rank(row: Difference) -> tuple[bool, float]:
        return row.verdict == "better", _better(row, row.shrunk)

    rows = [row for row in _slices(found, first) if _better(row, row.difference) > 0]
    best = max(rows, key=rank, default=None)
    if best is None:
        return None
    return ReviewSlice(best.difference, **records.shared(best, ReviewSlice))


def _slices(found: Comparison, first: Difference) -> list[Difference]:
    return [row for row in found.slices if row.measure == first.measure]


def _better(row: Difference, value: float | None) -> float:
    """A difference, above 0 if it is better."""
    return (value or 0.0) * (-1 if lower_is_better(row.measure) else 1)


def _rollback(
    found: Comparison, first: Difference, watched: Watched | None
) -> RollbackSignal | None:
    """An online metric with a usual range, else the measure; in the slice that loses most."""
    losing = [row for row in _slices(found, first) if _better(row, row.difference) < 0]
    risk = min(losing, key=lambda row: _better(row, row.shrunk or row.difference), default=None)
    where = {} if risk is None else {str(risk.attribute): str(risk.slice)}
    for part in (where, {}) if where else ({},):
        usable = [] if watched is None else [row for row in watched.changes if _usable(row, part)]
        if usable:
            metric = min(usable, key=_width)
            higher = metric.direction == "higher"
            return RollbackSignal(
                "online", metric.metric, part, WINDOW,
                float((metric.usual_low if higher else metric.usual_high) or 0.0),
                "below" if higher else "above",
                "of the metrics that ranking moves, it varies least from day to day; usually "
                f"{metric.usual_low:.4g} to {metric.usual_high:.4g}",
            )  # fmt: skip
    row = first if risk is None else risk
    if row.baseline_value is None:
        return None
    reason = "no online metric has a usual range; the limit is the baseline's value"
    return RollbackSignal(
        "offline", first.measure, where, "each evaluation", row.baseline_value,
        "above" if lower_is_better(first.measure) else "below", reason,
    )  # fmt: skip


def _usable(row: Change, part: Mapping[str, str]) -> bool:
    known = None not in (row.usual_low, row.usual_high) and bool(row.expected)
    return row.metric in _SIGNALS and known and dict(row.slice) == dict(part)


def _width(row: Change) -> float:
    assert row.usual_low is not None
    assert row.usual_high is not None
    assert row.expected
    return (row.usual_high - row.usual_low) / abs(row.expected)


def _other_measures(found: Comparison) -> Iterator[str]:
    for row in found.differences[1:]:
        if row.verdict == "worse":
            yield f"worse by {row.measure}: {signed(row.difference)}"


def _not_measured(
    found: Comparison,
    first: Difference,
    traces: Mapping[str, Any],
    fixed: Sequence[str],
    broken: Sequence[str],
    watched: Watched | None,
) -> Iterator[tuple[str, str]]:
    """In sentences, each with the option that would measure it."""
    if lower_is_better(first.measure):
        yield f"which failures it catches: less is better by {first.measure}", ""
    for name, run, queries in (
        ("baseline", first.baseline, fixed),
        ("candidate", first.candidate, broken),
    ):
        if queries and traces.get(name) is None:
            many = counted(len(queries), "query", "queries")
            yield f"why {run} fails {many}: no trace", f" (--trace {name}=FILE)"
    if first.sign_could_flip:
        what = f"unjudged documents, which could reverse the sign of {first.measure}"
        yield what, " (karat compare --judge-next 20)"
    if not found.slices:
        yield "slices", " (--by ATTRIBUTE)"
    costs = found.costs[0] if found.costs else Costs(first.baseline, first.candidate, [])
    lacking = {
        "latency": "latency p95",
        "size of the index": "index",
        "memory": "memory",
        "price": "price",
        "judgments": "judgments",
    }
    missing = [name for name, what in lacking.items() if costs.find(what) is None]
    if missing:
        yield f"costs: {', '.join(missing)}", ""
    if watched is None:
        yield "online metrics: no log", ""
    elif watched.health:
        yield f"online metrics: {watched.health[0]}", ""
    yield "what users do with it: no A/B test", ""
