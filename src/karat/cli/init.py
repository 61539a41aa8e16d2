"""karat init."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from karat.cli.workspace import clock, need_store


@click.command()
@click.argument("directory", metavar="[DIR]", type=click.Path(path_type=Path), default=Path())
@click.option("--name", default="golden", show_default=True, help="Of the golden set.")
@click.option(
    "--scale",
    metavar="LOW-HIGH",
    default="0-3",
    show_default=True,
    help="Lowest and highest grade that a judgment can give.",
)
@click.option(
    "--raters",
    type=click.IntRange(1, 99),
    default=2,
    show_default=True,
    help="How many judge each pair, blind to each other.",
)
@click.option(
    "--store",
    metavar="URL",
    default="sqlite:///karat.db",
    show_default=True,
    help="Where judgments are kept: SQLite, or postgresql://user@host/database for a team.",
)
@click.option("--upgrade", is_flag=True, help="Bring the store of a workspace up to date.")
def init(directory: Path, name: str, scale: str, raters: int, store: str, upgrade: bool) -> None:
    """Make a workspace: karat.toml, a guideline for raters, and a store for judgments.

    DIR is the current folder if it is left out. A password for PostgreSQL does not belong into
    karat.toml: put the URL into the environment, as KARAT_STORE.
    """
    need_store()
    from karat.workflows.workspace import make_workspace, upgrade_workspace

    if upgrade:
        made = upgrade_workspace(directory)
        print(f"karat: the store of {made.root} is up to date", file=sys.stderr)
        return
    made = make_workspace(
        directory, now=clock(), store=store, name=name, scale=scale, raters=raters
    )
    where = "" if directory == Path() else f" -w {shlex.quote(str(directory))}"
    print(f"{made.root} is a workspace now:")
    print("  karat.toml    what the grades mean, how many raters, where things are kept")
    print("  guideline.md  what raters read; each new text is a new version")
    print("Next: queries, from a log or a file:")
    print(f"  karat golden choose LOG --size 100{where}")
    print(f"  karat golden import FILE{where}")
