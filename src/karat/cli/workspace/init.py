"""karat init."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, need_store, say_notes


@options.command("karat init", "karat init search-quality --scale 0-3 --raters 2")
@click.argument("directory", metavar="[DIR]", type=click.Path(path_type=Path), default=Path())
@options.option("--name", "Name of the golden set.", "golden")
@options.option("--scale LOW-HIGH", "Lowest and highest possible grade.", "0-3")
@options.option(
    "--raters", "Number of raters per pair, blind to each other.", 2, type=click.IntRange(1, 99)
)
@options.option(
    "--store URL",
    "Database for judgments: SQLite, or postgresql://user@host/database for a team.  [default: "
    "KARAT_STORE, else sqlite:///karat.db]",
)
@options.option(
    "--upgrade",
    "Upgrade the store of an existing workspace, and apply the grades, raters and repeats of "
    "karat.toml.",
)
def init(directory: Path, store: str | None, upgrade: bool, **settings: Any) -> None:
    """Create a workspace: karat.toml, a guideline for raters, and a store for judgments.

    DIR defaults to the current folder. A password for PostgreSQL does not belong in karat.toml, and
    is refused: set the environment variable KARAT_STORE to the URL instead. karat.toml then gets it
    without the password.
    """
    need_store(url=store or os.environ.get("KARAT_STORE", ""))
    from karat.workflows.workspace.workspace import make_workspace, upgrade_workspace

    if upgrade:
        made = upgrade_workspace(directory)
        say_notes(made)
        print(f"karat: the store of {made.root} is up to date", file=sys.stderr)
        return
    made = make_workspace(directory, now=clock(), store=store or _default_store(), **settings)
    where = "" if directory == Path() else f" -w {shlex.quote(str(directory))}"
    print(f"Created a workspace in {made.root}:")
    print("  karat.toml    what the grades mean, how many raters, where data is stored")
    print("  guideline.md  instructions for raters; each new text is a new version")
    print("Next: add queries, from a log or a file:")
    print(f"  karat golden choose LOG --size 100{where}")
    print(f"  karat golden import FILE{where}")


def _default_store() -> str:
    """The store to write to karat.toml: that of KARAT_STORE, so that a team shares it.

    A SQLite file named there is specific to this machine, and is not written.
    """
    from karat.formats.own.workspace import STORE, without_password

    url = os.environ.get(STORE) or "sqlite:"
    return "sqlite:///karat.db" if url.startswith("sqlite:") else without_password(url)
