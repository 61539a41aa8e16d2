"""Charts of online metrics: over time with intervals and annotations, and a scatter plot.

A missing value is a gap in its line with a dotted vertical line, never a point at 0. Drawings are
cached; links and tooltips are as in ``charts.report``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from karat.errors import MissingExtra
from karat.reports.charts import report
from karat.reports.charts.report import INK
from karat.reports.online.evaluation import UNITS
from karat.reports.writers.plain import CONTROLS

LINES = ("var(--line-1)", "var(--line-2)", "var(--line-3)", "var(--line-4)", "var(--line-5)")
"""Colours of the lines of a chart, in order, defined by the style sheet."""
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2))
"""Dashes of the lines, so that they differ without colours."""
SMALL, WIDE, NARROW = (292, 120), (1090, 260), (290, 190)
"""Width and height in pixels of a plot among several, on its own, and on a narrow screen."""
_NO_SHARE = 0.05  # top of the axis if all shares are 0
_DOTS = 45  # most points of a line that are drawn as dots
_LABEL = 14  # pixels between labels below an axis
_BEYOND = 1.0  # how far intervals may extend the range of values, as a share of it
_TIP = 300
_LEFT = 46  # pixels left of every small plot, so that days are one below the other
_NEAR = 9  # pixels around a point of a scatter plot that link to it


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a line."""

    at: int  # its place on the axis, from 0
    value: float | None  # its value; None is a gap
    low: float | None = None  # lower end of the interval, or None
    high: float | None = None  # upper end of the interval, or None
    # Whether it is based on little data: it is hollow, and ignored by the range of the axis
    # unless most points are thin
    thin: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One line, with at most one point per place."""

    label: str  # its name
    points: Sequence[Point]  # its points, in order of place
    look: int = 0  # index into ``LINES`` and ``DASHES``


@dataclass(frozen=True, slots=True)
class Place:
    """A place on the time axis."""

    label: str  # its label, shown if there is room
    tip: str  # its tooltip
    href: str | None = None  # id of the element it links to, or None


@dataclass(frozen=True, slots=True)
class Upright:
    """An annotation: a vertical line at ``at``, possibly between places, with a short label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Spot:
    """A point of a scatter plot."""

    x: float  # horizontal value
    y: float  # vertical value
    ink: str = "ink"  # a key of ``INK``
    tip: str = ""  # as in ``Place``
    href: str | None = None  # as in ``Place``


def over_time(
    lines: Sequence[Line],
    places: Sequence[Place],
    uprights: Sequence[Upright] = (),
    *,
    title: str,
    unit: str = "",
    upwards: str = "",
    size: tuple[int, int] = SMALL,
) -> str:
    """Lines over time as SVG, with bands for their intervals."""
    width, height = size
    low, high = _range([point for line in lines for point in line.points], unit == "share")
    x = {
        "field": "at",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [-0.5, len(places) - 0.5], "nice": False, "zero": False},
        "axis": _labels(places, width),
    }
    printed = "datum.value * 100, '~g'" if unit == "share" else "datum.value, ',~f'"
    label = f"format({printed}) + {json.dumps(UNITS.get(unit, ''))}"
    y = {
        "field": "value",
        "type": "quantitative",
        "title": upwards or None,
        "scale": {"domain": [low, high], "nice": False, "zero": False},
        "axis": {"tickCount": 4 if height < 150 else 5, "labelExpr": label}
        | ({"minExtent": _LEFT, "maxExtent": _LEFT} if size == SMALL else {}),
    }
    layers: list[dict[str, Any]] = []
    for line in lines:
        layers += _line(line, x, y, (low, high), dots=len(places) <= _DOTS)
    gaps = _gaps(lines)
    if gaps:
        dotted = {"type": "rule", "stroke": INK["quiet"], "strokeDash": [1, 4], "opacity": 0.8}
        layers.append(_layer([{"at": at} for at in gaps], dotted, x=x))
    layers += _uprights(uprights, x)
    layers.append(_columns(places, x, height))
    return _svg(layers, size, title)


def scatter(
    spots: Sequence[Spot],
    across: str,
    upwards: str,
    *,
    title: str,
    shares: tuple[bool, bool] = (False, False),
    size: tuple[int, int] = (620, 380),
) -> str:
    """A scatter plot as SVG; points are links with tooltips."""
    width, height = size
    axes: dict[str, dict[str, Any]] = {}
    steps = {}
    for key, name, is_share, values in (
        ("x", across, shares[0], [spot.x for spot in spots]),
        ("y", upwards, shares[1], [spot.y for spot in spots]),
    ):
        label = (
            "format(datum.value * 100, '~g') + ' %'" if is_share else "format(datum.value, '~g')"
        )
        domain = _padded(min(values, default=0.0), max(values, default=1.0))
        axes[key] = {
            "field": key,
            "type": "quantitative",
            "title": name,
            "scale": {"domain": domain, "nice": False, "zero": False},
            "axis": {"tickCount": 5, "labelExpr": label, "labelFlush": False},
        }
        steps[key] = (domain[1] - domain[0]) / (width if key == "x" else height) * _NEAR
    data = [{"x": spot.x, "y": spot.y, "ink": INK[spot.ink]} for spot in spots]
    mark = {"type": "point", "size": 55, "strokeWidth": 1.5, "filled": True, "fillOpacity": 0.55}
    ink = {"field": "ink", "type": "nominal", "scale": None, "legend": None}
    layers = [_layer(data, mark, **axes, color=ink)]
    areas = [
        {
            "left": spot.x - steps["x"],
            "right": spot.x + steps["x"],
            "bottom": spot.y - steps["y"],
            "top": spot.y + steps["y"],
            "href": f"#{spot.href or ''}",
            "tip": _plain(spot.tip),
        }
        for spot in spots
    ]
    layers.append(
        _layer(
            areas,
            {"type": "rect", "fillOpacity": 0},
            x=axes["x"] | {"field": "left"},
            x2={"field": "right"},
            y=axes["y"] | {"field": "bottom"},
            y2={"field": "top"},
            href={"field": "href", "type": "nominal"},
            description={"field": "tip", "type": "nominal"},
        )
    )
    return _svg(layers, size, title)


def _line(
    line: Line,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    within: tuple[float, float],
    *,
    dots: bool,
) -> list[dict[str, Any]]:
    """A line with its band, drawn stretch by stretch between gaps."""
    low, high = within
    rows: list[dict[str, Any]] = []
    bands: list[dict[str, Any]] = []
    rules: list[dict[str, Any]] = []
    for number, stretch in enumerate(_stretches(line.points)):
        for point in stretch:
            shown = min(max(point.value or 0.0, low), high)
            row: dict[str, Any] = {"at": point.at, "value": shown, "stretch": number}
            kind = "thin" if point.thin else "dot" if dots or len(stretch) == 1 else ""
            beyond = shown != point.value and ("down" if shown == low else "up")
            rows.append(row | {"kind": kind, "shape": f"triangle-{beyond}" if beyond else "circle"})
    for number, stretch in enumerate(_stretches(line.points, whole=True)):
        for point in stretch:
            ends = {"low": point.low or 0.0, "high": point.high or 0.0}
            ends = {name: min(max(end, low), high) for name, end in ends.items()}
            row = {"at": point.at, "stretch": number, **ends}
            (rules if len(stretch) == 1 else bands).append(row)
    paint = LINES[line.look % len(LINES)]
    dash = list(DASHES[line.look % len(DASHES)])
    stretch_of = {"field": "stretch", "type": "nominal"}
    band = {"type": "area", "fill": paint, "fillOpacity": 0.16, "stroke": None}
    rule = {"type": "rule", "stroke": paint, "strokeOpacity": 0.3, "strokeWidth": 4}
    drawn = {"type": "line", "stroke": paint, "strokeWidth": 1.75, "strokeDash": dash}
    dot = {"type": "point", "fill": paint, "stroke": paint, "size": 16, "opacity": 1}
    to = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    out = []
    if bands:
        out.append(_layer(bands, band, x=x, **to, detail=stretch_of))
    if rules:
        out.append(_layer(rules, rule, x=x, **to))
    if rows:
        out.append(_layer(rows, drawn, x=x, y=y, detail=stretch_of))
    shape = {"field": "shape", "type": "nominal", "scale": None, "legend": None}
    for kind, looks in (("dot", {}), ("thin", {"fill": INK["back"], "size": 34})):
        dotted = [row for row in rows if row["kind"] == kind]
        if dotted:
            out.append(_layer(dotted, dot | looks, x=x, y=y, shape=shape))
    return out


def _stretches(points: Sequence[Point], *, whole: bool = False) -> list[list[Point]]:
    """Points with values (``whole``: and intervals), split at places without."""
    out: list[list[Point]] = []
    before: int | None = None
    for point in points:
        if point.value is None or (whole and (point.low is None or point.high is None)):
            continue
        if before is None or point.at != before + 1:
            out.append([])
        out[-1].append(point)
        before = point.at
    return out


def _gaps(lines: Sequence[Line]) -> list[int]:
    """Places between the first and the last at which no line has a value."""
    points = [point for line in lines for point in line.points]
    places = {point.at for point in points}
    with_value = {point.at for point in points if point.value is not None}
    if not with_value:
        return sorted(places)
    return [at for at in range(min(places), max(places) + 1) if at not in with_value]


def _uprights(uprights: Sequence[Upright], x: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not uprights:
        return []
    rows = [{"at": upright.at, "label": upright.label} for upright in uprights]
    line = {"type": "rule", "stroke": INK["ink"], "strokeWidth": 1, "strokeOpacity": 0.6}
    text = {"type": "text", "fontSize": 12, "fill": INK["ink"], "dy": -7}
    label = {"text": {"field": "label", "type": "nominal"}, "y": {"value": 0}}
    return [_layer(rows, line, x=x), _layer(rows, text, x=x, **label)]


def _columns(places: Sequence[Place], x: Mapping[str, Any], height: int) -> dict[str, Any]:
    """Transparent areas over the plot, one per place."""
    rows = [
        {
            "left": at - 0.5,
            "right": at + 0.5,
            "href": f"#{place.href or ''}",
            "tip": _plain(place.tip),
        }
        for at, place in enumerate(places)
    ]
    return _layer(
        rows,
        {"type": "rect", "fillOpacity": 0},
        x={**x, "field": "left"},
        x2={"field": "right"},
        y={"value": 0},
        y2={"value": height},
        href={"field": "href", "type": "nominal"},
        description={"field": "tip", "type": "nominal"},
    )


def _layer(rows: Sequence[Mapping[str, Any]], mark: Mapping[str, Any], **by: Any) -> dict[str, Any]:
    return {"data": {"values": list(rows)}, "mark": dict(mark), "encoding": by}


def _labels(places: Sequence[Place], width: int) -> dict[str, Any]:
    """The x axis, with evenly chosen labels."""
    longest = max((len(place.label) for place in places), default=1)
    most = max(2, int(width / (_LABEL + 8 * longest)))
    chosen = list(range(0, len(places), max(1, -(-len(places) // most))))
    labels = {str(at): places[at].label for at in chosen}
    return {
        "values": chosen,
        "labelExpr": f"{json.dumps(labels)}[datum.value]",
        "labelOverlap": False,
        "labelFlush": False,
        "grid": False,
    }


def _range(points: Sequence[Point], share: bool) -> tuple[float, float]:
    """The y domain: the range of the values, extended by their intervals up to ``_BEYOND``."""
    there = [point for point in points if point.value is not None]
    sure = [point for point in there if not point.thin]
    points = sure if 2 * len(sure) >= len(there) else there
    values = [point.value for point in points if point.value is not None]
    if not values:
        return 0.0, 1.0
    least, most = min(values), max(values)
    room = (most - least or abs(most) * 0.2 or 1.0) * _BEYOND
    ends = [end for point in points for end in (point.low, point.high) if end is not None]
    low = max(min([least, *ends]), least - room)
    high = min(max([most, *ends]), most + room)
    if share and high <= 0:
        high = _NO_SHARE
        return -0.02 * high, high
    low, high = _padded(low, high)
    if least >= 0:  # no axis below 0 for values that are never below 0
        low = max(low, 0.0) if low > 0 else min(0.0, -0.02 * high)
    if share and most <= 1:
        high = min(high, 1.02)
    return low, high


def _padded(low: float, high: float) -> tuple[float, float]:
    margin = (high - low) / 12 or abs(high) / 12 or 0.5
    return low - margin, high + margin


def _plain(text: str) -> str:
    return text.translate(CONTROLS)[:_TIP]


def _svg(layers: Sequence[Mapping[str, Any]], size: tuple[int, int], title: str) -> str:
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": size[0],
        "height": size[1],
        "background": "transparent",
        "padding": {"left": 4, "right": 14, "top": 6, "bottom": 4},
        "layer": layers,
        "config": {
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "aria": True,
            "axis": {
                "labelColor": INK["quiet"],
                "titleColor": INK["quiet"],
                "titleFontWeight": "normal",
                "titleFontSize": 12,
                "labelFontSize": 12,
                "domain": False,
                "tickColor": INK["line"],
                "gridColor": INK["line"],
            },
        },
    }
    return _drawn(json.dumps(spec, allow_nan=False), title)


@lru_cache(256)
def _drawn(spec: str, title: str) -> str:
    try:
        import altair as alt
    except ImportError:
        raise MissingExtra("altair", "report", "a chart") from None
    return report.to_svg(alt.LayerChart.from_dict(json.loads(spec)), title)
