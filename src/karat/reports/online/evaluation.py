"""Online metrics: their tables; health first, then numbers and notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from rich.console import Console

from karat.online.estimates import NOT_SAID
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.reports.phrases.numbers import counted, first_of
from karat.reports.table import Column, Table, of_texts
from karat.reports.writers.markdown import listed, markdown
from karat.reports.writers.plain import csv_table
from karat.reports.writers.tables import draw, needed, on_paper
from karat.reports.writers.terminal import show_footnotes, show_notes
from karat.tables.notes import Concern, Note
from karat.tables.online.evaluation import OnlineResult, OnlineResults

_MINUS = "\N{MINUS SIGN}"
_POSITION = "position"
_FALL = "Clicks by position"
_TOP = 10  # positions that have a row of their own
_MOST = 60  # slices in a Markdown table
_FEW, _LATEST = 10, 7  # if there are more slices than the first, the second number is shown
_ACROSS = 4  # most slices as columns, if metrics as columns need several tables
_LEADING = ("CTR", "ZeroResults", "Reformulation", "SAT", "Abandonment")
"""Metrics shown first if there is not room for all."""
UNITS = {"share": " %", "seconds": " s", "milliseconds": " ms"}
"""Suffix of numbers by unit."""
_NAMED = 4  # metrics named in a note
_Part = tuple[str, ...]
_NUMBERS = re.compile(r" ?\([^()]*\)")


@dataclass(frozen=True, slots=True)
class _Room:
    """How much is shown."""

    width: int | None  # width of the screen; None for any
    slices: int | None  # most slices of an attribute; None for all
    all_metrics: bool  # whether metrics without room go into further tables
    close: bool = False  # whether to save blank lines, to fit one screen

    def title(self, by: str, *left: str) -> str:
        """A heading that names what is left out, and how to see it."""
        cut = ", ".join(filter(None, left))
        how = " (all: --full)" if self.width is not None else ""
        return f"By {by}: {cut}{how}" if cut else f"By {by}"

    def takes(self, table: Table) -> bool:
        return self.width is None or needed(table, on_paper(table)) <= self.width


def show(
    results: OnlineResults,
    out: Console,
    *,
    full: bool = False,
    every_metric: bool = False,
    all_notes: bool = False,
) -> None:
    """Print results as tables, after warnings and before notes."""
    if results.health:
        out.print("Quality of the log", style="bold")
        show_notes(results.health, out)
        out.print()
    close = bool(results.by) and not full
    room = _Room(out.width, None if full else _LATEST, full or every_metric, close)
    for table in _tables(results, room):
        draw(table, out, close=close)
    show_footnotes(_footnotes(results), out, every=all_notes)


def to_markdown(results: OnlineResults) -> str:
    parts = []
    if results.health:
        parts.append(listed(results.health))
    parts += map(markdown, _tables(results, _Room(None, _MOST, all_metrics=True)))
    notes = _footnotes(results)
    if notes:
        parts.append(listed(notes))
    return "\n".join(parts)


def to_csv(results: OnlineResults) -> str:
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
        return f"{_number(metric, low, low)} or more"
    return f"{_number(metric, low, high)} to {_number(metric, high, high)}"


def slice_text(row: OnlineResult) -> str:
    """The slice of a row in words; ``all`` for all."""
    return (
        ", ".join(f"{name} {_slice_value(name, value)}" for name, value in row.slice.items())
        or "all"
    )


def _number(metric: Metric, value: float, size: float) -> str:
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
    return f"{of}, {days}, {counted(results.events, 'event')}"


def _tables(results: OnlineResults, room: _Room) -> Iterator[Table]:
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
        yield _sliced(by, names, rows, results, room)
        clicks = [row for row in results.results if list(row.slice) == [*names, _POSITION]]
        if clicks:
            yield _positions_by(by, names, clicks, room)


def _whole(title: str, rows: Sequence[OnlineResult], *, close: bool) -> Table:
    """The values over all searches, family by family."""
    family = {row.metric: registry.find(row.metric).family for row in rows}
    order = list(registry.FAMILIES)
    rows = sorted(rows, key=lambda row: order.index(family[row.metric]))
    ends = {at for at, (row, after) in enumerate(pairwise(rows))
            if family[row.metric] != family[after.metric]}  # fmt: skip

    def interval(low: str, high: str) -> Callable[[OnlineResult], str]:
        return lambda row: span(registry.find(row.metric), getattr(row, low), getattr(row, high))

    columns = [
        Column("metric", "Metric"),
        Column("value", "Value", "number",
               text=lambda row: figure(registry.find(row.metric), row.value)),
        Column("low", "95 %", "number", text=interval("low", "high")),
        Column("least", "Could be", "number", optional=True,
               text=lambda row: interval("least", "most")(row) if _open(row) else ""),
        Column("n", "n", "count", drop=2),
        Column("users", "Users", "count", drop=1),
    ]  # fmt: skip
    return Table(title, columns, rows, ends=frozenset() if close else frozenset(ends))


def _positions(rows: Sequence[OnlineResult], title: str) -> Table:
    metric = registry.find(rows[0].metric)
    top = [row for row in rows if int(row.slice[_POSITION]) <= _TOP]
    lines = [
        [row.slice[_POSITION], f"{row.total or 0:,.0f}", figure(metric, row.value)] for row in top
    ]
    below = sum(row.total or 0 for row in rows) - sum(row.total or 0 for row in top)
    if below:
        lines.append([f"{_TOP + 1}+", f"{below:,.0f}", figure(metric, below / rows[0].n)])
    return of_texts(title, ["Position", "Clicks", "Share"], lines, texts=0)


def _positions_by(
    by: str, names: Sequence[str], rows: Sequence[OnlineResult], room: _Room
) -> Table:
    """Slices as rows, shares of positions as columns."""
    metric = registry.find(rows[0].metric)
    grid: dict[_Part, dict[int, OnlineResult]] = {}
    for row in rows:
        part = tuple(row.slice[name] for name in names)
        grid.setdefault(part, {})[int(row.slice[_POSITION])] = row
    sizes = {part: next(iter(by_place.values())).n for part, by_place in grid.items()}
    chosen, left = _shown_slices(names, sizes, room)

    def share(place: int) -> Column:
        def text(part: _Part) -> str:
            there = (row for at, row in grid[part].items() if min(at, _TOP + 1) == place)
            value = sum(row.total or 0 for row in there) / sizes[part]
            return _number(metric, value, value)

        heading = f"{place}{'+' if place > _TOP else ''}{UNITS[metric.unit]}"
        return Column(str(place), heading, "number", text=text)

    places = sorted({min(place, _TOP + 1) for by_place in grid.values() for place in by_place})
    keys = [*_slice_columns(names), Column("n", "Clicks", "count", value=sizes.__getitem__)]
    title = f"{_FALL}, {room.title(by, left).replace('By', 'by', 1)}"
    return Table(title, [*keys, *map(share, places)], chosen, keys=len(keys))


def _sliced(
    by: str, names: Sequence[str], rows: Sequence[OnlineResult], results: OnlineResults, room: _Room
) -> Table:
    """Slices as rows and metrics as columns, or vice versa for few slices."""
    grid: dict[_Part, dict[str, OnlineResult]] = {}
    for row in rows:
        grid.setdefault(tuple(row.slice.values()), {})[row.metric] = row
    sizes = _sizes(results, names)
    chosen, left = _shown_slices(names, {part: sizes[part] for part in grid}, room)
    metrics = list(dict.fromkeys(row.metric for row in rows))
    unsettled = {row.metric for row in rows if _open(row)}
    keys = [*_slice_columns(names), Column("n", "n", "count", value=sizes.__getitem__)]

    def of(metrics: Sequence[str], *more: str) -> Table:
        columns = list(keys)
        for name in metrics:
            columns.append(Column(name, _head(name), "number", text=cell(_with_interval, name)))
            if name in unsettled:
                heading = f"{name} could be"
                columns.append(Column(heading, heading, "number", text=cell(_could_be, name)))
        return Table(room.title(by, left, *more), columns, chosen, keys=len(keys))

    def cell(printed: Callable[[OnlineResult | None], str], name: str) -> Callable[[_Part], str]:
        return lambda part: printed(grid[part].get(name))

    every = of(metrics)
    if room.takes(every):
        return every
    if not room.all_metrics:
        first = sorted(metrics, key=_place)
        some = first[: max(1, sum(room.takes(of(first[:n])) for n in range(1, len(first))))]
        return of(some, counted(len(metrics) - len(some), "further metric"))
    across = _metric_by_metric(by, names, chosen, metrics, grid, sizes)
    return across if len(chosen) <= _ACROSS and not left and room.takes(across) else every


def _place(metric: str) -> int:
    return _LEADING.index(metric) if metric in _LEADING else len(_LEADING)


def _slice_columns(names: Sequence[str]) -> list[Column]:
    def of(at: int, name: str) -> Column:
        return Column(name, name, text=lambda part: _slice_value(name, part[at]))

    return [of(at, name) for at, name in enumerate(names)]


def _metric_by_metric(
    by: str,
    names: Sequence[str],
    parts: Sequence[_Part],
    metrics: Sequence[str],
    grid: Mapping[_Part, Mapping[str, OnlineResult]],
    sizes: Mapping[_Part, int],
) -> Table:
    """Metrics as rows, slices as columns."""
    lines: list[list[str]] = [["n", *(f"{sizes[part]:,}" for part in parts)]]
    for name in metrics:
        rows = [grid[part].get(name) for part in parts]
        lines.append([_head(name), *map(_with_interval, rows)])
        if any(row is not None and _open(row) for row in rows):
            lines.append(["  could be", *map(_could_be, rows)])
    heads = ["Metric", *(", ".join(map(_slice_value, names, part)) for part in parts)]
    return of_texts(f"By {by}", heads, lines)


def _shown_slices(
    names: Sequence[str], sizes: Mapping[_Part, int], room: _Room
) -> tuple[list[_Part], str]:
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
    return f"{name}{UNITS.get(registry.find(name).unit, '')}"


def _sizes(results: OnlineResults, names: Sequence[str]) -> dict[_Part, int]:
    sizes: dict[_Part, int] = {}
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
    low = _number(metric, row.low, row.value)
    if row.high is None:
        return f"{value} {low} or more"
    return f"{value} {low} to {_number(metric, row.high, row.value)}"


def _could_be(row: OnlineResult | None) -> str:
    """Bounds of a value that the log does not determine; empty for none."""
    if row is None or not _open(row):
        return ""
    metric, size = registry.find(row.metric), row.most if row.value is None else row.value
    ends = (_number(metric, end, size or 0.0) for end in (row.least, row.most) if end is not None)
    return " to ".join(ends)


def _open(row: OnlineResult) -> bool:
    """Whether a value has bounds that differ."""
    return row.least is not None and row.least != row.most


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
            where = f" in {counted(len(slices), 'slice')}"
        whole_value = kind == "–" and not where
        concern = Concern.QUERIES if whole_value else Concern.EXPLAINS
        yield Note(f"{names}{where}: {kind}: {reason}", concern)


def _names(rows: Sequence[OnlineResult]) -> str:
    return first_of(list(dict.fromkeys(row.metric for row in rows)), _NAMED)
