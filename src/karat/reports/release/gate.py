"""A gate: the verdict and its reason, then the checks, worst first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from karat.reports.phrases.gate import (
    REASONS,
    asked,
    beside,
    known_failures,
    number,
    passes,
    place,
    sentence,
    span,
    title,
    why,
    word,
)
from karat.reports.phrases.numbers import counted
from karat.reports.release import _github, _junit
from karat.reports.table import Column, Table
from karat.reports.writers.markdown import LONGEST_NAME, bullets, code, folded, markdown, within
from karat.reports.writers.markdown import sentence as in_markdown
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_footnotes, show_notes
from karat.tables.release.gate import Check, Gate, Regression
from karat.tables.results import Result

_SHOWN = 5  # queries that lost most, per measure
_TEXT = 48  # columns of a query and its text
_HEADINGS = {"rule", "from", "to", "drop", "verdict", "mde", "why"}
_CHECKS = 30  # in a comment
_AXIS = 192  # width of a drawing
_DRAWN = "Dot: the drop, or the value; line: its 95 % interval; bar: the limit; dashed: no drop"
_MDE = "MDE: the smallest drop that these queries detect with a power of 80 %"


@dataclass(frozen=True)
class Failed:
    """That a gate could not be evaluated, in place of its result."""

    error: str
    exit_code: int

    def to_dict(self) -> dict[str, Any]:
        return {"verdict": "error", "error": self.error, "exit_code": self.exit_code}


def to_github(gate: Gate | Failed) -> str:
    return _github.failed(gate.error) if isinstance(gate, Failed) else _github.annotated(gate)


def to_junit(gate: Gate | Failed) -> str:
    return _junit.failed(gate.error) if isinstance(gate, Failed) else _junit.document(gate)


def to_markdown(gate: Gate | Failed) -> str:
    """A comment: verdict and reason, checks, queries that lost most, notes."""
    if isinstance(gate, Failed):
        text = in_markdown(gate.error)
        return within([f"**error**: the gate could not be evaluated: {text}\n"])
    against = f" against {code(gate.baseline)}" if gate.baseline is not None else ""
    parts = [f"**{word(gate.verdict)}**: {in_markdown(why(gate))}\n"]
    parts.append(f"{code(gate.candidate)}{against}, by {code(gate.policy)}\n")
    if gate.checks:
        parts.append(markdown(checks(gate.checks[:_CHECKS]), LONGEST_NAME))
        if any(check.smallest_detected is not None for check in gate.checks):
            parts.append(f"{_MDE}\n")
        if (more := len(gate.checks) - _CHECKS) > 0:
            parts.append(f"and {counted(more, 'more check')}\n")
    parts.append(
        bullets([f"{word(c.verdict)}: {sentence(c)}" for c in gate.checks if not passes(c)][1:])
    )
    for measure in dict.fromkeys(row.measure for row in gate.lost):
        rows = [row for row in gate.lost if row.measure == measure][:_SHOWN]
        table = markdown(lost(rows), LONGEST_NAME)
        parts.append(folded(f"Lost most by {in_markdown(measure)}", table))
    parts.append(bullets(list(known_failures(gate.known_failures))))
    if gate.notes:
        parts.append(folded("Notes", bullets(gate.notes)))
    return within(parts)


def show(gate: Gate, out: Console, *, all_notes: bool = False) -> None:
    verdict = plain(f"{word(gate.verdict)}: ", "bold") + plain(why(gate))
    # Programs that read a pipe expect one line.
    out.print(verdict, soft_wrap=not out.file.isatty())
    numbered = [check for check in gate.checks if check.measure is not None]
    if numbered:
        draw(checks(numbered, title(gate)), out)
        if any(check.smallest_detected is not None for check in numbered):
            out.print(plain(f"  {_MDE}", "dim"))
    broken = [check for check in gate.checks if check.verdict != "pass"][1:]
    reasons = [f"{word(check.verdict)}: {sentence(check)}" for check in broken[:REASONS]]
    if len(broken) > REASONS:
        reasons.append(f"and {len(broken) - REASONS:,} more (--format json)")
    passed = [check.rule for check in gate.checks if check.measure is None and passes(check)]
    show_notes([*reasons, *([f"passed: {'; '.join(passed)}"] if passed else [])], out)
    for measure in dict.fromkeys(row.measure for row in gate.lost):
        out.print()
        rows = [row for row in gate.lost if row.measure == measure]
        draw(lost(rows[:_SHOWN], f"Lost most by {measure}", under=True), out)
        if len(rows) > _SHOWN:
            out.print(plain(f"and {len(rows) - _SHOWN:,} more (--format json)", "dim"))
    if gate.known_failures:
        out.print()
        out.print("Known failures", style="bold")
        show_notes(list(known_failures(gate.known_failures)), out)
    if gate.notes:
        out.print()
        show_footnotes(gate.notes, out, every=all_notes)


def checks(
    rows: Sequence[Check],
    heading: str = "",
    *,
    queries: bool = False,
    drawn: Callable[[Check], str] | None = None,
) -> Table:
    """The checks of a policy: the table of every medium; ``drawn`` is of pages, see ``drawing``.

    Counts of a check of health are in its reason: next to a verdict they would read as scores.
    """
    attributes = {check.attribute for check in rows if check.attribute is not None}
    only = next(iter(attributes)) if len(attributes) == 1 else None
    only = None if only is not None and only.casefold() in _HEADINGS else only

    def part(check: Check) -> str:
        return str(check.slice) if only is not None and check.slice is not None else place(check)

    def end(name: str) -> Callable[[Check], str]:
        return lambda check: number(check, getattr(check, name)) if check.measure else ""

    columns = [
        Column("rule", "Rule"),
        Column("slice", "Slice" if only is None else only, "code", text=part,
               shown=bool(attributes)),
        Column("baseline_value", "From", "number", text=end("baseline_value"), optional=True,
               drop=1, help="Value of the baseline"),
        Column("candidate_value", "To", "number", text=end("candidate_value"), optional=True,
               drop=2, help="Value of the candidate"),
        Column("drop", "Drop", "number", text=end("drop"), optional=True,
               style=lambda _: "strong"),
        Column("ci_low", "95 %", "number", optional=True, drop=4, help="Interval of the drop",
               text=lambda check: span(check) if check.measure else ""),
        Column("drawn", "Against the limit", value=lambda _: "", html=drawn, help=_DRAWN,
               shown=drawn is not None and any(map(drawn, rows))),
        Column("smallest_detected", "MDE", "number", text=end("smallest_detected"), optional=True,
               drop=3, help=_MDE),
        Column("n", "Queries", "count", shown=queries),
        Column("verdict", "Verdict", "verdict", short="", text=lambda check: word(check.verdict),
               style=lambda check: "" if passes(check) else "strong"),
        Column("reason", "Why", "sentence"),
    ]  # fmt: skip
    return Table(heading, columns, rows, group="rule")


def drawing(rows: Sequence[Check], results: Sequence[Result]) -> Callable[[Check], str]:
    """Draws the drop of a check, or its value, with its interval against the limit, as SVG.

    Drops of a measure have one axis, and so have its values, whose intervals are in ``results``.
    """
    intervals = {(r.measure, r.attribute, r.slice): (r.ci_low, r.ci_high) for r in results}

    def points(check: Check) -> list[float]:
        """The value, the limit, no drop, and the ends of the interval; empty without a value."""
        if check.measure is None or check.limit is None:
            return []
        value, none = (check.drop, 0.0) if check.drop is not None else (check.candidate_value, None)
        key = (check.measure, check.attribute, check.slice)
        ends = (check.ci_low, check.ci_high) if none is not None else intervals.get(key, ())
        if value is None:
            return []
        return [
            value,
            check.limit,
            value if none is None else none,
            *(e for e in ends if e is not None),
        ]

    axes: dict[tuple[str | None, bool], list[float]] = {}
    for check in rows:
        axes.setdefault((check.measure, check.drop is None), []).extend(points(check))

    def draw_check(check: Check) -> str:
        places = points(check)
        if not places:
            return ""
        axis = axes[check.measure, check.drop is None]
        wide = (max(axis) - min(axis)) or 1.0
        at = [round(4 + (_AXIS - 8) * (each - min(axis)) / wide, 1) for each in places]
        value, limit, none, *ends = at
        lines = [("axis", 0, _AXIS, 8, 8), ("limit", limit, limit, 0, 16)]
        lines += [] if check.drop is None else [("target", none, none, 0, 16)]
        lines += [("span", ends[0], ends[1], 8, 8)] if len(ends) == 2 else []
        drawn = "".join(
            f'<line class="{kind}" x1="{left}" x2="{right}" y1="{top}" y2="{bottom}"/>'
            for kind, left, right, top, bottom in lines
        )
        return (
            f'<svg class="drawn" viewBox="0 0 {_AXIS} 16" aria-hidden="true" focusable="false">'
            f'{drawn}<circle cx="{value}" cy="8" r="4"/></svg>'
        )

    return draw_check


def broke(gate: Gate) -> list[tuple[Check, list[Regression]]]:
    """The checks that did not pass with the queries that lost most, once for each slice.

    Queries of a slice do not repeat it.
    """
    found: dict[tuple[str | None, ...], tuple[Check, list[Regression]]] = {}
    for check in gate.checks:
        rows = [
            row if check.attribute is None else replace(row, attribute=None, slice=None)
            for row in gate.lost
            if row.measure == check.measure
            and (check.attribute is None or row.attribute == check.attribute)
            and (check.slice is None or row.slice == check.slice)
        ]
        if rows and not passes(check):
            found.setdefault((check.measure, check.attribute, check.slice), (check, rows))
    return list(found.values())


def lost(
    rows: Sequence[Regression],
    heading: str = "",
    *,
    under: bool = False,
    several: bool = False,
    link: Callable[[Regression], str | None] | None = None,
    trace: Callable[[Regression], str | None] | None = None,
) -> Table:
    """The queries that lost most; with ``under``, slices and rank changes are below the query.

    ``link`` is from a query to its rankings, ``trace`` to its way through the stages.
    """

    def query(row: Regression) -> str:
        named = asked(row, _TEXT if under else LONGEST_NAME)
        below = beside(row) if under else ""
        cut = below if len(below) <= _TEXT - 2 else f"{below[: _TEXT - 3]}…"
        return f"{named}\n  {cut}" if below else named

    columns = [
        Column("query_id", "Query", "code", text=query, link=link),
        Column("measure", "Measure", shown=several),
        Column("baseline_value", "From", "number"),
        Column("candidate_value", "To", "number"),
        Column("change", "Change", "signed",
               value=lambda row: row.candidate_value - row.baseline_value,
               style=lambda row: "down" if row.candidate_value < row.baseline_value else "up"),
        Column("slice", "Slice", "code", shown=not under, optional=True,
               text=lambda row: f"{row.attribute} {row.slice}" if row.attribute else ""),
        Column("moves", "Rank changes", "code", shown=not under, optional=True,
               text=lambda row: beside(replace(row, attribute=None))),
        Column("trace", "Stages", value=lambda _: "why", link=trace, shown=trace is not None),
    ]  # fmt: skip
    return Table(heading, columns, rows)
