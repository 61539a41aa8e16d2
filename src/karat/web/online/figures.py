"""Figures of pages: a number with its interval, what is behind it, and where that stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from karat.online.metrics.entry import Metric
from karat.reports.online.evaluation import figure, span
from karat.tables.days import day_text
from karat.tables.online.evaluation import OnlineResult
from karat.web.online.log import Days

NOT_SAID = "(none)"
"""What pages call the value of a slice that the log does not say."""
NO_RESULT = "nothing to count"
"""Why a slice that has no result has none."""


@dataclass(frozen=True)
class Cell:
    """One number of a page, and what stands behind it.

    Attributes:
        said: The number with its unit; a dash where there is none.
        interval: Its 95 % interval in words; empty without one.
        bounds: What it lies within, given what the log does not say; empty where that leaves
            nothing open.
        n: What it is over.
        users: Users in that.
        reason: Why it has no value, or no interval; empty if it has both.
        where: The page with the rows behind it, without the base.
        value: The number itself.
        low: Lower end of its interval.
        high: Upper end.
        least: Lower bound.
        most: Upper bound.
        state: As of ``OnlineResult``.
    """

    said: str
    interval: str
    bounds: str
    n: int
    users: int
    reason: str
    where: str
    value: float | None
    low: float | None
    high: float | None
    least: float | None
    most: float | None
    state: str


@dataclass(frozen=True)
class Headline:
    """A metric of the period.

    Attributes:
        metric: Its name.
        title: Its name in words.
        says: What it tells.
        where: The page of this metric alone, without the base.
        cell: Over everything, or the one slice that is chosen.
        slices: By value of what it is sliced by, the number there.
    """

    metric: str
    title: str
    says: str
    where: str
    cell: Cell
    slices: Mapping[str, Cell]


def slice_text(value: str) -> str:
    """The value of a slice as pages say it."""
    return value or NOT_SAID


def bounds_text(row: OnlineResult, metric: Metric) -> str:
    """What a value lies within; empty where both ends are printed alike: nothing is left open."""
    said = span(metric, row.least, row.most)
    low, _, high = said.partition(" – ")
    return "" if row.value is not None and low == high else said


def cell_of(row: OnlineResult | None, metric: Metric, where: str) -> Cell:
    """A result as a cell; one that is not there at all has nothing to count."""
    if row is None:
        nothing = (None, None, None, None, None)
        return Cell("–", "", "", 0, 0, NO_RESULT, where, *nothing, "none")
    return Cell(
        figure(metric, row.value),
        span(metric, row.low, row.high),
        bounds_text(row, metric),
        row.n,
        row.users,
        row.reason,
        where,
        row.value,
        row.low,
        row.high,
        row.least,
        row.most,
        row.state,
    )


def rows_address(
    metric: str, days: Days | tuple[int, int], parts: Iterable[tuple[str, str]], counts: str = ""
) -> str:
    """The page with the rows behind a figure.

    Args:
        metric: Its metric.
        days: The days it is over.
        parts: Its slice: what it is of, and the value; an empty one is what the log does not say.
        counts: ``yes`` those in the numerator · ``no`` those that could be · empty: both.
    """
    first, last = (days.first, days.last) if isinstance(days, Days) else days
    said = [("metric", metric), ("from", day_text(first)), ("to", day_text(last))]
    cut = [("slice", f"{name}={value}") for name, value in parts]
    counted_as = [("counts", counts)] if counts else []
    return f"/online/rows?{urlencode([*said, *cut, *counted_as])}"


def largest(rows: Iterable[OnlineResult], dimension: str) -> list[str]:
    """The values of a dimension, that with the most behind it first."""
    sizes: dict[str, int] = {}
    for row in rows:
        if set(row.slice) == {dimension}:
            value = row.slice[dimension]
            sizes[value] = max(sizes.get(value, 0), row.n)
    return sorted(sizes, key=lambda value: (-sizes[value], value))
