"""What a watch saw, in words: values, differences, slices, changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karat.online.metrics.registry import find
from karat.reports.online.evaluation import figure, span
from karat.reports.phrases.numbers import signed
from karat.reports.writers.cells import Cells
from karat.tables.online.watch import Change

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


def during(period: tuple[str, str] | None) -> str:
    """A period behind a headline, as ``, 2026-11-01 to 2026-11-20``; empty for None."""
    return "" if period is None else f", {period[0]} to {period[1]}"


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
    if change.verdict == "cannot_tell":
        return f"{_named(change)}: nobody can tell: {change.reason}"
    usual = usual_text(change)
    if change.verdict == "usual":
        said = f"{_named(change)} is {value(change.metric, change.value)}, as usual"
        return f"{said} ({usual})" if usual else said
    text = f"{moved_text(change)}: {change.verdict}"
    if change.queries:
        first = change.queries[0]
        text += f"; {quoted(first.text)} adds {difference(change.metric, first.adds)}"
    return text


def moved_text(change: Change) -> str:
    """What one metric in one slice is, was, and usually is."""
    now, before = (value(change.metric, one) for one in (change.value, change.expected))
    way = "up from" if (change.change or 0) > 0 else "down from"
    usual = usual_text(change)
    said = f"{_named(change)} is {now}, {way} {before}"
    return f"{said} (usual: {usual})" if usual else said


def _named(change: Change) -> str:
    return f"{change.metric} of {where(change.slice)}" if change.slice else change.metric


def usual_text(change: Change) -> str:
    """What is usual, as an interval; empty where nobody knows."""
    return span(find(change.metric), change.usual_low, change.usual_high)
