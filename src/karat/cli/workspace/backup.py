"""karat backup, karat restore."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click

from karat.cli import options
from karat.cli.mistakes import printable
from karat.cli.workspace.workspace import clock, folder, need_store, opened, say_notes

_FILE = click.Path(path_type=Path)


@click.command(epilog=options.examples("karat backup workspace.zip"))
@click.argument("path", metavar="FILE", type=_FILE)
@folder
def backup(path: Path, start: Path) -> None:
    """Write the workspace into FILE (.zip, .tar, .tar.gz): its store, settings, and runs.

    Others may go on judging meanwhile: all of it is of one moment. SQLite or PostgreSQL, and
    karat restore puts it into either.
    """
    from karat.workflows.workspace.backup import back_up

    with opened(start) as found:
        made = back_up(found, path, now=clock())
    print(f"{printable(str(path))} holds {_held(made.rows, made.files)}.")
    print(
        "Hashes of passwords and of API tokens are in it: keep it where others cannot read it. "
        "Sessions are not: after a restore people sign in again."
    )
    for note in made.notes:
        print(printable(note))


@click.command(
    epilog=options.examples(
        "karat restore workspace.zip new-folder",
        "karat restore workspace.zip new-folder --store postgresql://karat@db/karat",
    )
)
@click.argument("path", metavar="FILE", type=_FILE)
@click.argument("root", metavar="DIR", type=_FILE)
@click.option(
    "--store",
    metavar="URL",
    help="An empty database: sqlite:///karat.db (in DIR), or postgresql://user@host/database.  "
    "[default: KARAT_STORE, or what the backup's karat.toml names]",
)
def restore(path: Path, root: Path, store: str | None) -> None:
    """Make a workspace in DIR, which must be empty or absent, of what karat backup wrote.

    The whole file is checked before anything is made.
    """
    need_store(url=store or os.environ.get("KARAT_STORE", ""))
    from karat.formats.own.workspace import STORE, without_password
    from karat.workflows.workspace.backup import restore as restored

    held, workspace = restored(path, root, store=store)
    print(f"{printable(str(root))} holds {_held(held.rows, held.files)}.")
    say_notes(workspace)
    if store is not None and without_password(store) != store:
        print(f"karat.toml holds no password: put the URL into the environment, as {STORE}")


def _held(rows: Mapping[str, int], files: int) -> str:
    from karat.reports.phrases.numbers import counted

    told = [
        counted(rows.get(name, 0), one, many)
        for name, one, many in (
            ("golden_set", "golden set", "golden sets"),
            ("query", "query", "queries"),
            ("judgment", "judgment", "judgments"),
            ("edition", "edition", "editions"),
            ("run", "run", "runs"),
            ("person", "account", "accounts"),
        )
    ]
    return f"{', '.join(told)}, and {counted(files, 'file', 'files')}"
