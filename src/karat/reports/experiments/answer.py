"""An answer: what it says, tables, notes; on a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from karat.reports.table import Table
from karat.reports.writers.markdown import listed, markdown
from karat.reports.writers.plain import markdown_cell, plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_footnotes


@dataclass(frozen=True)
class Answer:
    """Of a command about experiments; a plan has no headline."""

    tables: Sequence[Table]
    notes: Sequence[str]
    headline: str = ""  # verdict and reason in a line
    about: str = ""  # what was compared, in a line

    def show(self, out: Console, *, all_notes: bool) -> None:
        if self.headline:
            out.print(plain(self.headline, "bold"))
            out.print(plain(self.about, "dim"))
            out.print()
        for table in self.tables:
            draw(table, out)
        show_footnotes(self.notes, out, every=all_notes)

    def to_markdown(self) -> str:
        said = (
            [f"**{markdown_cell(self.headline)}**\n", f"{markdown_cell(self.about)}\n"]
            if self.headline
            else []
        )
        return "\n".join([*said, *map(markdown, self.tables), listed(self.notes)])
