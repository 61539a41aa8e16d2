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


@options.command("karat backup workspace.zip")
@click.argument("path", metavar="FILE", type=_FILE)
@folder
def backup(path: Path, start: Path) -> None:
    """Back up the workspace to FILE (.zip, .tar, .tar.gz): its store, settings and runs.

    The backup is a consistent snapshot: others can keep judging meanwhile. karat restore loads it
    into SQLite or PostgreSQL.
    """
    from karat.workflows.workspace.backup import back_up

    with opened(start) as found:
        made = back_up(found, path, now=clock())
    print(f"{printable(str(path))} holds {_held(made.rows, made.files)}.")
    print(
        "It contains hashes of passwords and API tokens: keep it where others cannot read it. "
        "It contains no sessions: after a restore, users sign in again."
    )
    for note in made.notes:
        print(printable(note))


@options.command(
    "karat restore workspace.zip new-folder",
    "karat restore workspace.zip new-folder --store postgresql://karat@db/karat",
)
@click.argument("path", metavar="FILE", type=_FILE)
@click.argument("root", metavar="DIR", type=_FILE)
@options.option(
    "--store URL",
    "An empty database: sqlite:///karat.db (in DIR), or postgresql://user@host/database.  "
    "[default: KARAT_STORE, or the store in the backup's karat.toml]",
)
def restore(path: Path, root: Path, store: str | None) -> None:
    """Restore a backup of a workspace into DIR, which must be empty or absent.

    The whole file is checked before anything is written.
    """
    need_store(url=store or os.environ.get("KARAT_STORE", ""))
    from karat.formats.own.workspace import STORE, without_password
    from karat.workflows.workspace.backup import restore as restored

    held, workspace = restored(path, root, store=store)
    print(f"{printable(str(root))} holds {_held(held.rows, held.files)}.")
    say_notes(workspace)
    if store is not None and without_password(store) != store:
        print(f"karat.toml does not contain the password: set {STORE} to the URL")


def _held(rows: Mapping[str, int], files: int) -> str:
    from karat.reports.phrases.numbers import counted

    counts = [
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
    return f"{', '.join(counts)}, and {counted(files, 'file')}"
