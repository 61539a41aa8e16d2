"""Charts of a report: a page has each for wide and for narrow screens, and shows one of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    short,
    spec,
)
from karat.reports.phrases.numbers import signed

_WIDE, _NARROW = 600, 300  # pixels of the plot itself
_PADDING = (16, 12, 4, 4)  # the reader's fonts may be wider than the measured ones
_AXIS = 60  # characters of the title of an axis


@dataclass(frozen=True, slots=True)
class Dot:
    """One row of an interval chart."""

    label: str  # its label
    value: float | None  # position of the dot; None is labelled "no value"
    low: float | None  # lower end of the interval, or None
    high: float | None  # upper end of the interval, or None
    told: bool = False  # whether it is significant (or equivalent): such dots are filled
    ink: str = "ink"  # a key of ``INK``
    shrunk: float | None = None  # position of a second mark, or None
    href: str | None = None  # id of the element with its rows, or None
    tip: str = ""  # its tooltip


@dataclass(frozen=True, slots=True)
class Bar:
    height: float
    href: str | None = None
    tip: str = ""


def intervals(
    dots: Sequence[Dot],
    axis: str,
    *,
    zero: bool,
    narrow: bool = False,
    paint: Mapping[str, str] = INK,
) -> Spec:
    """Dots with their intervals, one row for each."""
    step, width = (40, _NARROW) if narrow else (26, _WIDE)
    domain = _domain(
        [e for d in dots for e in (d.value, d.low, d.high, d.shrunk) if e is not None], zero=zero
    )
    x = number("value", domain, {"tickCount": 5, "labelFlush": False, "format": "~g"},
               short(axis, _AXIS))  # fmt: skip
    y = number("y", [len(dots) - 0.5, -0.5])
    rows = [
        {
            "y": at,
            "value": dot.value,
            # Clipped here: the ids of the chart's own clipping paths would clash in a page.
            "low": _cut(dot.value if dot.low is None else dot.low, domain),
            "high": _cut(dot.value if dot.high is None else dot.high, domain),
            "ink": paint[dot.ink],
            "fill": paint[dot.ink if dot.told else "back"],
            "shrunk": dot.shrunk,
        }
        for at, dot in enumerate(dots)
        if dot.value is not None
    ]
    shrunk = [row for row in rows if row["shrunk"] is not None]
    dashed = {"color": paint["quiet"], "strokeDash": [3, 3]}
    point = {"size": 70, "strokeWidth": 2, "opacity": 1}
    second = {"shape": "diamond", "size": 60, "strokeWidth": 1.5, "filled": False, "opacity": 1}
    ink, fill, quiet = look("ink"), look("fill"), {"value": paint["quiet"]}
    span = {"x": x | {"field": "low"}, "x2": {"field": "high"}}
    layers = [
        *([layer([{"value": 0}], "rule", dashed, x=x)] if zero else []),
        layer(rows, "rule", {"strokeWidth": 2}, **span, y=y, color=ink),
        layer(rows, "point", point, x=x, y=y, stroke=ink, fill=fill),
        *([layer(shrunk, "point", second, x=x | {"field": "shrunk"}, y=y, stroke=quiet)]
          if shrunk else []),
        *_labels(dots, y, width, paint["ink"], narrow=narrow, signs=zero),
    ]  # fmt: skip
    if paint is INK:
        # On a narrow screen the label is above its row, within the area.
        up, left, right = (0.62, 0, width) if narrow else (0.5, -4, width + 64)
        spans = [{"top": at - up, "bottom": at - up + 1} for at in range(len(dots))]
        place: Spec = {"x": {"value": left}, "x2": {"value": right}, "y2": {"field": "bottom"}}
        links = [(dot.href, dot.tip) for dot in dots]
        layers.append(areas(links, spans, **place, y=y | {"field": "top"}))
    return spec(layers, (width, step * max(1, len(dots))), paint=paint, padding=_PADDING)


def bars(heights: Sequence[Bar], axis: str, *, narrow: bool = False) -> Spec:
    """Bars side by side, above and below 0, in the order given."""
    width, height = _NARROW if narrow else _WIDE + 120, 170
    x = number("x", [0, max(len(heights), 1)])
    y = {
        "field": "height",
        "type": "quantitative",
        "title": short(axis, _AXIS),
        "axis": {"tickCount": 5, "format": "~g", "titlePadding": 14},
    }
    rows = [
        {"x": at + 0.5, "height": bar.height, "ink": INK["up" if bar.height > 0 else "down"]}
        for at, bar in enumerate(heights)
    ]
    wide = {"width": max(0.5, min(width / max(len(heights), 1) * 0.8, 24))}
    layers = [
        layer(rows, "bar", wide, x=x, y=y, color=look("ink")),
        layer([{"height": 0}], "rule", {"color": INK["quiet"]}, y=y),
        columns([(bar.href, bar.tip) for bar in heights], x, height),
    ]
    return spec(layers, (width, height), padding=_PADDING)


def counts(
    numbers: Sequence[int],
    labels: Sequence[str],
    axis: str,
    *,
    areas: Sequence[tuple[str | None, str]] = (),
    narrow: bool = False,
) -> Spec:
    """A histogram: counts per bin, as labelled columns."""
    width, height = _NARROW if narrow else _WIDE + 120, 130
    x, y = number("x", [0, len(numbers)]), number("n", [0, max([1, *numbers])])
    rows = [
        {"x": at + 0.5, "n": n, "label": label, "text": f"{n:,}"}
        for at, (n, label) in enumerate(zip(numbers, labels, strict=True))
    ]
    bar = {"width": width / max(len(numbers), 1) * 0.82, "color": INK["quiet"]}
    text = {"color": INK["ink"], "fontSize": 12}
    below, low = text | {"baseline": "top"}, {"value": height}
    title = [{"title": short(axis, _AXIS)}]
    layers = [
        layer(rows, "bar", bar, x=x, y=y),
        layer(rows, "text", text | {"baseline": "bottom", "dy": -3}, x=x, y=y, text=name("text")),
        layer(rows, "text", below | {"dy": 6}, x=x, y=low, text=name("label")),
        layer(title, "text", below | {"dy": 24}, x={"value": width / 2}, y=low, text=name("title")),
    ]  # fmt: skip
    if areas:
        layers.append(columns(areas, x, height))
    return spec(layers, (width, height), padding=_PADDING)


def _labels(
    dots: Sequence[Dot], y: Spec, width: int, ink: str, *, narrow: bool, signs: bool
) -> list[Spec]:
    """The names left of the rows of dots and the values right of them; above if it is narrow."""
    rows = [
        {"y": at, "label": short(dot.label), "text": _text(dot.value, signs=signs)}
        for at, dot in enumerate(dots)
    ]
    side = {"color": ink, "fontSize": 13, "baseline": "middle", "dy": -15 if narrow else 0}
    left, right = ("left", "right") if narrow else ("right", "left")
    out = 0 if narrow else 12
    return [
        layer(rows, "text", side | {"align": align}, x={"value": x}, y=y, text=name(field))
        for align, x, field in ((left, -out, "label"), (right, width + out, "text"))
    ]


def _domain(ends: Sequence[float], *, zero: bool) -> list[float]:
    if not zero and all(0 <= end <= 1 for end in ends):
        return [0.0, 1.0]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = (high - low) * 0.05 or 0.1
    return [low - room if low < 0 else low, high + room]


def _cut(end: float | None, domain: Sequence[float]) -> float | None:
    return None if end is None else min(max(end, domain[0]), domain[1])


def _text(value: float | None, *, signs: bool) -> str:
    if value is None or not math.isfinite(value):
        return "no value"
    return signed(value) if signs else f"{value:.3f}"
