"""Cells and tables that every terminal report is made of."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

# Escape sequences in ids from strangers could repaint the screen; all but the line break.
CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "\N{REPLACEMENT CHARACTER}")
del CONTROLS[ord("\n")]


def plain(text: str, style: str = "") -> Text:
    """Text for a cell: made harmless before its width is measured."""
    return Text(text.translate(CONTROLS), style)


def base(title: str = "") -> Table:
    """An empty table in the house's style."""
    heading = plain(title, "bold") if title else None
    return Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
