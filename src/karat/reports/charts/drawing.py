"""What all charts share: Vega-Lite dictionaries, drawn by vl-convert, static in a page.

Transparent areas tile the plot over the marks, each a link to its rows with the numbers as title,
so that a thin bar is as easy to hit as the gap next to it.

Colours are the variables of the page, for light and dark themes. Untrusted names are only drawn as
text, never used as keys of scales or legends.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

from karat.errors import MissingExtra
from karat.reports.writers.plain import CONTROLS

Spec = dict[str, Any]
"""A chart, layer or channel in Vega-Lite."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
INK = {use: f"var(--{use})" for use in ("ink", "quiet", "line", "back", "up", "down")}
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

_TIP = 300  # characters of the title of a mark
# An area's description holds its link too: vl-convert takes half a millisecond to check a link.
_AREA = re.compile(r'<path aria-label="area ([^" ]*) ([^"]*)"[^>]* (d="[^"]*")[^>]*/>')


def spec(
    layers: Sequence[Spec],
    size: tuple[int, int],
    *,
    paint: Mapping[str, str] = INK,
    padding: tuple[int, int, int, int] = (4, 14, 6, 4),
    axis: Mapping[str, object] | None = None,
) -> Spec:
    """Layers as a chart of a size in pixels, with padding left, right, top and bottom."""
    return {
        "$schema": SCHEMA,
        "width": size[0],
        "height": size[1],
        "background": "transparent" if paint is INK else paint["back"],
        "padding": dict(zip(("left", "right", "top", "bottom"), padding, strict=True)),
        "layer": list(layers),
        "config": {
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "aria": paint is INK,
            "axis": {
                "labelColor": paint["quiet"],
                "titleColor": paint["quiet"],
                "titleFontWeight": "normal",
                "titleFontSize": 12,
                "labelFontSize": 12,
                "domain": False,
                "tickColor": paint["line"],
                "gridColor": paint["line"],
                **(axis or {}),
            },
        },
    }


def layer(rows: Sequence[Mapping[str, object]], mark: str, looks: Spec, **channels: Spec) -> Spec:
    """Marks, one per row."""
    return {"data": {"values": rows}, "mark": {"type": mark, **looks}, "encoding": channels}


def number(
    field: str, domain: Sequence[float], axis: Spec | None = None, title: str | None = None
) -> Spec:
    """A channel of positions."""
    scale = {"domain": list(domain), "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def name(field: str) -> Spec:
    """A channel of names."""
    return {"field": field, "type": "nominal"}


def look(field: str) -> Spec:
    """A channel of colours or shapes that the rows contain."""
    return {"field": field, "type": "nominal", "scale": None, "legend": None}


def steps(count: int, labels: Mapping[int, str | list[str]]) -> Spec:
    """The x channel of evenly spaced places from 0, of which some have labels."""
    text = json.dumps({str(at): label for at, label in labels.items()})
    axis = {
        "values": list(labels),
        "labelExpr": f"{text}[datum.value]",
        "labelOverlap": False,
        "labelFlush": False,
        "grid": False,
    }
    return number("at", [-0.5, count - 0.5], axis)


def uprights(lines: Sequence[tuple[float, str]], x: Spec) -> list[Spec]:
    """Annotations: vertical lines, each with its label above."""
    rows = [{"at": at, "label": label} for at, label in lines]
    line = {"stroke": INK["ink"], "strokeWidth": 1, "strokeOpacity": 0.6}
    text = {"fontSize": 12, "fill": INK["ink"], "dy": -7}
    return [
        layer(rows, "rule", line, x=x),
        layer(rows, "text", text, x=x, y={"value": 0}, text=name("label")),
    ] if rows else []  # fmt: skip


def areas(
    links: Sequence[tuple[str | None, str]], spans: Sequence[Mapping[str, float]], **place: Spec
) -> Spec:
    """Transparent areas: the id of the element each links to, its tooltip and its extent."""
    rows = [
        {**span, "tip": f"area {href or ''} {short(tip, _TIP)}"}
        for (href, tip), span in zip(links, spans, strict=True)
    ]
    return layer(rows, "rect", {"fillOpacity": 0}, **place, description=name("tip"))


def columns(links: Sequence[tuple[str | None, str]], x: Spec, height: int) -> Spec:
    """Transparent areas of full height, side by side from the left end of ``x``."""
    left = x["scale"]["domain"][0]
    spans = [{"left": left + at, "right": left + at + 1} for at in range(len(links))]
    across = {"x": x | {"field": "left"}, "x2": {"field": "right"}}
    return areas(links, spans, **across, y={"value": 0}, y2={"value": height})


def to_svg(chart: Spec, title: str | None = None) -> str:
    """The chart as SVG for a page, with links within that page."""
    vl_convert()  # whether or not the drawing is cached: a report has all of its charts, or none
    return _drawn(json.dumps(chart, allow_nan=False), title)


def to_png(chart: Spec) -> bytes:
    """The chart as PNG, at double resolution."""
    png: bytes = vl_convert().vegalite_to_png(json.dumps(chart, allow_nan=False), scale=2)
    return png


@cache
def ready() -> None:
    """Draw an empty chart once, since the first one of a process takes most of a second longer."""
    with suppress(MissingExtra):
        to_svg(spec([], (1, 1)))


def vl_convert() -> Any:
    """The library that draws, without a browser."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("vl-convert-python", "report", "a chart") from None
    return vl_convert


def short(label: str, longest: int = 30) -> str:
    """A text in one line, cut if it is long."""
    text = plain(label)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def plain(text: str) -> str:
    """A text in one line of characters that SVG may contain."""
    text = text.translate(CONTROLS).encode("utf-8", "replace").decode()
    return text.replace("\n", " ").replace("\u2028", " ").replace("\u2029", " ")


@lru_cache(256)
def _drawn(chart: str, title: str | None) -> str:
    svg = _AREA.sub(_area, vl_convert().vegalite_to_svg(chart))
    svg = re.sub(r"<[^>]*>", _slim, svg)  # within tags only, as text is untrusted
    svg = re.sub(r'<path class="(?:fore|back)ground" d="[^"]*"(?: display="none")?/>', "", svg)
    if title is None:
        return svg.replace("<svg ", '<svg role="img" ', 1)
    label = html.escape(plain(title))
    svg = svg.replace("<svg ", f'<svg role="group" aria-label="{label}" ', 1)
    return svg.replace("<text ", '<text aria-hidden="true" ')


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
    return re.sub(r"-?\d+\.\d{3,}", lambda digits: f"{float(digits[0]):.2f}", out)
