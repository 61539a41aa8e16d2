"""Tables in each medium: terminal, Markdown, HTML, LaTeX, CSV and JSON."""

from __future__ import annotations

import html
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from karat.reports.table import Column, Table
from karat.reports.writers.cells import CONTROLS, plain
from karat.reports.writers.plain import _number as markdown_number
from karat.reports.writers.plain import csv_table, markdown_cell

NAME = 10  # columns of the screen that a text is not squeezed below, while numbers can give way
HEADING = 20  # columns of the screen; a longer word of a heading is broken
_GAP = 2
_LEAST = 4
_STYLES = {"": "", "strong": "bold", "quiet": "dim"}


def draw(table: Table, out: Console) -> None:
    """Print a table, not wider than the screen.

    Where it is too wide, headings are folded first; then the columns that may be dropped go, then
    texts are folded. A number is broken only where nothing else helps, at its spaces.
    """
    if table.title:
        out.print(plain(table.title, "bold"))
    columns = table.visible
    room = out.width
    for step in sorted({column.drop for column in columns} - {0}):
        if _total(_least(table, columns)) <= room:
            break
        columns = [column for column in columns if column.drop != step]
    widths = _widths(table, columns, room)
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), width=_total(widths))
    for column, width in zip(columns, widths, strict=True):
        grid.add_column(
            plain(column.heading),
            justify="left" if column.is_text else "right",
            overflow="fold",
            width=width,
        )
    for place, row in enumerate(table.rows):
        cells = (_styled(column, row) for column in columns)
        grid.add_row(*cells, end_section=place in table.ends)
    out.print(grid, crop=False)


def markdown(table: Table) -> str:
    """A table of GitHub's Markdown, in which no text is markup."""
    columns = table.visible
    lines = [
        [markdown_cell(column.heading) for column in columns],
        ["---" if column.is_text else "---:" for column in columns],
    ]
    for cells in table.cells():
        pairs = zip(columns, cells, strict=True)
        lines.append([(markdown_cell if c.is_text else markdown_number)(text) for c, text in pairs])
    title = f"{markdown_cell(table.title)}\n\n" if table.title else ""
    return title + "".join("| " + " | ".join(line) + " |\n" for line in lines)


def html_table(table: Table) -> str:
    """A table of HTML, in which everything is escaped; it scrolls where the page is narrow."""
    columns = table.visible

    def cell(tag: str, column: Column, text: str) -> str:
        mark = ' class="text"' if column.is_text else ""
        return f"<{tag}{mark}>{_escaped(text)}</{tag.split(maxsplit=1)[0]}>"

    caption = f"<caption>{_escaped(table.title)}</caption>" if table.title else ""
    heads = "".join(cell('th scope="col"', column, column.heading) for column in columns)
    rows = "".join(
        f"<tr{' class=last' if place in table.ends else ''}>"
        + "".join(cell("td", column, text) for column, text in zip(columns, cells, strict=True))
        + "</tr>"
        for place, cells in enumerate(table.cells())
    )
    inner = f"{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="scroll"><table>{inner}</table></div>'


def csv(table: Table) -> str:
    """All columns by their names, also those that tables do not show."""
    return csv_table(list(table.records()))


def _styled(column: Column, row: object) -> Text:
    style = "" if column.style is None else column.style(row)
    return plain(column.cell(row), _STYLES[style])


def _escaped(text: str) -> str:
    return html.escape(text.translate(CONTROLS).encode("utf-8", "replace").decode())


def _least(table: Table, columns: Sequence[Column]) -> list[int]:
    """The width of each column with headings folded, and texts squeezed to ``NAME``."""
    widths = []
    for column in columns:
        needed = max(_longest(table, column), min(_word(column.heading), HEADING))
        widths.append(min(needed, NAME) if column.is_text else needed)
    return widths


def _widths(table: Table, columns: Sequence[Column], room: int) -> list[int]:
    """The width of each column, so that all fit: what hurts least is narrowed first."""
    widths = [min(max(_wide(c.heading), _longest(table, c)), room) for c in columns]
    folded = [max(_longest(table, c), min(_word(c.heading), HEADING), 1) for c in columns]
    words = [max((_word(c.cell(row)) for row in table.rows), default=1) or 1 for c in columns]
    texts = [column.is_text for column in columns]
    floors = [
        [width if text else fold for width, fold, text in zip(widths, folded, texts, strict=True)],
        [min(fold, 2 * NAME) if text else fold for fold, text in zip(folded, texts, strict=True)],
        [min(fold, NAME) if text else fold for fold, text in zip(folded, texts, strict=True)],
        [
            min(w, NAME) if text else word
            for w, word, text in zip(widths, words, texts, strict=True)
        ],
        [
            min(w, _LEAST) if text else word
            for w, word, text in zip(widths, words, texts, strict=True)
        ],
    ]
    for floor in floors:
        widths = narrowed(widths, floor, _total(widths) - room)
    return widths


def narrowed(widths: Sequence[int], least: Sequence[int], excess: int) -> list[int]:
    """Widths with the excess taken from the widest first, and none below its least."""
    kept = list(widths)
    for _ in range(excess):
        wide = [place for place, width in enumerate(kept) if width > least[place]]
        if not wide:
            break
        kept[max(wide, key=kept.__getitem__)] -= 1
    return kept


def _longest(table: Table, column: Column) -> int:
    lines = (line for row in table.rows for line in column.cell(row).split("\n"))
    return max(map(_wide, lines), default=0)


def _word(text: str) -> int:
    return max(map(_wide, text.split()), default=0)


def _wide(text: str) -> int:
    return plain(text).cell_len


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * len(widths)
