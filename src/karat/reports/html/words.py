"""The answer in words, and numbers as a report prints them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from karat.reports.figures import signed
from karat.reports.gate import why
from karat.tables.comparison import Comparison, Difference, Verdict
from karat.tables.gate import Gate, GateVerdict
from karat.tables.results import Result

_SAID: dict[Verdict, str] = {
    "better": "better than {baseline} by {measures}",
    "worse": "worse than {baseline} by {measures}",
    "equivalent": "equivalent to {baseline} by {measures}",
    "identical": "the same as {baseline} by {measures}",
    "cannot tell": "by {measures} nobody can tell",
}
_GATE: dict[GateVerdict, str] = {
    "pass": "passes",
    "fail": "fails",
    "cannot_tell": "cannot decide: the evidence does not suffice",
    "unhealthy": "says nothing: the search did not answer as it should",
    "stale": "says nothing: the baseline was computed from something else",
    "error": "cannot be applied here",
}


def verdicts(comparison: Comparison) -> list[str]:
    """One sentence for each candidate: what may be said of it, measure by measure."""
    out = []
    for candidate in dict.fromkeys(row.candidate for row in comparison.differences):
        rows = [row for row in comparison.differences if row.candidate == candidate]
        parts = []
        for verdict, said in _SAID.items():
            measures = [row.measure for row in rows if row.verdict == verdict]
            if measures:
                told = said.format(baseline=comparison.baseline, measures=listed(measures))
                turns = [
                    row.measure
                    for row in rows
                    if row.verdict == verdict in {"better", "worse"} and row.could_turn
                ]
                told += f" (documents nobody judged might turn {listed(turns)})" if turns else ""
                parts.append(told if verdict == "cannot tell" else f"is {told}")
        colon = "" if parts and parts[0].startswith("is ") else ":"
        out.append(f"{candidate}{colon} {_joined(parts)}.")
    return out


def headline(row: Difference) -> str:
    """What the first measure says, with how much and how surely."""
    if row.difference is None:
        return f"{row.measure}: no query has a value in both runs."
    span = ""
    if row.ci_low is not None and row.ci_high is not None:
        span = f", 95 % interval {signed(row.ci_low)} to {signed(row.ci_high)}"
    return (
        f"{row.measure} went from {number(row.baseline_value)} to {number(row.candidate_value)} "
        f"({signed(row.difference)}{span}) over {row.n:,} queries."
    )


def means(rows: Sequence[Result]) -> list[str]:
    """One sentence for each run: the value of the first measure, and over what."""
    out = []
    for run in dict.fromkeys(row.run for row in rows):
        row = next(row for row in rows if row.run == run)
        if row.value is None:
            out.append(f"{run}: {row.measure} has no value; the notes say why.")
            continue
        span = ""
        if row.ci_low is not None and row.ci_high is not None:
            span = f", 95 % interval {row.ci_low:.3f} to {row.ci_high:.3f}"
        out.append(f"{run}: {row.measure} {number(row.value)} over {row.n:,} queries{span}.")
    return out


def gate_said(gate: Gate) -> list[str]:
    """The verdict of a gate, and the reason."""
    against = f" against {gate.baseline}" if gate.baseline else ""
    first = f"{gate.candidate}{against}: the policy {_GATE[gate.verdict]}."
    if gate.verdict in {"pass", "fail"}:
        first = f"{gate.candidate}{against} {_GATE[gate.verdict]} the policy."
    reason = why(gate)
    return [first, f"{reason[0].upper()}{reason[1:]}."]


def listed(names: Iterable[str]) -> str:
    """a, b and c."""
    held = list(names)
    return held[0] if len(held) == 1 else f"{', '.join(held[:-1])} and {held[-1]}"


def number(value: float | None, digits: int = 3) -> str:
    """A value; a dash for None, never 0."""
    return "–" if value is None else f"{value:,.{digits}f}".replace("-", "−")


def span(low: float | None, high: float | None, *, signs: bool = False) -> str:
    """An interval; a dash where there is none."""
    if low is None or high is None:
        return "–"
    say = signed if signs else number
    return f"{say(low)} to {say(high)}"


def chance(p: float | None) -> str:
    """A p-value; a dash where there is none."""
    if p is None:
        return "–"
    return "<.001" if p < 0.001 else f"{p:.3f}"


def _joined(parts: Sequence[str]) -> str:
    """Parts of a sentence, the last after a semicolon if it is of another kind."""
    return "; ".join(parts) if parts else "has no measure"
