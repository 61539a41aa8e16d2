"""Recall and latency against exact search, as a table, JSON and a picture."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from karat.reports.phrases.costs import in_bytes
from karat.reports.phrases.numbers import counted
from karat.reports.table import Column, Table
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.tables.searched import Exactness

_WORST = 3


def show(found: Exactness, out: Console) -> None:
    out.print(plain(f"{found.engine}, exact {found.how}"), soft_wrap=True)
    draw(table(found), out)
    if found.vectors:
        out.print(plain(f"vectors: {found.vectors}"), soft_wrap=True)
    first = found.rows[1].setting
    low = [each for each in found.queries if each.setting == first and each.recall < 1]
    if low:
        shown = ", ".join(f"{each.query_id} ({each.recall:.2f})" for each in low[:_WORST])
        queries = counted(len(low), "query")
        out.print(plain(f"{first}: {queries} below 1, lowest {shown}"), soft_wrap=True)


def table(found: Exactness) -> Table:
    """One row for each setting, the exact search first."""
    columns = (
        Column("setting", "Setting", "words"),
        Column("n", "n", "count"),
        Column("recall", f"Recall@{found.k}", "number"),
        Column("ci_low", "95 %", "number", high="ci_high"),
        Column("p50_us", "p50", "ms", unit=" ms"),
        Column("p95_us", "p95", "ms", unit=" ms"),
        Column("index_bytes", "Index", "count", optional=True,
               text=lambda row: "" if row.index_bytes is None else in_bytes(row.index_bytes)),
    )  # fmt: skip
    return Table("", columns, found.rows)


def chart(found: Exactness) -> dict[str, Any]:
    """Latency against recall, one point for each setting, as Vega-Lite.

    A point is named with the size of its index, if that is not the same for all.
    """
    sizes = {row.index_bytes for row in found.rows} - {None}
    rows = [
        {
            "setting": row.setting
            if len(sizes) < 2 or row.index_bytes is None
            else f"{row.setting}, {in_bytes(row.index_bytes)}",
            "recall": 1.0 if row.recall is None else row.recall,
            "low": row.ci_low,
            "high": row.ci_high,
            "ms": row.p50_us / 1000,
            "exact": row.recall is None,
        }
        for row in found.rows
    ]
    x = {
        "field": "recall",
        "type": "quantitative",
        "title": f"Recall@{found.k}",
        "scale": {"zero": False},
    }
    y = {"field": "ms", "type": "quantitative", "title": "Latency p50, ms", "scale": {"zero": True}}
    colour = {"field": "exact", "type": "nominal", "legend": None}
    ends = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y}
    return {
        "width": 480,
        "height": 300,
        "data": {"values": rows},
        "layer": [
            {"mark": "rule", "encoding": ends},
            {
                "mark": {"type": "point", "filled": True, "size": 60},
                "encoding": {"x": x, "y": y, "color": colour},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 6, "dy": -6},
                "encoding": {"x": x, "y": y, "text": {"field": "setting"}},
            },
        ],
    }
