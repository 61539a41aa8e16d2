"""karat init."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, need_store, say_notes


@click.command(
    epilog=options.examples("karat init", "karat init search-quality --scale 0-3 --raters 2")
)
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
    help="Where judgments are kept: SQLite, or postgresql://user@host/database for a team.  "
    "[default: as KARAT_STORE says, else sqlite:///karat.db]",
)
@click.option(
    "--upgrade",
    is_flag=True,
    help="Bring the store of a workspace up to date, and put what karat.toml says of grades, "
    "raters and repeats in force.",
)
def init(
    directory: Path, name: str, scale: str, raters: int, store: str | None, upgrade: bool
) -> None:
    """Make a workspace: karat.toml, a guideline for raters, and a store for judgments.

    DIR is the current folder if it is left out. A password for PostgreSQL does not belong into
    karat.toml, and is refused: put the URL into the environment, as KARAT_STORE. karat.toml then
    gets it without the password.
    """
    need_store(url=store or os.environ.get("KARAT_STORE", ""))
    from karat.workflows.workspace.workspace import make_workspace, upgrade_workspace

    if upgrade:
        made = upgrade_workspace(directory)
        say_notes(made)
        print(f"karat: the store of {made.root} is up to date", file=sys.stderr)
        return
    made = make_workspace(
        directory,
        now=clock(),
        store=store or _default_store(),
        name=name,
        scale=scale,
        raters=raters,
    )
    where = "" if directory == Path() else f" -w {shlex.quote(str(directory))}"
    print(f"{made.root} is a workspace now:")
    print("  karat.toml    what the grades mean, how many raters, where things are kept")
    print("  guideline.md  what raters read; each new text is a new version")
    print("Next: queries, from a log or a file:")
    print(f"  karat golden choose LOG --size 100{where}")
    print(f"  karat golden import FILE{where}")


def _default_store() -> str:
    """What karat.toml says of the store: where a team's is, so that nobody makes one of their own.

    A SQLite file that the environment names is this machine's, and no other's.
    """
    from karat.formats.own.workspace import STORE, without_password

    url = os.environ.get(STORE) or "sqlite:"
    return "sqlite:///karat.db" if url.startswith("sqlite:") else without_password(url)
