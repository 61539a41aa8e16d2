"""Numbers on pages, each with its interval and a link to the rows behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from karat.online.metrics.entry import Metric
from karat.reports.online.evaluation import figure, span
from karat.tables.days import day_text
from karat.tables.online.evaluation import OnlineResult
from karat.workflows.online.log_requests import Days

NOT_SAID = "(none)"
"""Label of a missing value of a dimension."""
NO_RESULT = "nothing to count"
"""Reason of a slice without any result."""


Cell = Mapping[str, Any]
"""A result with its texts (``said``, ``interval``, ``bounds``) and a link to the rows behind it."""


def slice_text(value: str) -> str:
    return value or NOT_SAID


def bounds_text(row: OnlineResult, metric: Metric) -> str:
    """Bounds of a value; empty if both print the same."""
    if row.value is not None and row.least == row.most:
        return ""
    bounds = span(metric, row.least, row.most)
    low, _, high = bounds.partition(" to ")
    return "" if row.value is not None and low == high else bounds


def cell_of(row: OnlineResult | None, metric: Metric, where: str) -> Cell:
    if row is None:
        none = (None,) * 6
        row = OnlineResult(metric.name, metric.version, {}, *none, 0, 0, None, "none", NO_RESULT)
    return asdict(row) | {
        "said": figure(metric, row.value),
        "interval": span(metric, row.low, row.high),
        "bounds": bounds_text(row, metric),
        "where": where,
    }


def rows_address(
    metric: str, days: Days | tuple[int, int], parts: Iterable[tuple[str, str]], counts: str = ""
) -> str:
    """The page with the rows behind a number; without a metric, with all searches."""
    first, last = (days.first, days.last) if isinstance(days, Days) else days
    params = [("metric", metric), ("from", day_text(first)), ("to", day_text(last))]
    slices = [("slice", f"{name}={value}") for name, value in parts]
    given = [each for each in (*params, *slices, ("counts", counts)) if each[1]]
    return f"/online/rows?{urlencode(given)}"
