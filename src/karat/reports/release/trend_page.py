"""A trend as one HTML file that loads nothing else: charts, tables, notes; light and dark."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any

from karat.errors import MissingExtra
from karat.reports.charts.report import with_marks
from karat.reports.phrases import trend as words
from karat.reports.release.trend import last_of, marks, value_range
from karat.reports.writers.plain import CONTROLS
from karat.reports.writers.tables import html_table
from karat.tables.release.trend import Mark, Series, Trend

MOST = 500
"""Points of a series on a page by default."""
_WIDE, _NARROW = (660, 220), (300, 190)  # pixels across and down
_LETTER, _GAP = 7.2, 14  # pixels: average width of a letter in labels, and space between labels
_INK = {"ink": "var(--ink)", "faint": "var(--line)", "line": "var(--up)", "back": "var(--back)"}
_TAG = re.compile(r"<[^>]*>")
_ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
_NAMED = 5  # remarks in the description of a chart
_EDGE = 0.15  # least distance of a remark from the points around it, in steps


@dataclass(frozen=True, slots=True)
class Remark:
    """An annotation in a chart."""

    time: str  # in UTC, as ``2026-03-01T02:00:00Z``
    label: str  # short label of its line, as ``3``
    text: str  # what happened


def to_html(trend: Trend) -> str:
    """The page; its content security policy allows no requests, and only its own style sheet."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtra("jinja2", "report", "a page of a trend") from None
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_part),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value.translate(CONTROLS) if type(value) is str else value,
    )
    sections = []
    for series in trend.series:
        shown = last_of(series, trend.last or MOST)
        table = html_table(marks(shown[::-1]), kind="marks")
        sections.append(section(series, shown) | {"table": table})
    style = _part("trend.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = environment.from_string(_part("trend.html.j2")).render(
        source=trend.source,
        sections=sections,
        nothing=words.uncompared(trend),
        notes=[note for note in trend.notes if note != words.uncompared(trend)],
        drifting=len(trend.drifting),
        worsened=len(trend.worsened),
        untold=len(trend.untold),
        style=style,
        style_hash=f"sha256-{digest}",
    )
    return page.encode("utf-8", "replace").decode()


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
    visible = [remark for remark in remarks if _at(shown, remark.time) is not None]
    return {
        "title": f"{series.name} of {series.run}",
        "sentence": words.sentence(series),
        "strong": series.alarms or not series.told,
        "described": _described(series, shown, visible),
        "charts": _drawn(shown, visible, wide, linked=linked),
        "linked": linked,
        "troubles": words.troubles(shown),
        "hollow": bool(off),
        "beyond": any(not low <= value <= high for value in off),
        "lacking": any(mark.value is None for mark in shown),
        "broken": any(mark.breaks for mark in shown),
        "remarked": bool(visible),
        "shown": len(shown),
        "total": len(series.marks),
    }


def _drawn(
    shown: Sequence[Mark], remarks: Sequence[Remark], wide: tuple[int, int], *, linked: bool
) -> dict[str, str]:
    """The chart as SVG, for wide and narrow screens."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("vl-convert-python", "report", "a page of a trend") from None
    drawn = {}
    for size, pixels in (("wide", wide), ("narrow", _NARROW)):
        chart = _chart(shown, *pixels, remarks)
        chart["layer"].append(_areas(shown, chart["encoding"]["x"], pixels[1], linked=linked))
        drawn[size] = _silent(with_marks(vl_convert.vegalite_to_svg(json.dumps(chart))))
    return drawn


def _areas(
    marks: Sequence[Mark], x: dict[str, Any], height: int, *, linked: bool
) -> dict[str, Any]:
    """Transparent areas over the plot, one per point, with its numbers."""
    rows = [
        {"left": at - 0.5, "right": at + 0.5, "tip": _tip(mark)}
        | {"href": f"#point-{at}" if linked else "#"}
        for at, mark in enumerate(marks)
    ]
    return {
        "data": {"values": rows},
        "mark": {"type": "rect", "fillOpacity": 0},
        "encoding": {
            "x": x | {"field": "left"},
            "x2": {"field": "right"},
            "y": {"value": 0},
            "y2": {"value": height},
            "href": {"field": "href", "type": "nominal"},
            "description": {"field": "tip", "type": "nominal"},
        },
    }


def _tip(mark: Mark) -> str:
    """The numbers of a point in a line."""
    value = words.number(mark.value)
    if mark.ci_low is not None and mark.ci_high is not None:
        value += f" ({words.number(mark.ci_low)} to {words.number(mark.ci_high)})"
    number = "" if mark.n is None else f"{mark.n:,} queries"
    commit = (mark.commit or "")[:40]
    parts = (words.clock(mark.time), commit, value, number, words.verdict(mark), mark.trouble)
    return " · ".join(filter(None, parts)).translate(CONTROLS)


@cache
def ready() -> None:
    """Draw an empty chart once, since the first one of a process takes most of a second longer."""
    with suppress(ImportError):
        import vl_convert

        vl_convert.vegalite_to_svg(json.dumps({"data": {"values": []}, "mark": "point"}))


def _silent(svg: str) -> str:
    """A picture without ARIA roles and labels of its parts: the page describes it."""
    return _TAG.sub(lambda tag: _ROLES.sub("", tag[0]), svg)


def _part(name: str) -> str:
    return resources.files("karat.reports.html").joinpath(name).read_text("utf-8")


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
    marks: Sequence[Mark], width: int, height: int, remarks: Sequence[Remark] = ()
) -> dict[str, Any]:
    """The chart of a series in Vega-Lite: points in order, evenly spaced."""
    (least, most), (low, high) = value_range(marks), _domain(marks)
    stretch, rows = 0, []
    for place, mark in enumerate(marks):
        stretch += mark.breaks
        row: dict[str, Any] = {"place": place, "stretch": stretch, "before": place - 0.5}
        if mark.value is None:
            kind = "none"
        elif mark.counts:
            kind = "counts"
            if mark.ci_low is not None:
                row |= {"low": mark.ci_low, "high": mark.ci_high}
        else:
            kind = "beyond" if not low <= mark.value <= high else "hollow"
        at = mark.value
        if at is not None and kind == "beyond":
            at = least if at < low else most
        up = mark.value is not None and mark.value > high
        shape = ("triangle-up" if up else "triangle-down") if kind == "beyond" else "circle"
        cut = mark.breaks and place > 0
        rows.append(row | {"kind": kind, "value": at, "shape": shape, "cut": cut})
    size = 45 if len(marks) <= 100 else 14
    x = {
        "field": "place",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [-0.5, len(marks) - 0.5], "nice": False, "zero": False},
        "axis": _dates(marks, width),
    }
    y = {
        "field": "value",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [low, high], "nice": False, "zero": False},
        "axis": {"tickCount": 5},
    }
    point = {"type": "point", "opacity": 1, "strokeWidth": 1.5, "stroke": _INK["line"]}

    def of(test: str, mark: dict[str, Any], **encoding: Any) -> dict[str, Any]:
        return {"transform": [{"filter": test}], "mark": mark, "encoding": encoding}

    rule = {"type": "rule", "stroke": _INK["ink"], "opacity": 0.7}
    at_times = [{"place": _at(marks, one.time), "label": one.label} for one in remarks]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "height": height,
        "background": None,
        "padding": {"left": 4, "right": 16, "top": 6, "bottom": 4},
        "data": {"values": rows},
        "encoding": {"x": x},
        "layer": [
            *_remarked([row for row in at_times if row["place"] is not None]),
            of("datum.cut", rule | {"strokeDash": [5, 4]}, x=x | {"field": "before"}),
            of("datum.kind == 'none'", rule | {"strokeDash": [1, 4]}),
            of(
                "isValid(datum.low)",
                {"type": "rule", "opacity": 0.4, "strokeWidth": 3, "stroke": _INK["line"]},
                y=y | {"field": "low"},
                y2={"field": "high"},
            ),
            of(
                "datum.kind == 'counts'",
                {"type": "line", "strokeWidth": 1.5, "stroke": _INK["line"]},
                y=y,
                detail={"field": "stretch", "type": "nominal"},
            ),
            of("datum.kind == 'counts'", point | {"size": size, "fill": _INK["line"]}, y=y),
            of(
                "datum.kind == 'hollow' || datum.kind == 'beyond'",
                point | {"size": size + 25, "fill": _INK["back"], "stroke": _INK["ink"]},
                y=y,
                shape={"field": "shape", "type": "nominal", "scale": None, "legend": None},
            ),
        ],
        "config": {
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "axis": {
                "labelColor": _INK["ink"],
                "domainColor": _INK["ink"],
                "tickColor": _INK["ink"],
                "gridColor": _INK["faint"],
                "labelFontSize": 12,
            },
            "axisX": {"grid": False},
        },
    }


def _remarked(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Vertical lines with labels above."""
    if not rows:
        return []
    text = {"type": "text", "fontSize": 12, "fill": _INK["ink"], "dy": -8}
    line = {"type": "rule", "stroke": _INK["ink"], "strokeWidth": 1, "opacity": 0.55}
    label = {"text": {"field": "label", "type": "nominal"}, "y": {"value": 0}}
    return [
        {"data": {"values": rows}, "mark": line},
        {"data": {"values": rows}, "mark": text, "encoding": label},
    ]


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


def _dates(marks: Sequence[Mark], width: int) -> dict[str, Any]:
    """The x axis: as many evenly chosen labels as fit, always with the newest point.

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
    labels = chosen(step)
    return {
        "values": list(labels),
        "labelExpr": f"{json.dumps({str(place): label for place, label in labels.items()})}"
        "[datum.value]",
        "labelOverlap": False,
        "labelFlush": False,
    }


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
