"""What every command in a workspace does first: find it, and open it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.mistakes import printable
from karat.cli.options import Command
from karat.errors import MissingExtra

if TYPE_CHECKING:
    from rich.console import Console

    from karat.tables.workspace import Workspace
    from karat.workflows.workspace import Opened


def folder(command: Command) -> Command:
    """The workspace a command works in."""
    return click.option(
        "-w",
        "--workspace",
        "start",
        metavar="DIR",
        type=click.Path(path_type=Path),
        default=Path(),
        help="A folder in the workspace.  [default: the current one]",
    )(command)


def clock() -> int:
    """Microseconds UTC, now."""
    return time.time_ns() // 1000


@contextmanager
def opened(start: Path) -> Iterator[Opened]:
    """The workspace of a folder, its store open until the block ends; its notes are said."""
    need_store()
    from karat.workflows.workspace import open_workspace

    with open_workspace(start, now=clock()) as found:
        say_notes(found.workspace)
        yield found


def say_notes(workspace: Workspace) -> None:
    """Say on standard error what a person should know of a workspace's settings."""
    for note in workspace.notes:
        print(f"karat: {printable(note)}", file=sys.stderr)


def tell(
    found: Any, output: str, show: Callable[[Any, Console], None], without: Sequence[str] = ()
) -> None:
    """Print what a command found, as it was asked for: as JSON, or for eyes.

    Args:
        found: What it found.
        output: ``json``, or anything else.
        show: Prints it for eyes.
        without: Fields that JSON leaves out, as in ``log.frame``.
    """
    from karat.reports.golden import to_json

    if output == "json":
        print(to_json(found, without))
    else:
        show(found, options.out())


def need_store() -> None:
    """Say how to get what keeps a store, where it is not installed.

    Raises:
        MissingExtra: SQLAlchemy or Alembic is not installed.
    """
    from importlib.util import find_spec

    for package in ("sqlalchemy", "alembic"):
        if find_spec(package) is None:
            raise MissingExtra(package, "store", "a workspace")
