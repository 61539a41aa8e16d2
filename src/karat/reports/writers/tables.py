"""Tables in a terminal, HTML and CSV."""

from __future__ import annotations

import html
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from karat.reports.table import Column, Table
from karat.reports.writers.plain import CONTROLS, csv_table, plain

NAME = 10  # columns of the screen that a text is not narrowed below, while numbers can give way
_HEADING = 20  # columns of the screen; a longer word of a heading is broken
_GAP = 2
_LEAST = 4
_STYLES = {"strong": "bold", "quiet": "dim"}
_FOLDED = {"text", "code"}
_NUMBERS = {"number", "signed", "p", "share"}


def draw(table: Table, out: Console, *, close: bool = False) -> None:
    """Print a table, not wider than the screen; ``close`` saves blank lines.

    If it is too wide, headings are folded first, then columns are left out or the table is divided,
    then texts are folded. A number is broken only as a last resort, at its spaces.
    """
    columns = on_paper(table)
    for step in sorted({column.drop for column in columns} - {0}):
        if needed(table, columns) <= out.width:
            break
        columns = [column for column in columns if column.drop != step]
    for part in _parts(table, columns, out.width):
        if table.title:
            out.print(plain(table.title, "bold"))
        grid = _grid(table, part, out.width)
        if close and (grid.width or 0) < out.width:
            grid.show_edge, grid.width = False, (grid.width or 2) - 2
            out.print(Padding(grid, (0, 0, 1, 1), expand=False))
        else:
            out.print(grid, crop=False)


def on_paper(table: Table) -> list[Column]:
    """The columns of a terminal and of Markdown: sentences are printed below the table."""
    return [column for column in table.visible if column.kind != "sentence"]


def needed(table: Table, columns: Sequence[Column]) -> int:
    """The columns of the screen that it takes with folded headings and texts."""
    return _total(
        [
            min(wide, column.least) if column.kind in _FOLDED and not column.drop else wide
            for column, wide in zip(columns, _folded(table, columns), strict=True)
        ]
    )


def html_table(table: Table, *, kind: str = "cards sorts") -> str:
    """A table of HTML, in which everything is escaped.

    Its ``kind`` are classes: ``cards`` on phones, ``sorts`` for headings that sort.
    """
    columns = table.visible
    heads = "".join(
        f'<th role="columnheader" scope="col"{_class(column)}>{_heading(column)}</th>'
        for column in columns
    )
    rows = "".join(
        f'<tr role="row"{_row_class(table, row)}>'
        + "".join(_html_cell(column, row, first=not at) for at, column in enumerate(columns))
        + "</tr>\n"
        for row in table.rows
    )
    caption = f"<caption>{escaped(table.title)}</caption>" if table.title else ""
    return (
        f'<table class="{kind}" role="table">{caption}<thead role="rowgroup"><tr role="row">{heads}'
        f'</tr></thead>\n<tbody role="rowgroup">\n{rows}</tbody></table>'
    )


def csv(*tables: Table) -> str:
    """All values of the rows by name, also those that tables do not show."""
    return csv_table([record for table in tables for record in table.records()])


def escaped(text: str) -> str:
    return html.escape(text.translate(CONTROLS).encode("utf-8", "replace").decode())


def _html_cell(column: Column, row: object, *, first: bool) -> str:
    text, where = column.cell(row), column.link and column.link(row)
    value = column.of(row) if column.kind in _NUMBERS and column.high is None else None
    look = column.style(row) if column.style is not None else ""
    inner = escaped(text) if column.html is None else column.html(row)
    if column.kind == "verdict" and text:
        chip = text.replace(" ", "-").replace("_", "-")
        inner = f'<span class="chip {escaped(chip)}">{inner}</span>'
    elif look in {"up", "down", "quiet"}:
        inner = f'<span class="{look}">{inner}</span>'
    if where:
        view = column.view and column.view(row)
        data = f' data-view="{escaped(view)}"' if view else ""
        target = where if where[0] in "?/" else f"#{where}"
        inner = f'<a href="{escaped(target)}"{data}>{inner}</a>'
    if first:
        return f'<th role="rowheader" scope="row"{_class(column)}>{inner}</th>'
    head = "" if column.kind == "sentence" else f' data-head="{escaped(column.heading)}"'
    key = f' data-key="{value!r}"' if isinstance(value, float) else ""
    return f'<td role="cell"{_class(column)}{head}{key}>{inner}</td>'


def _heading(column: Column) -> str:
    text = escaped(column.heading)
    return f'<abbr title="{escaped(column.help)}">{text}</abbr>' if column.help else text


def _class(column: Column) -> str:
    if column.kind == "sentence":
        return ' class="why"'
    return ' class="text"' if column.is_text else ""


def _row_class(table: Table, row: object) -> str:
    named = table.row_class(row) if table.row_class is not None else ""
    return f' class="{escaped(named)}"' if named else ""


def _parts(table: Table, columns: list[Column], room: int) -> list[list[Column]]:
    """The columns, divided evenly into as few tables as fit; ``keys`` are in each."""
    keys, rest = columns[: table.keys], columns[table.keys :]
    if not keys or needed(table, columns) <= room:
        return [columns]

    def split(most: int) -> list[list[Column]]:
        parts: list[list[Column]] = []
        for column in rest:
            full = not parts or len(parts[-1]) == most
            if full or needed(table, [*keys, *parts[-1], column]) > room:
                parts.append([])
            parts[-1].append(column)
        return parts

    fewest = len(split(len(rest)))
    return [[*keys, *part] for part in split(-(-len(rest) // max(fewest, 1)))]


def _grid(table: Table, columns: Sequence[Column], room: int) -> Grid:
    widths = _widths(table, columns, room)
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), width=_total(widths))
    for column, width in zip(columns, widths, strict=True):
        justify = "left" if column.is_text else "right"
        grid.add_column(
            plain(_short(column)), justify=justify, overflow="fold", width=width  # type: ignore[arg-type]
        )  # fmt: skip
    groups = [_named(table, row) for row in table.rows]
    grouped = len(set(groups)) < len(groups) if table.group else False
    for place, row in enumerate(table.rows):
        cells = [_styled(column, row) for column in columns]
        if grouped and place and groups[place] == groups[place - 1]:
            cells = [
                plain("") if column.name == table.group else cell
                for column, cell in zip(columns, cells, strict=True)
            ]
        last = grouped and place + 1 < len(groups) and groups[place] != groups[place + 1]
        grid.add_row(*cells, end_section=last or place in table.ends)
    return grid


def _named(table: Table, row: object) -> str:
    column = next((each for each in table.columns if each.name == table.group), None)
    return "" if column is None else column.cell(row)


def _styled(column: Column, row: object) -> Text:
    style = "" if column.style is None else column.style(row)
    return plain(column.cell(row), _STYLES.get(style, ""))


def _folded(table: Table, columns: Sequence[Column]) -> list[int]:
    """The width of each column with its heading folded, and its cells on one line."""
    return [max(_longest(table, c), min(_word(_short(c)), _HEADING), 1) for c in columns]


def _widths(table: Table, columns: Sequence[Column], room: int) -> list[int]:
    """The width of each column, so that all fit: what hurts least is narrowed first."""
    folded = _folded(table, columns)
    widths = [
        min(max(_wide(_short(column)), least), room)
        for column, least in zip(columns, folded, strict=True)
    ]
    words = [max((_word(c.cell(row)) for row in table.rows), default=1) or 1 for c in columns]
    texts = [column.kind in _FOLDED for column in columns]

    def floor(names: Sequence[int], numbers: Sequence[int]) -> list[int]:
        both = zip(names, numbers, texts, strict=True)
        return [name if text else number for name, number, text in both]

    for least in (
        floor(widths, folded),
        floor([min(fold, 2 * NAME) for fold in folded], folded),
        floor([min(fold, NAME) for fold in folded], folded),
        floor([min(fold, NAME) for fold in folded], words),
        floor([min(fold, _LEAST) for fold in folded], words),
    ):
        widths = _narrowed(widths, least, _total(widths) - room)
    return widths


def _narrowed(widths: Sequence[int], least: Sequence[int], excess: int) -> list[int]:
    """Widths with the excess taken from the widest first, and none below its least."""
    kept = list(widths)
    for _ in range(excess):
        wide = [place for place, width in enumerate(kept) if width > least[place]]
        if not wide:
            break
        kept[max(wide, key=kept.__getitem__)] -= 1
    return kept


def _short(column: Column) -> str:
    return column.heading if column.short is None else column.short


def _longest(table: Table, column: Column) -> int:
    lines = (line for row in table.rows for line in column.cell(row).split("\n"))
    return max(map(_wide, lines), default=0)


def _word(text: str) -> int:
    return max(map(_wide, text.split()), default=0)


def _wide(text: str) -> int:
    return plain(text).cell_len


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * len(widths)
