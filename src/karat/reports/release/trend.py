"""A trend in a terminal: measures over time, a bar for each point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from karat.reports.phrases import trend as words
from karat.reports.phrases.numbers import counted
from karat.reports.table import Column, Table
from karat.reports.writers.tables import draw, escaped
from karat.reports.writers.terminal import show_footnotes
from karat.tables.release.trend import Mark, Series, Trend

_WIDEST, _NARROWEST = 40, 8  # columns of the chart
_CHANGED = 12  # columns of ``changed`` at the expense of the chart
_APART = 6  # columns of ``Sig.`` and the gap
_PROBLEMS = 5


@dataclass(frozen=True)
class _Break:
    """A row where points are not comparable with those before."""

    what: str


def show(trend: Trend, out: Console, *, all_notes: bool = False) -> None:
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
        table, has_flags = _drawn(shown, out.width)
        explained |= has_flags
        draw(table, out)
        problems = words.troubles(shown)
        for problem in problems[:_PROBLEMS]:
            out.print(problem)
        if len(problems) > _PROBLEMS:
            out.print(f"and {len(problems) - _PROBLEMS:,} other problems", style="dim")
        hidden = len(series.marks) - len(shown)
        if hidden:
            points = counted(hidden, "earlier point")
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


def marks(points: Sequence[Mark], *, terminal: bool = False) -> Table:
    """The points of a series, in the order given: the table of every medium."""
    times = dict(zip(map(id, points), _times(points) if terminal else [
        words.clock(mark.time) for mark in points], strict=True))  # fmt: skip
    columns = [
        Column("time", "Time", "words", text=lambda mark: times[id(mark)]),
        Column("commit", "Commit", "words", text=lambda mark: words.short(mark.commit),
               html=None if terminal else _commit),
        Column("value", "Value", "number", text=lambda mark: words.number(mark.value),
               style=lambda mark: "strong" if mark.counts else "quiet"),
        Column("ci_low", "95 %", "number", high="ci_high", digits=4, shown=not terminal),
        Column("n", "n", "count", help="Queries"),
        Column("change", "Change", "signed", text=lambda mark: words.change_text(mark.change)),
        Column("told_apart", "Significant", "words", short="Sig.", optional=True,
               text=lambda mark: words.yes(mark.told_apart)),
        Column("verdict", "Verdict", "words" if terminal else "text", optional=True,
               text=words.verdict if terminal else _verdict),
        Column("changed", "Changed", text=words.besides if terminal else words.changed),
    ]  # fmt: skip
    return Table("", columns, points, row_class=_classes)


def _commit(mark: Mark) -> str:
    return f'<span title="{escaped(mark.commit or "")}">{escaped(words.short(mark.commit))}</span>'


def _verdict(mark: Mark) -> str:
    return ": ".join(filter(None, (words.verdict(mark), mark.trouble)))


def _classes(mark: Mark) -> str:
    return f"{'break' if mark.breaks else ''}{'' if mark.counts else ' out'}".strip()


def _drawn(points: Sequence[Mark], width: int) -> tuple[Table, bool]:
    """The points with a bar for each, and whether there is the column ``Sig.``."""
    table = marks(points, terminal=True)
    flagged = any(mark.told_apart for mark in points)
    visible = table.visible
    columns = [c for c in visible if c.name != "told_apart"]
    widths = [
        max(len(c.heading), *(cell_len(c.cell(mark)) for mark in points))
        for c in columns if c.name != "changed"
    ]  # fmt: skip
    broken = [words.broke(mark) for mark in points if mark.breaks]
    changed = max(map(len, ("Changed", *map(words.besides, points), *broken)))
    widths.append(min(changed, _CHANGED))
    room = width - sum(widths) - 2 * len(widths) - 2
    # On a narrow screen a column with only "no", which is not reliable, is left out.
    has_flags = flagged or (len(columns) < len(visible) and room >= _NARROWEST + _APART)
    room = min(max(room - has_flags * _APART, _NARROWEST), _WIDEST)
    low, high = value_range(points)
    cut = "─ not comparable ─" if room >= 18 else "─ break ─"

    def chart(row: Mark | _Break) -> str:
        return cut.center(room, "─") if isinstance(row, _Break) else _bar(row, low, high, room)

    def of(column: Column) -> Column:
        """The column; of a break, only what changed."""
        return replace(
            column,
            text=lambda row: column.cell(row) if isinstance(row, Mark)
            else row.what if column.name == "changed" else "",
            style=lambda row: column.style(row)
            if column.style is not None and isinstance(row, Mark) else "",
        )  # fmt: skip

    rows: list[Mark | _Break] = []
    ends = set()
    for mark in points:
        if mark.breaks:
            ends |= {len(rows) - 1} if rows else set()
            rows.append(_Break(words.broke(mark)))
        rows.append(mark)
    bars = Column("chart", _axis(low, high, room), "words", text=chart)
    shown = [of(column) for column in (visible if has_flags else columns)]
    shown.insert([column.name for column in shown].index("change"), bars)
    return replace(table, columns=shown, rows=rows, ends=frozenset(ends)), has_flags


def _times(marks: Sequence[Mark]) -> list[str]:
    """The day of each point, with the time if days repeat."""
    days = {words.day(mark.time) for mark in marks}
    if len(days) == len(marks):
        return [words.day(mark.time) for mark in marks]
    clocks = [words.clock(mark.time) for mark in marks]
    same_year = len({time[:4] for time in clocks}) == 1
    return [time[5:] for time in clocks] if same_year else clocks


def _axis(low: float, high: float, room: int) -> str:
    for digits in (3, 2, 1):
        left, right = (f"{end:.{digits}g}".replace("-", "−") for end in (low, high))
        if len(left) + len(right) < room:
            break
    return left + right.rjust(room - len(left))


def _bar(mark: Mark, low: float, high: float, room: int) -> str:
    """A value on its interval, as ``  ├──●──┤``; hollow if it does not count.

    A value beyond those that count is an arrow at the edge.
    """

    def place(value: float) -> int:
        return round((min(max(value, low), high) - low) / (high - low) * (room - 1))

    if mark.value is None:
        return "no value"
    cells = [" "] * room
    if not mark.counts:
        cells[place(mark.value)] = "‹" if mark.value < low else "›" if mark.value > high else "○"
        return "".join(cells)
    if mark.ci_low is not None and mark.ci_high is not None:
        left, right = place(mark.ci_low), place(mark.ci_high)
        cells[left : right + 1] = "─" * (right - left + 1)
        cells[left], cells[right] = "├", "┤"
    cells[place(mark.value)] = "●"
    return "".join(cells)
