"""Wording of a gate, the same in terminals, comments, annotations and messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from karat.release.gate import queries_to_decide
from karat.reports.phrases.numbers import counted, first_of
from karat.reports.writers.plain import shortened
from karat.tables.comparison import RankChange
from karat.tables.release.gate import Check, Gate, GateVerdict, KnownFailure, Regression

REASONS = 8
ANSWERS: Mapping[GateVerdict, str] = {
    "pass": "Ship",
    "fail": "Hold",
    "cannot_tell": "Cannot tell",
    "unhealthy": "Unhealthy",
    "stale": "Stale",
    "error": "Error",
}
"""What pages call a verdict."""


def word(verdict: GateVerdict) -> str:
    return verdict.replace("_", " ")


def passes(check: Check) -> bool:
    return check.verdict == "pass"


def title(gate: Gate) -> str:
    against = "" if gate.baseline is None else f" against {gate.baseline}"
    return f"{gate.candidate}{against}, by {gate.policy}"


def why(gate: Gate) -> str:
    """The reason for the verdict, in a sentence; of several, the first and the number of others."""
    if gate.verdict == "pass":
        if len(gate.checks) == 1:
            return sentence(gate.checks[0])
        return f"{gate.candidate} passes all {len(gate.checks):,} checks ({_counts(gate)})"
    first = deciding(gate)
    if first is None:
        return "nothing was checked"
    more = sum(check.verdict == gate.verdict for check in gate.checks) - 1
    rest = f" (and {counted(more, 'more check')})" if more else ""
    return sentence(first) + rest


def deciding(gate: Gate) -> Check | None:
    """The check that decides the verdict; None if nothing was checked."""
    return next((check for check in gate.checks if check.verdict == gate.verdict), None)


def would_change(gate: Gate) -> str:
    """What would change the verdict, in sentences; empty if nothing more is known than why."""
    check, shipped = deciding(gate), gate.verdict == "pass"
    drops = [each for each in gate.checks if each.drop is not None and each.limit is not None]
    if shipped:
        check = min(drops, key=lambda each: (each.limit or 0) - (each.drop or 0), default=None)
    if check is None or check.limit is None or check.drop is None:
        return "" if check is None else to_change(check)
    least, queries = check.smallest_detected, counted(check.n or 0, "query")
    power = "" if least is None else f"Its {queries} detect a drop of {least:.4f} (power 80 %)."
    text = to_change(check)
    if shipped:
        now = f"{check.drop:.4f}".replace("-", "−")
        limit = f"the drop is {now}, allowed {check.limit:.4f}"
        text = f"Nearest to its limit: {label(check)}; {limit}."
    elif gate.verdict == "fail" and check.ci_low is not None:
        near = "reaches into what is allowed: more queries could change this"
        far = "is beyond what is allowed: only another candidate changes this"
        text = f"The 95 % interval of the drop, {span(check)}, "
        text += f"{near if check.ci_low <= check.limit else far}."
    elif gate.verdict == "cannot_tell" and not text:
        text = f"More queries could tell; a drop of {check.limit:.4f} is allowed."
    return f"{text} {power}".strip() if text else ""


def _counts(gate: Gate) -> str:
    """The numbers of checks by rules and of health."""
    rules = sum(check.measure is not None for check in gate.checks)
    health = len(gate.checks) - rules
    parts = [counted(rules, "by a rule", "by rules")] if rules else []
    return ", ".join([*parts, f"{health:,} of health"] if health else parts)


def rank(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def moved(move: RankChange) -> str:
    return f"{rank(move.baseline_rank)} → {rank(move.candidate_rank)}"


def beside(row: Regression) -> str:
    """The slice and the rank changes of a query that lost, in a line."""
    where = [] if row.attribute is None else [f"{row.attribute} {row.slice}"]
    documents = ", ".join(f"{move.doc_id} {moved(move)}" for move in row.moves or ())
    return " · ".join([*where, *([documents] if documents else [])])


def label(check: Check) -> str:
    return check.rule if check.attribute is None else f"{check.rule} ({place(check)})"


def place(check: Check) -> str:
    """The slice of a check, or all queries."""
    return "(all)" if check.attribute is None else f"{check.attribute} {check.slice}"


def sentence(check: Check) -> str:
    """The rule of a check and the reason of its verdict."""
    return f"{label(check)}: {check.reason}"


def brief(check: Check) -> str:
    """What a check measured, and where: ``nDCG@10, class name: −14.2 % (limit −10 %)``.

    Without a value, the rule and the reason.
    """
    if check.measure is None or check.limit is None or check.candidate_value is None:
        return sentence(check)
    where = check.measure if check.attribute is None else f"{check.measure}, {place(check)}"
    before, drop = check.baseline_value, check.drop
    if drop is None:
        return f"{where}: {check.candidate_value:.3f} (limit {check.limit:.3f})".replace("-", "−")
    change = check.candidate_value - (before or 0.0)
    worse = "−" if (change < 0) == (drop > 0) else "+"
    better = "+" if worse == "−" else "−"
    size, limit = f"{abs(drop):.3f}", f"{check.limit:.3f}"
    if before:
        shares = abs(drop / before), check.limit / abs(before)
        size, limit = (f"{100 * share:.1f}".removesuffix(".0") + " %" for share in shares)
    return f"{where}: {worse if drop > 0 else better}{size} (limit {worse}{limit})"


def to_change(check: Check) -> str:
    """What would change a verdict, in a sentence; empty if that is not known."""
    needed = queries_to_decide(check)
    if needed is not None:
        return f"About {needed:,} queries (now {check.n:,}) would decide it, if the drop stays."
    value = check.candidate_value if check.drop is None else check.drop
    if check.verdict != "fail" or check.measure is None or check.limit is None or value is None:
        return ""
    return f"It is {abs(value - check.limit):.4f} beyond the limit of {check.limit:.4f}."


def number(check: Check, value: float | None) -> str:
    if value is None:
        return ""
    if check.measure is None and value == round(value):
        return f"{value:,.0f}"
    return f"{value:.3f}".replace("-", "−")


def span(check: Check) -> str:
    """The 95 % interval of the drop; empty for none."""
    if check.ci_low is None or check.ci_high is None:
        return ""
    return f"{number(check, check.ci_low)} to {number(check, check.ci_high)}"


def known_failures(rows: Sequence[KnownFailure]) -> Iterator[str]:
    """A line for each known failure that passes now, and one for the others."""
    for row in rows:
        if row.passes:
            value = "" if row.value is None else f" ({row.measure} {row.value:.3f})"
            yield f"{row.query_id} passes now{value}: remove it from the list"
    still = [
        f"{row.query_id} ({row.reason})" if row.reason else row.query_id
        for row in rows
        if not row.passes
    ]
    if still:
        yield f"still fail{'s' * (len(still) == 1)}: {first_of(still, REASONS)}"


def asked(row: Regression, longest: int) -> str:
    text = row.query_id if row.text is None else f"{row.query_id} {row.text}"
    return shortened(text, longest)
