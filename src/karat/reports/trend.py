"""A history for eyes: measures over time in a terminal, and as one self-contained page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from karat.errors import MissingExtra
from karat.reports.cells import base, plain
from karat.reports.figures import counted, signed
from karat.reports.terminal import show_notes
from karat.tables.history import BREAKING, Mark, Series, Trend

_WIDEST, _NARROWEST = 40, 10  # columns of the chart
_AROUND = 61  # columns that the other cells take
_THEMES = {
    "light": {"ink": "#1a1a1a", "faint": "#d9d9d9", "line": "#0b5cad"},
    "dark": {"ink": "#e8e8e8", "faint": "#444444", "line": "#7cb8f2"},
}


def show_trend(trend: Trend, out: Console) -> None:
    """Print each series, the worst problem first, and the notes."""
    for series in trend.series:
        out.print(Text.assemble((series.name, "bold"), f" of {series.run}"))
        out.print(sentence(series), style="bold" if series.lean.drifts else "")
        out.print(_table(_shown(series, trend.last), out.width))
        hidden = len(series.marks) - len(_shown(series, trend.last))
        if hidden:
            points = counted(hidden, "earlier point", "earlier points")
            out.print(f"{points} not shown (--last {len(series.marks)})", style="dim")
        out.print()
    show_notes(trend.notes, out)


def sentence(series: Series) -> str:
    """What the newest stretch of a series does."""
    lean = series.lean
    if lean.change is None:
        return "one point only since then" if lean.points else "no value since then"
    moved = lean.worse + lean.better
    steps = (
        f"{lean.worse} of {counted(moved, 'step', 'steps')} for the worse" if moved else "no step"
    )
    since = f"{_signed(lean.change)} since {_day(str(lean.since))}, {steps}"
    if lean.leans:
        return f"DRIFT: {since}: more than chance"
    if lean.drifts:
        return f"DRIFT: {since}: more than the intervals allow, and no single step shows it"
    if lean.below_start:
        return f"worse than at the start: {since}"
    if lean.rises:
        return f"getting better: {since}"
    return f"no drift found: {since}"


def to_html(trend: Trend) -> str:
    """One page without anything from elsewhere: charts, tables, notes; light and dark.

    Raises:
        MissingExtra: Jinja2 or vl-convert-python is not installed.
    """
    try:
        import jinja2
    except ImportError:
        raise MissingExtra("jinja2", "web", "a page of a trend") from None
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("vl-convert-python", "web", "a page of a trend") from None
    template = resources.files("karat.reports").joinpath("trend.html.j2").read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    sections = [
        {
            "title": f"{series.name} of {series.run}",
            "sentence": sentence(series),
            "drifts": series.lean.drifts,
            "charts": {
                theme: vl_convert.vegalite_to_svg(json.dumps(_chart(series, trend.last, theme)))
                for theme in _THEMES
            },
            "rows": [_row(mark) for mark in reversed(_shown(series, trend.last))],
            "total": len(series.marks),
        }
        for series in trend.series
    ]
    return environment.from_string(template).render(
        source=trend.source, sections=sections, notes=trend.notes, drifting=len(trend.drifting)
    )


def _shown(series: Series, last: int | None) -> Sequence[Mark]:
    return series.marks if last is None else series.marks[-last:]


def _table(marks: Sequence[Mark], width: int) -> Table:
    days = {_day(mark.time) for mark in marks}
    clock = len(days) < len(marks)
    room = width - _AROUND - (6 if clock else 0)
    room = min(max(room, _NARROWEST), _WIDEST)
    low, high = _range(marks)
    table = base()
    table.padding = (0, 1, 0, 0)
    table.add_column("time", no_wrap=True)
    table.add_column("commit", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column(_axis(low, high, room), no_wrap=True, min_width=room)
    table.add_column("change", justify="right", no_wrap=True)
    table.add_column("told\napart", no_wrap=True)
    table.add_column("changed", overflow="fold")
    for place, mark in enumerate(marks):
        if mark.breaks:
            if place:
                table.add_section()
            cut = Text("─ not comparable ─"[:room].center(room, "─"), style="dim")
            table.add_row("", "", "", cut, "", "", plain(_broke(mark)))
        when = mark.time[:16].replace("T", " ") if clock else _day(mark.time)
        change = "" if mark.change is None else _signed(mark.change)
        table.add_row(
            when,
            plain(_short(mark.commit)),
            Text("–" if mark.value is None else _number(mark.value), style="bold"),
            _bar(mark, low, high, room),
            change,
            _yes(mark.told_apart),
            plain(_else(mark)),
        )
    return table


def _row(mark: Mark) -> dict[str, str | bool]:
    """The cells of a point on the page."""
    interval = ""
    if mark.ci_low is not None and mark.ci_high is not None:
        interval = f"{_number(mark.ci_low)} – {_number(mark.ci_high)}"
    return {
        "time": mark.time[:16].replace("T", " "),
        "commit": _short(mark.commit),
        "whole": mark.commit or "",
        "value": "–" if mark.value is None else _number(mark.value),
        "interval": interval,
        "n": "" if mark.n is None else f"{mark.n:,}",
        "change": "" if mark.change is None else _signed(mark.change),
        "told": _yes(mark.told_apart),
        "changed": ", ".join([*mark.changed, *(f"{name}?" for name in mark.unknown)]),
        "gate": (mark.verdict or "").replace("_", " "),
        "breaks": mark.breaks,
    }


def _broke(mark: Mark) -> str:
    known = [name for name in mark.changed if name in BREAKING]
    return ", ".join([*known, *(f"{name}?" for name in mark.unknown if name in BREAKING)])


def _else(mark: Mark) -> str:
    """What changed besides; that the answers did goes without saying if something else did."""
    others = [name for name in mark.changed if name not in BREAKING]
    told = [name for name in others if name != "answers"]
    return ", ".join(told) or ("answers only" if others and not mark.breaks else "")


def _range(marks: Iterable[Mark]) -> tuple[float, float]:
    """What the chart spans: all values and intervals."""
    ends = [
        end for mark in marks for end in (mark.ci_low, mark.value, mark.ci_high) if end is not None
    ]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    if low == high:
        reach = abs(low) / 10 or 0.5
        return low - reach, high + reach
    return low, high


def _axis(low: float, high: float, room: int) -> Text:
    left, right = f"{low:.3g}", f"{high:.3g}"
    return Text(left + right.rjust(room - len(left)))


def _bar(mark: Mark, low: float, high: float, room: int) -> Text:
    """A value on its interval, as ``  ├──●──┤``; nothing where there is no value."""

    def place(value: float) -> int:
        return round((value - low) / (high - low) * (room - 1))

    if mark.value is None:
        return Text("no value", style="dim")
    cells = [" "] * room
    if mark.ci_low is not None and mark.ci_high is not None:
        left, right = place(mark.ci_low), place(mark.ci_high)
        cells[left : right + 1] = "─" * (right - left + 1)
        cells[left], cells[right] = "├", "┤"
    cells[place(mark.value)] = "●"
    return Text("".join(cells))


def _chart(series: Series, last: int | None, theme: str) -> dict[str, Any]:
    """The chart of a series, in Vega-Lite: a line for each stretch, a bar for each interval."""
    colours = _THEMES[theme]
    stretch, rows = 0, []
    for mark in _shown(series, last):
        stretch += mark.breaks
        if mark.value is not None:
            interval = {"low": mark.ci_low, "high": mark.ci_high} if mark.ci_low is not None else {}
            rows.append({"time": mark.time, "value": mark.value, "stretch": stretch} | interval)
    x = {
        "field": "time",
        "type": "temporal",
        "title": None,
        "scale": {"type": "utc", "padding": 12},
    }
    y = {"field": "value", "type": "quantitative", "title": None, "scale": {"zero": False}}
    mark_of = {"color": colours["line"]}
    axis = {
        "labelColor": colours["ink"],
        "domainColor": colours["ink"],
        "tickColor": colours["ink"],
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": 640,
        "height": 200,
        "background": None,
        "data": {"values": rows},
        "encoding": {"x": x},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "opacity": 0.45, "strokeWidth": 3} | mark_of,
                "encoding": {"y": y | {"field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "line", "strokeWidth": 1.5} | mark_of,
                "encoding": {"y": y, "detail": {"field": "stretch", "type": "nominal"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1} | mark_of,
                "encoding": {"y": y},
            },
        ],
        "config": {
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "axis": axis | {"gridColor": colours["faint"], "labelFontSize": 12},
            "axisX": {"grid": False, "labelOverlap": True},
        },
    }


def _day(time: str) -> str:
    return time[:10]


def _short(commit: str | None) -> str:
    """A hash as Git shortens it; the start of any other label."""
    text = commit or ""
    return text if len(text) <= 8 else text[:7] + ("" if _is_hash(text) else "…")


def _is_hash(text: str) -> bool:
    return len(text) >= 12 and all(c in "0123456789abcdef" for c in text)


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.0f}"


def _signed(value: float) -> str:
    return "0" if value == 0 else signed(value, 4 if abs(value) < 1000 else 0)


def _yes(told: bool | None) -> str:
    return "" if told is None else "yes" if told else "no"
