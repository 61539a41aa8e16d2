"""What a watch saw, in words: values, differences, slices, changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karat.online.metrics.registry import find
from karat.reports.cells import Cells
from karat.reports.figures import signed
from karat.reports.online import figure, span
from karat.tables.watch import Change

_LONGEST = 60  # characters of a query


def value(metric: str, number: float | None) -> str:
    """A value of a metric with its unit; a dash for None."""
    return figure(find(metric), number)


def difference(metric: str, number: float | None) -> str:
    """A difference of two values, with its sign; shares differ by points of a hundred."""
    if number is None:
        return "–"
    entry = find(metric)
    if entry.unit == "share":
        return f"{signed(100 * number, 1)} points"
    return ("−" if number < 0 else "+") + figure(entry, abs(number))


def as_wide(rows: Sequence[Cells]) -> list[Cells]:
    """Rows whose numbers are as wide as their headings, which ``fitted`` would cut to them."""
    return [
        {head: cell.rjust(len(head)) if isinstance(cell, str) else cell
         for head, cell in row.items()}
        for row in rows
    ]  # fmt: skip


def where(part: Mapping[str, str]) -> str:
    """A slice, as ``class=code, arm=b``; empty for all; what the log does not say, in words."""
    return ", ".join(f"{name}={said}" if said else f"no {name}" for name, said in part.items())


def quoted(text: str) -> str:
    """A query, not longer than a line."""
    if not text:
        return "searches without a text"
    return f"“{text[: _LONGEST - 1]}…”" if len(text) > _LONGEST else f"“{text}”"


def change_text(change: Change) -> str:
    """One metric in one slice, in a sentence: what it is, what is usual, and which query adds."""
    metric = change.metric
    of = f" of {where(change.slice)}" if change.slice else ""
    if change.verdict == "cannot_tell":
        return f"{metric}{of}: nobody can tell: {change.reason}"
    said = f"{metric}{of} is {value(metric, change.value)}"
    usual = usual_text(change)
    if change.verdict == "usual":
        return f"{said}, as usual" + (f" ({usual})" if usual else "")
    way = "up from" if (change.change or 0) > 0 else "down from"
    text = f"{said}, {way} {value(metric, change.expected)}"
    text += f" (usual: {usual}): {change.verdict}" if usual else f": {change.verdict}"
    if change.queries:
        first = change.queries[0]
        text += f"; {quoted(first.text)} adds {difference(metric, first.adds)}"
    return text


def usual_text(change: Change) -> str:
    """What is usual, as an interval; empty where nobody knows."""
    return span(find(change.metric), change.usual_low, change.usual_high)
