"""Results for a notebook: tables and, with the ``report`` extra, a chart of the intervals.

Static, escaped HTML without scripts, network requests or text colours, for light and dark themes.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from karat.errors import MissingExtra
from karat.reports.charts.drawing import SCHEMA, Spec, name, plain, vl_convert
from karat.reports.offline.evaluation import curve, main_table, others, slices
from karat.reports.table import Table
from karat.reports.writers.tables import escaped, html_table
from karat.tables import Result, Results
from karat.tables.notes import first_notes
from karat.tables.notes import others as other_notes

if TYPE_CHECKING:
    import altair as alt

_STYLE = """
.karat-results { max-width: 100%; overflow-wrap: anywhere; }
.karat-results .scroll { overflow-x: auto; max-width: 100%; margin: 0.5em 0 1em; }
.karat-results table { border-collapse: collapse; background: transparent; color: inherit;
  font-variant-numeric: tabular-nums; margin: 0; }
.karat-results caption { text-align: left; font-weight: bold; padding: 0.2em 0; color: inherit; }
.karat-results th, .karat-results td { padding: 0.2em 0.7em 0.2em 0; text-align: right;
  background: transparent; color: inherit; white-space: nowrap; border: 0; }
.karat-results th { font-weight: normal; }
.karat-results thead th { border-bottom: 1px solid currentColor; }
.karat-results tbody tr { background: transparent; }
.karat-results .text { text-align: left; white-space: normal; max-width: 16em;
  overflow-wrap: break-word; }
.karat-results svg { max-width: 100%; height: auto; }
.karat-results ul { padding-left: 1.2em; margin: 0.5em 0; }
.karat-results .quiet { opacity: 0.75; font-size: 0.9em; }
"""
_WIDE = 420  # pixels; an SVG shrinks to fit, but does not grow
_OF_JAVASCRIPT = {
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
}
_STEP = 16  # pixels for each interval


def to_html(results: Results) -> str:
    """Results as an HTML fragment: a chart if possible, tables, and notes."""
    parts = [f"<style>{_STYLE}</style>"]
    drawing = lacking = None
    try:
        drawing = _drawing(results)
    except MissingExtra:
        lacking = (
            '<p class="quiet">For a chart of the intervals: '
            "<code>pip install 'karat[report]'</code></p>"
        )
    parts += [drawing] if drawing is not None else []
    tables = [*([main_table(results, bands=True)] if results.results else []), *slices(results)]
    parts += [_scrolled(table) for table in (*tables, *others(results))]
    for row in results.no_answer:
        if row.curve:
            drawn = curve(row)
            content = _scrolled(replace(drawn, title=""))
            parts.append(f"<details><summary>{escaped(drawn.title)}</summary>{content}</details>")
    if results.notes:
        first, more = first_notes(results.notes)
        notes = "".join(f"<li>{escaped(note)}</li>" for note in first)
        notes += f"<li>{other_notes(more)}: <code>.notes</code></li>" if more else ""
        parts.append(f'<ul class="quiet">{notes}</ul>')
    parts += [lacking] if lacking is not None else []
    return f'<div class="karat-results">{"".join(parts)}</div>'


def chart(results: Results) -> alt.LayerChart:
    """The values of every run and measure with their 95 % intervals, as an Altair chart.

    Sums, and measures that exceed 1, are left out.

    """
    try:
        import altair as alt
    except ImportError:
        raise MissingExtra("altair", "report", "a chart") from None
    drawn: alt.LayerChart = alt.LayerChart.from_dict(_spec(results, {}))
    return drawn


def _spec(results: Results, config: Spec) -> Spec:
    rows = _charted(results)
    runs = list(dict.fromkeys(_label(row.run) for row in rows))
    measures = list(dict.fromkeys(_label(row.measure) for row in rows))
    data = [
        {
            "run": _label(row.run),
            "measure": _label(row.measure),
            "value": row.value,
            # Clipped here: the ids of the chart's own clipping paths would clash in a page.
            "low": row.value if row.ci_low is None else max(row.ci_low, 0.0),
            "high": row.value if row.ci_high is None else min(row.ci_high, 1.0),
        }
        for row in rows
    ]
    legend = {"title": None, "orient": "top", "labelLimit": 300, "columns": 1}
    across = {"type": "quantitative", "scale": {"domain": [0, 1]}}
    title = "value, with its 95 % interval"
    return {
        "$schema": SCHEMA,
        "data": {"values": data},
        "width": _WIDE,
        "height": _STEP * max(1, len(runs)) * max(1, len(measures)) + 6 * len(measures),
        "encoding": {
            "y": name("measure") | {"sort": measures, "title": None, "axis": {"labelLimit": 240}},
            "yOffset": name("run") | {"sort": runs},
            "color": name("run")
            | {"sort": runs, "scale": {"scheme": "tableau10"}}
            | {"legend": legend if len(runs) > 1 else None},
        },
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": across | {"field": "low", "title": title},
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "opacity": 1, "size": 45},
                "encoding": {"x": across | {"field": "value"}},
            },
        ],
        "config": config,
    }


def _charted(results: Results) -> list[Result]:
    fits = {row.measure: True for row in results.results if row.aggregate != "sum"} | {
        row.measure: False for row in results.results if not 0 <= (row.value or 0) <= 1
    }
    return [
        row for row in results.results if fits.get(row.measure, False) and row.value is not None
    ]


def _drawing(results: Results) -> str | None:
    """The chart as SVG; None if there is nothing to draw or drawing fails."""
    if not _charted(results):
        return None
    text = dict.fromkeys(("labelColor", "titleColor", "domainColor", "tickColor"), "currentColor")
    config = {
        "background": "transparent",
        "view": {"stroke": None},
        "axis": text | {"titleFontWeight": "normal", "gridColor": "rgba(128, 128, 128, 0.3)"},
        "legend": {"labelColor": "currentColor"},
    }
    draw = vl_convert().vegalite_to_svg
    try:
        return f'<div class="chart">{draw(json.dumps(_spec(results, config)))}</div>'
    except Exception:  # noqa: BLE001 - the tables have every number
        return None


def _scrolled(table: Table) -> str:
    return f'<div class="scroll">{html_table(table, kind="")}</div>'


def _label(text: str) -> str:
    """A name that the chart can use as a key.

    Vega looks names up in a JavaScript object: names of its built-in properties get a no-break
    space at the end.
    """
    text = plain(text)
    return f"{text}\xa0" if text in _OF_JAVASCRIPT else text
