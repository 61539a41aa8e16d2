"""Shadow traffic: the verdict and its checks, then what differs and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from karat.reports.experiments.answer import Answer
from karat.reports.phrases.numbers import percent, signed
from karat.reports.table import DASH, Column, Table, to
from karat.tables.experiments.shadow import (
    KINDS,
    ShadowCheck,
    ShadowDifference,
    ShadowGroup,
    ShadowResult,
)

VERDICTS = {"pass": "Pass", "fail": "Fail", "cannot_tell": "Cannot tell"}
_STATES = {"pass": "ok", "fail": "FAILED", "cannot_tell": "cannot tell"}
_WHATS = {
    "errors": "Errors", "timeouts": "Timeouts", "zero_results_gained": "Lose all results",
    "zero_results_lost": "Gain results", "rbo": "RBO", "p50": "p50 latency", "p95": "p95 latency",
    "p99": "p99 latency",
}  # fmt: skip
_RULES = {
    "min_requests": "Requests", "min_answered": "Asked of both", "max_dropped": "Dropped",
    "max_errors": "Errors", "max_p95_ms": "p95 latency", "max_p95_increase": "p95 increase",
    "max_zero_gained": "Lose all results", "min_overlap": "Overlap",
}  # fmt: skip
KIND_WORDS = {
    "same": "same", "reordered": "other order", "other_documents": "other documents",
    "gained_results": "gains results", "lost_results": "loses all results",
    "failed": "no answer",
}  # fmt: skip
CHANGED, PRIORITIES = "Queries that change most traffic", "Judging priorities"
_QUERIES = 10  # shown
_TOP = 3  # documents shown of each side


def headline(result: ShadowResult) -> str:
    """Verdict and reason in a line."""
    return f"{VERDICTS[result.verdict]}: {result.reason}"


def about(result: ShadowResult) -> str:
    """What was compared, in a line."""
    names = {side.side: side.name for side in result.sides}
    dropped = f", {result.dropped:,} dropped" if result.dropped else ""
    return (
        f"{names.get('candidate', 'candidate')} against {names.get('baseline', 'baseline')}: "
        f"{result.requests:,} requests of {result.queries:,} queries{dropped}"
    )


def answer(result: ShadowResult) -> Answer:
    return Answer([*tables(result)], result.notes, headline(result), about(result))


def tables(result: ShadowResult) -> Iterator[Table]:
    """All tables that have rows."""
    yield Table("Checks", CHECKS, list(result.checks))
    yield Table("Sides", SIDES, list(result.sides))
    found = [
        Table("Candidate against baseline", DIFFERENCES, list(result.differences)),
        Table("nDCG where judged", QUALITY, quality_rows(result)),
        Table("By phase", PHASES, list(result.by_phase), group="phase"),
        Table("Answers", GROUPS, list(result.groups), group="attribute"),
        Table(f"Overlap of the top {result.k}", HISTOGRAM, list(result.histogram)),
        Table(CHANGED, QUERIES, list(result.most_changed[:_QUERIES])),
        Table(PRIORITIES, PAIRS, list(result.judge_next)),
    ]
    yield from (table for table in found if table.rows)


def quality_rows(result: ShadowResult) -> list[Any]:
    """The difference of nDCG over all judged queries, then in slices."""
    return ([] if result.quality is None else [result.quality]) + list(result.quality_slices)


def _in_unit(check: ShadowCheck, number: float | None) -> str:
    if number is None:
        return DASH
    if check.unit == "share":
        return percent(number).replace("-", "−")
    ms = f"{number:,.1f} ms".replace("-", "−")
    return ms if check.unit == "ms" else f"{number:,.0f}"


def check_interval(check: ShadowCheck) -> str:
    """The interval of what a check saw."""
    if check.ci_low is None or check.ci_high is None:
        return DASH
    return to(_in_unit(check, check.ci_low), _in_unit(check, check.ci_high))


CHECKS: Sequence[Column] = (
    Column("rule", "Check", "words", text=lambda row: _RULES[row.rule]),
    Column("verdict", "State", "words", text=lambda row: _STATES[row.verdict]),
    Column("value", "Seen", "number", text=lambda row: _in_unit(row, row.value)),
    Column("ci_low", "95 %", "number", text=check_interval, drop=2),
    Column("limit", "Limit", "number", text=lambda row: _in_unit(row, row.limit), drop=1),
    Column("reason", "Why", "sentence"),
)

SIDES: Sequence[Column] = (
    Column("side", "Side", "words"),
    Column("name", "Name", "code"),
    Column("answered", "Answered", "count"),
    Column("empty", "Empty", "count"),
    Column("failed", "Failed", "count"),
    Column("timeouts", "Timeouts", "count", drop=3),
    Column("p50_us", "p50, ms", "ms", drop=1),
    Column("p95_us", "p95, ms", "ms"),
    Column("p99_us", "p99, ms", "ms", drop=2),
)

_LATENCIES = {"p50", "p95", "p99"}
_SHARES = {"errors", "timeouts", "zero_results_gained", "zero_results_lost"}


def what(row: ShadowDifference) -> str:
    """The name of a difference in words."""
    name, _, depth = row.what.partition("@")
    return _WHATS.get(row.what) or f"{name.capitalize()}@{depth}"


def amount(row: ShadowDifference, number: float | None) -> str:
    """A value of a difference with its unit."""
    if number is None:
        return DASH
    if row.what in _LATENCIES:
        return f"{signed(number, 1)} ms"
    if row.what in {"errors", "timeouts"}:
        return f"{signed(100 * number, 2)} pp"
    return percent(number) if row.what in _SHARES else f"{number:.3f}".replace("-", "−")


def _span(row: ShadowDifference, low: float | None, high: float | None) -> str:
    return DASH if low is None or high is None else to(amount(row, low), amount(row, high))


def _beyond(row: ShadowDifference) -> str:
    number = row.beyond_noise
    if number is None or row.what in _LATENCIES | {"errors", "timeouts"}:
        return amount(row, number)
    return f"{signed(100 * number, 2)} pp" if row.what in _SHARES else signed(number)


def difference_interval(row: ShadowDifference) -> str:
    return _span(row, row.ci_low, row.ci_high)


DIFFERENCES: Sequence[Column] = (
    Column("what", "Difference", "words", text=what),
    Column("value", "Value", "number", text=lambda row: amount(row, row.value)),
    Column("ci_low", "95 %", "number", text=difference_interval),
    Column("noise", "Noise", "number", optional=True, text=lambda row: amount(row, row.noise),
           help="The same between the baseline and itself, asked twice."),
    Column("beyond_noise", "Beyond", "number", optional=True, text=_beyond, drop=2,
           help="Value minus noise."),
    Column("p_corrected", "p", "p", drop=1),
    Column("different", "Different", "words", optional=True, short="",
           text=lambda row: "different" if row.different else ""),
)  # fmt: skip

QUALITY: Sequence[Column] = (
    Column("slice", "Queries", "words", text=lambda row: row.slice or "all that are judged"),
    Column("measure", "Measure", "code", drop=3),
    Column("baseline_value", "Baseline", "number"),
    Column("candidate_value", "Candidate", "number"),
    Column("difference", "Change", "signed"),
    Column("ci_low", "95 %", "signed", high="ci_high"),
    Column("unjudged_low", "If unjudged were judged", "signed", high="unjudged_high", drop=1,
           short="Unjudged",
           help="Least and greatest change over all grades of unjudged documents."),
    Column("n", "n", "count", drop=2),
    Column("verdict", "", "words"),
)  # fmt: skip

PHASES: Sequence[Column] = (
    Column("phase", "Phase", "words"),
    Column("side", "Side", "words"),
    Column("requests", "Requests", "count"),
    Column("failed", "Failed", "count"),
    Column("timeouts", "Timeouts", "count", drop=2),
    Column("late", "Late", "count", drop=1),
    Column("p50_us", "p50, ms", "ms"),
    Column("p95_us", "p95, ms", "ms"),
    Column("p99_us", "p99, ms", "ms"),
)


def _group(row: ShadowGroup) -> str:
    return "all queries" if row.attribute is None else f"{row.slice}"


def _kind(kind: str) -> Column:
    heading = KIND_WORDS[kind].capitalize()
    drop = {"reordered": 1, "gained_results": 2, "other_documents": 3}.get(kind, 0)
    return Column(kind, heading, "count", value=lambda row: row.kinds[kind], drop=drop)


GROUPS: Sequence[Column] = (
    Column("attribute", "By", "words", optional=True, text=lambda row: row.attribute or ""),
    Column("slice", "Queries", "words", text=_group),
    Column("queries", "n", "count"),
    *map(_kind, reversed(KINDS)),
    Column("overlap", "Overlap", "number", drop=4),
)

HISTOGRAM: Sequence[Column] = (
    Column("low", "Overlap", "words",
           text=lambda row: "1" if row.low == 1 else f"{row.low:.1f} to {row.high:.1f}"),
    Column("queries", "Queries", "count"),
    Column("requests", "Requests", "count"),
)  # fmt: skip


def tops(docs: Sequence[str]) -> str:
    """The first documents of an answer, in a line."""
    return ", ".join(docs[:_TOP]) or "(nothing)"


QUERIES: Sequence[Column] = (
    Column("query", "Query", least=16),
    Column("requests", "Requests", "count", drop=1),
    Column("kind", "Answer", "words", text=lambda row: KIND_WORDS[row.kind]),
    Column("rbo", "RBO", "number"),
    Column("baseline_top", "Baseline", "text", text=lambda row: tops(row.baseline_top), drop=3),
    Column("candidate_top", "Candidate", "text", text=lambda row: tops(row.candidate_top), drop=2),
)

PAIRS: Sequence[Column] = (
    Column("query_id", "Query id", "code", drop=1),
    Column("query", "Query", least=16),
    Column("doc_id", "Document", "code"),
    Column("baseline_rank", "Baseline", "count"),
    Column("candidate_rank", "Candidate", "count"),
    Column("requests", "Requests", "count", drop=2),
)
