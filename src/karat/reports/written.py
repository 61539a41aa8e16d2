"""Tables as they are written: CSV that no spreadsheet runs, Markdown whose cells stay cells."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# A spreadsheet runs a cell that starts like this, and ids come from strangers.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows under the names of the first one's columns; empty without rows."""
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: spreadsheet_safe(cell) for key, cell in row.items()} for row in rows)
    return out.getvalue()


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int) -> str:
    """A table whose first columns are texts, and the others numbers."""
    rule = ["---" if place < texts else "---:" for place in range(len(heads))]
    lines = [heads, rule, *rows]
    return "".join("| " + " | ".join(map(markdown_cell, line)) + " |\n" for line in lines)


def markdown_cell(text: str) -> str:
    """A text on one line, as a line break would end the row, and a bar the cell."""
    return " ".join(text.split()).replace("|", "\\|")


def spreadsheet_safe(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    # Python's csv leaves a carriage return unquoted, where other readers end the row.
    return ("'" if value.startswith(_FORMULA) else "") + value.replace("\r", " ")
