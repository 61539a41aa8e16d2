"""The dashboard of online metrics: what users did, over time and in slices, with what bends it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from karat.engines.frames.opening import open_engine
from karat.errors import MissingExtra
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.online.rules import Rules
from karat.reports.phrases.numbers import counted
from karat.reports.phrases.online import quoted
from karat.tables.days import day_text
from karat.tables.online.evaluation import OnlineResult, OnlineResults
from karat.tables.online.events import EventLog
from karat.web.framework.auth import AReader
from karat.web.framework.lists import Listed
from karat.web.framework.pages import Page, show
from karat.web.framework.state import AppState, TheState
from karat.web.online import charts as online_charts
from karat.web.online import figures
from karat.web.online._lists import list_of_results
from karat.web.online.charts import Axis, Chart, Mark
from karat.web.online.figures import Cell, Headline
from karat.web.online.log import (
    ANY_DAYS,
    Days,
    Lacking,
    Lenient,
    Question,
    TheDays,
    Wanted,
    log_of,
    looked,
)
from karat.web.online.slices import NOTHING, Dimension, dimension, dimensions, lacked
from karat.web.online.watch_results import Glance, glance
from karat.workflows.online import stored_results
from karat.workflows.online.evaluate import evaluate
from karat.workflows.workspace.annotations import marks_of
from karat.workflows.workspace.stored_views import with_leads

ROUTER = APIRouter()
MOST_SLICES = 24
"""Slices that are kept of what figures are sliced by, those with the most behind them."""
_POSITIONS = "ClickPosition"
_LENGTHS = (1, 7, 28, 91)  # days of periods that are one click away
_TABS = (
    ("", "Dashboard", "/online"),
    ("queries", "Worst queries", "/online/queries"),
    ("watch", "Watch", "/online/watch"),
    ("against", "Against judgments", "/online/against"),
    ("rows", "Rows", "/online/rows"),
)


@dataclass(frozen=True, kw_only=True)
class LogPage(Page):
    """What every page of online metrics has.

    Attributes:
        lacking: Why there is nothing to show; None if there is something.
        log: What the log holds, in short; None if there is none.
        period: The first day and the last that are looked at; None without a log.
        health: What to know before any number is read, in sentences.
        notes: What is to be known of the numbers, in sentences.
        computed: Whether the numbers are there; else they are being computed.
        wrong: Why this log has none of them, and what helps; None if it has.
        tabs: The pages: name, address, whether it is this.
    """

    section: ClassVar[str] = "online"
    lacking: Lacking | None = None
    log: Mapping[str, Any] | None = None
    period: tuple[str, str] | None = None
    health: Sequence[str] = ()
    notes: Sequence[str] = ()
    computed: bool = False
    wrong: str | None = None
    tabs: Sequence[tuple[str, str, bool]] = field(default=(), repr=False)

    @property
    def unlisted(self) -> str:
        """Why there are no numbers, where there are none."""
        lacks = self.wrong if self.lacking is None else self.lacking.what
        return lacks or super().unlisted


@dataclass(frozen=True, kw_only=True)
class OnlinePage(LogPage):
    """The dashboard.

    Attributes:
        headlines: Each metric over the period.
        figures: Every result: by metric, step of time and slice.
        by: What it is sliced by, as the address says it; empty for nothing.
        only: The one slice that is shown; None for all.
        values: The slices that are drawn, with their look and the address of that one alone.
        left_out: Slices that are in no chart, as others have more behind them.
        hourly: Whether steps of time are hours; else days.
        charts: Each metric over time.
        undrawn: Why there are no charts; empty if there are.
        unknown: Metrics that the log cannot say, with the reason.
        positions: Clicks by position, from the first: share of all clicks, and how many.
        marks: What happened in the period.
        metric: Everything about the metric, where one alone is shown.
        choices: What can be chosen: metrics by family, and slices; whether each is.
        periods: Periods that are one click away: name, address, whether it is this.
        whole: The address of all slices.
        watched: What the last day shown is beside the same weekdays before it; None if nobody can
            tell, or something else is looked at than the usual metrics.
    """

    template: ClassVar[str] = "online.html.j2"
    headlines: Sequence[Headline] = ()
    figures: Listed | None = None
    by: str = ""
    only: str | None = None
    values: Sequence[tuple[str, int, str]] = ()
    left_out: int = 0
    hourly: bool = False
    charts: Sequence[Chart] = ()
    undrawn: str = field(default="", repr=False)
    unknown: Sequence[tuple[str, str]] = ()
    positions: Sequence[tuple[str, float, int]] = ()
    marks: Sequence[Mark] = ()
    metric: Mapping[str, Any] | None = None
    choices: Mapping[str, Any] = field(default_factory=dict, repr=False)
    periods: Sequence[tuple[str, str, bool]] = field(default=(), repr=False)
    whole: str = field(default="", repr=False)
    watched: Glance | None = None


@dataclass(frozen=True)
class Asked:
    """What the dashboard is asked for.

    Attributes:
        metrics: The metrics.
        chosen: Those that the address names; empty for the usual ones.
        days: The days.
        by: What it is sliced by.
        only: The one value that is shown of that; None for all.
    """

    metrics: Sequence[Metric]
    chosen: Sequence[str]
    days: Days
    by: Dimension
    only: str | None

    def address(self, **changed: Any) -> str:
        """The dashboard with some of it changed; ``None`` takes it out."""
        held: dict[str, Any] = {"metrics": ",".join(self.chosen), "by": self.by.name}
        held |= {"only": self.only} | (self.days.said if self.days.asked else {}) | changed
        kept_ = [(name, str(value)) for name, value in held.items() if value is not None]
        query = urlencode([(name, value) for name, value in kept_ if value or name == "only"])
        return f"/online?{query}" if query else "/online"


@ROUTER.get("/online")
def dashboard(
    request: Request,
    site: TheState,
    _asking: AReader,
    days: TheDays,
    metrics: Annotated[str, Query(max_length=2_000)] = "",
    by: Annotated[str, Query(max_length=200)] = "",
    only: Annotated[str | None, Query(max_length=500)] = None,
    pick: Annotated[list[str] | None, Query(max_length=200)] = None,
) -> Response:
    """What users did in a period."""
    log = log_of(site)
    common: dict[str, Any] = {"title": "Online", "tabs": tabs("")}
    if isinstance(log, Lacking):
        return show(request, OnlinePage(**common, lacking=log))
    lenient = Lenient(request)
    asked = _asked(lenient, site, log, days, pick or metrics.split(","), by, only)
    if (
        pick and not lenient.errors
    ):  # the form's boxes: from here on in one parameter, which an address can hold on to
        return RedirectResponse(f"{site.settings.base}{asked.address()}", 303)
    common |= {
        "log": told(log),
        "period": asked.days.period,
        "by": asked.by.name,
        "only": asked.only,
        "choices": _choices(site, log, asked),
        "periods": _periods(log, asked),
        "whole": asked.address(only=None),
    }
    if lenient.errors:
        common["period"] = days.typed if any(days.typed) else asked.days.period
        common["periods"] = [(name, where, False) for name, where, _ in common["periods"]]
        return show(request, OnlinePage(**common, wrong=lenient.wrong), 400)
    axis = Axis.of(asked.days)
    question = question_of(asked.metrics, asked.by, asked.days, axis.cut)
    found = looked(request, log, question, lambda: made(log, asked, axis))
    if found is None:
        return show(request, OnlinePage(**common))
    results = stored_results.results_of(found)
    common["watched"] = None if asked.chosen else glance(site, log, asked.days.last)
    return show(request, OnlinePage(**common, **_shown(request, site, log, asked, axis, results)))


def tabs(own: str) -> list[tuple[str, str, bool]]:
    """The pages of online metrics: name, address, whether it is this one."""
    return [(name, where, key == own) for key, name, where in _TABS]


def told(log: EventLog) -> dict[str, Any]:
    """What a log holds, in short."""
    first, last = (Days(day or 0, day or 0).period[0] for day in (log.first_day, log.last_day))
    return {
        "events": log.rows - log.bots,
        "bots": log.bots,
        "kinds": dict(log.kinds),
        "first": first,
        "last": last,
        "timezone": log.timezone,
        "arms": list(log.arms),
        "attributes": list(log.attributes),
        "simulated": log.simulated,
        "version": log.version,
    }


def question_of(
    metrics: Sequence[Metric], by: Dimension, days: Days, steps: Sequence[str]
) -> Question:
    """All that results depend on besides the log."""
    return {
        "what": "evaluate",
        "metrics": [[each.name, each.version] for each in metrics],
        "by": [by.name, by.digest],
        "steps": list(steps),
        "days": [days.first, days.last],
        "rules": Rules().id,
    }


def made(log: EventLog, asked: Asked, axis: Axis) -> dict[str, Any]:
    """The results that the dashboard shows, as JSON can hold them."""
    step = ",".join(axis.cut)
    by = [step, *([asked.by.key, f"{step},{asked.by.key}"] if asked.by.key else [])]
    with open_engine() as engine:
        found = evaluate(
            log,
            engine,
            [each.name for each in asked.metrics],
            by,
            first_day=asked.days.first,
            last_day=asked.days.last,
            queries=asked.by.queries,
        )
    held = found.to_dict()
    if asked.by.key:
        values = figures.largest(found.results, asked.by.key)
        shown = set(values[:MOST_SLICES])
        if len(values) > MOST_SLICES:
            more = counted(len(values) - MOST_SLICES, "value", "values")
            note = f"{more} of {asked.by.label} with fewer searches behind them are not shown"
            held["notes"] = [*held["notes"], note]
        held["results"] = [
            row for row in held["results"] if row["slice"].get(asked.by.key, None) in {None, *shown}
        ]
    return held


def _asked(
    lenient: Lenient,
    site: AppState,
    log: EventLog,
    days: Wanted,
    names: Sequence[str],
    by: str,
    only: str | None,
) -> Asked:
    chosen: list[Metric] = []
    for name in dict.fromkeys(names):
        if name.strip():
            chosen += lenient.take(lambda name=name: registry.find_all([name]), [])  # type: ignore[misc]
    found = chosen or registry.find_all(registry.DEFAULT)
    over = lenient.take(lambda: days.within(log), ANY_DAYS.within(log))
    sliced = lenient.take(lambda: dimension(site, log, by), NOTHING)
    said = [each.name for each in chosen]
    return Asked(found, said, over, sliced, only if sliced.name else None)


def _shown(
    request: Request,
    site: AppState,
    log: EventLog,
    asked: Asked,
    axis: Axis,
    results: OnlineResults,
) -> dict[str, Any]:
    """The fields of the page, of what was computed."""
    key = asked.by.key
    values = figures.largest(results.results, key) if key else [""]
    drawn = sorted(values[: online_charts.MOST_LINES])  # so that colours stay where sizes change
    looks = {value: at for at, value in enumerate(drawn)}
    if asked.only is not None:
        drawn = [asked.only]
    by_metric: dict[str, list[OnlineResult]] = {}
    for row in results.results:
        by_metric.setdefault(row.metric, []).append(row)
    marks, uprights = online_charts.marks_within(
        marks_of(site.workspace).iter_rows(named=True), axis, log
    )
    headlines, charts, unknown, undrawn = [], [], [], ""
    for metric in asked.metrics:
        rows = by_metric.get(metric.name, [])
        whole = next((row for row in rows if not row.slice), None)
        if whole is not None and whole.state == "unknown" and whole.n == 0:
            unknown.append((metric.name, whole.reason))
            continue
        if metric.name == _POSITIONS:
            continue
        headlines.append(_headline(metric, rows, asked, drawn if key else []))
        if undrawn:
            continue
        try:
            chart, leads = online_charts.chart_of(
                metric, rows, axis, asked.by, drawn, looks, marks, uprights,
                asked.address(metrics=metric.name), large=len(asked.metrics) == 1,
            )  # fmt: skip
        except MissingExtra as error:
            undrawn = str(error)
            continue
        charts.append(_led(chart, leads, site.settings.base))
    return {
        "computed": True,
        "wrong": _wrong(asked, values),
        "health": results.health,
        "notes": results.notes,
        "headlines": headlines,
        "figures": list_of_results(request, results, asked.metrics, asked.days, axis, asked.by),
        "values": [(value, look, asked.address(only=value)) for value, look in looks.items()]
        if key
        else [],
        "left_out": max(0, len(values) - online_charts.MOST_LINES) if key else 0,
        "hourly": axis.hourly,
        "charts": charts,
        "undrawn": undrawn,
        "unknown": unknown,
        "positions": _positions(by_metric.get(_POSITIONS, [])),
        "marks": marks,
        "metric": _about(asked.metrics[0]) if len(asked.metrics) == 1 else None,
    }


def _wrong(asked: Asked, values: Sequence[str]) -> str | None:
    """Why there is nothing of the one slice that is asked for."""
    if asked.only is None or asked.only in values:
        return None
    if len(values) < MOST_SLICES:
        return lacked(asked.by.label, asked.only, values)
    return (
        f"{quoted(asked.only)} is none of the {MOST_SLICES} values of {asked.by.label} with the "
        "most behind them, of which numbers are shown."
    )


def _headline(
    metric: Metric, rows: Sequence[OnlineResult], asked: Asked, values: Sequence[str]
) -> Headline:
    by = asked.by

    def cell(value: str | None) -> Cell:
        slice_ = {} if value is None else {by.key: value}
        row = next((row for row in rows if dict(row.slice) == slice_), None)
        parts = [] if value is None else [(by.name, value)]
        return figures.cell_of(
            row, metric, figures.rows_address(metric.name, asked.days, parts, "yes")
        )

    return Headline(
        metric.name,
        metric.title,
        metric.says,
        asked.address(metrics=metric.name),
        cell(asked.only if by.key else None),
        {value: cell(value) for value in values} if asked.only is None else {},
    )


def _led(chart: Chart, leads: Mapping[str, str], base: str) -> Chart:
    """A chart whose steps lead to their rows."""
    where = {mark: {"where": each} for mark, each in leads.items()}

    def led(svg: str) -> str:
        return with_leads(svg, where, lambda said: html.escape(f"{base}{said['where']}"))

    return Chart(
        chart.metric, chart.title, chart.where, led(chart.wide), led(chart.narrow),
        chart.described, chart.gaps,
    )  # fmt: skip


def _positions(rows: Sequence[OnlineResult]) -> list[tuple[str, float, int]]:
    """Of all clicks in the period, those at each position."""
    found = [row for row in rows if set(row.slice) == {"position"} and row.value is not None]
    return [(row.slice["position"], row.value or 0.0, round(row.total or 0)) for row in found]


def _about(metric: Metric) -> dict[str, Any]:
    names = ("name", "version", "title", "definition", "says", "source", "traps", "direction")
    return {name: getattr(metric, name) for name in names}


def _choices(site: AppState, log: EventLog, asked: Asked) -> dict[str, Any]:
    """What the forms offer."""
    chosen = {each.name for each in asked.metrics}
    families: dict[str, list[tuple[str, str, bool]]] = {}
    every = registry.all_metrics()
    more = [each for each in asked.metrics if each.name not in {one.name for one in every}]
    for metric in (*every, *more):
        heading = registry.FAMILIES.get(metric.family, metric.family)
        said = (metric.name, metric.title, metric.name in chosen)
        families.setdefault(heading, []).append(said)
    offered = dimensions(site, log)
    return {
        "families": families,
        "slices": [(each.name, each.label, each.name == asked.by.name) for each in offered],
        "label": asked.by.label,
        "first": day_text(asked.days.first),
        "last": day_text(asked.days.last),
        "chosen": ",".join(asked.chosen),
        "usual": asked.address(metrics=None),
    }


def _periods(log: EventLog, asked: Asked) -> list[tuple[str, str, bool]]:
    """Periods to the end of the log, as far as it is long enough for them."""
    begin, end = log.first_day or 0, log.last_day or 0
    total = end - begin + 1
    out = []
    for count in (*(each for each in _LENGTHS if each < total), total):
        first = end - count + 1
        name = "everything" if count == total else "1 day" if count == 1 else f"{count} days"
        said = {"from": day_text(first), "to": day_text(end)}
        here = (asked.days.first, asked.days.last) == (first, end)
        out.append((name, asked.address(**said), here))
    return out
