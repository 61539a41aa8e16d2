"""Tables of reports as texts, for pages without a list."""

from __future__ import annotations

from typing import Any

from karat.reports.table import Table


def as_texts(table: Table) -> dict[str, Any]:
    """A table of a report as texts."""
    return {
        "title": table.title,
        "heads": [(column.heading, column.is_text) for column in table.visible],
        "rows": [[column.cell(row) for column in table.visible] for row in table.rows],
    }
