"""Gate: a policy held against numbers; bad evidence never passes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from karat.release.policy import Drop, Health, Rule
from karat.stats.intervals import TRUSTED_FROM
from karat.tables.comparison import ROUNDING
from karat.tables.gate import WORST_FIRST, Check, GateVerdict

LEAST = 5
"""Queries below which no interval proves anything."""
_ERRORS = 3  # reasons that are told
_ERROR = 80  # characters of each
_PRINTED = 5e-5  # what is less prints as 0.0000


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the numbers of a baseline count no more.

    Attributes:
        verdict: What that makes of rules about a drop.
        reason: Why, in a sentence.
    """

    verdict: GateVerdict
    reason: str


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
        alike: Queries of the same weight that would tell as much; ``n`` where all weigh the same.
        even: Whether every query dropped as much, so that there is no spread.
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
    alike: float | None = None
    even: bool = False
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
        errors: Why queries failed, and how many of those that count did.
        nothing: What to say of a run that holds no query at all; empty if it holds one.
    """

    run: str
    queries: int
    failed: int
    missing: int
    documents: int
    judged: dict[int, float | None] = field(default_factory=dict)
    p95_us: float | None = None
    errors: Mapping[str, int] = field(default_factory=dict)
    nothing: str = ""


def overall(checks: Sequence[Check]) -> GateVerdict:
    """The worst verdict; ``error`` if nothing was checked."""
    verdicts = {check.verdict for check in checks}
    return next((verdict for verdict in WORST_FIRST if verdict in verdicts), "error")


def blind(checks: Sequence[Check]) -> Iterator[str]:
    """A sentence on what passed although its queries could not have seen it fail, if anything."""
    unseen = [
        check
        for check in checks
        if check.verdict == "pass"
        and check.limit is not None
        and check.smallest_detected is not None
        and check.smallest_detected > check.limit
        and check.ci_high is not None
        and check.ci_high > check.limit
    ]
    if unseen:
        first = unseen[0]
        where = f" ({first.attribute} {first.slice})" if first.attribute else ""
        more = f", and {len(unseen) - 1} more likewise" if len(unseen) > 1 else ""
        yield (
            f"“{first.rule}”{where} passed by what was observed; its {first.n} queries detect no "
            f"drop below {first.smallest_detected:.3f}, and {first.limit:.3f} is allowed: a true "
            f'drop may hide there (evidence = "interval" asks for proof){more}'
        )


def unless_worse(check: Check, at_worst: Check, failed: int) -> Check:
    """A check that passes only because queries without an answer do not count cannot tell.

    Args:
        check: Over the queries that were answered.
        at_worst: The same with the others at the worst value there is.
        failed: How many were not answered.
    """
    if check.verdict != "pass" or at_worst.verdict == "pass":
        return check
    said = f"{check.reason}; with the {failed} unanswered at their worst it would not hold"
    return replace(check, verdict="cannot_tell", reason=said)


def health_checks(health: Health, candidate: Answers, baseline: Answers | None) -> Iterator[Check]:
    """Whether the search answered as it must before any number counts.

    Args:
        health: What is demanded.
        candidate: Of the candidate.
        baseline: Of the baseline; what speaks against it makes nothing sure.
    """
    yield from _answered(health, candidate)
    if baseline is not None:
        against = _answered(health, baseline, baseline.run)
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


def _answered(health: Health, answers: Answers, baseline: str = "") -> Iterator[Check]:
    """Failed and missing queries against their budgets, and whether anything was returned.

    Args:
        health: The budgets.
        answers: What became of the queries.
        baseline: Name of the baseline, if it is about that.
    """
    of = f"baseline {baseline}: " if baseline else ""
    otherwise: GateVerdict = "cannot_tell" if baseline else "unhealthy"
    n = answers.queries
    if answers.nothing:
        yield Check(f"{of}the search answers", otherwise, answers.nothing, n=n)
        return
    for count, most, every, few, some, none in (
        (
            answers.failed,
            health.max_failed,
            "every query is answered",
            "without an answer",
            f"got no answer{_why(answers.errors)}",
            "all were answered",
        ),
        (
            answers.missing,
            health.max_missing,
            "every query is in the run",
            "not in the run",
            "are not in the run",
            "all are in the run",
        ),
    ):
        allowed = math.floor(most * n + ROUNDING) if most < 1 else int(most)
        yield Check(
            rule=of + (f"at most {allowed:,} of {n:,} queries {few}" if allowed else every),
            verdict="pass" if count <= allowed else otherwise,
            reason=f"{count:,} of {n:,} {some}" if count else none,
            n=n,
            candidate_value=float(count),
            limit=float(allowed),
        )
    if not answers.documents or not n:
        reason = "it returned no document for any query" if n else "there is no query that counts"
        yield Check(f"{of}the search answers", otherwise, reason, n=n)


def _why(errors: Mapping[str, int]) -> str:
    """The most frequent reasons why queries failed, in brackets; empty if nobody knows."""
    if not errors:
        return ""
    ordered = sorted(errors.items(), key=lambda held: -held[1])
    shown = [f"{count:,} × {_short(error)}" for error, count in ordered[:_ERRORS]]
    rest = sum(count for _, count in ordered[_ERRORS:])
    return f" ({', '.join([*shown, f'{rest:,} × other'] if rest else shown)})"


def _short(error: str) -> str:
    line = " ".join(error.split())
    return line if len(line) <= _ERROR else f"{line[: _ERROR - 1]}…"


def _in_time(most: float, answers: Answers) -> Check:
    rule = f"95 % of the answers take at most {most:g} ms"
    if answers.p95_us is None:
        return Check(rule, "cannot_tell", "the run has no times", limit=most)
    took = answers.p95_us / 1000
    verdict: GateVerdict = "pass" if took <= most else "fail"
    return Check(rule, verdict, f"p95 is {took:.4g} ms", candidate_value=took, limit=most)


def rule_checks(rule: Rule, numbers: Numbers, doubt: Doubt | None = None) -> Iterator[Check]:
    """A rule held against numbers: one check for each demand it makes.

    Args:
        rule: The rule.
        numbers: What it is held against.
        doubt: Why the baseline's numbers count no more; None if they do.
    """
    if rule.max_drop is not None:
        yield _dropped(rule, rule.max_drop, numbers, doubt)
    if rule.least is not None:
        yield _floor(rule, rule.least, numbers)


def _dropped(rule: Rule, most: Drop, numbers: Numbers, doubt: Doubt | None) -> Check:
    limit: float | None = most.size
    if most.relative:
        before = numbers.baseline_value
        limit = None if before is None else most.size * abs(before)
    if doubt is None:
        verdict, reason = _drop_verdict(rule, most, numbers, limit)
    else:
        verdict, reason = doubt.verdict, doubt.reason
    return Check(
        rule=f"{rule.measure} {rule.drop_text}",
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


def _drop_verdict(
    rule: Rule, most: Drop, numbers: Numbers, limit: float | None
) -> tuple[GateVerdict, str]:
    drop, before = numbers.drop, numbers.baseline_value
    if not numbers.n or drop is None or before is None or limit is None:
        return "cannot_tell", "no query has a value in both runs"
    if most.relative and abs(before) <= ROUNDING:
        return "error", f"the baseline is 0, and {100 * most.size:g} % of 0 is no limit; write 0.01"
    if rule.evidence == "interval":
        return _sure(numbers, drop, limit, most.said(limit))
    held = _moved(rule, drop, before)
    if drop > ROUNDING:
        held += f", {most.said(limit)}"
    return ("pass" if drop <= limit + ROUNDING else "fail"), held


def _moved(rule: Rule, drop: float, before: float) -> str:
    """How much it dropped or rose, with its share of the baseline."""
    if abs(drop) <= ROUNDING:
        return "unchanged"
    worse, better = ("got worse", "got better") if rule.lower else ("dropped", "rose")
    size = f"{abs(drop):.4f}" if abs(drop) >= _PRINTED else "less than 0.0001"
    share = "" if abs(before) <= ROUNDING else f" ({_percent(abs(drop / before))})"
    return f"{worse if drop > 0 else better} by {size}{share}"


def _sure(numbers: Numbers, drop: float, limit: float, allowed: str) -> tuple[GateVerdict, str]:
    """Whether the whole interval lies within the limit."""
    low, high, n = numbers.ci_low, numbers.ci_high, numbers.n
    alike = n if numbers.alike is None else numbers.alike
    said = f"the drop is {_signed(drop)}"
    if low is None or high is None:
        if n > 1 and not numbers.even:
            return "cannot_tell", f"{said}, and nobody knows its interval, {allowed}"
        said += " in every query" if n > 1 else " in one query, which has no interval"
    else:
        said += f" (95 %: {_signed(low)} to {_signed(high)})"
    said += f", {allowed}"
    if alike < LEAST:
        few = "1 query proves" if n == 1 else f"{n:,} queries prove"
        if alike < n:
            few = f"so unlike in weight, {few}"
        return "cannot_tell", f"{said}; {few} nothing"
    if low is None or high is None:
        if abs(drop) > ROUNDING and drop <= limit + ROUNDING and alike < TRUSTED_FROM:
            return "cannot_tell", f"{said}; fewer than {TRUSTED_FROM} without spread prove nothing"
        low = high = drop
    if high <= limit + ROUNDING:
        return "pass", said
    return ("fail" if low > limit + ROUNDING else "cannot_tell"), said


def _apart(value: float, least: float) -> str:
    """A value in four digits, or as many as tell it from the least or most it may be."""
    same = abs(value - least) <= ROUNDING
    digits = (4,) if same else range(4, 13)
    shown = (f"{value:.{digit}f}" for digit in digits)
    return next((text for text in shown if same or float(text) != least), f"{value!r}")


def _signed(value: float) -> str:
    return f"{round(value, 4) + 0.0:+.4f}".replace("-", "−")


def _percent(share: float) -> str:
    return "under 0.1 %" if share < 0.0005 else f"{100 * share:.1f} %"


def _floor(rule: Rule, least: float, numbers: Numbers) -> Check:
    value = numbers.candidate_value
    verdict: GateVerdict
    if value is None or not numbers.n:
        verdict, reason = "cannot_tell", "no query has a value"
    else:
        fine = value <= least + ROUNDING if rule.lower else value >= least - ROUNDING
        verdict, reason = ("pass" if fine else "fail"), f"it is {_apart(value, least)}"
    return Check(
        rule=f"{rule.measure} {rule.least_text}",
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
