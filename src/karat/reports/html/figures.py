"""The figures of a report: the numbers of each chart, and its description."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from karat.reports.charts.drawing import Spec, to_svg
from karat.reports.charts.report import Bar, Dot, bars, counts, intervals
from karat.reports.html.content import Content, View
from karat.reports.offline.evaluation import by_measure
from karat.reports.phrases import report
from karat.reports.phrases.numbers import counted, signed
from karat.tables.comparison import Comparison, Difference, QueryDifference
from karat.tables.results import Result, Results

BARS = 100
"""Most queries in a chart of contributions."""
_LISTED = 25  # queries named for each slice
_TOLD = {"better", "worse", "equivalent"}


@dataclass(frozen=True, slots=True)
class DrawnChart:
    """A chart, drawn for wide and for narrow screens."""

    title: str  # its title
    said: str  # its description, for readers who cannot see it
    wide: str  # SVG for a wide screen
    narrow: str  # SVG for a narrow one


@dataclass(frozen=True, slots=True)
class Sliced:
    """The slices by one attribute, of one candidate or of all runs."""

    subject: str | None  # the candidate; None without a comparison
    attribute: str  # the attribute
    figure: DrawnChart  # the slices of the first measure
    rows: Mapping[str, Sequence[Difference | Result]]  # measure → its slices
    ids: Mapping[str, str]  # slice → id of the element that links to its queries
    # Slice → (id, difference or value) of its queries as listed, and how many more there are
    queries: Mapping[str, tuple[Sequence[tuple[str, float | None]], int]]


def ids_of_views(content: Content) -> dict[View, str]:
    """View → id of the element that links to its queries."""
    return {view: f"by-{at}" for at, view in enumerate(content.views)} if content.leads else {}


def of_measures(content: Content) -> list[DrawnChart]:
    """Every measure with its interval, one chart per scale."""
    comparison, ids = content.comparison, ids_of_views(content)
    if comparison is None:
        rows = by_measure([row for row in content.results.results if row.aggregate != "sum"])
        several = len({row.run for row in rows}) > 1
        dots = [
            _of_result(row, row.measure, ids.get(View(row.measure)), several=several)
            for row in rows
        ]
        title = "Every measure, with its 95 % interval"
        # Values of different measures are not comparable, and no test compares runs here.
        return [
            replace(_drawn(name, part, "value", zero=False), said="")
            for name, part in _by_scale(title, dots)
        ]
    several = len({row.candidate for row in comparison.differences}) > 1
    dots = [
        _of_difference(
            row,
            f"{row.measure} · {row.candidate}" if several else row.measure,
            ids.get(View(row.measure, row.candidate)),
        )
        for row in comparison.differences
    ]
    title = "Difference under every measure, with its 95 % interval"
    axis = f"candidate minus {comparison.baseline}"
    return [_drawn(name, part, axis, zero=True) for name, part in _by_scale(title, dots)]


def of_slices(content: Content) -> Iterator[Sliced]:
    """The slices, attribute by attribute; the chart shows the first measure."""
    comparison, results = content.comparison, content.results
    every: Sequence[Difference | Result] = results.slices
    if comparison is not None:
        every = comparison.slices
    parts: dict[tuple[str | None, str], list[Difference | Result]] = {}
    for row in every:
        subject = row.candidate if isinstance(row, Difference) else None
        parts.setdefault((subject, str(row.attribute)), []).append(row)
    several = len(content.runs) > 1
    for at, ((subject, attribute), own) in enumerate(parts.items()):
        rows: dict[str, list[Difference | Result]] = {}
        for row in own:
            rows.setdefault(row.measure, []).append(row)
        measure = next(iter(rows))
        names = dict.fromkeys(str(row.slice) for row in own)
        ids = {name: f"in-{at}-{place}" for place, name in enumerate(names)}
        leads = ids if content.leads else {}
        title = f"{measure} by {attribute}"
        if comparison is not None:
            title += f": {subject} minus {comparison.baseline}"
        dots = [
            _of_difference(row, f"{row.slice} ({row.n:,})", leads.get(str(row.slice)))
            if isinstance(row, Difference)
            else _of_result(
                row, f"{row.slice} ({row.n:,})", leads.get(str(row.slice)), several=several
            )
            for row in rows[measure]
        ]
        zero = comparison is not None
        figure = _drawn(title, dots, "difference" if zero else "value", zero=zero)
        queries = {name: _within(content, subject, measure, attribute, name) for name in names}
        yield Sliced(subject, attribute, figure, rows, leads, queries)


def of_queries(comparison: Comparison, href: Callable[[str], str | None]) -> Iterator[DrawnChart]:
    """The contribution of each query to the mean difference of the first measure."""
    measure = comparison.differences[0].measure
    for candidate in dict.fromkeys(row.candidate for row in comparison.differences):
        moved = [
            row
            for row in comparison.queries
            if (row.candidate, row.measure) == (candidate, measure) and row.share
        ]
        if not moved:
            continue
        shown = sorted(moved, key=lambda row: -abs(row.share))[:BARS]
        shown.sort(key=lambda row: -row.share)
        left = len(moved) - len(shown)
        up, down = (sum(row.share * way > 0 for row in moved) for way in (1, -1))
        description = f"{counted(up, 'query adds', 'queries add')} to the difference and {down:,} "
        description += f"{'takes' if down == 1 else 'take'} from it"
        description += f"; {left:,} smaller ones are not shown." if left else "."
        drawn = [Bar(row.share, href(row.query_id), _of_query(row)) for row in shown]
        axis = "adds to the mean"
        title = f"What each query adds to the difference in {measure}, {candidate}"
        yield _chart(title, description, partial(bars, drawn, axis))


def of_values(content: Content) -> Iterator[DrawnChart]:
    """The distribution of the first measure over queries, run by run."""
    measure = content.measure
    leads = ids_of_views(content).get(View(measure))
    for run in dict.fromkeys(row.run for row in content.results.per_query):
        values = np.array(
            [
                row.value
                for row in content.results.per_query
                if (row.run, row.measure) == (run, measure) and row.value is not None
            ]
        )
        if not len(values) or values.min() < 0 or values.max() > 1:
            continue
        zero = int((values == 0).sum())
        held, _ = np.histogram(values[values > 0], bins=5, range=(0, 1))
        numbers = [zero, *(int(n) for n in held)]
        labels = ["0", "to .2", "to .4", "to .6", "to .8", "to 1"]
        spans = ["0", "above 0, below .2", ".2 to .4", ".4 to .6", ".6 to .8", ".8 to 1"]
        areas = [
            (leads, f"{counted(n, 'query')} with {measure} {span}")
            for n, span in zip(numbers, spans, strict=True)
        ]
        axis = f"{measure} of a query"
        draw = partial(counts, numbers, labels, axis, areas=areas)
        of = counted(len(values), "query")
        description = f"{zero:,} of {of} {'has' if zero == 1 else 'have'} 0."
        yield _chart(f"Queries by their {measure}, {run}", description, draw)


def plot(found: Results | Comparison, paint: Mapping[str, str]) -> Spec:
    """Every measure with its interval, as one chart."""
    if isinstance(found, Comparison):
        several = len({row.candidate for row in found.differences}) > 1
        dots = [
            _of_difference(row, f"{row.measure} · {row.candidate}" if several else row.measure)
            for row in found.differences
        ]
        axis = f"candidate minus {found.baseline}, with its 95 % interval"
        if not several:
            axis = f"{found.differences[0].candidate} minus {found.baseline}, 95 % interval"
        return intervals(dots, axis, zero=True, paint=paint)
    rows = by_measure([row for row in found.results if row.aggregate != "sum"])
    several = len({row.run for row in rows}) > 1
    dots = [_of_result(row, row.measure, several=several) for row in rows]
    return intervals(dots, "value, with its 95 % interval", zero=False, paint=paint)


def _within(
    content: Content, subject: str | None, measure: str, attribute: str, value: str
) -> tuple[Sequence[tuple[str, float | None]], int]:
    """The listed queries of a slice; of a comparison those that differ."""
    at = content.views.index(View(measure, subject))
    listed: list[tuple[str, float | None]] = []
    for query in content.queries:
        if value not in query.slices.get((subject, attribute), ()):
            continue
        change = query.changes[at]
        if subject is None:
            listed.append((query.query_id, query.values[measure][0]))
        elif change is not None and change.difference:
            listed.append((query.query_id, change.difference))
    return listed[:_LISTED], max(0, len(listed) - _LISTED)


def _of_difference(row: Difference, label: str, href: str | None = None) -> Dot:
    ink = {"better": "up", "worse": "down"}.get(row.verdict, "ink")
    tip = f"{label}: {report.headline(row).removeprefix(row.measure).lstrip(': ')}"
    tip = f"{tip.rstrip('.')}: {row.verdict}."
    told = row.verdict in _TOLD
    return Dot(label, row.difference, row.ci_low, row.ci_high, told, ink, row.shrunk, href, tip)


def _of_result(row: Result, label: str, href: str | None = None, *, several: bool) -> Dot:
    label = f"{label} · {row.run}" if several else label
    said = f"{label}: {report.number(row.value) if row.value is not None else 'no value'}"
    if row.ci_low is not None:
        said += f", 95 % interval {report.span(row.ci_low, row.ci_high)}"
    said += f", {counted(row.n, 'query')}."
    return Dot(label, row.value, row.ci_low, row.ci_high, told=True, href=href, tip=said)


def _of_query(row: QueryDifference) -> str:
    named = row.query_id if row.text is None else f"{row.text} ({row.query_id})"
    return (
        f"{named}: {report.number(row.baseline_value)} → {report.number(row.candidate_value)}, "
        f"{signed(row.difference)}; adds {signed(row.share, 4)} to the mean."
    )


def _by_scale(title: str, dots: Sequence[Dot]) -> list[tuple[str, list[Dot]]]:
    """Dots within -1 to 1 and dots beyond, each group with its title."""
    small: list[Dot] = []
    large: list[Dot] = []
    for dot in dots:
        (large if abs(dot.value or 0.0) > 1 else small).append(dot)
    if small and large:
        return [(title, small), (f"{title}: values above 1", large)]
    return [(title, list(dots))] if dots else []


def _drawn(title: str, dots: Sequence[Dot], axis: str, *, zero: bool) -> DrawnChart:
    known = [dot for dot in dots if dot.value is not None]
    description = "" if known else "None of them has a value."
    if zero and known:
        sure = [dot.label for dot in known if dot.told and dot.ink != "ink"]
        sure_text = ", ".join(sure) or "none"
        description = f"Significantly different from 0: {sure_text}."
    elif known:
        best = max(known, key=lambda dot: dot.value or 0.0)
        worst = min(known, key=lambda dot: dot.value or 0.0)
        description = (
            f"Highest: {best.label}, {best.value:.3f}; lowest: {worst.label}, {worst.value:.3f}."
        )
    return _chart(title, description, partial(intervals, dots, axis, zero=zero))


def _chart(title: str, description: str, draw: Callable[..., Spec]) -> DrawnChart:
    wide, narrow = (to_svg(draw(narrow=narrow), title) for narrow in (False, True))
    return DrawnChart(title, description, wide, narrow)
