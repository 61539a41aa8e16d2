"""Online metrics for eyes and machines: health first, then numbers, and why some are missing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from karat.online.estimates import NOT_SAID
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.reports.cells import LABEL, label, needed, plain, squeezed
from karat.reports.figures import counted
from karat.reports.terminal import show_footnotes, show_notes
from karat.reports.written import csv_table, markdown_cell, markdown_table
from karat.tables.notes import Concern, Note
from karat.tables.online import OnlineResult, OnlineResults

_MINUS = "\N{MINUS SIGN}"
_POSITION = "position"
_FALL = "where clicks fall"
_TOP = 10  # positions that have a row of their own
_MOST = 60  # slices in a table for eyes
_ORDERED = ("day", "hour")
UNITS = {"share": " %", "seconds": " s", "milliseconds": " ms"}
"""What stands behind a number of a unit; nothing behind others."""
_NAMED = 4  # metrics named in a footnote
_Column = TypeVar("_Column")
_NUMBERS = re.compile(r" ?\([^()]*\)")


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A table: what stands above it, its headings (the first ``texts`` to the left), its rows."""

    title: str
    heads: Sequence[str]
    texts: int
    rows: Sequence[Sequence[str]]
    ends: frozenset[int] = frozenset()  # rows with a rule below
    spare: tuple[str, ...] = ()  # columns that go first where it is too wide

    def needs(self, name: int) -> int:
        """The columns of a screen that it takes if a name has so many."""
        return needed(self.heads, self.rows, self.texts, name=name)

    def without(self, head: str) -> _Sheet:
        """The same without a column."""
        out = self.heads.index(head)
        heads, *rows = ([*row[:out], *row[out + 1 :]] for row in (self.heads, *self.rows))
        return replace(self, heads=heads, rows=rows)


def show(results: OnlineResults, out: Console, *, all_notes: bool = False) -> None:
    """Print results as tables; what to know of them before and behind."""
    if results.health:
        out.print("before any number", style="bold")
        show_notes(results.health, out)
        out.print()
    for sheet in _sheets(results, out.width):
        out.print(plain(sheet.title, "bold"))  # above the table, which may be narrower
        out.print(_drawn(sheet, out.width), crop=False)  # no screen cuts a number
    show_footnotes(_footnotes(results), out, every=all_notes)


def to_markdown(results: OnlineResults) -> str:
    """The same as Markdown."""
    parts = []
    if results.health:
        parts.append("".join(f"- {markdown_cell(each)}\n" for each in results.health))
    for sheet in _sheets(results, None):
        table = markdown_table(sheet.heads, sheet.rows, sheet.texts)
        parts.append(f"{markdown_cell(sheet.title)}\n\n{table}")
    notes = _footnotes(results)
    if notes:
        parts.append("".join(f"- {markdown_cell(each)}\n" for each in notes))
    return "\n".join(parts)


def to_json(results: OnlineResults) -> str:
    """The documented JSON object."""
    return json.dumps(results.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(results: OnlineResults) -> str:
    """A row for each metric and slice; a column for each dimension."""
    sliced = dict.fromkeys(name for row in results.results for name in row.slice)
    rows = []
    for row in results.results:
        fields = {name: value for name, value in asdict(row).items() if name != "slice"}
        rows.append({**{f"slice_{name}": row.slice.get(name) for name in sliced}, **fields})
    return csv_table(rows)


def figure(metric: Metric, value: float | None) -> str:
    """A value of a metric with its unit; a dash for none."""
    if value is None:
        return "–"
    return f"{_number(metric, value, value)}{UNITS.get(metric.unit, '')}"


def span(metric: Metric, low: float | None, high: float | None) -> str:
    """An interval in the unit of the metric; empty for none, open where it has no upper end."""
    if low is None:
        return ""
    if high is None:
        return f"{_number(metric, low, low)} – "
    return f"{_number(metric, low, high)} – {_number(metric, high, high)}"


def slice_text(row: OnlineResult) -> str:
    """What a row is of, in words; ``all`` for all."""
    return ", ".join(f"{name} {_said(name, value)}" for name, value in row.slice.items()) or "all"


def _number(metric: Metric, value: float, size: float) -> str:
    """A number with as many digits as its size asks for."""
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


def _said(dimension: str, value: str) -> str:
    if value != NOT_SAID:
        return value
    return "(not among the queries)" if dimension == "class" else "(not logged)"


def _heading(results: OnlineResults) -> str:
    days = "no days" if results.period is None else " to ".join(dict.fromkeys(results.period))
    of = "simulated users" if results.simulated else "users"
    return f"{of}, {days}, {counted(results.events, 'event', 'events')}"


def _sheets(results: OnlineResults, width: int | None) -> Iterator[_Sheet]:
    """Everything as tables; one for as many metrics as the width takes."""
    scalar = [row for row in results.results if _POSITION not in row.slice]
    every = [row for row in scalar if not row.slice]
    positions = [row for row in results.results if set(row.slice) == {_POSITION}]
    heading = _heading(results)
    if every or not positions:
        yield _whole(heading, every)
    if positions:
        yield _positions(positions, _FALL if every else f"{_FALL}: {heading}")
    for by in results.by:
        names = by.split(",")
        rows = [row for row in scalar if list(row.slice) == names]
        said = {row.metric for row in rows if row.value is not None or row.most is not None}
        rows = [row for row in rows if row.metric in said]  # the others have their footnote
        yield from _sliced(by, names, rows, results, width)
        fell = [row for row in results.results if list(row.slice) == [*names, _POSITION]]
        if fell:
            yield from _positions_by(by, names, fell, width)


def _whole(title: str, rows: Sequence[OnlineResult]) -> _Sheet:
    """The values of all, family by family."""
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
    return _Sheet(title, heads, 1, cells, frozenset(ends - {len(cells) - 1}), ("users", "n"))


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
    by: str, names: Sequence[str], rows: Sequence[OnlineResult], width: int | None
) -> Iterator[_Sheet]:
    """Slices as rows, shares of positions as columns."""
    metric = registry.find(rows[0].metric)
    grid: dict[tuple[str, ...], dict[int, OnlineResult]] = {}
    for row in rows:
        part = tuple(row.slice[name] for name in names)
        grid.setdefault(part, {})[int(row.slice[_POSITION])] = row
    sizes = {part: next(iter(found.values())).n for part, found in grid.items()}
    chosen, more = _largest(names, sizes)
    places = sorted({min(place, _TOP + 1) for found in grid.values() for place in found})

    def share(part: tuple[str, ...], place: int) -> str:
        there = (row for at, row in grid[part].items() if min(at, _TOP + 1) == place)
        value = sum(row.total or 0 for row in there) / sizes[part]
        return _number(metric, value, value)

    def sheet(block: Sequence[int]) -> _Sheet:
        heads = [f"{place}{'+' if place > _TOP else ''}{UNITS[metric.unit]}" for place in block]
        cells = [
            [*map(_said, names, part), f"{sizes[part]:,}", *(share(part, place) for place in block)]
            for part in chosen
        ]
        title = f"{_FALL}, by {by}{more}"
        return _Sheet(title, [*names, "clicks", *heads], len(names), cells)

    yield from _split(places, sheet, width)


def _sliced(
    by: str,
    names: Sequence[str],
    rows: Sequence[OnlineResult],
    results: OnlineResults,
    width: int | None,
) -> Iterator[_Sheet]:
    """Slices as rows, metrics as columns."""
    grid: dict[tuple[str, ...], dict[str, OnlineResult]] = {}
    for row in rows:
        grid.setdefault(tuple(row.slice.values()), {})[row.metric] = row
    sizes = _sizes(results, names)
    chosen, more = _largest(names, {part: sizes[part] for part in grid})

    def sheet(block: Sequence[str]) -> _Sheet:
        found = {part: [grid[part].get(name) for name in block] for part in chosen}
        alike = all(len({row.n for row in line if row}) <= 1 for line in found.values())
        n = "n" if alike else f"n of {block[0]}"
        cells = [
            [*map(_said, names, part), f"{first.n:,}" if first else "–", *map(_give_or_take, line)]
            for part, line in found.items()
            for first in line[:1]
        ]
        heads = [*names, n, *map(_head, block)]
        return _Sheet(f"by {by}{more}", heads, len(names), cells)

    yield from _split(list(dict.fromkeys(row.metric for row in rows)), sheet, width)


def _split(
    columns: Iterable[_Column], sheet: Callable[[Sequence[_Column]], _Sheet], width: int | None
) -> Iterator[_Sheet]:
    """As many tables as a width needs, each with as many columns as it takes."""
    block: list[_Column] = []
    for each in columns:
        wide = sheet([*block, each])
        if block and width is not None and wide.needs(label(wide.texts)) > width:
            yield sheet(block)
            block = []
        block.append(each)
    if block:
        yield sheet(block)


def _largest(
    names: Sequence[str], sizes: Mapping[tuple[str, ...], int]
) -> tuple[list[tuple[str, ...]], str]:
    """The slices there is room for, the latest or the largest, and what to say of the others."""
    chosen = list(sizes)
    if len(chosen) <= _MOST:
        return chosen, ""
    more = f": {_MOST} of {len(chosen):,}"
    if names[0] in _ORDERED:
        return chosen[-_MOST:], more
    return sorted(chosen, key=lambda part: -sizes[part])[:_MOST], more


def _head(name: str) -> str:
    """A metric's name with its unit, for a column of numbers without one."""
    return f"{name}{UNITS.get(registry.find(name).unit, '')}"


def _sizes(results: OnlineResults, names: Sequence[str]) -> dict[tuple[str, ...], int]:
    sizes: dict[tuple[str, ...], int] = {}
    for row in results.results:
        if list(row.slice) == list(names):
            part = tuple(row.slice.values())
            sizes[part] = max(sizes.get(part, 0), row.n)
    return sizes


def _give_or_take(row: OnlineResult | None) -> str:
    if row is None:
        return "–"
    metric = registry.find(row.metric)
    if row.value is None:
        bounds = row.least is not None and row.most is not None
        return span(metric, row.least, row.most) if bounds else "–"
    value = _number(metric, row.value, row.value) + _interval(metric, row, row.value)
    if not _open(row):
        return value
    ends = [_number(metric, each, row.value) for each in (row.least, row.most) if each is not None]
    return f"{value} [{'–'.join(ends)}]"


def _interval(metric: Metric, row: OnlineResult, value: float) -> str:
    """The interval around a value, behind it: ± where both halves are alike."""
    if row.low is None:
        return ""
    if row.high is not None and math.isclose(row.high - value, value - row.low, rel_tol=1e-6):
        return f" ±{_number(metric, row.high - value, value)}"
    high = "" if row.high is None else _number(metric, row.high, value)
    return f" ({_number(metric, row.low, value)}–{high})"


def _open(row: OnlineResult) -> bool:
    """Whether the log leaves open what a value is."""
    return row.value is not None and row.least is not None and row.least != row.most


def _drawn(sheet: _Sheet, width: int) -> Table:
    """A table no wider than the screen: spare columns go first."""
    for spare in sheet.spare:
        if sheet.needs(LABEL) > width:
            sheet = sheet.without(spare)
    return squeezed(sheet.heads, sheet.rows, sheet.texts, width, sheet.ends)


def _footnotes(results: OnlineResults) -> list[str]:
    """Why values and intervals are missing, the notes, and the rules if they are not usual."""
    rows = [row for row in results.results if row.slice and _open(row)]
    bounds = [f"{_names(rows)} [a–b]: what the log leaves open, apart from ±"] if rows else []
    return [*bounds, *_reasons(results.results), *results.notes, *_rules(results)]


def _rules(results: OnlineResults) -> list[str]:
    changed = results.rules.partition(" ")[2]
    said = f"by rules that are not the usual ones: {changed}"
    return [Note(said, Concern.INPUT)] if changed else []


def _reasons(rows: Sequence[OnlineResult]) -> Iterator[str]:
    """Why values are missing, each reason once; of all also why intervals are."""
    found: dict[tuple[str, str], list[OnlineResult]] = {}
    for row in rows:
        if not row.reason or _POSITION in row.slice or (row.slice and row.value is not None):
            continue
        kind = "–" if row.value is None else "no interval" if row.low is None else "95 %"
        reason = _NUMBERS.sub("", row.reason) if row.slice else row.reason
        found.setdefault((kind, reason), []).append(row)
    whole = {key for key, members in found.items() if not members[0].slice}
    for (kind, reason), members in found.items():
        names = _names([row for row in members if not row.slice] or members)
        where = ""
        if (kind, reason) not in whole:
            slices = {tuple(row.slice.items()) for row in members}
            where = f" in {counted(len(slices), 'slice', 'slices')}"
        whole_value = kind == "–" and not where
        concern = Concern.QUERIES if whole_value else Concern.EXPLAINS
        yield Note(f"{names}{where}: {kind}: {reason}", concern)


def _names(rows: Sequence[OnlineResult]) -> str:
    """The metrics of some rows, the first of them by name."""
    names = list(dict.fromkeys(row.metric for row in rows))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
