"""What every command in a workspace does first: find it, and open it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli.options import Command
from karat.errors import MissingExtra

if TYPE_CHECKING:
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
    """The workspace of a folder, its store open until the block ends."""
    need_store()
    from karat.workflows.workspace import open_workspace

    with open_workspace(start, now=clock()) as found:
        yield found


def need_store() -> None:
    """Say how to get what keeps a store, where it is not installed.

    Raises:
        MissingExtra: SQLAlchemy or Alembic is not installed.
    """
    from importlib.util import find_spec

    for package in ("sqlalchemy", "alembic"):
        if find_spec(package) is None:
            raise MissingExtra(package, "store", "a workspace")
