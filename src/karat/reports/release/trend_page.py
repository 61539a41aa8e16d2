"""A trend as one HTML file that loads nothing else: charts, tables, notes; light and dark."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from karat.reports.charts.drawing import (
    INK,
    Spec,
    columns,
    layer,
    look,
    name,
    number,
    spec,
    steps,
    to_svg,
    uprights,
)
from karat.reports.html.page import styled
from karat.reports.phrases import trend as words
from karat.reports.release.trend import last_of, marks, value_range
from karat.reports.writers.tables import html_table
from karat.tables.release.trend import Mark, Series, Trend

MOST = 500
"""Points of a series on a page by default."""
_WIDE, _NARROW = (660, 220), (300, 190)  # pixels across and down
_LETTER, _GAP = 7.2, 14  # pixels: average width of a letter in labels, and space between labels
_NAMED = 5  # remarks in the description of a chart
_EDGE = 0.15  # least distance of a remark from the points around it, in steps


@dataclass(frozen=True, slots=True)
class Remark:
    time: str  # in UTC, as ``2026-03-01T02:00:00Z``
    label: str  # short label of its line, as ``3``
    text: str  # what happened


def to_html(trend: Trend) -> str:
    """The page; its content security policy allows no requests, and only its own style sheet."""
    sections = []
    for series in trend.series:
        shown = last_of(series, trend.last or MOST)
        table = html_table(marks(shown[::-1]), kind="marks")
        sections.append(section(series, shown) | {"table": table})
    return styled(
        "trend.html.j2",
        style="trend.css",
        purpose="a page of a trend",
        source=trend.source,
        sections=sections,
        nothing=words.uncompared(trend),
        notes=[note for note in trend.notes if note != words.uncompared(trend)],
        drifting=len(trend.drifting),
        worsened=len(trend.worsened),
        untold=len(trend.untold),
    )


def section(
    series: Series,
    shown: Sequence[Mark],
    remarks: Sequence[Remark] = (),
    wide: tuple[int, int] = _WIDE,
    *,
    linked: bool = False,
) -> dict[str, Any]:
    """The template variables of a series: charts as SVG, their description, rows, problems."""
    off = [mark.value for mark in shown if mark.value is not None and not mark.counts]
    low, high = _domain(shown)
    places = {remark: _at(shown, remark.time) for remark in remarks}
    visible = [remark for remark in remarks if places[remark] is not None]
    lines = [(at, remark.label) for remark, at in places.items() if at is not None]
    described = _described(series, shown, visible)
    return {
        "title": f"{series.name} of {series.run}",
        "sentence": words.sentence(series),
        "strong": series.alarms or not series.told,
        "charts": {
            size: to_svg(_chart(shown, *pixels, lines, linked=linked), described)
            for size, pixels in (("wide", wide), ("narrow", _NARROW))
        },
        "troubles": words.troubles(shown),
        "hollow": bool(off),
        "beyond": any(not low <= value <= high for value in off),
        "lacking": any(mark.value is None for mark in shown),
        "broken": any(mark.breaks for mark in shown),
        "remarked": bool(visible),
        "shown": len(shown),
        "total": len(series.marks),
    }


def _tip(mark: Mark) -> str:
    """The numbers of a point in a line."""
    value = words.number(mark.value)
    if mark.ci_low is not None and mark.ci_high is not None:
        value += f" ({words.number(mark.ci_low)} to {words.number(mark.ci_high)})"
    number = "" if mark.n is None else f"{mark.n:,} queries"
    commit = (mark.commit or "")[:40]
    parts = (words.clock(mark.time), commit, value, number, words.verdict(mark), mark.trouble)
    return " · ".join(filter(None, parts))


def _described(series: Series, marks: Sequence[Mark], remarks: Sequence[Remark] = ()) -> str:
    """The description of the chart."""
    counting = [mark for mark in marks if mark.counts]
    text = f"{len(marks):,} points from {words.day(marks[0].time)} to {words.day(marks[-1].time)}"
    if counting:
        low = min(counting, key=lambda mark: mark.value or 0.0)
        high = max(counting, key=lambda mark: mark.value or 0.0)
        text += (
            f": lowest {words.number(low.value)} on {words.place(low.time, low.commit)}, highest "
            f"{words.number(high.value)} on {words.place(high.time, high.commit)}, last "
            f"{words.number(counting[-1].value)}"
        )
    left_out = len(marks) - len(counting)
    text += f"; {left_out:,} left out" if left_out else ""
    breaks = sum(mark.breaks for mark in marks)
    text += f"; broken {'once' if breaks == 1 else f'{breaks:,} times'}" if breaks else ""
    for remark in remarks[-_NAMED:]:
        text += f"; annotation {remark.label} on {words.day(remark.time)}: {remark.text}"
    return f"{series.name} over time with 95 % intervals, {text}. {words.sentence(series)}."


def _chart(
    marks: Sequence[Mark],
    width: int,
    height: int,
    annotations: Sequence[tuple[float, str]] = (),
    *,
    linked: bool = False,
) -> Spec:
    rows = _rows(marks)
    x = steps(len(marks), _dates(marks, width))
    y = number("value", _domain(marks), {"tickCount": 5})
    counting = [row for row in rows if row["kind"] == "counts"]
    others = [row for row in rows if row["kind"] in {"hollow", "beyond"}]
    rule = {"stroke": INK["ink"], "opacity": 0.7}
    span = {"opacity": 0.4, "strokeWidth": 3, "stroke": INK["up"]}
    line = {"strokeWidth": 1.5, "stroke": INK["up"]}
    size = 45 if len(marks) <= 100 else 14
    point = {"opacity": 1, "strokeWidth": 1.5}
    filled = point | {"size": size, "stroke": INK["up"], "fill": INK["up"]}
    hollow = point | {"size": size + 25, "stroke": INK["ink"], "fill": INK["back"]}
    low, high = {"y": y | {"field": "low"}}, {"y2": {"field": "high"}}
    cuts = [{"at": row["at"] - 0.5} for row in rows if row["cut"]]
    layers = [
        *uprights(annotations, x),
        layer(cuts, "rule", rule | {"strokeDash": [5, 4]}, x=x),
        layer([row for row in rows if row["kind"] == "none"], "rule",
              rule | {"strokeDash": [1, 4]}, x=x),
        layer([row for row in rows if "low" in row], "rule", span, x=x, **low, **high),
        layer(counting, "line", line, x=x, y=y, detail=name("stretch")),
        layer(counting, "point", filled, x=x, y=y),
        layer(others, "point", hollow, x=x, y=y, shape=look("shape")),
        columns([(f"point-{at}" if linked else None, _tip(mark)) for at, mark in enumerate(marks)],
                x, height),
    ]  # fmt: skip
    lines = {"labelColor": INK["ink"], "domainColor": INK["ink"], "tickColor": INK["ink"]}
    return spec(layers, (width, height), axis=lines | {"domain": True})


def _rows(marks: Sequence[Mark]) -> list[dict[str, Any]]:
    """What is drawn of each point."""
    (least, most), (low, high) = value_range(marks), _domain(marks)
    stretch, rows = 0, []
    for at, mark in enumerate(marks):
        stretch += mark.breaks
        row: dict[str, Any] = {"at": at, "stretch": stretch, "cut": mark.breaks and at > 0}
        row |= {"value": mark.value, "shape": "circle"}
        if mark.value is None:
            kind = "none"
        elif mark.counts:
            kind = "counts"
            if mark.ci_low is not None:
                row |= {"low": mark.ci_low, "high": mark.ci_high}
        elif low <= mark.value <= high:
            kind = "hollow"
        else:
            kind = "beyond"
            up = mark.value > high
            row |= {"value": most if up else least}
            row |= {"shape": "triangle-up" if up else "triangle-down"}
        rows.append(row | {"kind": kind})
    return rows


def _at(marks: Sequence[Mark], time: str) -> float | None:
    """The position of a time among evenly spaced points; None before the first."""
    times = [_moment(mark.time) for mark in marks]
    moment = _moment(time)
    if moment < times[0]:
        return None
    place = bisect_right(times, moment) - 1
    if times[place] == moment:
        return float(place)
    if place == len(times) - 1:
        return place + 0.3
    share = (moment - times[place]) / (times[place + 1] - times[place])
    return place + min(max(share, _EDGE), 1 - _EDGE)


def _moment(time: str) -> datetime:
    return datetime.fromisoformat(time)


def _domain(marks: Sequence[Mark]) -> tuple[float, float]:
    """The y domain: the range of the points that count, with a margin."""
    least, most = value_range(marks)
    margin = (most - least) / 12
    return least - margin, most + margin


def _dates(marks: Sequence[Mark], width: int) -> dict[int, list[str]]:
    """Labels of the x axis: as many evenly chosen as fit, always with the newest point.

    A label is the day; if days repeat, the time, the commit or the number of the point, with the
    day below where it changes.
    """
    days = [words.day(mark.time) for mark in marks]
    if len(set(days)) == len(days):
        lines = [[day] for day in days]
    else:
        lines = [[beside, day] for beside, day in zip(_beside(marks), days, strict=True)]

    def chosen(step: int) -> dict[int, list[str]]:
        places = range((len(marks) - 1) % step, len(marks), step)
        before = [None, *places]
        return {
            place: lines[place][: None if last is None or days[last] != days[place] else 1]
            if len(lines[place]) > 1
            else lines[place]
            for last, place in zip(before, places, strict=False)
        }

    step = 1
    while step < len(marks) and not _fits(chosen(step), width / len(marks)):
        step += 1
    return chosen(step)


def _beside(marks: Sequence[Mark]) -> list[str]:
    """Labels of points of the same day: times, or commits if times repeat to the minute."""
    if len({words.clock(mark.time) for mark in marks}) == len(marks):
        return [mark.time[11:16] for mark in marks]
    return [words.short(mark.commit) or f"#{place}" for place, mark in enumerate(marks, 1)]


def _fits(labels: Mapping[int, Sequence[str]], apart: float) -> bool:
    """Whether no labels overlap, with points ``apart`` pixels from each other."""
    for line in (0, 1):
        spans = [
            (place * apart, len(label[line]) * _LETTER)
            for place, label in labels.items()
            if len(label) > line
        ]
        for (left, wide), (right, wider) in pairwise(spans):
            if right - left < (wide + wider) / 2 + _GAP:
                return False
    return True
