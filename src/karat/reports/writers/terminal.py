"""The terminal: its console, lists and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from karat.reports.writers.plain import CONTROLS, plain
from karat.tables.notes import SHOWN, first_notes, others


def console(file: IO[str], width: int | None = None) -> Console:
    """A console that prints text as it is: untrusted ids are never markup."""
    return _Console(file=file, width=width, markup=False, highlight=False, emoji=False)


class _Console(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(text.translate(CONTROLS), style)

    def on_broken_pipe(self) -> None:
        # Rich would exit with 1, which means "fail"; the command line handles this error.
        raise BrokenPipeError


def show_paragraphs(title: str, paragraphs: Iterable[str], out: Console) -> None:
    out.print(title, style="bold")
    _bullets(paragraphs, out, "")


def show_notes(notes: Sequence[str], out: Console) -> None:
    _bullets(notes, out, "dim")


def show_footnotes(notes: Sequence[str], out: Console, *, every: bool) -> None:
    shown, more = first_notes(notes, len(notes) if every else SHOWN)
    show_notes(shown, out)
    if more:
        out.print(plain(f"{others(more)}: --notes", "dim"))


def show_warnings(warnings: Sequence[str], out: Console) -> None:
    _bullets(warnings, out, "bold yellow")


def _bullets(paragraphs: Iterable[str], out: Console, style: str) -> None:
    for paragraph in paragraphs:
        grid = Table.grid(padding=(0, 1))
        grid.add_column()
        grid.add_column(overflow="fold")
        grid.add_row(plain("·", style), plain(paragraph, style))
        out.print(grid)
