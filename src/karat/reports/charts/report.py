"""Charts of a report: built by Altair, drawn by vl-convert, static in the page.

A page has each chart for wide and for narrow screens, and shows one of them. Transparent areas
tile the plot over the marks, each a link to its rows with the numbers as title, so that a thin bar
is as easy to hit as the gap next to it.

Colours are the variables of the page, for light and dark themes. Untrusted names are only drawn as
text, never used as keys of scales or legends.
"""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.errors import MissingExtra
from karat.reports.phrases.numbers import signed
from karat.reports.writers.plain import CONTROLS

if TYPE_CHECKING:
    import altair as alt

INK = {
    "ink": "var(--ink)",
    "quiet": "var(--quiet)",
    "line": "var(--line)",
    "back": "var(--back)",
    "up": "var(--up)",
    "down": "var(--down)",
}
"""Colours of a page, by use."""
PAPER = {
    "ink": "#1b1f24",
    "quiet": "#59636e",
    "line": "#d5dae0",
    "back": "#ffffff",
    "up": "#0b62b8",
    "down": "#a9480f",
}
"""Colours of a picture on its own."""

_BASE = "https://vega.github.io/vega-datasets/#"  # vl-convert's prefix of a link within a page
_WIDE, _NARROW = 600, 300  # pixels of the plot itself
# The reader's fonts may be wider than the measured ones.
_PADDING = {"left": 16, "right": 12, "top": 4, "bottom": 4}
_LABEL = 30  # characters of a name
_AXIS = 60
_TIP = 240  # characters of the title of a mark
_AREA = re.compile(
    rf'<a xlink:href="{re.escape(_BASE)}([^"]*)">'
    r'<path aria-label="([^"]*)"[^>]* (d="[^"]*")[^>]*/></a>'
)


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
    """One bar: a height above or below 0, with link and tooltip as in ``Dot``."""

    height: float
    href: str | None = None
    tip: str = ""


def intervals(
    dots: Sequence[Dot],
    axis: str,
    *,
    zero: bool,
    narrow: bool = False,
    colours: dict[str, str] | None = None,
) -> alt.LayerChart:
    """Dots with their intervals, one row for each."""
    alt = _altair()
    paint = INK if colours is None else colours
    step, width = (40, _NARROW) if narrow else (26, _WIDE)
    ends = [e for d in dots for e in (d.value, d.low, d.high, d.shrunk) if e is not None]
    domain = _domain(ends, zero=zero)
    drawn = [dot for dot in dots if dot.value is not None]
    data = _frame(
        {
            "y": [place for place, dot in enumerate(dots) if dot.value is not None],
            "value": [dot.value for dot in drawn],
            # Clipped here: the ids of the chart's own clipping paths would clash in a page.
            "low": [_cut(d.value if d.low is None else d.low, domain) for d in drawn],
            "high": [_cut(d.value if d.high is None else d.high, domain) for d in drawn],
            "ink": [paint[dot.ink] for dot in drawn],
            "fill": [paint[dot.ink if dot.told else "back"] for dot in drawn],
            "shrunk": [dot.shrunk for dot in drawn],
        }
    )
    labels = _frame(
        {
            "y": list(range(len(dots))),
            "label": [_short(dot.label) for dot in dots],
            "text": [_number(dot.value, signs=zero) for dot in dots],
        }
    )
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[len(dots) - 0.5, -0.5], nice=False))
    x = alt.X(
        "value:Q",
        title=_short(axis, _AXIS),
        scale=alt.Scale(domain=domain, nice=False),
        axis=alt.Axis(tickCount=5, labelFlush=False, format="~g"),
    )
    rows, named = alt.Chart(data).encode(y=y), alt.Chart(labels).encode(y=y)
    layers = []
    if zero:
        middle = alt.Chart(_frame({"value": [0.0]}))
        layers.append(middle.mark_rule(color=paint["quiet"], strokeDash=[3, 3]).encode(x=x))
    layers += [
        rows.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q"), x2="high:Q", color=alt.Color("ink:N", scale=None)
        ),
        rows.mark_point(size=70, strokeWidth=2, opacity=1).encode(
            x=x,
            stroke=alt.Stroke("ink:N", scale=None),
            fill=alt.Fill("fill:N", scale=None),
        ),
    ]
    if any(dot.shrunk is not None for dot in drawn):
        layers.append(
            rows.transform_filter("isValid(datum.shrunk)")
            .mark_point(shape="diamond", size=60, strokeWidth=1.5, filled=False, opacity=1)
            .encode(x=alt.X("shrunk:Q"), stroke=alt.StrokeValue(paint["quiet"]))
        )
    side: dict[str, Any] = {"color": paint["ink"], "fontSize": 13, "baseline": "middle"}
    left = {"align": "left", "dy": -15} if narrow else {"align": "right"}
    right = {"align": "right", "dy": -15} if narrow else {"align": "left"}
    layers += [
        named.mark_text(**side, **left).encode(x=alt.value(0 if narrow else -12), text="label:N"),
        named.mark_text(**side, **right).encode(
            x=alt.value(width if narrow else width + 12), text="text:N"
        ),
    ]
    if paint is INK:
        areas = _areas([(dot.href, dot.tip) for dot in dots])
        # On a narrow screen the label is above its row, within the area.
        top, bottom = (
            ("datum.at - 0.62", "datum.at + 0.38")
            if narrow
            else ("datum.at - 0.5", "datum.at + 0.5")
        )
        scale = alt.Scale(domain=[len(dots) - 0.5, -0.5], nice=False)
        layers.append(
            areas.transform_calculate(top=top, bottom=bottom).encode(
                x=alt.value(0 if narrow else -4),
                x2=alt.value(width if narrow else width + 64),
                y=alt.Y("top:Q", axis=None, scale=scale),
                y2="bottom:Q",
            )
        )
    return _themed(layers, width, step * max(1, len(dots)), paint)


def bars(
    heights: Sequence[Bar],
    axis: str,
    *,
    narrow: bool = False,
    colours: dict[str, str] | None = None,
) -> alt.LayerChart:
    """Bars side by side, above and below 0, in the order given."""
    alt = _altair()
    paint = INK if colours is None else colours
    width = _NARROW if narrow else _WIDE + 120
    gap = width / max(len(heights), 1)
    data = _frame(
        {
            "x": [place + 0.5 for place in range(len(heights))],
            "height": [bar.height for bar in heights],
            "ink": [paint["up" if bar.height > 0 else "down"] for bar in heights],
        }
    )
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, max(len(heights), 1)], nice=False))
    y = alt.Y(
        "height:Q",
        title=_short(axis, _AXIS),
        axis=alt.Axis(tickCount=5, format="~g", titlePadding=14),
    )
    drawn = (
        alt.Chart(data)
        .mark_bar(width=max(0.5, min(gap * 0.8, 24)))
        .encode(x=x, y=y, color=alt.Color("ink:N", scale=None))
    )
    middle = alt.Chart(_frame({"height": [0.0]})).mark_rule(color=paint["quiet"]).encode(y=y)
    layers: list[Any] = [drawn, middle]
    if paint is INK:
        layers.append(_columns([(bar.href, bar.tip) for bar in heights], x, 170))
    return _themed(layers, width, 170, paint)


def counts(
    numbers: Sequence[int],
    labels: Sequence[str],
    axis: str,
    *,
    areas: Sequence[tuple[str | None, str]] = (),
    narrow: bool = False,
    colours: dict[str, str] | None = None,
) -> alt.LayerChart:
    """A histogram: counts per bin, as labelled columns."""
    alt = _altair()
    paint = INK if colours is None else colours
    width = _NARROW if narrow else _WIDE + 120
    data = _frame(
        {
            "x": [place + 0.5 for place in range(len(numbers))],
            "n": list(numbers),
            "label": list(labels),
            "text": [f"{n:,}" for n in numbers],
        }
    )
    scale = alt.Scale(domain=[0, len(numbers)], nice=False)
    base = alt.Chart(data).encode(
        x=alt.X("x:Q", axis=None, scale=scale),
        y=alt.Y("n:Q", axis=None, scale=alt.Scale(domain=[0, max([1, *numbers])])),
    )
    side: dict[str, Any] = {"color": paint["ink"], "fontSize": 12}
    low = base.mark_text(**side, baseline="top", dy=6).encode(y=alt.value(130), text="label:N")
    named = alt.Chart(_frame({"t": [_short(axis, _AXIS)]}))
    layers = [
        base.mark_bar(width=width / max(len(numbers), 1) * 0.82, color=paint["quiet"]),
        base.mark_text(**side, baseline="bottom", dy=-3).encode(text="text:N"),
        low,
        named.mark_text(**side, baseline="top", dy=24).encode(
            x=alt.value(width / 2), y=alt.value(130), text="t:N"
        ),
    ]  # fmt: skip
    if areas:
        layers.append(_columns(areas, alt.X("x:Q", axis=None, scale=scale), 130))
    return _themed(layers, width, 130, paint)


def to_svg(chart: alt.LayerChart, title: str | None = None) -> str:
    """The chart as SVG for a page, with links within that page."""
    _need_drawing()
    out = io.StringIO()
    chart.save(out, format="svg")
    drawn = with_marks(out.getvalue())
    drawn = re.sub(r"<[^>]*>", _slim, drawn)  # within tags only, as text is untrusted
    drawn = re.sub(r'<path class="(?:fore|back)ground" d="[^"]*"(?: display="none")?/>', "", drawn)
    if title is None:
        return drawn.replace("<svg ", '<svg role="img" ', 1)
    name = html.escape(_plain(title))
    drawn = drawn.replace("<svg ", f'<svg role="group" aria-label="{name}" ', 1)
    return drawn.replace("<text ", '<text aria-hidden="true" ')


def with_marks(svg: str) -> str:
    """Areas that vl-convert drew as links and tooltips of a page."""
    return _AREA.sub(_area, svg)


def to_png(chart: alt.LayerChart) -> bytes:
    """The chart as PNG, at double resolution."""
    _need_drawing()
    out = io.BytesIO()
    chart.save(out, format="png", scale_factor=2)
    return out.getvalue()


def _areas(links: Sequence[tuple[str | None, str]]) -> Any:
    """Transparent areas with link and tooltip, one per row or column, without positions."""
    data: dict[str, list[Any]] = {
        "at": list(range(len(links))),
        "href": [f"#{href or ''}" for href, _ in links],
        "tip": [_plain(tip)[:_TIP] for _, tip in links],
    }
    chart = _altair().Chart(_frame(data)).mark_rect(fillOpacity=0)
    return chart.encode(href="href:N", description="tip:N")


def _columns(links: Sequence[tuple[str | None, str]], x: Any, height: int) -> Any:
    """Transparent areas over a chart of columns, of full height."""
    alt = _altair()
    left, right = x.copy(), alt.X2("right:Q")
    left.shorthand = "at:Q"
    areas = _areas(links).transform_calculate(right="datum.at + 1")
    return areas.encode(x=left, x2=right, y=alt.value(0), y2=alt.value(height))


def _area(match: re.Match[str]) -> str:
    """An area as a link with a title, which browsers show and read out."""
    place, tip, path = match.groups()
    tag, leads = ("a", f' href="#{place}"') if place else ("g", ' role="img"')
    return (
        f'<{tag} class="mark"{leads} tabindex="-1"><title>{tip}</title>'
        f'<path {path} fill-opacity="0"/></{tag}>'
    )


def _slim(tag: re.Match[str]) -> str:
    """A tag without attributes that a page does not need."""
    out = re.sub(r' (?:aria-[a-z]+|pointer-events|xmlns:xlink)="[^"]*"', "", tag[0])
    out = re.sub(r' role="graphics-[a-z]+"', "", out)
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", out)


def _altair() -> Any:
    try:
        import altair as alt
    except ImportError:
        raise MissingExtra("altair", "report", "a chart") from None
    return alt


def _need_drawing() -> None:
    try:
        import vl_convert  # noqa: F401 - what Altair draws with
    except ImportError:
        raise MissingExtra("vl-convert-python", "report", "a chart") from None


def _themed(
    layers: Sequence[Any], width: int, height: int, paint: dict[str, str]
) -> alt.LayerChart:
    chart = _altair().LayerChart(layer=list(layers), width=width, height=height)
    clear = "transparent" if paint is INK else paint["back"]
    themed: alt.LayerChart = (
        chart.configure(background=clear, font="system-ui, sans-serif", aria=paint is INK)
        .properties(padding=_PADDING)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=paint["quiet"],
            titleColor=paint["quiet"],
            titleFontWeight="normal",
            titleFontSize=12,
            labelFontSize=12,
            domain=False,
            tickColor=paint["line"],
            gridColor=paint["line"],
        )
    )
    return themed


def _frame(columns: dict[str, list[Any]]) -> pl.DataFrame:
    return pl.DataFrame(columns, strict=False)


def _domain(ends: Sequence[float], *, zero: bool) -> list[float]:
    if not zero and all(0 <= end <= 1 for end in ends):
        return [0.0, 1.0]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = (high - low) * 0.05 or 0.1
    return [low - room if low < 0 else low, high + room]


def _cut(end: float | None, domain: Sequence[float]) -> float | None:
    return None if end is None else min(max(end, domain[0]), domain[1])


def _number(value: float | None, *, signs: bool) -> str:
    if value is None or not math.isfinite(value):
        return "no value"
    return signed(value) if signs else f"{value:.3f}"


def _short(label: str, longest: int = _LABEL) -> str:
    plain = _plain(label)
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def _plain(text: str) -> str:
    plain = text.translate(CONTROLS).encode("utf-8", "replace").decode()
    return plain.replace("\n", " ").replace("\u2028", " ").replace("\u2029", " ")
