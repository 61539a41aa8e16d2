"""Results as JSON, CSV, Markdown and LaTeX."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from karat.reports.writers.latex import results_table
from karat.reports.writers.plain import csv_table, markdown_cell, markdown_table
from karat.reports.writers.sheets import Sheet, about_runs, sheets
from karat.tables import Result, Results


def to_json(results: Results) -> str:
    """The documented JSON object."""
    return json.dumps(results.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(results: Results) -> str:
    """The result rows, or the per-query rows if there are any."""
    if results.per_query:
        return csv_table(results.per_query_rows())
    rows = [asdict(row) for row in [*results.results, *results.slices]]
    if not results.slices:
        rows = [{k: v for k, v in row.items() if k not in {"attribute", "slice"}} for row in rows]
    return csv_table(rows)


def to_markdown(results: Results) -> str:
    """A table of all queries and one per attribute, runs as rows, measures as columns; notes."""
    parts = [_markdown_grid(_grid(results.results), "run")]
    for attribute in dict.fromkeys(row.attribute for row in results.slices):
        rows = [row for row in results.slices if row.attribute == attribute]
        parts.append(_markdown_grid(_grid(rows), f"run, {attribute}"))
    about = about_runs(results)
    parts += map(_markdown_sheet, [*sheets(results), *([] if about is None else [about])])
    if results.notes:
        parts.append("".join(f"- {markdown_cell(note)}\n" for note in results.notes))
    return "\n".join(parts)


def to_latex(results: Results) -> str:
    """LaTeX tables, runs as rows and measures as columns, with intervals and captions."""
    return results_table(results)


def _grid(rows: Sequence[Result]) -> dict[str, list[Result]]:
    grid: dict[str, list[Result]] = {}
    for row in rows:
        name = row.run if row.slice is None else f"{row.run}, {row.slice}"
        grid.setdefault(name, []).append(row)
    return grid


def _markdown_grid(grid: dict[str, list[Result]], heading: str) -> str:
    first = next(iter(grid.values()))
    heads = [heading, *(row.measure for row in first), "n"]
    lines = [[name, *map(_with_interval, rows), str(rows[0].n)] for name, rows in grid.items()]
    return markdown_table(heads, lines, 1)


def _markdown_sheet(sheet: Sheet) -> str:
    return f"{markdown_cell(sheet.title)}\n\n{markdown_table(sheet.heads, sheet.rows, sheet.texts)}"


def _with_interval(row: Result) -> str:
    if row.ci_low is None or row.ci_high is None:
        return _number(row)
    return f"{_number(row)} [{row.ci_low:.3f}, {row.ci_high:.3f}]"


def _number(row: Result) -> str:
    if row.value is None:
        return "–"
    return f"{row.value:,.0f}" if row.aggregate == "sum" else f"{row.value:.4f}"
