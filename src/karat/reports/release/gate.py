"""A gate in a terminal and as JSON: the verdict and its reason, then the checks, worst first."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from karat.reports.phrases.numbers import counted, signed
from karat.reports.writers.cells import Cells, base, fitted, plain
from karat.reports.writers.terminal import show_footnotes, show_notes
from karat.tables.comparison import RankChange
from karat.tables.release.gate import Check, Gate, GateVerdict, KnownFailure, Regression

_SHOWN = 5  # queries that lost most, per measure
_REASONS = 8
_TEXT = 48  # columns of a query and its text
_HEADS = ("rule", "from", "to", "drop", "95 %", "MDE", "")
_MDE = "MDE: the smallest drop that these queries detect with a power of 80 %"


def to_json(gate: Gate) -> str:
    """The documented JSON object."""
    return json.dumps(gate.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def error_json(message: str, exit_code: int) -> str:
    """The JSON object if the gate could not be evaluated."""
    content = {"verdict": "error", "error": message, "exit_code": exit_code}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def show_gate(gate: Gate, out: Console, *, all_notes: bool = False) -> None:
    """Print the verdict, every check, the queries that lost most, known failures and notes."""
    verdict = plain(f"{word(gate.verdict)}: ", "bold") + plain(why(gate))
    # Programs that read a pipe expect one line.
    out.print(verdict, soft_wrap=not out.file.isatty())
    numbered = [check for check in gate.checks if check.measure is not None]
    if numbered:
        out.print(_checks(title(gate), numbered, out))
        if any(check.smallest_detected is not None for check in numbered):
            out.print(plain(f"  {_MDE}", "dim"))
    broken = [check for check in gate.checks if check.verdict != "pass"][1:]
    reasons = [f"{word(check.verdict)}: {sentence(check)}" for check in broken[:_REASONS]]
    if len(broken) > _REASONS:
        reasons.append(f"and {len(broken) - _REASONS:,} more (--format json)")
    passed = [check.rule for check in gate.checks if check.measure is None and passes(check)]
    show_notes([*reasons, *([f"passed: {'; '.join(passed)}"] if passed else [])], out)
    for measure in dict.fromkeys(row.measure for row in gate.lost):
        out.print()
        rows = [row for row in gate.lost if row.measure == measure]
        out.print(_lost(f"lost most by {measure}", rows))
    if gate.known_failures:
        out.print()
        out.print("known failures", style="bold")
        show_notes(list(known_failures(gate.known_failures)), out)
    if gate.notes:
        out.print()
        show_footnotes(gate.notes, out, every=all_notes)


def word(verdict: GateVerdict) -> str:
    """A verdict in words."""
    return verdict.replace("_", " ")


def passes(check: Check) -> bool:
    """Whether a check passed."""
    return check.verdict == "pass"


def title(gate: Gate) -> str:
    """Candidate, baseline and policy of a gate."""
    against = "" if gate.baseline is None else f" against {gate.baseline}"
    return f"{gate.candidate}{against}, by {gate.policy}"


def why(gate: Gate) -> str:
    """The reason for the verdict, in a sentence; of several, the first and the number of others."""
    if gate.verdict == "pass":
        if len(gate.checks) == 1:
            return sentence(gate.checks[0])
        return f"{gate.candidate} passes all {len(gate.checks):,} checks ({_counts(gate)})"
    causes = [check for check in gate.checks if check.verdict == gate.verdict]
    if not causes:
        return "nothing was checked"
    more = len(causes) - 1
    rest = f" (and {counted(more, 'more check', 'more checks')})" if more else ""
    return sentence(causes[0]) + rest


def _counts(gate: Gate) -> str:
    """The numbers of checks by rules and of health."""
    rules = sum(check.measure is not None for check in gate.checks)
    health = len(gate.checks) - rules
    parts = [counted(rules, "by a rule", "by rules")] if rules else []
    return ", ".join([*parts, f"{health:,} of health"] if health else parts)


def rank(value: int | None) -> str:
    """A rank; a dash for a document that was not returned."""
    return "–" if value is None else f"{value:,}"


def moved(move: RankChange) -> str:
    """The rank change of a document."""
    return f"{rank(move.baseline_rank)} → {rank(move.candidate_rank)}"


def beside(row: Regression) -> str:
    """The slice and the rank changes of a query that lost, in a line."""
    where = [] if row.attribute is None else [f"{row.attribute} {row.slice}"]
    documents = ", ".join(f"{move.doc_id} {moved(move)}" for move in row.moves or ())
    return " · ".join([*where, *([documents] if documents else [])])


def label(check: Check) -> str:
    """The rule of a check, with its slice."""
    return check.rule if check.attribute is None else f"{check.rule} ({place(check)})"


def place(check: Check) -> str:
    """The slice of a check, or all queries."""
    return "(all)" if check.attribute is None else f"{check.attribute} {check.slice}"


def sentence(check: Check) -> str:
    """The rule of a check and the reason of its verdict."""
    return f"{label(check)}: {check.reason}"


def number(check: Check, value: float | None) -> str:
    """A value in the unit of a check; empty for None."""
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
        shown = ", ".join(still[:_REASONS])
        more = f" and {len(still) - _REASONS:,} more" if len(still) > _REASONS else ""
        yield f"still fails: {shown}{more}" if len(still) == 1 else f"still fail: {shown}{more}"


def asked(row: Regression, longest: int) -> str:
    """A query's id and text, cut if too long."""
    text = row.query_id if row.text is None else f"{row.query_id} {row.text}"
    return textwrap.shorten(text, longest, placeholder="…")


def _checks(heading: str, checks: Sequence[Check], out: Console) -> Table:
    attributes = {check.attribute for check in checks if check.attribute is not None}
    only = next(iter(attributes)) if len(attributes) == 1 else None
    head = "slice" if only is None or only in _HEADS else only
    rows: list[Cells] = []
    for at, check in enumerate(checks):
        again = at > 0 and checks[at - 1].rule == check.rule
        row: Cells = {"rule": plain("" if again else check.rule)}
        if attributes:
            named = check.attribute is not None and head == only
            row[head] = plain(str(check.slice) if named else place(check))
        row |= {
            "from": number(check, check.baseline_value),
            "to": number(check, check.candidate_value),
            "drop": plain(number(check, check.drop), "bold"),
            "95 %": span(check),
            "MDE": number(check, check.smallest_detected),
            "": plain(word(check.verdict), "" if passes(check) else "bold"),
        }
        rows.append(row)
    empty = {head for head in _HEADS[1:-1] if not any(str(row[head]) for row in rows)}
    rows = [{head: cell for head, cell in row.items() if head not in empty} for row in rows]
    return fitted(heading, rows, ("from", "to", "MDE", "95 %"), out, names=2 if attributes else 1)


def _lost(heading: str, rows: Sequence[Regression]) -> Table:
    table = base(heading)
    table.add_column("query", overflow="fold")
    for name in ("from", "to", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows[:_SHOWN]:
        values = (f"{row.baseline_value:.3f}", f"{row.candidate_value:.3f}")
        change = signed(row.candidate_value - row.baseline_value)
        query = plain(asked(row, _TEXT))
        if under := beside(row):
            cut = under if len(under) <= _TEXT - 2 else f"{under[: _TEXT - 3]}…"
            query += plain("\n") + plain(f"  {cut}", "dim")
        table.add_row(query, *values, change)
    if len(rows) > _SHOWN:
        table.add_row(plain(f"and {len(rows) - _SHOWN:,} more (--format json)", "dim"))
    return table
