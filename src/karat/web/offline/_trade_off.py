"""Quality against latency of the runs in the list, as a chart."""

from __future__ import annotations

import html

from karat.reports.charts.online import Spot, scatter
from karat.reports.html.figures import DrawnChart
from karat.reports.phrases.numbers import milliseconds
from karat.reports.phrases.report import number
from karat.web.framework.lists import Listed
from karat.workflows.workspace.stored_evaluations import P95, frontier
from karat.workflows.workspace.stored_views import link_marks

_WIDE, _NARROW = (760, 260), (290, 240)


def trade_off(runs: Listed, measure: str, base: str) -> DrawnChart | None:
    """Each dot leads to its run; None if fewer than two runs of the list are timed."""
    rows = [row for row in runs.rows if row[measure] is not None and row[P95] is not None]
    if len(rows) < 2:
        return None
    best = frontier([(row[P95], row[measure]) for row in rows])
    spots = [
        Spot(
            row[P95] / 1000,
            row[measure],
            "up" if on else "quiet",
            f"{row['name']}: {measure} {number(row[measure])}, p95 {milliseconds(row[P95])} ms",
            f"run-{row['id']}",
        )
        for row, on in zip(rows, best, strict=True)
    ]
    title = f"{measure} against latency"
    leads = {f"run-{row['id']}": {"run": str(row["id"])} for row in rows}
    wide, narrow = (
        link_marks(
            scatter(spots, "Latency p95, ms", measure, title=title, size=size),
            leads,
            lambda lead: html.escape(f"{base}/runs/{lead['run']}"),
        )
        for size in (_WIDE, _NARROW)
    )
    names = ", ".join(row["name"] for row, on in zip(rows, best, strict=True) if on)
    return DrawnChart(
        title, f"Blue: no other run is both better and faster ({names}).", wide, narrow
    )
