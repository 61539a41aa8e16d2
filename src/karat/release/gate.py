"""Gate: a policy held against numbers; bad evidence never passes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from karat.release.policy import Health, Rule
from karat.tables.comparison import ROUNDING
from karat.tables.gate import WORST_FIRST, Check, GateVerdict


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a rule is held against, over all queries or a slice.

    Attributes:
        n: Queries that have a value in all runs the rule looks at.
        candidate_value: Mean of the candidate; None without queries.
        baseline_value: Mean of the baseline; None if there is none.
        drop: How much worse the candidate is; None without a baseline.
        ci_low: Lower end of the 95 % interval of the drop; None without spread.
        ci_high: Upper end.
        smallest_detected: The smallest drop these queries detect with a power of 80 %.
        attribute: What is sliced by; None for all queries.
        slice: Its value; None for all queries.
    """

    n: int
    candidate_value: float | None
    baseline_value: float | None = None
    drop: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    smallest_detected: float | None = None
    attribute: str | None = None
    slice: str | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """What became of the queries of a run.

    Attributes:
        run: Name of the run.
        queries: Queries that count.
        failed: Of these, without an answer.
        missing: Of these, not in the run.
        documents: Documents returned in all.
        judged: Mean Judged@k by cutoff k; None where nothing was returned.
        p95_us: 95th percentile of the times to an answer; None without times.
    """

    run: str
    queries: int
    failed: int
    missing: int
    documents: int
    judged: dict[int, float | None] = field(default_factory=dict)
    p95_us: float | None = None


def overall(checks: Sequence[Check]) -> GateVerdict:
    """The worst verdict; ``error`` if nothing was checked."""
    verdicts = {check.verdict for check in checks}
    return next((verdict for verdict in WORST_FIRST if verdict in verdicts), "error")


def health_checks(health: Health, candidate: Answers, baseline: Answers | None) -> Iterator[Check]:
    """Whether the search answered as it must before any number counts.

    Args:
        health: What is demanded.
        candidate: Of the candidate.
        baseline: Of the baseline; what speaks against it makes nothing sure.
    """
    yield from _answered(health, candidate, "unhealthy")
    if baseline is not None:
        against = _answered(health, baseline, "cannot_tell")
        yield from (check for check in against if check.verdict != "pass")
    if health.min_queries is not None:
        enough = candidate.queries >= health.min_queries
        yield Check(
            rule=f"at least {health.min_queries:,} queries count",
            verdict="pass" if enough else "cannot_tell",
            reason=f"{candidate.queries:,} count",
            n=candidate.queries,
            candidate_value=float(candidate.queries),
            limit=float(health.min_queries),
        )
    for k, share in candidate.judged.items() if health.min_judged is not None else ():
        least = health.min_judged or 0.0
        enough = share is not None and share >= least - ROUNDING
        yield Check(
            rule=f"Judged@{k} is at least {least:g}",
            verdict="pass" if enough else "cannot_tell",
            reason="nothing was returned" if share is None else f"{100 * share:.0f} % are judged",
            candidate_value=share,
            limit=least,
        )
    if health.p95_ms is not None:
        yield _in_time(health.p95_ms, candidate)


def _answered(health: Health, answers: Answers, otherwise: GateVerdict) -> Iterator[Check]:
    """Failed and missing queries against their budgets, and whether anything was returned."""
    for what, count, most in (
        ("got no answer", answers.failed, health.max_failed),
        ("are not in the run", answers.missing, health.max_missing),
    ):
        allowed = math.floor(most * answers.queries + ROUNDING) if most < 1 else int(most)
        fine = count <= allowed
        yield Check(
            rule=f"{answers.run}: at most {allowed:,} of {answers.queries:,} queries {what}",
            verdict="pass" if fine else otherwise,
            reason=f"{count:,} {what}",
            n=answers.queries,
            candidate_value=float(count),
            limit=float(allowed),
        )
    if not answers.documents or not answers.queries:
        what = "no query that counts" if not answers.queries else "no document for any query"
        yield Check(
            rule=f"{answers.run}: the search answers",
            verdict=otherwise,
            reason=f"it returned {what}" if answers.queries else f"there is {what}",
            n=answers.queries,
        )


def _in_time(most: float, answers: Answers) -> Check:
    rule = f"95 % of the answers take at most {most:g} ms"
    if answers.p95_us is None:
        return Check(rule, "cannot_tell", "the run has no times", limit=most)
    took = answers.p95_us / 1000
    verdict: GateVerdict = "pass" if took <= most else "fail"
    return Check(rule, verdict, f"p95 is {took:.4g} ms", candidate_value=took, limit=most)


def rule_checks(rule: Rule, numbers: Numbers, stale: str = "") -> Iterator[Check]:
    """A rule held against numbers: one check for each demand it makes.

    Args:
        rule: The rule.
        numbers: What it is held against.
        stale: Why the baseline's numbers count no more; empty if they do.
    """
    if rule.max_drop is not None:
        yield _dropped(rule, numbers, stale)
    if rule.least is not None:
        yield _floor(rule, rule.least, numbers)


def _dropped(rule: Rule, numbers: Numbers, stale: str) -> Check:
    assert rule.max_drop is not None
    limit: float | None = rule.max_drop.size
    if rule.max_drop.relative:
        before = numbers.baseline_value
        limit = None if before is None else rule.max_drop.size * abs(before)
    verdict, reason = _drop_verdict(rule, numbers, limit)
    if stale and verdict != "error":
        verdict, reason = "stale", stale
    sure = ", surely" if rule.evidence == "interval" else ""
    return Check(
        rule=f"{rule.measure} drops by at most {rule.max_drop}{sure}",
        verdict=verdict,
        reason=reason,
        measure=str(rule.measure),
        attribute=numbers.attribute,
        slice=numbers.slice,
        n=numbers.n,
        baseline_value=numbers.baseline_value,
        candidate_value=numbers.candidate_value,
        drop=numbers.drop,
        ci_low=numbers.ci_low,
        ci_high=numbers.ci_high,
        limit=limit,
        smallest_detected=numbers.smallest_detected,
    )


def _drop_verdict(rule: Rule, numbers: Numbers, limit: float | None) -> tuple[GateVerdict, str]:
    drop, before = numbers.drop, numbers.baseline_value
    if not numbers.n or drop is None or before is None or limit is None:
        return "cannot_tell", "no query has a value in both runs"
    if rule.max_drop and rule.max_drop.relative and abs(before) <= ROUNDING:
        return "error", f"the baseline is 0, and {rule.max_drop} of 0 is no limit; write 0.01, say"
    held = f"{'dropped' if drop > 0 else 'rose'} by {abs(drop):.4f}, allowed {limit:.4f}"
    if rule.evidence == "observed":
        return ("pass" if drop <= limit + ROUNDING else "fail"), held
    low, high = numbers.ci_low, numbers.ci_high
    if low is None or high is None:
        if numbers.n < 2:
            return "cannot_tell", "one query has no interval"
        low = high = drop  # every query dropped as much
    span = f"the drop is {drop:+.4f} ({low:+.4f} to {high:+.4f}), allowed {limit:.4f}"
    if high <= limit + ROUNDING:
        return "pass", span
    return ("fail" if low > limit else "cannot_tell"), span


def _floor(rule: Rule, least: float, numbers: Numbers) -> Check:
    value = numbers.candidate_value
    lower = rule.measure.entry.direction == "lower"
    verdict: GateVerdict
    if value is None or not numbers.n:
        verdict, reason = "cannot_tell", "no query has a value"
    else:
        fine = value <= least + ROUNDING if lower else value >= least - ROUNDING
        verdict, reason = ("pass" if fine else "fail"), f"it is {value:.4f}"
    return Check(
        rule=f"{rule.measure} is at {'most' if lower else 'least'} {least:g}",
        verdict=verdict,
        reason=reason,
        measure=str(rule.measure),
        attribute=numbers.attribute,
        slice=numbers.slice,
        n=numbers.n,
        baseline_value=numbers.baseline_value,
        candidate_value=value,
        limit=least,
    )
