"""Cells and tables that every terminal report is made of."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Escape sequences in ids from strangers could repaint the screen; all but the line break.
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks that turn the direction of what is written behind them: a terminal obeys them."""
CONTROLS = dict.fromkeys((*range(32), *range(127, 160), *_TURNING), "\N{REPLACEMENT CHARACTER}")
del CONTROLS[ord("\n")]

LABEL = 10  # columns that a name is not squeezed below
_ANY = 10_000  # columns: more than any table takes

Cells = dict[str, str | Text]
"""A row: what stands under each heading, in order."""


def plain(text: str, style: str = "") -> Text:
    """Text for a cell: made harmless before its width is measured."""
    return Text(text.translate(CONTROLS), style)


def base(title: str = "") -> Table:
    """An empty table in the house's style."""
    heading = plain(title, "bold") if title else None
    return Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)


def fitted(
    title: str, rows: Sequence[Cells], spare: Sequence[str], out: Console, *, names: int = 1
) -> Table:
    """A table as wide as the screen at most; spare columns go first, the verdict never.

    The first ``names`` columns are folded where they are too long, the others never.
    """
    left_out: set[str] = set()
    for name in (None, *spare):
        left_out |= {name} if name else set()
        table = base(title)
        table.padding = (0, 1, 0, 0)
        heads = [head for head in rows[0] if head not in left_out]
        for place, head in enumerate(heads):
            longest = max(cell_len(str(row[head])) for row in rows)
            if place < names:
                least = min(LABEL, longest)
                table.add_column(plain(head), overflow="fold", min_width=least)
            else:  # rich would take a column for as narrow as its longest word
                table.add_column(plain(head), justify="right", no_wrap=True, min_width=longest)
        for row in rows:
            table.add_row(*(row[head] for head in heads))
        wanted = out.measure(table, options=out.options.update(width=_ANY))
        if wanted.minimum <= out.width:
            _squeeze(table, rows, heads[:names], wanted.maximum - out.width)
            break
    return table


def _squeeze(table: Table, rows: Sequence[Cells], heads: Sequence[str], excess: int) -> None:
    """Take columns of the screen from the names, the widest first; rich would cut the verdict."""
    if excess <= 0 or len(heads) < 2:
        return
    widths = [max(len(head), *(cell_len(str(row[head])) for row in rows)) for head in heads]
    for _ in range(excess):
        widest = max(range(len(heads)), key=widths.__getitem__)
        widths[widest] -= 1
    for column, width in zip(table.columns, widths, strict=False):
        column.width = max(width, column.min_width or 1)
