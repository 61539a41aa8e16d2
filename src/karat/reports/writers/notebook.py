"""Results for a notebook: tables and, with the ``report`` extra, a chart of the intervals.

Static, escaped HTML without scripts, network requests or text colours, for light and dark themes.
"""

from __future__ import annotations

import html
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import polars as pl

from karat.errors import MissingExtra
from karat.reports.phrases.numbers import moves, percent, value_text
from karat.reports.writers.cells import CONTROLS
from karat.reports.writers.sheets import Sheet, curve, sheets
from karat.tables import Result, Results
from karat.tables.notes import first_notes, others

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
.karat-results th { border-bottom: 1px solid currentColor; font-weight: normal; }
.karat-results tbody tr { background: transparent; }
.karat-results .text { text-align: left; white-space: normal; max-width: 16em;
  overflow-wrap: break-word; }
.karat-results tr.last td { border-bottom: 1px solid rgba(128, 128, 128, 0.4); }
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
    several = len({row.run for row in results.results}) > 1
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
    if results.results:
        parts.append(_main_table(results.results, several, judged=not results.fully_judged))
    for attribute in dict.fromkeys(row.attribute for row in results.slices):
        for run in dict.fromkeys(row.run for row in results.slices):
            rows = [r for r in results.slices if r.attribute == attribute and r.run == run]
            parts.append(_slice_table(str(attribute), run, rows))
    for sheet in sheets(results):
        parts.append(_sheet(sheet))
    for row in results.no_answer:
        if row.curve:
            drawn = curve(row)
            parts.append(
                f"<details><summary>{_text(drawn.title)}</summary>{_sheet(drawn)}</details>"
            )
    if results.notes:
        first, more = first_notes(results.notes)
        notes = "".join(f"<li>{_text(note)}</li>" for note in first)
        notes += f"<li>{others(more)}: <code>.notes</code></li>" if more else ""
        parts.append(f'<ul class="quiet">{notes}</ul>')
    parts += [lacking] if lacking is not None else []
    return f'<div class="karat-results">{"".join(parts)}</div>'


def chart(results: Results) -> alt.LayerChart:
    """The values of every run and measure with their 95 % intervals, as an Altair chart.

    Sums, and measures that exceed 1, are left out.

    Raises:
        MissingExtra: Altair is not installed.
    """
    try:
        import altair as alt
    except ImportError:
        raise MissingExtra("altair", "report", "a chart") from None
    rows = _charted(results)
    runs = list(dict.fromkeys(_label(row.run) for row in rows))
    measures = list(dict.fromkeys(_label(row.measure) for row in rows))
    data = pl.DataFrame(
        {
            "run": [_label(row.run) for row in rows],
            "measure": [_label(row.measure) for row in rows],
            "value": [row.value for row in rows],
            # Clipped here: the ids of the chart's own clipping paths would clash in a page.
            "low": [row.value if row.ci_low is None else max(row.ci_low, 0.0) for row in rows],
            "high": [row.value if row.ci_high is None else min(row.ci_high, 1.0) for row in rows],
        }
    )
    across = alt.Scale(domain=[0, 1])
    base = alt.Chart(data).encode(
        y=alt.Y("measure:N", sort=measures, title=None, axis=alt.Axis(labelLimit=240)),
        yOffset=alt.YOffset("run:N", sort=runs),
        color=alt.Color(
            "run:N",
            sort=runs,
            scale=alt.Scale(scheme="tableau10"),
            legend=alt.Legend(title=None, orient="top", labelLimit=300, columns=1)
            if len(runs) > 1
            else None,
        ),
    )
    spans = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=across, title="value, with its 95 % interval"), x2="high:Q"
    )
    points = base.mark_point(filled=True, opacity=1, size=45).encode(
        x=alt.X("value:Q", scale=across)
    )
    height = _STEP * max(1, len(runs)) * max(1, len(measures)) + 6 * len(measures)
    drawn: alt.LayerChart = alt.LayerChart(layer=[spans, points], width=_WIDE, height=height)
    return drawn


def _charted(results: Results) -> list[Result]:
    fits = {row.measure: True for row in results.results if row.aggregate != "sum"} | {
        row.measure: False for row in results.results if not 0 <= (row.value or 0) <= 1
    }
    return [
        row for row in results.results if fits.get(row.measure, False) and row.value is not None
    ]


def _drawing(results: Results) -> str | None:
    """The chart as SVG; None if there is nothing to draw or drawing fails.

    Raises:
        MissingExtra: A package is not installed.
    """
    if not _charted(results):
        return None
    try:
        import vl_convert  # noqa: F401 - what Altair draws with
    except ImportError:
        raise MissingExtra("vl-convert-python", "report", "a chart") from None
    try:
        return _drawn(chart(results))
    except MissingExtra:
        raise
    except Exception:  # noqa: BLE001 - the tables have every number
        return None


def _drawn(drawn: alt.LayerChart) -> str:
    out = io.StringIO()
    themed = drawn.configure(background="transparent").configure_view(stroke=None)
    pale = "rgba(128, 128, 128, 0.3)"
    themed.configure_axis(
        labelColor="currentColor",
        titleColor="currentColor",
        titleFontWeight="normal",
        domainColor="currentColor",
        tickColor="currentColor",
        gridColor=pale,
    ).configure_legend(labelColor="currentColor").save(out, format="svg")
    return f'<div class="chart">{out.getvalue()}</div>'


def _main_table(rows: Sequence[Result], several: bool, *, judged: bool) -> str:
    tied = any(moves(row, row.tie_low, row.tie_high) for row in rows)
    bounded = any(moves(row, row.unjudged_low, row.unjudged_high) for row in rows)
    heads = ["measure", *(["run"] if several else []), "value", "95 %", "n"]
    heads += ["judged"] if judged else []
    heads += ["tie band"] if tied else []
    heads += ["unjudged band"] if bounded else []
    body = []
    for measure in dict.fromkeys(row.measure for row in rows):
        group = [row for row in rows if row.measure == measure]
        for place, row in enumerate(group):
            cells = [measure if place == 0 else "", *([row.run] if several else [])]
            cells += [value_text(row, row.value), _span(row.ci_low, row.ci_high, 3)]
            cells += [f"{row.n:,}", *([percent(row.judged)] if judged else [])]
            cells += [_band(row, row.tie_low, row.tie_high)] if tied else []
            cells += [_band(row, row.unjudged_low, row.unjudged_high)] if bounded else []
            body.append((cells, several and place == len(group) - 1))
    caption = "" if several else rows[0].run
    return _table(caption, heads, body, texts=2 if several else 1)


def _slice_table(attribute: str, run: str, rows: Sequence[Result]) -> str:
    measures = list(dict.fromkeys(row.measure for row in rows))
    body = []
    for name in dict.fromkeys(row.slice for row in rows):
        by_measure = {row.measure: row for row in rows if row.slice == name}
        most = max(row.n for row in by_measure.values())
        cells = [str(name), f"{most:,}", *(_with_interval(by_measure.get(m)) for m in measures)]
        body.append((cells, False))
    return _table(f"{run}, by {attribute}", [attribute, "n", *measures], body)


def _sheet(sheet: Sheet) -> str:
    title = sheet.title if sheet.texts else ""  # the summary has the title of a curve
    return _table(title, sheet.heads, [(row, False) for row in sheet.rows], texts=sheet.texts)


def _table(
    caption: str,
    heads: Sequence[str],
    body: Iterable[tuple[Sequence[str], bool]],
    *,
    texts: int = 1,
) -> str:
    """A table whose first ``texts`` columns are text; the flag of a row adds a rule below."""

    def cells(kind: str, values: Sequence[str]) -> str:
        opened = f'{kind} scope="col"' if kind == "th" else kind
        left = f'{opened} class="text"'
        return "".join(
            f"<{left if i < texts else opened}>{_text(value)}</{kind}>"
            for i, value in enumerate(values)
        )

    rows = "".join(
        f"{'<tr class=last>' if last else '<tr>'}{cells('td', values)}</tr>"
        for values, last in body
    )
    title = f"<caption>{_text(caption)}</caption>" if caption else ""
    head = f"<thead><tr>{cells('th', heads)}</tr></thead>"
    return f'<div class="scroll"><table>{title}{head}<tbody>{rows}</tbody></table></div>'


def _plain(text: str) -> str:
    return text.translate(CONTROLS).encode("utf-8", "replace").decode()


def _label(text: str) -> str:
    """A name that the chart can use as a key.

    Vega looks names up in a JavaScript object: names of its built-in properties get a no-break
    space at the end.
    """
    text = _plain(text).replace("\u2028", " ").replace("\u2029", " ")
    return f"{text}\xa0" if text in _OF_JAVASCRIPT else text


def _text(text: str) -> str:
    return html.escape(_plain(text))


def _band(row: Result, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "–"
    return f"{value_text(row, low)} – {value_text(row, high)}" if moves(row, low, high) else ""


def _span(low: float | None, high: float | None, digits: int) -> str:
    return "" if low is None or high is None else f"{low:.{digits}f} – {high:.{digits}f}"


def _with_interval(row: Result | None) -> str:
    if row is None or row.value is None:
        return "–"
    if row.ci_low is None or row.ci_high is None:
        return value_text(row, row.value)
    return f"{row.value:.3f} ({row.ci_low:.2f} – {row.ci_high:.2f})"
