"""Queries of both worlds: drawn, listed, by slice, and where each leads."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import Request

from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.online.rules import Rules
from karat.reports.charts import online as drawing
from karat.reports.charts.online import Spot
from karat.reports.online.evaluation import figure, span
from karat.reports.phrases.report import number
from karat.store.sql.runs import RunRow
from karat.tables.online.offline_correlation import Against, Figure, WorldSlice
from karat.web.framework.lists import Ask, Column, Listed, listed
from karat.web.online.figures import rows_address
from karat.web.online.log import Days, Question
from karat.web.online.slices import GOLDEN, LONGEST
from karat.workflows.workspace.stored_views import with_leads

LEAST = 10
"""Searches that a query needs to be drawn and counted in correlations."""
_MOST_SPOTS = 500
_WIDE, _NARROW = (1060, 360), (290, 300)
_INKS = {"judges": "down", "users": "up"}


@dataclass(frozen=True)
class Scatter:
    """Queries by both worlds.

    Attributes:
        wide: As SVG.
        narrow: The same for a telephone.
        left_out: Queries that are not drawn, as others were searched for more.
    """

    wide: str = field(repr=False)
    narrow: str = field(repr=False)
    left_out: int


@dataclass(frozen=True)
class SliceRow:
    """A slice in both worlds.

    Attributes:
        name: Value of the attribute; None for all queries.
        queries: Queries in it.
        searches: Searches for them.
        offline: The measure, each query counting once.
        weighted: The same, each query counting as often as it was searched for.
        online: Each metric with its interval, and the rows behind it; no address where these are
            of no one slice.
        latency: 95 % of its searches were answered as fast, in ms; None if nobody knows.
    """

    name: str | None
    queries: int
    searches: int
    offline: float | None
    weighted: float | None
    online: Mapping[str, tuple[str, str, str]]
    latency: float | None


@dataclass(frozen=True)
class Sides:
    """What is put side by side.

    Attributes:
        run: The run.
        measure: The measure.
        metric: The metric.
        by: The attribute of queries; empty for none.
        days: The days.
        clock: Of the golden set: another when its grades or queries change.
    """

    run: RunRow
    measure: str
    metric: Metric
    by: str
    days: Days
    clock: str

    @property
    def question(self) -> Question:
        """All that the answer depends on besides the log."""
        return {
            "what": "against",
            "run": [self.run.name, self.run.sha256],
            "measure": self.measure,
            "metric": [self.metric.name, self.metric.version],
            "by": self.by,
            "days": [self.days.first, self.days.last],
            "clock": self.clock,
            "rules": Rules().id,
            "least": LEAST,
        }


def scatter_of(base: str, asked: Sides, found: Against, keys: Mapping[str, str]) -> Scatter | None:
    """The queries with enough searches, those that disagree in colours."""
    kinds = {row.query_id: row.kind for row in found.discord}
    name, metric = asked.measure, asked.metric
    drawn = [
        row
        for row in found.queries
        if row.searches >= found.min_searches
        and row.offline[name] is not None
        and row.online[metric.name].value is not None
    ]
    if not drawn:
        return None
    shown = drawn[:_MOST_SPOTS]
    leads = {
        f"q-{at}": {"where": searches_of(asked, metric.name, keys[row.query_id], "")}
        for at, row in enumerate(shown)
    }
    spots = [
        Spot(
            row.offline[name] or 0.0,
            row.online[metric.name].value or 0.0,
            _INKS.get(kinds.get(row.query_id, ""), "quiet"),
            f"{_short(row.text)}: {name} {number(row.offline[name])}, {metric.name} "
            f"{_online(metric, row.online[metric.name])}, {row.searches:,} searches",
            f"q-{at}",
        )
        for at, row in enumerate(shown)
    ]
    title = f"{metric.name} by {name} of {len(shown):,} queries"
    wide, narrow = (
        drawing.scatter(
            spots, f"{name}, by judges", f"{metric.name}, by users", title=title,
            shares=(False, metric.unit == "share"), size=size,
        )
        for size in (_WIDE, _NARROW)
    )  # fmt: skip

    def led(svg: str) -> str:
        return with_leads(svg, leads, lambda said: html.escape(f"{base}{said['where']}"))

    return Scatter(led(wide), led(narrow), len(drawn) - len(shown))


def slice_row(asked: Sides, row: WorldSlice) -> SliceRow:
    """A slice as its row on the page, each number with the rows behind it."""
    online = {}
    for name, each in row.online.items():
        metric = registry.find(name)
        where = ""
        if row.slice is not None:
            part = [(f"{GOLDEN}{asked.by}", row.slice)]
            where = rows_address(name, asked.days, part, "yes")
        online[name] = (figure(metric, each.value), span(metric, each.low, each.high), where)
    measure = asked.measure
    return SliceRow(
        row.slice,
        row.queries,
        row.searches,
        row.offline[measure],
        row.weighted[measure],
        online,
        row.p95_ms,
    )


def list_of_queries(
    request: Request, asked: Sides, found: Against, keys: Mapping[str, str]
) -> Listed:
    """A row for each query in both worlds, the most searched for first."""
    kinds = {row.query_id: row.kind for row in found.discord}
    like = {"judges": "judges like it", "users": "users like it"}
    metrics = {name: registry.find(name) for name in found.metrics}
    rows = [
        {
            "text": row.text,
            "slice": row.slice,
            "searches": row.searches,
            "users": row.users,
            "offline": row.offline[asked.measure],
            **{name: row.online[name].value for name in metrics},
            "interval": span(
                asked.metric, row.online[asked.metric.name].low, row.online[asked.metric.name].high
            )
            or None,
            "position": row.position,
            "latency": None if row.p95_ms is None else round(row.p95_ms),
            "apart": like.get(kinds.get(row.query_id, "")),
            "query_id": row.query_id,
        }
        for row in found.queries
    ]
    schema: dict[str, Any] = {"text": pl.String, "slice": pl.String}
    schema |= {"searches": pl.Int64, "users": pl.Int64, "offline": pl.Float64}
    schema |= dict.fromkeys(metrics, pl.Float64)
    schema |= {"interval": pl.String, "position": pl.Int64, "latency": pl.Int64}
    schema |= {"apart": pl.String, "query_id": pl.String}
    frame = pl.DataFrame(rows, schema=schema)

    def any_of(name: str) -> bool:
        return frame[name].drop_nulls().len() > 0

    def online_column(name: str, metric: Metric) -> Column:
        return Column(
            name,
            name,
            "share" if metric.unit == "share" else "number",
            link=lambda row: searches_of(asked, name, keys[row["query_id"]], "yes"),
        )

    def searches(row: Mapping[str, Any]) -> str:
        return searches_of(asked, "", keys[row["query_id"]], "")

    columns = [
        Column("text", "query", link=searches, longest=LONGEST),
        Column("slice", asked.by or "slice", choices=True, shown=bool(asked.by), longest=LONGEST),
        Column("searches", "searches", "count"),
        Column(
            "offline",
            asked.measure,
            "number",
            link=lambda row: ranking_of(asked, row["query_id"]),
        ),
        *(online_column(name, metric) for name, metric in metrics.items()),
        Column("interval", f"95 % of {asked.metric.name}", shown=any_of("interval")),
        Column("position", "clicked at", "count", shown=any_of("position")),
        Column("latency", "p95, ms", "count", shown=any_of("latency")),
        Column("apart", "apart", choices=True, shown=any_of("apart")),
        Column("users", "users", "count", shown=False),
        Column("query_id", "id", shown=False),
    ]
    return listed(frame, columns, Ask.of(request), search=["text", "query_id"], per_page=25)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _online(metric: Metric, each: Figure) -> str:
    ends = span(metric, each.low, each.high)
    return f"{figure(metric, each.value)}{f' ({ends})' if ends else ''}"


def searches_of(asked: Sides, metric: str, key: str, counts: str) -> str:
    """The searches for a query."""
    if metric:
        return rows_address(metric, asked.days, [("query", key)], counts)
    return f"/online/rows?{urlencode([*asked.days.said.items(), ('slice', f'query={key}')])}"


def ranking_of(asked: Sides, query_id: str) -> str:
    """What the run returned for a query."""
    where = f"/runs/{asked.run.id}/queries/{quote(query_id, safe='')}"
    return f"{where}?{urlencode({'measure': asked.measure})}"
