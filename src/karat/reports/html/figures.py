"""The figures of a report: which numbers each chart shows, what it says, and in what words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from karat.reports.html.charts import Bar, Dot, bars, counts, intervals, to_svg
from karat.tables.comparison import Comparison, Difference, QueryDifference
from karat.tables.results import Result, Results

if TYPE_CHECKING:
    import altair as alt

BARS = 100
"""Queries in a chart of what each contributes."""
_LISTED = 25  # queries named for each slice
_TOLD = {"better", "worse", "equivalent"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart, drawn twice.

    Attributes:
        title: What it is.
        said: What can be seen in it, for those who cannot see it.
        wide: SVG for a wide screen.
        narrow: SVG for a narrow one.
    """

    title: str
    said: str
    wide: str
    narrow: str


@dataclass(frozen=True, slots=True)
class Sliced:
    """One attribute of one candidate (or of all runs): its chart, its rows and their queries.

    Attributes:
        subject: The candidate, or nothing.
        attribute: What is sliced by.
        figure: The slices of the first measure.
        rows: All slices under all measures, by measure.
        queries: Slice by slice the queries that differ, the largest difference first; with how
            many more there are.
    """

    subject: str
    attribute: str
    figure: Figure
    rows: Mapping[str, Sequence[Difference | Result]]
    queries: Mapping[str, tuple[Sequence[QueryDifference], int]]


def of_measures(comparison: Comparison | None, results: Results) -> list[Figure]:
    """Every measure with its interval; a chart for each scale, so that none squeezes the others."""
    if comparison is None:
        rows = [row for row in results.results if row.aggregate != "sum"]
        several = len({row.run for row in rows}) > 1
        dots = [_of_result(row, row.measure, several=several) for row in rows]
        title = "Every measure, with its 95 % interval"
        return [_drawn(title, part, "value", zero=False) for part in _by_scale(dots)]
    several = len({row.candidate for row in comparison.differences}) > 1
    dots = [
        _of_difference(row, f"{row.measure} · {row.candidate}" if several else row.measure)
        for row in comparison.differences
    ]
    title = "Difference under every measure, with its 95 % interval"
    axis = f"candidate minus {comparison.baseline}"
    return [_drawn(title, part, axis, zero=True) for part in _by_scale(dots)]


def of_slices(comparison: Comparison | None, results: Results) -> Iterator[Sliced]:
    """The slices, attribute by attribute; the chart shows the first measure."""
    if comparison is None:
        yield from _of_result_slices(results)
        return
    for candidate in dict.fromkeys(row.candidate for row in comparison.slices):
        own = [row for row in comparison.slices if row.candidate == candidate]
        for attribute in dict.fromkeys(str(row.attribute) for row in own):
            rows: dict[str, list[Difference | Result]] = {}
            for row in own:
                if row.attribute == attribute:
                    rows.setdefault(row.measure, []).append(row)
            measure = next(iter(rows))
            first = [row for row in own if (row.attribute, row.measure) == (attribute, measure)]
            dots = [_of_difference(row, f"{row.slice} ({row.n:,})") for row in first]
            title = f"{measure} by {attribute}: {candidate} minus {comparison.baseline}"
            figure = _drawn(title, dots, "difference", zero=True)
            named = [
                row
                for row in comparison.queries
                if (row.candidate, row.measure) == (candidate, measure) and row.difference
            ]
            queries = {str(row.slice): _within(named, attribute, str(row.slice)) for row in first}
            yield Sliced(candidate, attribute, figure, rows, queries)


def of_queries(comparison: Comparison, href: Callable[[str], str | None]) -> Iterator[Figure]:
    """What each query contributes to the mean difference of the first measure."""
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
        said = f"{up:,} queries add to the difference and {down:,} take from it"
        said += f"; {left:,} smaller ones are not drawn." if left else "."
        drawn = [Bar(row.share, href(row.query_id)) for row in shown]
        axis = "adds to the mean"
        yield Figure(
            f"What each query adds to the difference in {measure}, {candidate}",
            said,
            to_svg(bars(drawn, axis)),
            to_svg(bars(drawn, axis, narrow=True)),
        )


def of_values(results: Results, measure: str) -> Iterator[Figure]:
    """How many queries have which value of a measure, run by run."""
    for run in dict.fromkeys(row.run for row in results.per_query):
        values = np.array(
            [
                row.value
                for row in results.per_query
                if (row.run, row.measure) == (run, measure) and row.value is not None
            ]
        )
        if not len(values) or values.min() < 0 or values.max() > 1:
            continue
        zero = int((values == 0).sum())
        held, _ = np.histogram(values[values > 0], bins=5, range=(0, 1))
        numbers = [zero, *(int(n) for n in held)]
        labels = ["0", "to .2", "to .4", "to .6", "to .8", "to 1"]
        said = f"{zero:,} of {len(values):,} queries have 0."
        yield Figure(
            f"Queries by their {measure}, {run}",
            said,
            to_svg(counts(numbers, labels, f"{measure} of a query")),
            to_svg(counts(numbers, labels, f"{measure} of a query", narrow=True)),
        )


def plot(found: Results | Comparison, colours: dict[str, str]) -> alt.LayerChart:
    """Every measure with its interval, as one chart.

    Raises:
        MissingExtra: Altair is not installed.
    """
    if isinstance(found, Comparison):
        several = len({row.candidate for row in found.differences}) > 1
        dots = [
            _of_difference(row, f"{row.measure} · {row.candidate}" if several else row.measure)
            for row in found.differences
        ]
        axis = f"candidate minus {found.baseline}, with its 95 % interval"
        if not several:
            axis = f"{found.differences[0].candidate} minus {found.baseline}, 95 % interval"
        return intervals(dots, axis, zero=True, colours=colours)
    rows = [row for row in found.results if row.aggregate != "sum"]
    several = len({row.run for row in rows}) > 1
    dots = [_of_result(row, row.measure, several=several) for row in rows]
    return intervals(dots, "value, with its 95 % interval", zero=False, colours=colours)


def _of_result_slices(results: Results) -> Iterator[Sliced]:
    several = len({row.run for row in results.slices}) > 1
    for attribute in dict.fromkeys(str(row.attribute) for row in results.slices):
        rows: dict[str, list[Difference | Result]] = {}
        for row in results.slices:
            if row.attribute == attribute:
                rows.setdefault(row.measure, []).append(row)
        measure = next(iter(rows))
        dots = [
            _of_result(row, f"{row.slice} ({row.n:,})", several=several)
            for row in results.slices
            if (row.attribute, row.measure) == (attribute, measure)
        ]
        figure = _drawn(f"{measure} by {attribute}", dots, "value", zero=False)
        yield Sliced("", attribute, figure, rows, {})


def _within(
    rows: Sequence[QueryDifference], attribute: str, value: str
) -> tuple[Sequence[QueryDifference], int]:
    held = [row for row in rows if value in row.slices.get(attribute, ())]
    return held[:_LISTED], max(0, len(held) - _LISTED)


def _of_difference(row: Difference, label: str) -> Dot:
    ink = {"better": "up", "worse": "down"}.get(row.verdict, "ink")
    told = row.verdict in _TOLD
    return Dot(label, row.difference, row.ci_low, row.ci_high, told, ink, row.shrunk)


def _of_result(row: Result, label: str, *, several: bool) -> Dot:
    return Dot(
        f"{label} · {row.run}" if several else label, row.value, row.ci_low, row.ci_high, told=True
    )


def _by_scale(dots: Sequence[Dot]) -> list[list[Dot]]:
    """Dots that fit between -1 and 1, and those that do not."""
    small: list[Dot] = []
    large: list[Dot] = []
    for dot in dots:
        far = max(abs(end or 0.0) for end in (dot.value, dot.low, dot.high)) > 1
        (large if far else small).append(dot)
    return [part for part in (small, large) if part]


def _drawn(title: str, dots: Sequence[Dot], axis: str, *, zero: bool) -> Figure:
    known = [dot for dot in dots if dot.value is not None]
    said = f"{len(dots)} rows"
    if zero and known:
        sure = [dot.label for dot in known if dot.told and dot.ink != "ink"]
        said = f"Told apart from 0: {', '.join(sure)}." if sure else "None is told apart from 0."
    elif known:
        best = max(known, key=lambda dot: dot.value or 0.0)
        worst = min(known, key=lambda dot: dot.value or 0.0)
        said = f"Highest: {best.label}, {best.value:.3f}; lowest: {worst.label}, {worst.value:.3f}."
    return Figure(
        title,
        said,
        to_svg(intervals(dots, axis, zero=zero)),
        to_svg(intervals(dots, axis, zero=zero, narrow=True)),
    )
