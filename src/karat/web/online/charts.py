"""Charts of online metrics: a metric over time, one line in all or one per slice."""

from __future__ import annotations

import datetime as dt
import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import polars as pl

from karat.errors import MissingExtra
from karat.online.metrics.entry import Metric
from karat.online.metrics.registry import find
from karat.reports.charts import online as drawing
from karat.reports.charts.online import Line, Place, Point
from karat.reports.online.evaluation import figure, span
from karat.reports.phrases.numbers import counted
from karat.tables.days import EPOCH, day_number, day_text, local_time
from karat.tables.online.evaluation import OnlineResult
from karat.tables.online.watch import Cause
from karat.web.framework.state import AppState
from karat.web.online.figures import NO_RESULT, rows_address, slice_text
from karat.workflows.online.log_requests import FEW_USERS, Days
from karat.workflows.online.slices import Dimension
from karat.workflows.workspace.artifacts import key_of
from karat.workflows.workspace.stored_views import link_marks

HOURLY = 3
"""Longest period shown by hour, in days."""
MOST_LINES = len(drawing.LINES)
"""Slices in a chart, the largest; the list has all."""
_DRAWING = 2  # version of the charts
_GAPS = 4  # reasons for gaps listed below a chart
_NAMED = 3  # stretches of days or hours named per reason
_LABEL = 60  # longest label of a slice, in characters


@dataclass(frozen=True)
class Chart:
    metric: str
    title: str
    where: str
    wide: str = field(repr=False)
    narrow: str = field(repr=False)
    described: str
    gaps: Sequence[str]


@dataclass(frozen=True)
class Annotation:
    number: int
    time_us: int  # microseconds UTC
    kind: str  # one of ``annotations.KINDS``
    text: str


@dataclass(frozen=True)
class Axis:
    """The time steps of charts."""

    days: Days
    hourly: bool

    @classmethod
    def of(cls, days: Days) -> Axis:
        """Hourly for short periods."""
        return cls(days, days.count <= HOURLY)

    @property
    def cut(self) -> tuple[str, ...]:
        """Dimensions that slice results into steps."""
        return ("day", "hour") if self.hourly else ("day",)

    @property
    def count(self) -> int:
        return self.days.count * (24 if self.hourly else 1)

    def at(self, part: Mapping[str, str]) -> int | None:
        """The step of a slice; None outside the period."""
        day = day_number(part["day"]) - self.days.first
        step = day * 24 + int(part["hour"]) if self.hourly else day
        return step if 0 <= step < self.count else None

    def moment(self, time_us: int, timezone: str) -> float | None:
        """The position of a time on the axis, in steps; None outside the period."""
        local = local_time(time_us, timezone)
        day = day_number(local.date()) - self.days.first
        within = (local.hour * 3600 + local.minute * 60 + local.second) / 86_400
        step = (day + within) * (24 if self.hourly else 1) - 0.5
        return step if -0.5 <= step <= self.count - 0.5 else None

    def name(self, step: int) -> str:
        day = day_text(self.days.first + (step // 24 if self.hourly else step))
        return f"{day}, {step % 24:02}:00" if self.hourly else day

    def stretch(self, first: int, last: int) -> str:
        if first == last:
            return self.name(first)
        same_day = self.hourly and first // 24 == last // 24
        return f"{self.name(first)} to {f'{last % 24:02}:00' if same_day else self.name(last)}"

    def label(self, step: int) -> str:
        """A step as a short axis label."""
        if self.hourly and (self.days.count == 1 or step % 24):
            return f"{step % 24:02}:00"
        days = self.days.first + (step // 24 if self.hourly else step)
        day = EPOCH + dt.timedelta(days=days)
        return f"{day.day} {day:%b}"

    def where(self, metric: str, step: int, parts: Iterable[tuple[str, str]]) -> str:
        """Link to the rows that count at a step."""
        day = self.days.first + (step // 24 if self.hourly else step)
        hour = [("hour", f"{step % 24:02}")] if self.hourly else []
        return rows_address(metric, (day, day), [*hour, *parts], "yes")


def annotations_within(
    every: pl.DataFrame, axis: Axis, timezone: str
) -> tuple[list[Annotation], list[tuple[float, str]]]:
    """The annotations of a period, numbered, and their positions in its charts."""
    annotations: list[Annotation] = []
    uprights: list[tuple[float, str]] = []
    for time_us, kind, text in every.select("time_us", "kind", "text").iter_rows():
        at = axis.moment(time_us, timezone)
        if at is not None:
            annotations.append(Annotation(len(annotations) + 1, time_us, kind, text))
            uprights.append((at, str(len(annotations))))
    return annotations, uprights


def chart_of(
    metric: Metric,
    rows: Sequence[OnlineResult],
    axis: Axis,
    by: Dimension,
    values: Sequence[str],
    looks: Mapping[str, int],
    annotations: Sequence[Annotation],
    uprights: Sequence[tuple[float, str]],
    where: str,
    *,
    large: bool,
) -> tuple[Chart, dict[str, str]]:
    """A metric over time, one line in all or one per slice; the link of each step by its id."""
    by_value = {value: _steps(rows, axis, by.key, value) for value in values}
    lines = [
        Line(
            _label(value) if by.key else "all",
            [
                Point(at, row.value, row.low, row.high, row.users < FEW_USERS)
                for at, row in sorted(found.items())
            ],
            looks.get(value, 0),
        )
        for value, found in by_value.items()
    ]
    if lines:  # a step without any result is a gap too
        steps = {point.at for line in lines for point in line.points}
        gaps = [Point(at, None) for at in range(axis.count) if at not in steps]
        points = sorted([*lines[0].points, *gaps], key=lambda point: point.at)
        lines[0] = replace(lines[0], points=points)
    places, links = [], {}
    only = [(by.name, values[0])] if by.key and len(values) == 1 else []
    for step in range(axis.count):
        text = "; ".join(
            _result_text(found.get(step), metric, _label(value) if by.key else "")
            for value, found in by_value.items()
        )
        key = f"at-{step}"
        links[key] = axis.where(metric.name, step, only)
        places.append(Place(axis.label(step), f"{axis.name(step)}: {text or NO_RESULT}", key))
    described = _description(metric, lines, axis, annotations)
    chart = _drawn(metric, lines, places, uprights, described, large=large)
    return replace(chart, where=where, gaps=_gaps(by_value, axis, by.key)), links


def chart_of_cause(
    cause: Cause,
    axis: Axis,
    parts: Sequence[tuple[str, str]],
    annotations: Sequence[Annotation],
    uprights: Sequence[tuple[float, str]],
) -> tuple[Chart, dict[str, str]]:
    """The metric of a cause by hour, next to what is usual, with its onset; the link of each hour.

    The axis begins with the first hour of the onset.
    """
    metric, onset = find(cause.lead.metric), cause.onset
    hours = () if onset is None else onset.hours
    now = [Point(at, each.value) for at, each in enumerate(hours)]
    band = [
        Point(at, each.expected, each.usual_low, each.usual_high) for at, each in enumerate(hours)
    ]
    begun = [(at - 0.5, "onset") for at, each in enumerate(hours)
             if onset is not None and each.start == onset.at]  # fmt: skip
    places, links = [], {}
    for at, each in enumerate(hours):
        usual = span(metric, each.usual_low, each.usual_high)
        tip = f"{each.start}: {figure(metric, each.value)}, usual {usual}, n = {each.n:,}"
        places.append(Place(axis.label(at), tip, f"at-{at}"))
        links[f"at-{at}"] = axis.where(metric.name, at, parts)
    lines = [Line("usual", band, 1), Line("all", now, 0)]
    described = _description(metric, lines[1:], axis, annotations)
    return _drawn(metric, lines, places, [*uprights, *begun], described, large=True), links


def _drawn(
    metric: Metric,
    lines: Sequence[Line],
    places: Sequence[Place],
    uprights: Sequence[tuple[float, str]],
    described: str,
    *,
    large: bool,
) -> Chart:
    """A chart for wide and narrow screens, or a small one; without a link and gaps."""
    upwards = _upwards(metric)
    wide, *narrow = (
        drawing.over_time(
            lines, places, uprights, title=described, unit=metric.unit, upwards=upwards, size=size
        )
        for size in ((drawing.WIDE, drawing.NARROW) if large else (drawing.SMALL,))
    )
    return Chart(metric.name, metric.title, "", wide, "".join(narrow), described, ())


def linked(svg: str, links: Mapping[str, str], base: str) -> str:
    """A chart whose marks link to their rows."""
    where = {mark: {"where": address} for mark, address in links.items()}
    return link_marks(svg, where, lambda link: html.escape(f"{base}{link['where']}"))


def stored_charts(
    site: AppState, about: Sequence[Any], draw: Callable[[], Iterable[tuple[Chart, dict[str, str]]]]
) -> tuple[list[Chart], str]:
    """Charts with their links, an artifact of what they depend on; or why they cannot be drawn."""
    base = site.settings.base

    def drawn() -> list[dict[str, Any]]:
        return [
            asdict(chart)
            | {"wide": linked(chart.wide, links, base), "narrow": linked(chart.narrow, links, base)}
            for chart, links in draw()
        ]

    try:
        charts = site.workspace.artifacts.answer("charts", key_of(_DRAWING, base, *about), drawn)
    except MissingExtra as error:
        return [], str(error)
    return [Chart(**each) for each in charts], ""


def _steps(
    rows: Sequence[OnlineResult], axis: Axis, dimension: str, value: str
) -> dict[int, OnlineResult]:
    names = {*axis.cut, dimension} - {""}
    out = {}
    for row in rows:
        if set(row.slice) == names and (not dimension or row.slice[dimension] == value):
            step = axis.at(row.slice)
            if step is not None:
                out[step] = row
    return out


def _label(value: str) -> str:
    text = slice_text(value)
    return text if len(text) <= _LABEL else f"{text[: _LABEL - 1]}…"


def _upwards(metric: Metric) -> str:
    """Label of the value axis, if the unit's sign does not say it."""
    if metric.unit == "rank":
        return "score"
    return metric.title if metric.unit in {"count", "money"} else ""


def _result_text(row: OnlineResult | None, metric: Metric, label: str) -> str:
    before = f"{label}: " if label else ""
    if row is None:
        return f"{before}{NO_RESULT}"
    if row.value is None:
        bounds = span(metric, row.least, row.most)
        return f"{before}{'between ' + bounds if bounds else 'no value'} ({row.reason})"
    within = span(metric, row.low, row.high)
    interval = f" ({within})" if within else ""
    of = f", n = {row.n:,}, {counted(row.users, 'user')}"
    return f"{before}{figure(metric, row.value)}{interval}{of}"


def _description(
    metric: Metric, lines: Sequence[Line], axis: Axis, annotations: Sequence[Annotation]
) -> str:
    first, last = axis.days.period
    step = "hour" if axis.hourly else "day"
    texts = [f"{metric.name}, {metric.title}, by {step} from {first} to {last}"]
    for line in lines:
        values = [point.value for point in line.points if point.value is not None]
        name = "" if line.label == "all" else f"{line.label}: "
        if not values:
            texts.append(f"{name}no value")
            continue
        ends = (figure(metric, each) for each in (min(values), max(values), values[-1]))
        texts.append("{}lowest {}, highest {}, last {}".format(name, *ends))
    texts += [
        f"annotation {annotation.number}: {annotation.text}" for annotation in annotations[-5:]
    ]
    return "; ".join(texts) + "."


def _gaps(by_value: Mapping[str, Mapping[int, OnlineResult]], axis: Axis, key: str) -> list[str]:
    """Reasons for missing values, each with its lines and steps."""
    labels_of: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for value, by_step in by_value.items():
        missing: dict[str, list[int]] = {}
        for step in range(axis.count):
            row = by_step.get(step)
            if row is None or row.value is None:
                missing.setdefault(NO_RESULT if row is None else row.reason, []).append(step)
        for reason, steps in missing.items():
            labels_of.setdefault((reason, tuple(steps)), []).append(_label(value))
    unit = ("hour", "hours") if axis.hourly else ("day", "days")
    largest = sorted(labels_of.items(), key=lambda each: -len(each[0][1]) * len(each[1]))[:_GAPS]
    return [
        f"{', '.join(names) + ': ' if key else ''}{counted(len(steps), *unit)} without a value "
        f"({_named(steps, axis)}): {reason}"
        for (reason, steps), names in largest
    ]


def _named(steps: Sequence[int], axis: Axis) -> str:
    """The first stretches of some steps, and how many steps follow."""
    stretches: list[list[int]] = []
    for step in steps:
        if not stretches or step != stretches[-1][-1] + 1:
            stretches.append([])
        stretches[-1].append(step)
    names = [axis.stretch(each[0], each[-1]) for each in stretches[:_NAMED]]
    more = sum(map(len, stretches[_NAMED:]))
    return "; ".join(names) + (f" and {more:,} more" if more else "")
