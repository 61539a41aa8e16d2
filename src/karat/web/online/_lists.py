"""Lists of online metrics: every result by metric, step of time and slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from fastapi import Request

from karat.online.metrics.entry import Metric
from karat.reports.online.evaluation import figure, span
from karat.tables.days import day_number
from karat.tables.online.evaluation import OnlineResult, OnlineResults
from karat.web.framework.lists import Ask, Column, Listed, listed
from karat.web.online import figures
from karat.web.online.charts import Axis
from karat.web.online.log import Days
from karat.web.online.slices import Dimension

_SCHEMA: dict[str, Any] = {
    "metric": pl.String,
    "day": pl.String,
    "hour": pl.String,
    "slice": pl.String,
    "position": pl.String,
    "said": pl.String,
    "interval": pl.String,
    "bounds": pl.String,
    "n": pl.Int64,
    "users": pl.Int64,
    "reason": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "least": pl.Float64,
    "most": pl.Float64,
    "total": pl.Float64,
    "state": pl.String,
    "method": pl.String,
    "version": pl.Int64,
}


def list_of_results(
    request: Request,
    results: OnlineResults,
    metrics: Sequence[Metric],
    days: Days,
    axis: Axis,
    by: Dimension,
) -> Listed:
    """Every result, those over the whole period first; each leads to the rows behind it."""
    by_name = {metric.name: metric for metric in metrics}
    rows = [_row(row, by_name[row.metric], by.key) for row in results.results]
    frame = pl.DataFrame(rows, schema=_SCHEMA).with_row_index("at")

    def link(row: Mapping[str, Any]) -> str:
        slice_ = results.results[row["at"]].slice
        part = [(by.name, slice_[by.key])] if by.key in slice_ else []
        hour = [] if row["hour"] is None else [("hour", row["hour"])]
        over = days if row["day"] is None else (day_number(row["day"]),) * 2
        return figures.rows_address(row["metric"], over, [*hour, *part], "yes")

    def any_of(name: str) -> bool:
        return frame[name].drop_nulls().len() > 0

    columns = [
        Column("metric", "metric", link=link, choices=True),
        Column("day", "day", choices=True),
        Column("hour", "hour", choices=True, shown=axis.hourly),
        Column("slice", by.label or "slice", choices=True, shown=bool(by.key)),
        Column("position", "position", choices=any_of("position"), shown=any_of("position")),
        Column("said", "value", by="value"),
        Column("interval", "95 %", by="low"),
        Column("bounds", "bounds", by="least", shown=any_of("bounds")),
        Column("n", "n", "count"),
        Column("users", "users", "count"),
        Column("reason", "why not", shown=any_of("reason")),
        Column("value", "the value itself", "number", shown=False),
        Column("low", "95 % from", "number", shown=False),
        Column("high", "95 % to", "number", shown=False),
        Column("least", "least", "number", shown=False),
        Column("most", "most", "number", shown=False),
        Column("total", "total", "number", shown=False),
        Column("state", "state", shown=False),
        Column("method", "interval by", shown=False),
        Column("version", "version of the metric", "count", shown=False),
    ]
    return listed(frame, columns, Ask.of(request), search=["metric", "slice"], per_page=20)


def _row(row: OnlineResult, metric: Metric, key: str) -> dict[str, Any]:
    part = row.slice.get(key) if key else None
    return {
        "metric": row.metric,
        "day": row.slice.get("day"),
        "hour": row.slice.get("hour"),
        "slice": None if part is None else figures.slice_text(part),
        "position": row.slice.get("position"),
        "said": None if row.value is None else figure(metric, row.value),
        "interval": span(metric, row.low, row.high) or None,
        "bounds": figures.bounds_text(row, metric) or None,
        "n": row.n,
        "users": row.users,
        "reason": row.reason or None,
        "value": row.value,
        "low": row.low,
        "high": row.high,
        "least": row.least,
        "most": row.most,
        "total": row.total,
        "state": row.state,
        "method": row.method,
        "version": row.version,
    }
