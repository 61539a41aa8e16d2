"""Results for a notebook: tables and, with the ``web`` extra, a chart of the intervals.

One piece of static HTML: no script, nothing from the network, no colour for text, so that it reads
in a light notebook and in a dark one. Names come from strangers, and everything is escaped.
"""

from __future__ import annotations

import html
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import polars as pl

from karat.errors import MissingExtra
from karat.measures.no_answer import thinned
from karat.reports.cells import CONTROLS
from karat.reports.figures import (
    milliseconds,
    moves,
    percent,
    silence_heading,
    three_digits,
    value_text,
)
from karat.reports.further import CURVE_ROWS
from karat.tables import Result, Results
from karat.tables.results import Latency, NoAnswer, Outcome

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
_WIDE = 420  # pixels; an SVG shrinks to the page, and does not grow
_STEP = 16  # pixels for each interval


def to_html(results: Results) -> str:
    """Results as HTML to stand in a page: a chart where there can be one, tables, and notes."""
    several = len({row.run for row in results.results}) > 1
    parts = [f"<style>{_STYLE}</style>"]
    drawing = _drawing(results)
    if drawing is not None:
        parts.append(drawing)
    if results.results:
        parts.append(_main_table(results.results, several))
    for attribute in dict.fromkeys(row.attribute for row in results.slices):
        for run in dict.fromkeys(row.run for row in results.slices):
            rows = [r for r in results.slices if r.attribute == attribute and r.run == run]
            parts.append(_slice_table(str(attribute), run, rows))
    if results.no_answer:
        parts.append(_silence_table(results.no_answer))
        parts += [_curve(row) for row in results.no_answer if row.curve]
    if results.latency:
        parts.append(_latency_table(results.latency))
    if results.outcomes:
        parts.append(_outcomes_table(results.outcomes, several))
    if results.notes:
        notes = "".join(f"<li>{_text(note)}</li>" for note in results.notes)
        parts.append(f'<ul class="quiet">{notes}</ul>')
    if drawing is None and _charted(results):
        parts.append(
            '<p class="quiet">For a chart of the intervals: '
            "<code>pip install 'karat[web]'</code></p>"
        )
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
        raise MissingExtra("altair", "web", "a chart") from None
    rows = _charted(results)
    runs = list(dict.fromkeys(_plain(row.run) for row in rows))
    measures = list(dict.fromkeys(_plain(row.measure) for row in rows))
    data = pl.DataFrame(
        {
            "run": [_plain(row.run) for row in rows],
            "measure": [_plain(row.measure) for row in rows],
            "value": [row.value for row in rows],
            # Cut off here, not by the chart: the ids of its clipping paths would clash in a page.
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
    """The chart as SVG; None without the packages, or with nothing to draw."""
    if not _charted(results):
        return None
    try:
        import vl_convert  # noqa: F401 - what Altair draws with
    except ImportError:
        return None
    try:
        drawn = chart(results)
    except MissingExtra:
        return None
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


def _main_table(rows: Sequence[Result], several: bool) -> str:
    tied = any(moves(row, row.tie_low, row.tie_high) for row in rows)
    bounded = any(moves(row, row.unjudged_low, row.unjudged_high) for row in rows)
    heads = ["measure", *(["run"] if several else []), "value", "95 %", "n", "judged"]
    heads += ["tie band"] if tied else []
    heads += ["unjudged band"] if bounded else []
    body = []
    for measure in dict.fromkeys(row.measure for row in rows):
        group = [row for row in rows if row.measure == measure]
        for place, row in enumerate(group):
            cells = [measure if place == 0 else "", *([row.run] if several else [])]
            cells += [value_text(row, row.value), _span(row.ci_low, row.ci_high, 3)]
            cells += [f"{row.n:,}", percent(row.judged)]
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
        cells = [str(name), f"{most:,}", *(_give_or_take(by_measure.get(m)) for m in measures)]
        body.append((cells, False))
    return _table(f"{run}, by {attribute}", [attribute, "n", *measures], body)


def _silence_table(rows: Sequence[NoAnswer]) -> str:
    body = [([row.run, f"{row.n:,}", f"{row.silent:,}", percent(row.share)], False) for row in rows]
    heads = ["run", "queries", silence_heading(rows), "share"]
    return _table("queries without a right answer", heads, body)


def _curve(row: NoAnswer) -> str:
    body = [
        (
            [
                f"{point.threshold:g}",
                percent(point.silent_no_answer),
                percent(point.silent_answerable),
            ],
            False,
        )
        for point in thinned(row.curve, CURVE_ROWS)
    ]
    heads = ["best score below", "no answer, silent", "answerable, silent"]
    table = _table("", heads, body, texts=0)
    return f"<details><summary>{_text(row.run)}: withhold weak answers</summary>{table}</details>"


def _latency_table(rows: Sequence[Latency]) -> str:
    body = []
    for row in rows:
        times = (row.p50_us, row.p95_us, row.p99_us, row.max_us)
        body.append(([row.run, f"{row.n:,}", *(milliseconds(t) for t in times)], False))
    return _table("latency, milliseconds", ["run", "n", "p50", "p95", "p99", "slowest"], body)


def _outcomes_table(rows: Sequence[Outcome], several: bool) -> str:
    heads = ["measure", *(["run"] if several else []), "outcome"]
    texts = len(heads)
    heads += ["Spearman", "95 %", "Kendall", "AUC", "n"]
    body = []
    for row in rows:
        cells = [
            row.measure,
            *([row.run] if several else []),
            row.outcome,
            three_digits(row.spearman),
        ]
        cells += [
            _span(row.ci_low, row.ci_high, 2),
            three_digits(row.kendall),
            three_digits(row.auc),
        ]
        body.append(([*cells, f"{row.n:,}"], False))
    return _table("with outcomes, over queries", heads, body, texts=texts)


def _table(
    caption: str,
    heads: Sequence[str],
    body: Iterable[tuple[Sequence[str], bool]],
    *,
    texts: int = 1,
) -> str:
    """A table; its first columns are text, and a row may be the last of its kind."""

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
    return text.translate(CONTROLS)


def _text(text: str) -> str:
    return html.escape(_plain(text))


def _band(row: Result, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "–"
    return f"{value_text(row, low)} – {value_text(row, high)}" if moves(row, low, high) else ""


def _span(low: float | None, high: float | None, digits: int) -> str:
    return "" if low is None or high is None else f"{low:.{digits}f} – {high:.{digits}f}"


def _give_or_take(row: Result | None) -> str:
    if row is None or row.value is None:
        return "–"
    if row.ci_low is None or row.ci_high is None:
        return value_text(row, row.value)
    return f"{row.value:.3f} ± {(row.ci_high - row.ci_low) / 2:.2f}"
