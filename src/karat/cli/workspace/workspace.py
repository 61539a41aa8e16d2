"""What every command in a workspace does first: find it, and open it."""

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
from karat.cli.options import Command
from karat.errors import MissingExtra

if TYPE_CHECKING:
    from rich.console import Console

    from karat.tables.workspace import WorkspaceConfig
    from karat.workflows.workspace.workspace import Workspace


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
def opened(start: Path) -> Iterator[Workspace]:
    """The workspace of a folder, its store open until the block ends; its notes are said."""
    need_store(start)
    from karat.workflows.workspace.workspace import open_workspace

    with open_workspace(start, now=clock()) as found:
        say_notes(found.workspace)
        yield found


def say_notes(workspace: WorkspaceConfig) -> None:
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
    from karat.reports.golden.golden import to_json

    if output == "json":
        print(to_json(found, without))
    else:
        show(found, options.out())


def need_store(start: Path | None = None, *, url: str = "") -> None:
    """Say how to get what keeps a store, where it is not installed.

    Args:
        start: The workspace; its store may be in PostgreSQL, which needs a package of its own.
        url: The store, where there is no workspace yet.

    Raises:
        MissingExtra: SQLAlchemy, Alembic or the driver is not installed.
    """
    need("a workspace", "store", start=start, url=url)


def need(purpose: str, *extras: str, start: Path | None = None, url: str = "") -> None:
    """Say how to get everything that a command needs, in one command of pip.

    Args:
        purpose: What needs it.
        extras: The extras, of ``PACKAGES``.
        start: As in ``need_store``.
        url: As in ``need_store``.

    Raises:
        MissingExtra: a package of the extras is not installed; all of them are named.
    """
    from importlib.util import find_spec

    def lacking(extra: str) -> list[str]:
        return [package for package in PACKAGES[extra] if find_spec(package) is None]

    asked = [*extras, *(["postgres"] if _in_postgres(start, url) else [])]
    wanted = {extra: packages for extra in asked if (packages := lacking(extra))}
    if not wanted:
        return
    if "postgres" in wanted:
        wanted.pop("store", None)  # it includes it
    every = dict.fromkeys(package for each in wanted.values() for package in each)
    raise MissingExtra(list(every), ",".join(wanted), purpose)


def _in_postgres(start: Path | None, url: str) -> bool:
    """Whether a store is in PostgreSQL, as far as that can be told."""
    from karat.errors import KaratError
    from karat.formats.own.workspace import find_workspace, read_workspace

    if start is not None:
        with suppress(KaratError):  # whatever is wrong there is reported when it is opened
            url = read_workspace(find_workspace(start)).store
    return url.startswith("postgres")
