"""Results as rows for machines and papers: JSON, CSV, Markdown, LaTeX."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from karat.reports.further import Sheet, sheets
from karat.reports.latex import results_table
from karat.tables import Result, Results

# A spreadsheet runs a cell that starts like this, and ids come from strangers.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_json(results: Results) -> str:
    """The documented JSON object."""
    return json.dumps(results.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(results: Results) -> str:
    """The result rows; the per-query rows instead, if there are any."""
    if results.per_query:
        return _csv(results.per_query_rows())
    rows = [asdict(row) for row in [*results.results, *results.slices]]
    if not results.slices:
        rows = [{k: v for k, v in row.items() if k not in {"attribute", "slice"}} for row in rows]
    return _csv(rows)


def to_markdown(results: Results) -> str:
    """One table for each slicing, runs as rows and measures as columns, and the notes."""
    parts = [_markdown_table(_grid(results.results), "run")]
    for attribute in dict.fromkeys(row.attribute for row in results.slices):
        rows = [row for row in results.slices if row.attribute == attribute]
        parts.append(_markdown_table(_grid(rows), f"run, {attribute}"))
    parts += map(_markdown_sheet, sheets(results))
    if results.notes:
        parts.append("".join(f"- {note}\n" for note in results.notes))
    return "\n".join(parts)


def to_latex(results: Results) -> str:
    """Booktabs tables, runs as rows and measures as columns, with intervals and captions."""
    return results_table(results)


def _grid(rows: Sequence[Result]) -> dict[str, list[Result]]:
    grid: dict[str, list[Result]] = {}
    for row in rows:
        name = row.run if row.slice is None else f"{row.run}, {row.slice}"
        grid.setdefault(name, []).append(row)
    return grid


def _markdown_table(grid: dict[str, list[Result]], heading: str) -> str:
    first = next(iter(grid.values()))
    lines = [
        "| " + " | ".join([_cell(heading), *(row.measure for row in first), "n"]) + " |",
        "| " + " | ".join(["---", *("---:" for _ in first), "---:"]) + " |",
    ]
    for name, rows in grid.items():
        cells = [_cell(name), *map(_with_interval, rows), str(rows[0].n)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _markdown_sheet(sheet: Sheet) -> str:
    rule = ["---" if place < sheet.texts else "---:" for place in range(len(sheet.heads))]
    lines = [sheet.heads, rule, *sheet.rows]
    table = "".join("| " + " | ".join(map(_cell, line)) + " |\n" for line in lines)
    return f"{sheet.title}\n\n{table}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")  # a line break would end the row


def _with_interval(row: Result) -> str:
    if row.ci_low is None or row.ci_high is None:
        return _number(row)
    return f"{_number(row)} [{row.ci_low:.3f}, {row.ci_high:.3f}]"


def _number(row: Result) -> str:
    if row.value is None:
        return "–"
    return f"{row.value:,.0f}" if row.aggregate == "sum" else f"{row.value:.4f}"


def _csv(rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: spreadsheet_safe(value) for key, value in row.items()} for row in rows
        )
    return out.getvalue()


def spreadsheet_safe(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    # Python's csv leaves a carriage return unquoted, where other readers end the row.
    return ("'" if value.startswith(_FORMULA) else "") + value.replace("\r", " ")
