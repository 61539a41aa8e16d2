"""Numbers on pages, each with its interval and a link to the rows behind it."""

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
"""Label of a missing value of a dimension."""
NO_RESULT = "nothing to count"
"""Reason of a slice without any result."""


@dataclass(frozen=True)
class Cell:
    """A number with its evidence.

    Attributes:
        state: As in ``OnlineResult``.
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
    """A metric over the period."""

    metric: str
    title: str
    says: str
    where: str
    cell: Cell
    slices: Mapping[str, Cell]


def slice_text(value: str) -> str:
    """The label of a dimension's value."""
    return value or NOT_SAID


def bounds_text(row: OnlineResult, metric: Metric) -> str:
    """Bounds of a value; empty if both print the same."""
    bounds = span(metric, row.least, row.most)
    low, _, high = bounds.partition(" – ")
    return "" if row.value is not None and low == high else bounds


def cell_of(row: OnlineResult | None, metric: Metric, where: str) -> Cell:
    """A result as a cell."""
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
    """The page with the rows behind a number."""
    first, last = (days.first, days.last) if isinstance(days, Days) else days
    params = [("metric", metric), ("from", day_text(first)), ("to", day_text(last))]
    slices = [("slice", f"{name}={value}") for name, value in parts]
    counted_as = [("counts", counts)] if counts else []
    return f"/online/rows?{urlencode([*params, *slices, *counted_as])}"


def largest(rows: Iterable[OnlineResult], dimension: str) -> list[str]:
    """The values of a dimension, largest first."""
    sizes: dict[str, int] = {}
    for row in rows:
        if set(row.slice) == {dimension}:
            value = row.slice[dimension]
            sizes[value] = max(sizes.get(value, 0), row.n)
    return sorted(sizes, key=lambda value: (-sizes[value], value))
