"""Charts of a report: Altair makes them, vl-convert draws them, and no browser has to.

A page holds each chart twice, drawn for a wide and for a narrow screen, and shows one of them.
Colours are the page's own variables, so that a chart is right in light and in dark. Names of
strangers are text and nothing else: no scale and no legend looks them up.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.errors import MissingExtra
from karat.reports.cells import CONTROLS
from karat.reports.figures import signed

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
"""Colours of a page, by what they are for."""
PAPER = {
    "ink": "#1b1f24",
    "quiet": "#59636e",
    "line": "#d5dae0",
    "back": "#ffffff",
    "up": "#0b62b8",
    "down": "#a9480f",
}
"""The same for a picture that stands by itself."""

_BASE = "https://vega.github.io/vega-datasets/#"  # what vl-convert makes of a link within a page
_WIDE, _NARROW = 600, 300  # pixels of the plot itself
# Fonts of a reader may be wider than the ones that were measured.
_PADDING = {"left": 16, "right": 12, "top": 4, "bottom": 4}
_LABEL = 30  # characters of a name


@dataclass(frozen=True, slots=True)
class Dot:
    """One row of an interval chart.

    Attributes:
        label: What stands beside it.
        value: Where the dot is; None draws none, and says so.
        low: Lower end of the interval, or None.
        high: Upper end.
        told: Whether a test tells it from nothing: such dots are filled.
        ink: A key of ``INK``.
        shrunk: Where a second mark stands, or None.
        href: Id of a part of the page, or None.
    """

    label: str
    value: float | None
    low: float | None
    high: float | None
    told: bool = False
    ink: str = "ink"
    shrunk: float | None = None
    href: str | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: a height above or below 0, and the id of the part of the page it leads to."""

    height: float
    href: str | None = None


def intervals(
    dots: Sequence[Dot],
    axis: str,
    *,
    zero: bool,
    narrow: bool = False,
    colours: dict[str, str] | None = None,
) -> alt.LayerChart:
    """Dots with their intervals, one row for each.

    Args:
        dots: The rows, from top to bottom.
        axis: What the axis says.
        zero: Whether values are differences, drawn about a line at 0; else they are drawn from 0
            to 1 where they fit.
        narrow: For a telephone: labels stand above their rows.
        colours: ``INK`` if None.

    Raises:
        MissingExtra: Altair is not installed.
    """
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
            # Cut off here, not by the chart: the ids of its clipping paths would clash in a page.
            "low": [_cut(d.value if d.low is None else d.low, domain) for d in drawn],
            "high": [_cut(d.value if d.high is None else d.high, domain) for d in drawn],
            "ink": [paint[dot.ink] for dot in drawn],
            "fill": [paint[dot.ink if dot.told else "back"] for dot in drawn],
            "shrunk": [dot.shrunk for dot in drawn],
            "href": [f"#{dot.href or ''}" for dot in drawn],
        }
    )
    labels = _frame(
        {
            "y": list(range(len(dots))),
            "label": [_short(dot.label) for dot in dots],
            "text": [_number(dot.value, signs=zero) for dot in dots],
            "href": [f"#{dot.href or ''}" for dot in dots],
        }
    )
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[len(dots) - 0.5, -0.5], nice=False))
    x = alt.X(
        "value:Q",
        title=axis,
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
            href="href:N",
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
        named.mark_text(**side, **left).encode(
            x=alt.value(0 if narrow else -12), text="label:N", href="href:N"
        ),
        named.mark_text(**side, **right).encode(
            x=alt.value(width if narrow else width + 12), text="text:N", href="href:N"
        ),
    ]
    return _themed(layers, width, step * max(1, len(dots)), paint)


def bars(
    heights: Sequence[Bar],
    axis: str,
    *,
    narrow: bool = False,
    colours: dict[str, str] | None = None,
) -> alt.LayerChart:
    """Bars side by side, above and below 0, in the order given.

    Raises:
        MissingExtra: Altair is not installed.
    """
    alt = _altair()
    paint = INK if colours is None else colours
    width = _NARROW if narrow else _WIDE + 120
    gap = width / max(len(heights), 1)
    data = _frame(
        {
            "x": [place + 0.5 for place in range(len(heights))],
            "height": [bar.height for bar in heights],
            "ink": [paint["up" if bar.height > 0 else "down"] for bar in heights],
            "href": [f"#{bar.href or ''}" for bar in heights],
        }
    )
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, max(len(heights), 1)], nice=False))
    y = alt.Y("height:Q", title=axis, axis=alt.Axis(tickCount=5, format="~g", titlePadding=14))
    drawn = (
        alt.Chart(data)
        .mark_bar(width=max(0.5, min(gap * 0.8, 24)))
        .encode(x=x, y=y, color=alt.Color("ink:N", scale=None), href="href:N")
    )
    middle = alt.Chart(_frame({"height": [0.0]})).mark_rule(color=paint["quiet"]).encode(y=y)
    return _themed([drawn, middle], width, 170, paint)


def counts(
    numbers: Sequence[int],
    labels: Sequence[str],
    axis: str,
    *,
    narrow: bool = False,
    colours: dict[str, str] | None = None,
) -> alt.LayerChart:
    """How many there are in each of several bins, as columns with their numbers.

    Raises:
        MissingExtra: Altair is not installed.
    """
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
    layers = [
        base.mark_bar(width=width / max(len(numbers), 1) * 0.82, color=paint["quiet"]),
        base.mark_text(**side, baseline="bottom", dy=-3).encode(text="text:N"),
        low,
        alt.Chart(_frame({"t": [axis]})).mark_text(**side, baseline="top", dy=24).encode(
            x=alt.value(width / 2), y=alt.value(130), text="t:N"
        ),
    ]  # fmt: skip
    return _themed(layers, width, 130, paint)


def to_svg(chart: alt.LayerChart, *, hidden: bool = True) -> str:
    """The chart as SVG that can stand in a page; its links lead to parts of that page.

    Args:
        chart: The chart.
        hidden: Hide it from readers of a screen and from the tabulator key: what it shows stands
            beside it as text.

    Raises:
        MissingExtra: vl-convert is not installed.
    """
    _need_drawing()
    out = io.StringIO()
    chart.save(out, format="svg")
    drawn = out.getvalue()
    # A link to nowhere is none.
    drawn = re.sub(rf'<a xlink:href="{re.escape(_BASE)}">(.*?)</a>', r"\1", drawn, flags=re.DOTALL)
    drawn = re.sub(r"<[^>]*>", _slim, drawn)  # within tags only: text is a stranger's
    drawn = re.sub(r'<path class="(?:fore|back)ground" d="[^"]*"(?: display="none")?/>', "", drawn)
    said = 'aria-hidden="true" focusable="false"' if hidden else 'role="img"'
    return drawn.replace("<svg ", f"<svg {said} ", 1)


def to_png(chart: alt.LayerChart) -> bytes:
    """The chart as a picture, two dots to a pixel.

    Raises:
        MissingExtra: vl-convert is not installed.
    """
    _need_drawing()
    out = io.BytesIO()
    chart.save(out, format="png", scale_factor=2)
    return out.getvalue()


def _slim(tag: re.Match[str]) -> str:
    """A tag without what a page has no use for."""
    out = tag[0].replace(f'xlink:href="{_BASE}', 'tabindex="-1" href="#')
    out = re.sub(r' (?:role|aria-[a-z]+|pointer-events)="[^"]*"', "", out)
    return re.sub(r"-?\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", out)


def _altair() -> Any:
    try:
        import altair as alt
    except ImportError:
        raise MissingExtra("altair", "web", "a chart") from None
    return alt


def _need_drawing() -> None:
    try:
        import vl_convert  # noqa: F401 - what Altair draws with
    except ImportError:
        raise MissingExtra("vl-convert-python", "web", "a chart") from None


def _themed(
    layers: Sequence[Any], width: int, height: int, paint: dict[str, str]
) -> alt.LayerChart:
    chart = _altair().LayerChart(layer=list(layers), width=width, height=height)
    clear = "transparent" if paint is INK else paint["back"]
    themed: alt.LayerChart = (
        chart.configure(background=clear, font="system-ui, sans-serif", aria=False)
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


def _short(label: str) -> str:
    plain = label.translate(CONTROLS).encode("utf-8", "replace").decode()
    plain = plain.replace("\n", " ").replace("\u2028", " ").replace("\u2029", " ")
    return plain if len(plain) <= _LABEL else f"{plain[: _LABEL - 1]}…"
