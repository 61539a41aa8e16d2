"""karat lint."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from karat.cli import options

_PATIENCE = 1.0  # seconds before anything moves on the screen


@click.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option(
    "--role",
    metavar="FILE=ROLE",
    multiple=True,
    help="What a file is, where its content does not tell: qrels, run, queries, documents.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if there is an error or a warning.")
@options.output("table", "json", "github")
def lint(files: tuple[str, ...], role: tuple[str, ...], strict: bool, output: str) -> None:
    """Say what is wrong with these files, line by line.

    FILE… are qrels, runs, queries, documents or BEIR folders, in any order; what they are is told
    by their content. Nothing is refused: every line is read, and every kind of fault is reported
    with its count, its first lines, and the fix.
    """
    from karat.reports import findings as reports
    from karat.workflows.lint import lint as linted
    from karat.workflows.linting.roles import given

    roles = given(list(role), list(files))
    with _watching() as watch:
        found = linted(list(files), roles, watch)
    if output == "json":
        sys.stdout.write(reports.to_json(found))
    elif output == "github":
        for line in reports.to_github(found):
            sys.stdout.write(f"{line}\n")
    else:
        reports.show_findings(found, options.out())
    if strict and not found.clean:
        raise click.exceptions.Exit(1)


@contextmanager
def _watching() -> Iterator[Callable[[str, int], None]]:
    """A progress bar on standard error, if that is a terminal and it takes longer."""
    if not sys.stderr.isatty():
        yield lambda _file, _size: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from karat.reports.terminal import console
    from karat.tables.findings import shown

    began = time.monotonic()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    progress = Progress(
        *columns, TransferSpeedColumn(), console=console(sys.stderr), transient=True
    )
    tasks: dict[str, float] = {}
    started = False

    def watch(file: str, size: int) -> None:
        nonlocal started
        tasks[file] = tasks.get(file, 0) + size
        if time.monotonic() - began < _PATIENCE:
            return
        if not started:
            started = True
            progress.start()
        if not progress.tasks or progress.tasks[-1].fields["file"] != file:
            progress.add_task(shown(file, 30), total=_size(file), file=file)
        progress.update(progress.tasks[-1].id, completed=tasks[file])

    try:
        yield watch
    finally:
        if started:
            progress.stop()


def _size(file: str) -> int | None:
    """Bytes of a file, unless it is compressed or no file."""
    from pathlib import Path

    path = Path(file)
    packed = path.suffix in (".gz", ".zst", ".bz2", ".parquet")
    return path.stat().st_size if path.is_file() and not packed else None
