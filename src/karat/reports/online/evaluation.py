"""Online metrics as tables, Markdown, JSON and CSV: health first, then numbers and notes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from karat.online.estimates import NOT_SAID
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.reports.phrases.numbers import counted
from karat.reports.writers.cells import LABEL, label, needed, plain, squeezed
from karat.reports.writers.plain import csv_table, markdown_cell, markdown_table
from karat.reports.writers.terminal import show_footnotes, show_notes
from karat.tables.notes import Concern, Note
from karat.tables.online.evaluation import OnlineResult, OnlineResults

_MINUS = "\N{MINUS SIGN}"
_POSITION = "position"
_FALL = "clicks by position"
_TOP = 10  # positions that have a row of their own
_MOST = 60  # slices in a Markdown table
_FEW, _LATEST = 10, 7  # if there are more slices than the first, the second number is shown
_ACROSS = 4  # most slices as columns, if metrics as columns need several tables
_LEADING = ("CTR", "ZeroResults", "Reformulation", "SAT", "Abandonment")
"""Metrics shown first if there is not room for all."""
UNITS = {"share": " %", "seconds": " s", "milliseconds": " ms"}
"""Suffix of numbers by unit."""
_NAMED = 4  # metrics named in a note
_Column = TypeVar("_Column")
_NUMBERS = re.compile(r" ?\([^()]*\)")


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A table of text; its first ``texts`` columns are left-aligned."""

    title: str
    heads: Sequence[str]
    texts: int
    rows: Sequence[Sequence[str]]
    ends: frozenset[int] = frozenset()  # rows with a line below
    spare: tuple[str, ...] = ()  # columns that are dropped first if it is too wide

    def needs(self, name: int) -> int:
        """The width of the table with names of ``name`` columns."""
        return needed(self.heads, self.rows, self.texts, name=name)

    def without(self, head: str) -> _Sheet:
        """The table without a column."""
        out = self.heads.index(head)
        heads, *rows = ([*row[:out], *row[out + 1 :]] for row in (self.heads, *self.rows))
        return replace(self, heads=heads, rows=rows)


@dataclass(frozen=True, slots=True)
class _Room:
    """How much is shown.

    Attributes:
        width: Width of the screen; None for any.
        slices: Most slices of an attribute; None for all.
        all_metrics: Whether metrics without room go into further tables.
        close: Whether to save blank lines, to fit one screen.
    """

    width: int | None
    slices: int | None
    all_metrics: bool
    close: bool = False

    def title(self, by: str, *left: str) -> str:
        """A heading that names what is left out, and how to see it."""
        cut = ", ".join(filter(None, left))
        how = " (all: --full)" if self.width is not None else ""
        return f"by {by}: {cut}{how}" if cut else f"by {by}"

    def takes(self, sheet: _Sheet) -> bool:
        return self.width is None or sheet.needs(label(sheet.texts)) <= self.width


def show(
    results: OnlineResults,
    out: Console,
    *,
    full: bool = False,
    every_metric: bool = False,
    all_notes: bool = False,
) -> None:
    """Print results as tables, after warnings and before notes.

    Args:
        results: The results.
        out: The console.
        full: Show every slice with every metric. Otherwise each attribute has one table, with the
            metrics that fit and, of many slices, the latest or the largest.
        every_metric: Show every metric, but not every slice.
        all_notes: Show all notes, not only the most important ones.
    """
    if results.health:
        out.print("quality of the log", style="bold")
        show_notes(results.health, out)
        out.print()
    close = bool(results.by) and not full
    room = _Room(out.width, None if full else _LATEST, full or every_metric, close)
    for sheet in _sheets(results, room):
        # The title is printed separately: the table may be narrower.
        out.print(plain(sheet.title, "bold"))
        table = _drawn(sheet, out.width)
        if close and (table.width or 0) < out.width:
            table.show_edge, table.width = False, (table.width or 2) - 2
            out.print(Padding(table, (0, 0, 1, 1), expand=False))
        else:
            out.print(table, crop=False)
    show_footnotes(_footnotes(results), out, every=all_notes)


def to_markdown(results: OnlineResults) -> str:
    """The results as Markdown."""
    parts = []
    if results.health:
        parts.append("".join(f"- {markdown_cell(text)}\n" for text in results.health))
    for sheet in _sheets(results, _Room(None, _MOST, all_metrics=True)):
        table = markdown_table(sheet.heads, sheet.rows, sheet.texts)
        parts.append(f"{markdown_cell(sheet.title)}\n\n{table}")
    notes = _footnotes(results)
    if notes:
        parts.append("".join(f"- {markdown_cell(note)}\n" for note in notes))
    return "\n".join(parts)


def to_json(results: OnlineResults) -> str:
    """The documented JSON object."""
    return json.dumps(results.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(results: OnlineResults) -> str:
    """A row per metric and slice, with a column per dimension."""
    sliced = dict.fromkeys(name for row in results.results for name in row.slice)
    rows = []
    for row in results.results:
        fields = {name: value for name, value in asdict(row).items() if name != "slice"}
        rows.append({**{f"slice_{name}": row.slice.get(name) for name in sliced}, **fields})
    return csv_table(rows)


def figure(metric: Metric, value: float | None) -> str:
    """A value of a metric with its unit; a dash for None."""
    if value is None:
        return "–"
    return f"{_number(metric, value, value)}{UNITS.get(metric.unit, '')}"


def span(metric: Metric, low: float | None, high: float | None) -> str:
    """An interval in the unit of the metric; empty for None, open without an upper end."""
    if low is None:
        return ""
    if high is None:
        return f"{_number(metric, low, low)} – "
    return f"{_number(metric, low, high)} – {_number(metric, high, high)}"


def slice_text(row: OnlineResult) -> str:
    """The slice of a row in words; ``all`` for all."""
    return (
        ", ".join(f"{name} {_slice_value(name, value)}" for name, value in row.slice.items())
        or "all"
    )


def _number(metric: Metric, value: float, size: float) -> str:
    """A number with digits by its size."""
    return _digits(metric, value, size).replace("-", _MINUS)


def _digits(metric: Metric, value: float, size: float) -> str:
    if metric.unit == "share":
        value, size = 100 * value, 100 * size
        return f"{value:.2f}" if 0 < abs(size) < 1 else f"{value:.1f}"
    if metric.unit == "seconds":
        return f"{value:.2f}" if abs(size) < 10 else f"{value:,.1f}"
    if metric.unit == "milliseconds":
        return f"{value:.1f}" if abs(size) < 10 else f"{value:,.0f}"
    if metric.unit == "money":
        return f"{value:,.2f}"
    return f"{value:,.3f}"


def _slice_value(dimension: str, value: str) -> str:
    if value != NOT_SAID:
        return value
    return "(not among the queries)" if dimension == "class" else "(not logged)"


def _heading(results: OnlineResults) -> str:
    days = "no days" if results.period is None else " to ".join(dict.fromkeys(results.period))
    of = "simulated users" if results.simulated else "users"
    return f"{of}, {days}, {counted(results.events, 'event', 'events')}"


def _sheets(results: OnlineResults, room: _Room) -> Iterator[_Sheet]:
    """All tables; each has as many metrics as fit."""
    scalar = [row for row in results.results if _POSITION not in row.slice]
    every = [row for row in scalar if not row.slice]
    positions = [row for row in results.results if set(row.slice) == {_POSITION}]
    heading = _heading(results)
    if every or not positions:
        yield _whole(heading, every, close=room.close)
    if positions:
        yield _positions(positions, _FALL if every else f"{_FALL}: {heading}")
    for by in results.by:
        names = by.split(",")
        rows = [row for row in scalar if list(row.slice) == names]
        known = {row.metric for row in rows if row.value is not None or row.most is not None}
        rows = [row for row in rows if row.metric in known]  # the others have a footnote
        yield from _sliced(by, names, rows, results, room)
        clicks = [row for row in results.results if list(row.slice) == [*names, _POSITION]]
        if clicks:
            yield from _positions_by(by, names, clicks, room)


def _whole(title: str, rows: Sequence[OnlineResult], *, close: bool) -> _Sheet:
    """The values over all searches, family by family."""
    by_family = {
        family: [row for row in rows if registry.find(row.metric).family == family]
        for family in registry.FAMILIES
    }
    bounded = any(row.least is not None and row.least != row.most for row in rows)
    heads = ["metric", "value", "95 %", *(["could be"] if bounded else []), "n", "users"]
    cells: list[list[str]] = []
    ends: set[int] = set()
    for members in filter(None, by_family.values()):
        for row in members:
            metric = registry.find(row.metric)
            could = span(metric, row.least, row.most) if row.least != row.most else ""
            line = [row.metric, figure(metric, row.value), span(metric, row.low, row.high)]
            line += [could] if bounded else []
            cells.append([*line, f"{row.n:,}", f"{row.users:,}"])
        ends.add(len(cells) - 1)
    lines = frozenset() if close else frozenset(ends - {len(cells) - 1})
    return _Sheet(title, heads, 1, cells, lines, ("users", "n"))


def _positions(rows: Sequence[OnlineResult], title: str) -> _Sheet:
    metric = registry.find(rows[0].metric)
    top = [row for row in rows if int(row.slice[_POSITION]) <= _TOP]
    cells = [
        [row.slice[_POSITION], f"{row.total or 0:,.0f}", figure(metric, row.value)] for row in top
    ]
    below = sum(row.total or 0 for row in rows) - sum(row.total or 0 for row in top)
    if below:
        cells.append([f"{_TOP + 1}+", f"{below:,.0f}", figure(metric, below / rows[0].n)])
    return _Sheet(title, ["position", "clicks", "share"], 0, cells)


def _positions_by(
    by: str, names: Sequence[str], rows: Sequence[OnlineResult], room: _Room
) -> Iterator[_Sheet]:
    """Slices as rows, shares of positions as columns."""
    metric = registry.find(rows[0].metric)
    grid: dict[tuple[str, ...], dict[int, OnlineResult]] = {}
    for row in rows:
        part = tuple(row.slice[name] for name in names)
        grid.setdefault(part, {})[int(row.slice[_POSITION])] = row
    sizes = {part: next(iter(by_place.values())).n for part, by_place in grid.items()}
    chosen, left = _shown_slices(names, sizes, room)
    places = sorted({min(place, _TOP + 1) for by_place in grid.values() for place in by_place})

    def share(part: tuple[str, ...], place: int) -> str:
        at_place = (row for at, row in grid[part].items() if min(at, _TOP + 1) == place)
        value = sum(row.total or 0 for row in at_place) / sizes[part]
        return _number(metric, value, value)

    def sheet(block: Sequence[int]) -> _Sheet:
        heads = [f"{place}{'+' if place > _TOP else ''}{UNITS[metric.unit]}" for place in block]
        cells = [
            [
                *map(_slice_value, names, part),
                f"{sizes[part]:,}",
                *(share(part, place) for place in block),
            ]
            for part in chosen
        ]
        heads = [*names, "clicks", *heads]
        return _Sheet(f"{_FALL}, {room.title(by, left)}", heads, len(names), cells)

    yield from _split(places, sheet, room)


def _sliced(
    by: str,
    names: Sequence[str],
    rows: Sequence[OnlineResult],
    results: OnlineResults,
    room: _Room,
) -> Iterator[_Sheet]:
    """Slices as rows and metrics as columns, or vice versa for few slices."""
    grid: dict[tuple[str, ...], dict[str, OnlineResult]] = {}
    for row in rows:
        grid.setdefault(tuple(row.slice.values()), {})[row.metric] = row
    sizes = _sizes(results, names)
    chosen, left = _shown_slices(names, {part: sizes[part] for part in grid}, room)
    metrics = list(dict.fromkeys(row.metric for row in rows))
    unsettled = {row.metric for row in rows if _open(row)}
    columns = [(name, could) for name in metrics for could in (False, True)
               if not could or name in unsettled]  # fmt: skip

    def sheet(block: Sequence[tuple[str, bool]]) -> _Sheet:
        heads = [*names, "n"]
        for name, could in block:
            alone = (name, False) not in block
            heads.append(_head(name) if not could else f"{name} could be" if alone else "could be")
        cells = [
            [
                *map(_slice_value, names, part),
                f"{sizes[part]:,}",
                *((_could_be if could else _with_interval)(grid[part].get(name))
                  for name, could in block),
            ]
            for part in chosen
        ]  # fmt: skip
        return _Sheet(room.title(by, left), heads, len(names), cells)

    def of(some: Sequence[str]) -> _Sheet:
        return sheet([column for column in columns if column[0] in some])

    if not room.all_metrics and not room.takes(sheet(columns)):
        first = sorted(metrics, key=_place)
        some = first[: max(1, sum(room.takes(of(first[:n])) for n in range(1, len(first))))]
        more = counted(len(metrics) - len(some), "further metric", "further metrics")
        yield replace(of(some), title=room.title(by, left, more))
        return
    across = _metric_by_metric(by, names, chosen, metrics, grid, sizes)
    beside = len(chosen) <= _ACROSS and not left and room.takes(across)
    if beside and not room.takes(sheet(columns)):
        yield across
    else:
        yield from _split(columns, sheet, room)


def _place(metric: str) -> int:
    """Position of a metric among those shown first."""
    return _LEADING.index(metric) if metric in _LEADING else len(_LEADING)


def _metric_by_metric(
    by: str,
    names: Sequence[str],
    parts: Sequence[tuple[str, ...]],
    metrics: Sequence[str],
    grid: Mapping[tuple[str, ...], Mapping[str, OnlineResult]],
    sizes: Mapping[tuple[str, ...], int],
) -> _Sheet:
    """Metrics as rows, slices as columns."""
    heads = ["", *(", ".join(map(_slice_value, names, part)) for part in parts)]
    cells = [["n", *(f"{sizes[part]:,}" for part in parts)]]
    for name in metrics:
        rows = [grid[part].get(name) for part in parts]
        cells.append([_head(name), *map(_with_interval, rows)])
        if any(row is not None and _open(row) for row in rows):
            cells.append(["  could be", *map(_could_be, rows)])
    return _Sheet(f"by {by}", heads, 1, cells)


def _split(
    columns: Iterable[_Column], sheet: Callable[[Sequence[_Column]], _Sheet], room: _Room
) -> Iterator[_Sheet]:
    """Columns split into tables that fit the width."""
    block: list[_Column] = []
    blocks = [block]
    for column in columns:
        if block and not room.takes(sheet([*block, column])):
            block = []
            blocks.append(block)
        block.append(column)
    yield from map(sheet, filter(None, blocks))


def _shown_slices(
    names: Sequence[str], sizes: Mapping[tuple[str, ...], int], room: _Room
) -> tuple[list[tuple[str, ...]], str]:
    """The slices that fit, the latest or the largest, and a phrase for the heading."""
    chosen = list(sizes)
    if room.slices is None or len(chosen) <= max(_FEW, room.slices):
        return chosen, ""
    if names[0] == "day":
        first = chosen[-room.slices][0]
        shown = [part for part in chosen if part[0] >= first]  # whole days
    else:
        largest = set(sorted(chosen, key=lambda part: -sizes[part])[: room.slices])
        shown = [part for part in chosen if part in largest]
        if names != ["hour"]:
            shown.sort(key=lambda part: -sizes[part])
    kind = "latest" if names[0] == "day" else "largest"
    return shown, f"the {kind} {len(shown)} of {len(chosen):,}"


def _head(name: str) -> str:
    """A metric's name with its unit, as a heading."""
    return f"{name}{UNITS.get(registry.find(name).unit, '')}"


def _sizes(results: OnlineResults, names: Sequence[str]) -> dict[tuple[str, ...], int]:
    sizes: dict[tuple[str, ...], int] = {}
    for row in results.results:
        if list(row.slice) == list(names):
            part = tuple(row.slice.values())
            sizes[part] = max(sizes.get(part, 0), row.n)
    return sizes


def _with_interval(row: OnlineResult | None) -> str:
    """A value and its interval, from low to high."""
    if row is None or row.value is None:
        return "–"
    metric = registry.find(row.metric)
    value = _number(metric, row.value, row.value)
    if row.low is None:
        return value
    ends = ("" if end is None else _number(metric, end, row.value) for end in (row.low, row.high))
    return f"{value} {'–'.join(ends)}"


def _could_be(row: OnlineResult | None) -> str:
    """Bounds of a value that the log does not determine; empty for none."""
    if row is None or not _open(row):
        return ""
    metric, size = registry.find(row.metric), row.most if row.value is None else row.value
    ends = (_number(metric, end, size or 0.0) for end in (row.least, row.most) if end is not None)
    return "–".join(ends)


def _open(row: OnlineResult) -> bool:
    """Whether a value has bounds that differ."""
    return row.least is not None and row.least != row.most


def _drawn(sheet: _Sheet, width: int) -> Table:
    """A table that fits the screen; spare columns are dropped first."""
    for spare in sheet.spare:
        if sheet.needs(LABEL) > width:
            sheet = sheet.without(spare)
    return squeezed(sheet.heads, sheet.rows, sheet.texts, width, sheet.ends)


def _footnotes(results: OnlineResults) -> list[str]:
    """Reasons of missing values and intervals, notes, and overridden rules."""
    return [*_reasons(results.results), *results.notes, *_rules(results)]


def _rules(results: OnlineResults) -> list[str]:
    changed = results.rules.partition(" ")[2]
    return [Note(f"with overridden rules: {changed}", Concern.INPUT)] if changed else []


def _reasons(rows: Sequence[OnlineResult]) -> Iterator[str]:
    """Reasons of missing values, each once; for all searches also of missing intervals."""
    grouped: dict[tuple[str, str], list[OnlineResult]] = {}
    for row in rows:
        if not row.reason or _POSITION in row.slice or (row.slice and row.value is not None):
            continue
        kind = "–" if row.value is None else "no interval" if row.low is None else "95 %"
        reason = _NUMBERS.sub("", row.reason) if row.slice else row.reason
        grouped.setdefault((kind, reason), []).append(row)
    whole = {key for key, members in grouped.items() if not members[0].slice}
    for (kind, reason), members in grouped.items():
        names = _names([row for row in members if not row.slice] or members)
        where = ""
        if (kind, reason) not in whole:
            slices = {tuple(row.slice.items()) for row in members}
            where = f" in {counted(len(slices), 'slice', 'slices')}"
        whole_value = kind == "–" and not where
        concern = Concern.QUERIES if whole_value else Concern.EXPLAINS
        yield Note(f"{names}{where}: {kind}: {reason}", concern)


def _names(rows: Sequence[OnlineResult]) -> str:
    """The metrics of some rows: the first by name, and the number of others."""
    names = list(dict.fromkeys(row.metric for row in rows))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
