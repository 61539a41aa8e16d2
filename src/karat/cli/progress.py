"""Progress bars for work that takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PATIENCE = 1.0  # seconds before a bar is shown


@contextmanager
def watching() -> Iterator[Callable[[str, int], None]]:
    """A progress bar for bytes read, on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _file, _size: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from karat.reports.writers.terminal import console
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


@contextmanager
def working(label: str) -> Iterator[Callable[..., None] | None]:
    """A progress bar for work that reports its done and total steps; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    from karat.reports.writers.terminal import console

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    progress = Progress(*columns, console=console(sys.stderr), transient=True)
    task = progress.add_task(label, total=None)  # until the total is known
    # Some engines report nothing until they are done: only a timer can start the bar.
    patience = threading.Timer(_PATIENCE, progress.start)
    patience.daemon = True
    patience.start()
    try:
        yield lambda done, total, said=label: progress.update(
            task, completed=done, total=total, description=said
        )
    finally:
        patience.cancel()
        patience.join()
        progress.stop()


def _size(file: str) -> int | None:
    """Bytes of a file; None if it is compressed, or not a file."""
    path = Path(file)
    packed = path.suffix in (".gz", ".zst", ".bz2", ".parquet")
    return path.stat().st_size if path.is_file() and not packed else None
