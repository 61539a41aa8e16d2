"""What commands in a workspace share: find it, open it, print results."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.mistakes import PACKAGES, printable
from karat.errors import MissingExtra

if TYPE_CHECKING:
    from rich.console import Console

    from karat.tables.documents import Pairs
    from karat.tables.workspace import WorkspaceConfig
    from karat.workflows.workspace.workspace import Workspace


folder = options.option(
    "-w --workspace start DIR",
    "A folder in the workspace.  [default: the current folder]",
    Path(),
    show_default=False,
    type=click.Path(path_type=Path),
)


def clock() -> int:
    return time.time_ns() // 1000


@contextmanager
def opened(start: Path) -> Iterator[Workspace]:
    """Open the workspace of a folder until the block ends, and print its notes."""
    need_store(start)
    from karat.workflows.workspace.workspace import open_workspace

    with open_workspace(start, now=clock()) as found:
        say_notes(found.workspace)
        yield found


def say_notes(workspace: WorkspaceConfig) -> None:
    for note in workspace.notes:
        print(f"karat: {printable(note)}", file=sys.stderr)


def tell(
    result: Any, output: str, show: Callable[[Any, Console], None], without: Sequence[str] = ()
) -> None:
    """Print a result as JSON (without the fields ``without``, as ``log.frame``) or by ``show``."""
    from karat.reports.golden.golden import to_json

    if output == "json":
        print(to_json(result, without))
    else:
        show(result, options.out())


def enqueue(folder: str, pairs: Pairs, why: str) -> None:
    """Add pairs to the judging queue of the workspace of a folder, and say how many."""
    from karat.reports.phrases.numbers import counted
    from karat.workflows.golden.pooling import enqueue as add

    with opened(Path(folder)) as found:
        made = add(found, pairs, now=clock())
    chosen = counted(made.chosen, "document")
    print(f"karat: {chosen} {why}, {made.added:,} new in the queue", file=sys.stderr)


def need_store(start: Path | None = None, *, url: str = "") -> None:
    """Raise ``MissingExtra`` if a package that the store needs is not installed."""
    need("a workspace", "store", start=start, url=url)


def need(purpose: str, *extras: str, start: Path | None = None, url: str = "") -> None:
    """Raise ``MissingExtra`` that names all missing packages of some extras (``PACKAGES``)."""
    from importlib.util import find_spec

    def lacking(extra: str) -> list[str]:
        return [package for package in PACKAGES[extra] if find_spec(package) is None]

    needed = [*extras, *(["postgres"] if _in_postgres(start, url) else [])]
    missing = {extra: packages for extra in needed if (packages := lacking(extra))}
    if not missing:
        return
    if "postgres" in missing:
        missing.pop("store", None)  # it includes it
    unique = dict.fromkeys(package for names in missing.values() for package in names)
    raise MissingExtra(list(unique), ",".join(missing), purpose)


def _in_postgres(start: Path | None, url: str) -> bool:
    """Whether a store is in PostgreSQL, as far as is known."""
    from karat.errors import KaratError
    from karat.formats.own.workspace import find_workspace, read_workspace

    if start is not None:
        with suppress(KaratError):  # errors there are reported when it is opened
            url = read_workspace(find_workspace(start)).store
    return url.startswith("postgres")
