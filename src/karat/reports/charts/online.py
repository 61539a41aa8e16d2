"""Charts of online metrics: over time with intervals and annotations, and a scatter plot.

A missing value is a gap in its line with a dotted vertical line, never a point at 0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from karat.reports.charts.drawing import (
    INK,
    Spec,
    areas,
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
from karat.reports.online.evaluation import UNITS

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
    label: str  # its name
    points: Sequence[Point]  # its points, in order of place
    look: int = 0  # index into ``LINES`` and ``DASHES``


@dataclass(frozen=True, slots=True)
class Place:
    label: str  # its label, shown if there is room
    tip: str  # its tooltip
    href: str | None = None  # id of the element it links to, or None


@dataclass(frozen=True, slots=True)
class Spot:
    x: float  # horizontal value
    y: float  # vertical value
    ink: str = "ink"  # a key of ``INK``
    tip: str = ""  # as in ``Place``
    href: str | None = None  # as in ``Place``


def over_time(
    lines: Sequence[Line],
    places: Sequence[Place],
    annotations: Sequence[tuple[float, str]] = (),
    *,
    title: str,
    unit: str = "",
    upwards: str = "",
    size: tuple[int, int] = SMALL,
) -> str:
    """Lines over time as SVG, with bands for their intervals.

    Annotations are vertical lines with a short label, possibly between places.
    """
    height = size[1]
    low, high = _range([point for line in lines for point in line.points], unit == "share")
    x = steps(len(places), _labels(places, size[0]))
    printed = "datum.value * 100, '~g'" if unit == "share" else "datum.value, ',~f'"
    label = f"format({printed}) + {json.dumps(UNITS.get(unit, ''))}"
    axis = {"tickCount": 4 if height < 150 else 5, "labelExpr": label}
    if size == SMALL:
        axis |= {"minExtent": _LEFT, "maxExtent": _LEFT}
    y = number("value", (low, high), axis, upwards or None)
    layers: list[Spec] = []
    for line in lines:
        layers += _line(line, x, y, (low, high), dots=len(places) <= _DOTS)
    gaps = _gaps(lines)
    if gaps:
        dotted = {"stroke": INK["quiet"], "strokeDash": [1, 4], "opacity": 0.8}
        layers.append(layer([{"at": at} for at in gaps], "rule", dotted, x=x))
    layers += uprights(annotations, x)
    layers.append(columns([(place.href, place.tip) for place in places], x, height))
    return to_svg(spec(layers, size), title)


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
    axes, near = [], []
    for key, title_of_axis, share, pixels, values in (
        ("x", across, shares[0], size[0], [spot.x for spot in spots]),
        ("y", upwards, shares[1], size[1], [spot.y for spot in spots]),
    ):
        label = "format(datum.value * 100, '~g') + ' %'" if share else "format(datum.value, '~g')"
        low, high = _padded(min(values, default=0.0), max(values, default=1.0))
        axis = {"tickCount": 5, "labelExpr": label, "labelFlush": False}
        axes.append(number(key, (low, high), axis, title_of_axis))
        near.append((high - low) / pixels * _NEAR)
    (x, y), (aside, above) = axes, near
    rows = [{"x": spot.x, "y": spot.y, "ink": INK[spot.ink]} for spot in spots]
    point = {"size": 55, "strokeWidth": 1.5, "filled": True, "fillOpacity": 0.55}
    spans = [
        {"left": spot.x - aside, "right": spot.x + aside}
        | {"bottom": spot.y - above, "top": spot.y + above}
        for spot in spots
    ]
    place = {"x": x | {"field": "left"}, "x2": {"field": "right"}}
    place |= {"y": y | {"field": "bottom"}, "y2": {"field": "top"}}
    links = [(spot.href, spot.tip) for spot in spots]
    layers = [layer(rows, "point", point, x=x, y=y, color=look("ink"))]
    return to_svg(spec([*layers, areas(links, spans, **place)], size), title)


def _line(line: Line, x: Spec, y: Spec, within: tuple[float, float], *, dots: bool) -> list[Spec]:
    """A line with its band, drawn stretch by stretch between gaps."""
    low, high = within
    rows: list[Spec] = []
    bands: list[Spec] = []
    rules: list[Spec] = []
    for at, stretch in enumerate(_stretches(line.points)):
        for point in stretch:
            shown = min(max(point.value or 0.0, low), high)
            row: Spec = {"at": point.at, "value": shown, "stretch": at}
            kind = "thin" if point.thin else "dot" if dots or len(stretch) == 1 else ""
            beyond = shown != point.value and ("down" if shown == low else "up")
            rows.append(row | {"kind": kind, "shape": f"triangle-{beyond}" if beyond else "circle"})
    for at, stretch in enumerate(_stretches(line.points, whole=True)):
        for point in stretch:
            ends = {"low": point.low or 0.0, "high": point.high or 0.0}
            ends = {name: min(max(end, low), high) for name, end in ends.items()}
            row = {"at": point.at, "stretch": at, **ends}
            (rules if len(stretch) == 1 else bands).append(row)
    paint = LINES[line.look % len(LINES)]
    dash = list(DASHES[line.look % len(DASHES)])
    band = {"fill": paint, "fillOpacity": 0.16, "stroke": None}
    rule = {"stroke": paint, "strokeOpacity": 0.3, "strokeWidth": 4}
    drawn = {"stroke": paint, "strokeWidth": 1.75, "strokeDash": dash}
    dot = {"fill": paint, "stroke": paint, "size": 16, "opacity": 1}
    hollow = dot | {"fill": INK["back"], "size": 34}
    span = {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}}
    dots_of = {kind: [row for row in rows if row["kind"] == kind] for kind in ("dot", "thin")}
    shape = look("shape")
    layers = [
        layer(bands, "area", band, **span, detail=name("stretch")),
        layer(rules, "rule", rule, **span),
        layer(rows, "line", drawn, x=x, y=y, detail=name("stretch")),
        layer(dots_of["dot"], "point", dot, x=x, y=y, shape=shape),
        layer(dots_of["thin"], "point", hollow, x=x, y=y, shape=shape),
    ]
    return [part for part in layers if part["data"]["values"]]


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


def _labels(places: Sequence[Place], width: int) -> dict[int, str]:
    """As many evenly chosen labels as fit below an axis."""
    longest = max((len(place.label) for place in places), default=1)
    most = max(2, int(width / (_LABEL + 8 * longest)))
    return {at: places[at].label for at in range(0, len(places), max(1, -(-len(places) // most)))}


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
