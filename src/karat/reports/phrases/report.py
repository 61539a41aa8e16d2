"""Sentences and numbers of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from karat.reports.phrases.numbers import counted, signed
from karat.tables.comparison import Comparison, Difference, Verdict
from karat.tables.release.gate import Gate, GateVerdict
from karat.tables.results import Result

_VERDICTS: dict[Verdict, str] = {
    "better": "better than {baseline} by {measures}",
    "worse": "worse than {baseline} by {measures}",
    "equivalent": "equivalent to {baseline} by {measures}",
    "identical": "the same as {baseline} by {measures}",
    "cannot tell": "cannot tell by {measures}",
}
_MANY = 0.05
"""Share of unanswered queries above which the report says so first."""
_NAME = 60  # characters of a run's name in a sentence
_GATE: dict[GateVerdict, str] = {
    "pass": "passes",
    "fail": "fails",
    "cannot_tell": "cannot decide: the evidence is insufficient",
    "unhealthy": "gives no result: the search did not answer properly",
    "stale": "gives no result: the baseline was computed from other data",
    "error": "cannot be applied",
}


def verdicts(comparison: Comparison) -> list[str]:
    """One sentence per candidate: its verdicts, measure by measure."""
    out = []
    for candidate in dict.fromkeys(row.candidate for row in comparison.differences):
        rows = [row for row in comparison.differences if row.candidate == candidate]
        parts = []
        for verdict, template in _VERDICTS.items():
            measures = [row.measure for row in rows if row.verdict == verdict]
            if measures:
                text = template.format(baseline=comparison.baseline, measures=listed(measures))
                unsure = [
                    row.measure
                    for row in rows
                    if row.verdict == verdict in {"better", "worse"} and row.sign_could_flip
                ]
                if unsure:
                    text += f" (unjudged documents could reverse {listed(unsure)})"
                parts.append(text if verdict == "cannot tell" else f"is {text}")
        colon = "" if parts and parts[0].startswith("is ") else ":"
        out.append(f"{candidate}{colon} {_joined(parts)}.")
    return out


def unanswered(rows: Sequence[Result], *, compared: bool) -> list[str]:
    """One sentence per run that left queries unanswered, by the rows of the first measure.

    Failed queries have no value and are left out of every number: always reported. Queries that
    are empty or missing count as 0: reported if there are many.
    """
    out = []
    for run in dict.fromkeys(row.run for row in rows):
        row = next(row for row in rows if row.run == run)
        total = row.n + row.failed
        if row.failed:
            those = "queries that both answered" if compared else "rest"
            over = f"every number is over the {those}" if row.n else "it has no number"
            out.append(f"{run} got no answer to {_of(row.failed, total)}: {over}.")
        nothing = row.missing + row.empty
        if nothing > _MANY * total:
            kinds = ((row.missing, "not in the run"), (row.empty, "answered with nothing"))
            present = [(n, kind) for n, kind in kinds if n]
            one = len(present) == 1
            how = present[0][1] if one else listed(f"{n:,} {kind}" for n, kind in present)
            zero = "they count" if total > 1 else "it counts"
            out.append(f"{run} has nothing for {_of(nothing, total)} ({how}): {zero} as 0.")
    return out


def headline(row: Difference) -> str:
    """The change of the first measure, with its interval."""
    if row.difference is None:
        return f"{row.measure}: no query has a value in both runs."
    span = ""
    if row.ci_low is not None and row.ci_high is not None:
        span = f", 95 % interval {signed(row.ci_low)} to {signed(row.ci_high)}"
    return (
        f"{row.measure} went from {number(row.baseline_value)} to {number(row.candidate_value)} "
        f"({signed(row.difference)}{span}) over {counted(row.n, 'query')}."
    )


def means(rows: Sequence[Result]) -> list[str]:
    """One sentence per run: the value of the first measure, and over how many queries."""
    out = []
    for run in dict.fromkeys(row.run for row in rows):
        row = next(row for row in rows if row.run == run)
        if row.value is None:
            out.append(f"{run}: {row.measure} has no value; the notes say why.")
            continue
        span = ""
        if row.ci_low is not None and row.ci_high is not None:
            span = f", 95 % interval {row.ci_low:.3f} to {row.ci_high:.3f}"
        over = counted(row.n, "query")
        out.append(f"{run}: {row.measure} {number(row.value)} over {over}{span}.")
    return out


def gate_said(gate: Gate) -> str:
    """The verdict of a gate, in a sentence."""
    against = f" against {gate.baseline}" if gate.baseline else ""
    if gate.verdict in {"pass", "fail"}:
        return f"{gate.candidate}{against} {_GATE[gate.verdict]} the policy."
    return f"{gate.candidate}{against}: the policy {_GATE[gate.verdict]}."


def still_failing(gate: Gate) -> str:
    """How many known failures of a policy still fail, in a sentence."""
    fixed = sum(row.passes for row in gate.known_failures)
    total = counted(len(gate.known_failures), "query is", "queries are")
    known = f"{total} known to fail, and left out of every rule"
    if not fixed:
        return f"{known}; none of them passes now." if len(gate.known_failures) > 1 else f"{known}."
    passes = counted(fixed, "passes", "pass")
    return f"{known}; {passes} now and can be removed from the list."


def listed(names: Iterable[str]) -> str:
    """a, b and c."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:,.{digits}f}".replace("-", "−")


def span(low: float | None, high: float | None, *, signs: bool = False, digits: int = 3) -> str:
    """An interval; a dash for none."""
    if low is None or high is None:
        return "–"
    text = signed if signs else number
    return f"{text(low, digits)} to {text(high, digits)}"


def cut(sentence: str, names: Sequence[str]) -> str:
    for name in names:
        if len(name) > _NAME:
            sentence = sentence.replace(name, f"{name[: _NAME - 1]}…")
    return sentence


def _of(some: int, total: int) -> str:
    """44 of 80 queries, or all 80."""
    many = counted(total, "query")
    return (
        f"{some:,} of {many}" if some < total else f"all {many}" if total > 1 else "its only query"
    )


def _joined(parts: Sequence[str]) -> str:
    return "; ".join(parts) if parts else "has no measure"
