"""A history as one page that asks nobody for anything: charts, tables, notes; light and dark."""

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
from karat.reports.phrases import trend as words
from karat.reports.release.trend import last_of, value_range
from karat.reports.writers.cells import CONTROLS
from karat.tables.release.trend import Mark, Series, Trend

MOST = 500
"""Points of a series on a page, if nobody asked for more."""
_WIDE, _NARROW = (660, 220), (300, 190)  # pixels across and down
_LETTER, _GAP = 7.2, 14  # pixels of a letter below a chart, at most on average, and between labels
_INK = {"ink": "var(--ink)", "faint": "var(--line)", "line": "var(--up)", "back": "var(--back)"}
_TAG = re.compile(r"<[^>]*>")
_ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
_NAMED = 5  # remarks that the words beside a chart name
_EDGE = 0.15  # how near to a point a remark stands that is between two, in steps


@dataclass(frozen=True, slots=True)
class Remark:
    """What happened at a moment, to be drawn into a chart.

    Attributes:
        time: In UTC, as ``2026-03-01T02:00:00Z``.
        label: What stands beside its line, as short as ``3``.
        text: What happened.
    """

    time: str
    label: str
    text: str


def to_html(trend: Trend) -> str:
    """The page. Its policy (CSP) lets no request out and names the one style sheet by its SHA-256.

    Raises:
        MissingExtra: Jinja2 or vl-convert-python is not installed.
    """
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
    sections = [section(series, last_of(series, trend.last or MOST)) for series in trend.series]
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
) -> dict[str, Any]:
    """What a page shows of a series: its charts as SVG, these in words, its rows, its troubles.

    Args:
        series: The series.
        shown: Those of its points that are shown, one or more, oldest first.
        remarks: What happened meanwhile; earlier ones are left out.
        wide: Pixels across and down of the chart for a wide screen.

    Raises:
        MissingExtra: vl-convert-python is not installed.
    """
    off = [mark.value for mark in shown if mark.value is not None and not mark.counts]
    low, high = _domain(shown)
    told = [remark for remark in remarks if _at(shown, remark.time) is not None]
    return {
        "title": f"{series.name} of {series.run}",
        "sentence": words.sentence(series),
        "strong": series.alarms or not series.told,
        "described": _described(series, shown, told),
        "charts": _drawn(shown, told, wide),
        "troubles": words.troubles(shown),
        "hollow": bool(off),
        "beyond": any(not low <= value <= high for value in off),
        "lacking": any(mark.value is None for mark in shown),
        "broken": any(mark.breaks for mark in shown),
        "remarked": bool(told),
        "verdicts": any(words.verdict(mark) for mark in shown),
        "rows": [_row(mark) for mark in reversed(shown)],
        "total": len(series.marks),
    }


def _drawn(
    shown: Sequence[Mark], remarks: Sequence[Remark], wide: tuple[int, int]
) -> dict[str, str]:
    """The chart as SVG, for a wide screen and for a telephone."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("vl-convert-python", "report", "a page of a trend") from None
    return {
        size: _silent(vl_convert.vegalite_to_svg(json.dumps(_chart(shown, *pixels, remarks))))
        for size, pixels in (("wide", wide), ("narrow", _NARROW))
    }


@cache
def ready() -> None:
    """Draw nothing, once: the first drawing of a process takes most of a second longer."""
    with suppress(ImportError):
        import vl_convert

        vl_convert.vegalite_to_svg(json.dumps({"data": {"values": []}, "mark": "point"}))


def _silent(svg: str) -> str:
    """A picture without roles and names of its parts: what is heard is said around it."""
    return _TAG.sub(lambda tag: _ROLES.sub("", tag[0]), svg)


def _part(name: str) -> str:
    return resources.files("karat.reports.html").joinpath(name).read_text("utf-8")


def _described(series: Series, marks: Sequence[Mark], remarks: Sequence[Remark] = ()) -> str:
    """The chart in words."""
    counting = [mark for mark in marks if mark.counts]
    said = f"{len(marks):,} points from {words.day(marks[0].time)} to {words.day(marks[-1].time)}"
    if counting:
        low = min(counting, key=lambda mark: mark.value or 0.0)
        high = max(counting, key=lambda mark: mark.value or 0.0)
        said += (
            f": lowest {words.number(low.value)} on {words.place(low.time, low.commit)}, highest "
            f"{words.number(high.value)} on {words.place(high.time, high.commit)}, last "
            f"{words.number(counting[-1].value)}"
        )
    left_out = len(marks) - len(counting)
    said += f"; {left_out:,} left out" if left_out else ""
    breaks = sum(mark.breaks for mark in marks)
    said += f"; broken {'once' if breaks == 1 else f'{breaks:,} times'}" if breaks else ""
    for one in remarks[-_NAMED:]:
        said += f"; mark {one.label} on {words.day(one.time)}: {one.text}"
    return f"{series.name} over time with 95 % intervals, {said}. {words.sentence(series)}."


def _row(mark: Mark) -> dict[str, str | bool]:
    """The cells of a point."""
    interval = ""
    if mark.ci_low is not None and mark.ci_high is not None:
        interval = f"{words.number(mark.ci_low)} to {words.number(mark.ci_high)}"
    return {
        "time": words.clock(mark.time),
        "commit": words.short(mark.commit),
        "whole": mark.commit or "",
        "value": words.number(mark.value),
        "interval": interval,
        "n": "" if mark.n is None else f"{mark.n:,}",
        "change": words.change_text(mark.change),
        "told": words.yes(mark.told_apart),
        "changed": words.changed(mark),
        "verdict": words.verdict(mark),
        "trouble": mark.trouble or "",
        "counts": mark.counts,
        "breaks": mark.breaks,
    }


def _chart(
    marks: Sequence[Mark], width: int, height: int, remarks: Sequence[Remark] = ()
) -> dict[str, Any]:
    """The chart of a series, in Vega-Lite: points in order, evenly, whatever time lies between."""
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
    """Upright lines with a label above each."""
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
    """Where a moment stands among points that stand evenly; None before the first of them."""
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
    """From where to where the chart reaches: a margin about what counts."""
    least, most = value_range(marks)
    margin = (most - least) / 12
    return least - margin, most + margin


def _dates(marks: Sequence[Mark], width: int) -> dict[str, Any]:
    """The axis below: as many points as have room for a label, evenly chosen, the newest always.

    A label is the day; where days repeat, the time or the commit or which point it is, and the day
    below it where that is another than at the label before.
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
    """What tells points of a day: their times, or where these repeat to the minute, commits."""
    if len({words.clock(mark.time) for mark in marks}) == len(marks):
        return [mark.time[11:16] for mark in marks]
    return [words.short(mark.commit) or f"#{place}" for place, mark in enumerate(marks, 1)]


def _fits(labels: Mapping[int, Sequence[str]], apart: float) -> bool:
    """Whether no line of a label reaches into that of another, with so many pixels a point."""
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
