"""Charts of online metrics: a metric over time, a line for everything or for each slice."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from karat.online.metrics.entry import Metric
from karat.reports.charts import online as drawing
from karat.reports.charts.online import Line, Place, Point, Upright
from karat.reports.online.evaluation import figure, span
from karat.reports.phrases.numbers import counted
from karat.stats.intervals import TRUSTED_FROM
from karat.tables.days import EPOCH, day_number, day_text
from karat.tables.online.evaluation import OnlineResult
from karat.tables.online.events import EventLog
from karat.tables.zones import local_time
from karat.web.online.figures import NO_RESULT, rows_address, slice_text
from karat.web.online.log import Days
from karat.web.online.slices import Dimension

HOURLY = 3
"""So many days are shown by hour; more by day."""
MOST_LINES = len(drawing.LINES)
"""Slices that are drawn, those with the most behind them; the list has all."""
_GAPS = 4  # reasons for gaps, below a chart
_NAMED = 3  # stretches of days or hours that a reason names
_LABEL = 60  # characters of a slice in the words of a chart


@dataclass(frozen=True)
class Chart:
    """A metric over time.

    Attributes:
        metric: Its name.
        title: Its name in words.
        where: As of ``Headline``.
        wide: The chart as SVG.
        narrow: The same for a telephone; empty where one serves both.
        described: What it shows, in words.
        gaps: Why some of it has no value, in sentences.
    """

    metric: str
    title: str
    where: str
    wide: str = field(repr=False)
    narrow: str = field(repr=False)
    described: str
    gaps: Sequence[str]


@dataclass(frozen=True)
class Mark:
    """What happened in the period.

    Attributes:
        number: Its number in the charts.
        time_us: When, microseconds UTC.
        kind: As of ``marking.KINDS``.
        text: What.
    """

    number: int
    time_us: int
    kind: str
    text: str


@dataclass(frozen=True)
class Axis:
    """The steps of time that charts are drawn over.

    Attributes:
        days: The days.
        hourly: Whether a step is an hour; else a day.
    """

    days: Days
    hourly: bool

    @classmethod
    def of(cls, days: Days) -> Axis:
        """By hour where that is not too much."""
        return cls(days, days.count <= HOURLY)

    @property
    def cut(self) -> tuple[str, ...]:
        """What results are cut by, so that each step is one slice."""
        return ("day", "hour") if self.hourly else ("day",)

    @property
    def count(self) -> int:
        """How many steps there are."""
        return self.days.count * (24 if self.hourly else 1)

    def at(self, part: Mapping[str, str]) -> int | None:
        """Which step a slice is; None if it is none of them."""
        day = day_number(part["day"]) - self.days.first
        step = day * 24 + int(part["hour"]) if self.hourly else day
        return step if 0 <= step < self.count else None

    def moment(self, time_us: int, timezone: str) -> float | None:
        """Where a time stands among the steps; None outside them."""
        local = local_time(time_us, timezone)
        day = day_number(local.date()) - self.days.first
        within = (local.hour * 3600 + local.minute * 60 + local.second) / 86_400
        step = (day + within) * (24 if self.hourly else 1) - 0.5
        return step if -0.5 <= step <= self.count - 0.5 else None

    def name(self, step: int) -> str:
        """A step in words."""
        day = day_text(self.days.first + (step // 24 if self.hourly else step))
        return f"{day}, {step % 24:02}:00" if self.hourly else day

    def stretch(self, first: int, last: int) -> str:
        """Steps from one to another, in words."""
        if first == last:
            return self.name(first)
        same_day = self.hourly and first // 24 == last // 24
        return f"{self.name(first)} to {f'{last % 24:02}:00' if same_day else self.name(last)}"

    def label(self, step: int) -> str:
        """The same, as short as an axis wants it."""
        if self.hourly and (self.days.count == 1 or step % 24):
            return f"{step % 24:02}:00"
        days = self.days.first + (step // 24 if self.hourly else step)
        day = EPOCH + dt.timedelta(days=days)
        return f"{day.day} {day:%b}"

    def where(self, metric: str, step: int, parts: Iterable[tuple[str, str]]) -> str:
        """The rows that count at a step."""
        day = self.days.first + (step // 24 if self.hourly else step)
        hour = [("hour", f"{step % 24:02}")] if self.hourly else []
        return rows_address(metric, (day, day), [*hour, *parts], "yes")


def marks_within(
    rows: Iterable[Mapping[str, object]], axis: Axis, log: EventLog
) -> tuple[list[Mark], list[Upright]]:
    """The marks of a period, numbered, and where they stand in its charts."""
    marks: list[Mark] = []
    uprights: list[Upright] = []
    for row in rows:
        time_us = int(str(row["time_us"]))
        at = axis.moment(time_us, log.timezone)
        if at is not None:
            marks.append(Mark(len(marks) + 1, time_us, str(row["kind"]), str(row["text"])))
            uprights.append(Upright(at, str(len(marks))))
    return marks, uprights


def chart_of(
    metric: Metric,
    rows: Sequence[OnlineResult],
    axis: Axis,
    by: Dimension,
    values: Sequence[str],
    looks: Mapping[str, int],
    marks: Sequence[Mark],
    uprights: Sequence[Upright],
    where: str,
    *,
    large: bool,
) -> tuple[Chart, dict[str, str]]:
    """A metric over time, one line for everything, or one for each slice.

    Args:
        metric: The metric.
        rows: Its results by step, and by dimension too if there is one.
        axis: The steps.
        by: What lines are of; ``online_slices.NOTHING`` for one line.
        values: Of that, those to draw.
        looks: Which look each has.
        marks: What happened meanwhile.
        uprights: Where that stands.
        where: The page of this metric alone.
        large: Whether it is drawn wide, and for a telephone apart.

    Returns:
        The chart, and by the mark that stands for a step where it leads.

    Raises:
        MissingExtra: what draws it is not installed.
    """
    by_value = {value: _steps(rows, axis, by.key, value) for value in values}
    lines = [
        Line(
            _label(value) if by.key else "all",
            [
                Point(at, row.value, row.low, row.high, row.users < TRUSTED_FROM)
                for at, row in sorted(found.items())
            ],
            looks.get(value, 0),
        )
        for value, found in by_value.items()
    ]
    if lines:  # a step that nobody has is a gap as well
        there = {point.at for line in lines for point in line.points}
        more = [Point(at, None) for at in range(axis.count) if at not in there]
        lines[0] = Line(
            lines[0].label,
            sorted([*lines[0].points, *more], key=lambda point: point.at),
            lines[0].look,
        )
    places, leads = [], {}
    only = [(by.name, values[0])] if by.key and len(values) == 1 else []
    for step in range(axis.count):
        said = "; ".join(
            _said(found.get(step), metric, _label(value) if by.key else "")
            for value, found in by_value.items()
        )
        key = f"at-{step}"
        leads[key] = axis.where(metric.name, step, only)
        places.append(Place(axis.label(step), f"{axis.name(step)}: {said or NO_RESULT}", key))
    described = _described(metric, lines, axis, marks)
    sizes = (drawing.WIDE, drawing.NARROW) if large else (drawing.SMALL,)
    drawn = [
        drawing.over_time(
            lines,
            places,
            uprights,
            title=described,
            unit=metric.unit,
            upwards=_upwards(metric),
            size=size,
        )
        for size in sizes
    ]
    chart = Chart(
        metric.name,
        metric.title,
        where,
        drawn[0],
        drawn[1] if large else "",
        described,
        _gaps(by_value, axis, by.key),
    )
    return chart, leads


def _steps(
    rows: Sequence[OnlineResult], axis: Axis, dimension: str, value: str
) -> dict[int, OnlineResult]:
    """The results of a slice by step."""
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
    """What the numbers of a chart are of, where they have no sign behind them that says it."""
    if metric.unit == "rank":
        return "score"
    return metric.title if metric.unit in {"count", "money"} else ""


def _said(row: OnlineResult | None, metric: Metric, label: str) -> str:
    """A result at a step, in words."""
    before = f"{label}: " if label else ""
    if row is None:
        return f"{before}{NO_RESULT}"
    if row.value is None:
        bounds = span(metric, row.least, row.most)
        return f"{before}{'between ' + bounds if bounds else 'no value'} ({row.reason})"
    within = span(metric, row.low, row.high)
    interval = f" ({within})" if within else ""
    of = f", n = {row.n:,}, {counted(row.users, 'user', 'users')}"
    return f"{before}{figure(metric, row.value)}{interval}{of}"


def _described(metric: Metric, lines: Sequence[Line], axis: Axis, marks: Sequence[Mark]) -> str:
    first, last = axis.days.period
    step = "hour" if axis.hourly else "day"
    said = [f"{metric.name}, {metric.title}, by {step} from {first} to {last}"]
    for line in lines:
        values = [point.value for point in line.points if point.value is not None]
        name = "" if line.label == "all" else f"{line.label}: "
        if not values:
            said.append(f"{name}no value")
            continue
        ends = (figure(metric, each) for each in (min(values), max(values), values[-1]))
        said.append("{}lowest {}, highest {}, last {}".format(name, *ends))
    said += [f"mark {mark.number}: {mark.text}" for mark in marks[-5:]]
    return "; ".join(said) + "."


def _gaps(by_value: Mapping[str, Mapping[int, OnlineResult]], axis: Axis, key: str) -> list[str]:
    """Why steps have no value: each reason once for the lines and steps it is of."""
    lines: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for value, found in by_value.items():
        lacking: dict[str, list[int]] = {}
        for step in range(axis.count):
            row = found.get(step)
            if row is None or row.value is None:
                lacking.setdefault(NO_RESULT if row is None else row.reason, []).append(step)
        for reason, steps in lacking.items():
            lines.setdefault((reason, tuple(steps)), []).append(_label(value))
    unit = ("hour", "hours") if axis.hourly else ("day", "days")
    most = sorted(lines.items(), key=lambda each: -len(each[0][1]) * len(each[1]))[:_GAPS]
    return [
        f"{', '.join(names) + ': ' if key else ''}{counted(len(steps), *unit)} without a value "
        f"({_named(steps, axis)}): {reason}"
        for (reason, steps), names in most
    ]


def _named(steps: Sequence[int], axis: Axis) -> str:
    """The first stretches of some steps, and how many more steps there are."""
    stretches: list[list[int]] = []
    for step in steps:
        if not stretches or step != stretches[-1][-1] + 1:
            stretches.append([])
        stretches[-1].append(step)
    said = [axis.stretch(each[0], each[-1]) for each in stretches[:_NAMED]]
    more = sum(map(len, stretches[_NAMED:]))
    return "; ".join(said) + (f" and {more:,} more" if more else "")
