"""The dashboard: online metrics over time and in slices, and warnings about the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.reports.online.evaluation import figure, span
from karat.reports.phrases.online import quoted
from karat.reports.table import Column
from karat.tables.days import day_number, day_text
from karat.tables.online.evaluation import OnlineResult, OnlineResults
from karat.tables.online.events import EventLog
from karat.web.framework.auth import AReader
from karat.web.framework.call import Call
from karat.web.framework.lists import Listed, frame_of, listed
from karat.web.framework.pages import redirect, show
from karat.web.framework.state import AppState
from karat.web.online import figures
from karat.web.online.charts import (
    MOST_LINES,
    Annotation,
    Axis,
    Chart,
    annotations_within,
    chart_of,
    stored_charts,
)
from karat.web.online.figures import Cell
from karat.web.online.log import Lenient, LogPage, TheDays, log_page, slice_choices
from karat.web.online.watch import glance
from karat.workflows.online import slices
from karat.workflows.online.log_requests import MOST_SLICES, DayRange, Days, Evaluation, largest
from karat.workflows.workspace.annotations import annotations_of

ROUTER = APIRouter()
_POSITIONS = "ClickPosition"
_LENGTHS = (1, 7, 28, 91)  # offered periods, in days


@dataclass(frozen=True, kw_only=True)
class OnlinePage(LogPage):
    template: ClassVar[str] = "online.html.j2"
    headlines: Sequence[Mapping[str, Any]] = ()
    figures: Listed | None = None
    by: str = ""
    only: str | None = None
    values: Sequence[tuple[str, int, str]] = ()
    left_out: int = 0
    hourly: bool = False
    charts: Sequence[Chart] = ()
    undrawn: str = field(default="", repr=False)
    unknown: Sequence[tuple[str, str]] = ()
    # Clicks by position: position, share of all clicks, count
    positions: Sequence[tuple[str, float, int]] = ()
    marks: Sequence[Annotation] = ()
    metric: Mapping[str, Any] | None = None
    choices: Mapping[str, Any] = field(default_factory=dict, repr=False)
    periods: Sequence[tuple[str, str, bool]] = field(default=(), repr=False)
    whole: str = field(default="", repr=False)
    watched: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Asked:
    metrics: Sequence[Metric]
    chosen: Sequence[str]
    days: Days
    by: slices.Dimension
    only: str | None

    def address(self, **changed: Any) -> str:
        """The dashboard with changed parameters; ``None`` removes one."""
        params: dict[str, Any] = {"metrics": ",".join(self.chosen), "by": self.by.name}
        params |= {"only": self.only} | (self.days.said if self.days.asked else {}) | changed
        pairs = [(name, str(value)) for name, value in params.items() if value is not None]
        query = urlencode([(name, value) for name, value in pairs if value or name == "only"])
        return f"/online?{query}" if query else "/online"


@ROUTER.get("/online")
def dashboard(
    call: AReader,
    days: TheDays,
    metrics: Annotated[str, Query(max_length=2_000)] = "",
    by: Annotated[str, Query(max_length=200)] = "",
    only: Annotated[str | None, Query(max_length=500)] = None,
    pick: Annotated[list[str] | None, Query(max_length=200)] = None,
) -> Response:

    def prepare(log: EventLog, lenient: Lenient) -> Any:
        asked = _asked(lenient, call.site, log, days, pick or metrics.split(","), by, only)
        if pick and not lenient.errors:
            raise _Picked(asked.address())
        axis, wrong = Axis.of(asked.days), bool(lenient.errors)
        fields = {
            "period": lenient.typed(days, asked.days),
            "by": asked.by.name,
            "only": asked.only,
            "choices": _choices(call.site, log, asked),
            "periods": [(name, to, now and not wrong) for name, to, now in _periods(log, asked)],
            "whole": asked.address(only=None),
        }

        def shown(answer: Any) -> dict[str, Any]:
            watched = None if asked.chosen else glance(call.site, log, asked.days.last)
            results = OnlineResults.from_dict(answer)
            return {"watched": watched, **_shown(call, log, asked, axis, results)}

        return fields, _evaluation(asked, axis), shown

    try:
        return show(call, *log_page(call, OnlinePage, "Online", prepare))
    except _Picked as picked:  # the form's boxes: redirect to an address with one parameter
        return redirect(call, str(picked))


class _Picked(Exception):
    """The address of the picked metrics."""


def _asked(
    lenient: Lenient,
    site: AppState,
    log: EventLog,
    days: DayRange,
    names: Sequence[str],
    by: str,
    only: str | None,
) -> Asked:
    chosen: list[Metric] = []
    for name in dict.fromkeys(names):
        if name.strip():
            chosen += lenient.take(lambda name=name: registry.find_all([name]), [])  # type: ignore[misc]
    metrics = chosen or registry.find_all(registry.DEFAULT)
    period = lenient.period(days, log)
    sliced = lenient.take(lambda: slices.dimension(site.workspace, log, by), slices.NOTHING)
    return Asked(
        metrics, [each.name for each in chosen], period, sliced, only if sliced.name else None
    )


def usual_evaluation(log: EventLog) -> Evaluation:
    """What the dashboard shows unless something else is asked."""
    days = DayRange().within(log)
    metrics = registry.find_all(registry.DEFAULT)
    return Evaluation(metrics, days, Axis.of(days).cut, slices.NOTHING)


def _evaluation(asked: Asked, axis: Axis) -> Evaluation:
    return Evaluation(asked.metrics, asked.days, axis.cut, asked.by)


def _shown(
    call: Call, log: EventLog, asked: Asked, axis: Axis, results: OnlineResults
) -> dict[str, Any]:
    key = asked.by.key
    values = largest(results.results, key) if key else [""]
    drawn = sorted(values[:MOST_LINES])  # keeps colours when sizes change
    looks = {value: at for at, value in enumerate(drawn)}
    if asked.only is not None:
        drawn = [asked.only]
    by_metric: dict[str, list[OnlineResult]] = {}
    for row in results.results:
        by_metric.setdefault(row.metric, []).append(row)
    annotations, uprights = annotations_within(
        annotations_of(call.site.workspace), axis, log.timezone
    )
    unknown, known = [], []
    for metric in asked.metrics:
        overall = next((row for row in by_metric.get(metric.name, []) if not row.slice), None)
        if overall is not None and overall.state == "unknown" and overall.n == 0:
            unknown.append((metric.name, overall.reason))
        elif metric.name != _POSITIONS:
            known.append((metric, by_metric.get(metric.name, [])))
    draw = partial(
        chart_of, axis=axis, by=asked.by, values=drawn, looks=looks,
        annotations=annotations, uprights=uprights, large=len(asked.metrics) == 1,
    )  # fmt: skip
    about = log.version, _evaluation(asked, axis).question(log), asked.address()
    charts, undrawn = stored_charts(
        call.site,
        (*about, draw.keywords),
        lambda: [draw(*each, where=asked.address(metrics=each[0].name)) for each in known],
    )
    return {
        "wrong": _wrong(asked, values),
        "health": results.health,
        "notes": results.notes,
        "headlines": [_headline(*each, asked, drawn if key else []) for each in known],
        "figures": list_of_results(call, results, asked.metrics, asked.days, axis, asked.by),
        "values": [(value, look, asked.address(only=value)) for value, look in looks.items()]
        if key
        else [],
        "left_out": max(0, len(values) - MOST_LINES) if key else 0,
        "hourly": axis.hourly,
        "charts": charts,
        "undrawn": undrawn,
        "unknown": unknown,
        "positions": _positions(by_metric.get(_POSITIONS, [])),
        "marks": annotations,
        "metric": _about(asked.metrics[0]) if len(asked.metrics) == 1 else None,
    }


def _wrong(asked: Asked, values: Sequence[str]) -> str | None:
    """Why the one requested slice has no results."""
    if asked.only is None or asked.only in values:
        return None
    if len(values) < MOST_SLICES:
        return slices.missing_value_text(asked.by.label, asked.only, values)
    return (
        f"Only the {MOST_SLICES} largest values of {asked.by.label} are shown; "
        f"{quoted(asked.only)} is not one of them."
    )


def _headline(
    metric: Metric, rows: Sequence[OnlineResult], asked: Asked, values: Sequence[str]
) -> dict[str, Any]:
    """A metric over the period."""
    by, by_slice = asked.by, {tuple(row.slice.items()): row for row in reversed(rows)}

    def cell(value: str | None) -> Cell:
        row = by_slice.get(() if value is None else ((by.key, value),))
        parts = [] if value is None else [(by.name, value)]
        return figures.cell_of(
            row, metric, figures.rows_address(metric.name, asked.days, parts, "yes")
        )

    return {
        "metric": metric.name,
        "title": metric.title,
        "says": metric.says,
        "where": asked.address(metrics=metric.name),
        "cell": cell(asked.only if by.key else None),
        "slices": {value: cell(value) for value in values} if asked.only is None else {},
    }


def _positions(rows: Sequence[OnlineResult]) -> list[tuple[str, float, int]]:
    by_position = [row for row in rows if set(row.slice) == {"position"} and row.value is not None]
    return [(row.slice["position"], row.value or 0.0, round(row.total or 0)) for row in by_position]


def _about(metric: Metric) -> dict[str, Any]:
    names = ("name", "version", "title", "definition", "says", "source", "traps", "direction")
    return {name: getattr(metric, name) for name in names}


def _choices(site: AppState, log: EventLog, asked: Asked) -> dict[str, Any]:
    selected = {each.name for each in asked.metrics}
    families: dict[str, list[tuple[str, str, bool]]] = {}
    every = registry.all_metrics()
    unlisted = [each for each in asked.metrics if each.name not in {one.name for one in every}]
    for metric in (*every, *unlisted):
        heading = registry.FAMILIES.get(metric.family, metric.family)
        option = (metric.name, metric.title, metric.name in selected)
        families.setdefault(heading, []).append(option)
    return {
        "families": families,
        "slices": slice_choices(site, log, asked.by.name),
        "label": asked.by.label,
        "first": day_text(asked.days.first),
        "last": day_text(asked.days.last),
        "chosen": ",".join(asked.chosen),
        "usual": asked.address(metrics=None),
    }


def _periods(log: EventLog, asked: Asked) -> list[tuple[str, str, bool]]:
    """Offered periods up to the end of the log."""
    start, end = log.first_day or 0, log.last_day or 0
    total = end - start + 1
    out = []
    for length in (*(each for each in _LENGTHS if each < total), total):
        first = end - length + 1
        name = "all days" if length == total else "1 day" if length == 1 else f"{length} days"
        params = {"from": day_text(first), "to": day_text(end)}
        selected = (asked.days.first, asked.days.last) == (first, end)
        out.append((name, asked.address(**params), selected))
    return out


def list_of_results(
    call: Call,
    results: OnlineResults,
    metrics: Sequence[Metric],
    days: Days,
    axis: Axis,
    by: slices.Dimension,
) -> Listed:
    """Every result, those over the whole period first; each links to its rows."""
    by_name = {metric.name: metric for metric in metrics}

    def link(row: Mapping[str, Any]) -> str:
        slice_ = results.results[row["at"]].slice
        part = [(by.name, slice_[by.key])] if by.key in slice_ else []
        hour = [] if row["hour"] is None else [("hour", row["hour"])]
        period = days if row["day"] is None else (day_number(row["day"]),) * 2
        return figures.rows_address(row["metric"], period, [*hour, *part], "yes")

    def said(row: Mapping[str, Any]) -> str | None:
        value = row["value"]
        return None if value is None else figure(by_name[row["metric"]], value)

    def interval(row: Mapping[str, Any]) -> str | None:
        return span(by_name[row["metric"]], row["low"], row["high"]) or None

    columns = [
        Column("metric", "Metric", link=link, choices=True),
        Column("day", "Day", choices=True),
        Column("hour", "Hour", choices=True, shown=axis.hourly),
        Column("slice", by.label or "slice", choices=True, shown=bool(by.key)),
        Column("position", "Position", choices=True, optional=True),
        Column("said", "Value", by="value", value=said),
        Column("interval", "95 %", by="low", value=interval),
        Column("bounds", "Bounds", by="least", optional=True),
        Column("n", "n", "count"),
        Column("users", "Users", "count"),
        Column("reason", "Reason", optional=True),
        Column("value", "Raw value", "number", shown=False),
        Column("low", "95 % from", "number", shown=False),
        Column("high", "95 % to", "number", shown=False),
        Column("least", "Least", "number", shown=False),
        Column("most", "Most", "number", shown=False),
        Column("total", "Total", "number", shown=False),
        Column("state", "State", shown=False),
        Column("method", "Interval method", shown=False),
        Column("version", "Metric version", "count", shown=False),
    ]
    records = ((row, _row(row, by_name[row.metric], by.key)) for row in results.results)
    stored = [column for column in columns if column.value is None]
    frame = frame_of(records, stored).with_row_index("at")
    return listed(frame, columns, call.ask, search=["metric", "slice"], per_page=20)


def _row(row: OnlineResult, metric: Metric, key: str) -> dict[str, Any]:
    part = row.slice.get(key) if key else None
    return {
        "day": row.slice.get("day"),
        "hour": row.slice.get("hour"),
        "slice": None if part is None else figures.slice_text(part),
        "position": row.slice.get("position"),
        "bounds": figures.bounds_text(row, metric) or None,
        "reason": row.reason or None,
    }
