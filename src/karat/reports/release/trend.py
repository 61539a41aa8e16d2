"""A trend in a terminal: measures over time, a bar for each point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from karat.reports.phrases import trend as words
from karat.reports.phrases.numbers import counted
from karat.reports.writers.cells import base, plain
from karat.reports.writers.terminal import show_footnotes
from karat.tables.release.trend import Mark, Series, Trend

_WIDEST, _NARROWEST = 40, 10  # columns of the chart
_CHANGED = 12  # columns of ``changed`` at the expense of the chart
_APART = 7  # columns of ``signif.``
_PROBLEMS = 5


def show_trend(trend: Trend, out: Console, *, all_notes: bool = False) -> None:
    """Print each series, the worst first, and the notes."""
    explained = False
    nothing = words.uncompared(trend)
    if nothing:
        out.print(nothing, style="bold", markup=False, highlight=False)
        out.print()
    for series in trend.series:
        shown = last_of(series, trend.last)
        out.print(Text.assemble((series.name, "bold"), f" of {series.run}"))
        strong = series.alarms or not series.told
        out.print(words.sentence(series), style="bold" if strong else "")
        table, has_flags = _table(shown, out.width)
        explained |= has_flags
        out.print(table)
        problems = words.troubles(shown)
        for problem in problems[:_PROBLEMS]:
            out.print(problem)
        if len(problems) > _PROBLEMS:
            out.print(f"and {len(problems) - _PROBLEMS:,} other problems", style="dim")
        hidden = len(series.marks) - len(shown)
        if hidden:
            points = counted(hidden, "earlier point", "earlier points")
            out.print(f"{points} not shown (--last {len(series.marks)})", style="dim")
        out.print()
    notes = [n for n in trend.notes if n != nothing and (explained or n != words.SIGNIFICANT)]
    show_footnotes(notes, out, every=all_notes)


def last_of(series: Series, last: int | None) -> Sequence[Mark]:
    """The last points of a series; all if ``last`` is None."""
    return series.marks if last is None else series.marks[-last:]


def value_range(marks: Iterable[Mark]) -> tuple[float, float]:
    """The range of values and intervals of the points that count, or of all if none does."""
    marks = list(marks)
    ends = [
        end
        for mark in [mark for mark in marks if mark.counts] or marks
        for end in (mark.ci_low, mark.value, mark.ci_high)
        if end is not None
    ]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    if low == high:
        reach = abs(low) / 10 or 0.5
        return low - reach, high + reach
    return low, high


def _table(marks: Sequence[Mark], width: int) -> tuple[Table, bool]:
    """The points as rows, and whether there is the column ``signif.``."""
    times, heads = _times(marks), ["time", "commit", "value", "n", "change"]
    cells = [
        [
            times[place],
            words.short(mark.commit),
            words.number(mark.value),
            "" if mark.n is None else f"{mark.n:,}",
            words.change_text(mark.change),
        ]
        for place, mark in enumerate(marks)
    ]
    verdicts = [words.verdict(mark) for mark in marks]
    changed = [words.besides(mark) for mark in marks]
    broken = [words.broke(mark) if mark.breaks else "" for mark in marks]
    widths = [
        max(len(head), *(cell_len(row[at]) for row in cells)) for at, head in enumerate(heads)
    ]
    widths += [max(map(_word, verdicts))] if any(verdicts) else []
    widths.append(min(max(map(len, ("changed", *changed, *broken))), _CHANGED))
    room = width - sum(widths) - 2 * len(widths) - 3
    # On a narrow screen a column with only "no", which is not reliable, is left out.
    has_flags = any(mark.told_apart for mark in marks) or (
        any(mark.told_apart is False for mark in marks) and room >= _NARROWEST + _APART
    )
    room = min(max(room - has_flags * _APART, _NARROWEST), _WIDEST)
    low, high = value_range(marks)
    table = base()
    table.padding = (0, 1, 0, 0)
    for head in heads[:2]:
        table.add_column(head, no_wrap=True)
    for head in heads[2:4]:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column(_axis(low, high, room), no_wrap=True, min_width=room)
    table.add_column("change", justify="right", no_wrap=True)
    if has_flags:
        table.add_column("signif.", no_wrap=True)
    if any(verdicts):
        table.add_column("verdict", min_width=max(map(_word, verdicts)), max_width=11)
    table.add_column("changed", overflow="fold", min_width=len("changed"))
    cut = "─ not comparable ─" if room >= 18 else "─ break ─"
    for place, (mark, row) in enumerate(zip(marks, cells, strict=True)):
        if mark.breaks:
            if place:
                table.add_section()
            line = Text(cut.center(room, "─"), style="dim")
            blank = [""] * (has_flags + any(verdicts))
            table.add_row("", "", "", "", line, "", *blank, plain(broken[place]))
        table.add_row(
            row[0],
            plain(row[1]),
            Text(row[2], style="bold" if mark.counts else "dim"),
            row[3],
            _bar(mark, low, high, room),
            row[4],
            *([words.yes(mark.told_apart)] if has_flags else []),
            *([verdicts[place]] if any(verdicts) else []),
            plain(changed[place]),
        )
    return table, has_flags


def _word(text: str) -> int:
    """Width of the longest word, at least that of the heading."""
    return max(len("verdict"), *map(len, text.split() or [""]))


def _times(marks: Sequence[Mark]) -> list[str]:
    """The day of each point, with the time if days repeat."""
    days = {words.day(mark.time) for mark in marks}
    if len(days) == len(marks):
        return [words.day(mark.time) for mark in marks]
    clocks = [words.clock(mark.time) for mark in marks]
    same_year = len({time[:4] for time in clocks}) == 1
    return [time[5:] for time in clocks] if same_year else clocks


def _axis(low: float, high: float, room: int) -> Text:
    left, right = (f"{end:.3g}".replace("-", "−") for end in (low, high))
    return Text(left + right.rjust(room - len(left)))


def _bar(mark: Mark, low: float, high: float, room: int) -> Text:
    """A value on its interval, as ``  ├──●──┤``; hollow if it does not count.

    A value beyond those that count is an arrow at the edge.
    """

    def place(value: float) -> int:
        return round((min(max(value, low), high) - low) / (high - low) * (room - 1))

    if mark.value is None:
        return Text("no value", style="dim")
    cells = [" "] * room
    if not mark.counts:
        cells[place(mark.value)] = "‹" if mark.value < low else "›" if mark.value > high else "○"
        return Text("".join(cells))
    if mark.ci_low is not None and mark.ci_high is not None:
        left, right = place(mark.ci_low), place(mark.ci_high)
        cells[left : right + 1] = "─" * (right - left + 1)
        cells[left], cells[right] = "├", "┤"
    cells[place(mark.value)] = "●"
    return Text("".join(cells))
