"""An explanation of the value of one query, rank by rank."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from karat.reports.phrases.numbers import first_of
from karat.reports.table import Column, Table
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_footnotes
from karat.tables.results import Explanation, Line

_STATE = {
    "missing": "is not in the run and scores 0",
    "empty": "was answered with nothing and scores 0",
    "failed": "got no answer",
    "undefined": "has no relevant document: the measure has no value",
    "unjudged": "has no judgments",
}
_MISSED = 8  # documents listed


def show(explanation: Explanation, out: Console, *, all_notes: bool = False) -> None:
    value = "no value" if explanation.value is None else f"{explanation.value:.4f}"
    head = Text.assemble(
        (explanation.measure, "bold"), " of query ", (explanation.query_id, "bold"),
        f" in {explanation.run}: ", (value, "bold"),
    )  # fmt: skip
    out.print(head)
    if explanation.text:
        out.print(f"“{explanation.text}”")
    if explanation.state != "ok":
        out.print(f"The query {_STATE[explanation.state]}.")
    if explanation.lines:
        draw(_ranking(explanation), out)
    if explanation.hidden:
        out.print(f"{explanation.hidden:,} more documents below add nothing.", style="dim")
    if explanation.missed:
        count = len(explanation.missed)
        missed = [f"{line.doc_id} ({line.grade:g})" for line in explanation.missed]
        out.print(plain(f"Relevant and not retrieved ({count:,}): {first_of(missed, _MISSED)}"))
    show_footnotes(explanation.notes, out, every=all_notes)


def _ranking(explanation: Explanation) -> Table:
    additive = any(line.contribution is not None for line in explanation.lines)
    total = Line(None, "Sum", None, None, None, None, explanation.value, tied=False)
    rows = list(explanation.lines)
    ends = frozenset({len(rows) - 1})
    if additive and explanation.value is not None:
        rows.append(total)

    def grade(line: Line) -> str:
        if line is total:
            return ""
        return "unjudged" if line.grade is None else f"{line.grade:g}"

    def number(line: Line, value: float | None, form: str) -> str:
        return "" if value is None or line is total else format(value, form)

    columns = [
        Column("rank", "Rank", "count",
               text=lambda r: "" if r.rank is None else f"{r.rank}{'=' if r.tied else ''}"),
        Column("doc_id", "Document",
               style=lambda row: "strong" if (row.contribution or 0) > 0 else ""),
        Column("grade", "Grade", "grade", text=grade,
               style=lambda row: "quiet" if row.grade is None else ""),
        Column("gain", "Gain", "number", shown=additive,
               text=lambda row: number(row, None if row.grade is None else row.gain, "g")),
        Column("discount", "Discount", "number", shown=additive,
               text=lambda row: number(row, row.discount, ".4f")),
        Column("contribution", "Adds", "number", shown=additive, digits=4,
               text=lambda row: "" if not row.contribution and row is not total
               else f"{row.contribution:.4f}",
               style=lambda row: "strong" if row is total else ""),
    ]  # fmt: skip
    return Table("", columns, rows, ends=ends)
