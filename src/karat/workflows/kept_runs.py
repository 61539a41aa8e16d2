"""Runs of a workspace: kept as Parquet by content, so that a pool can be looked at again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import sqlalchemy as sa

from karat.errors import InputError, UsageError, nearest
from karat.formats import read_run
from karat.formats.writing import write_run
from karat.store import runs
from karat.tables import Run
from karat.workflows.fingerprints import fingerprint
from karat.workflows.workspace import Opened


def keep_runs(opened: Opened, given: Iterable[str | Path | Run], *, now: int) -> list[Run]:
    """Read runs and keep them in the workspace; one that is there already stays as it is.

    Args:
        opened: The workspace.
        given: Files, or runs.
        now: Microseconds UTC.

    Returns:
        The runs, in the order given.

    Raises:
        InputError: a file cannot be read, or a run cannot be kept.
    """
    read = [run if isinstance(run, Run) else read_run(run) for run in given]
    with opened.store.begin() as connection:
        keep_in(connection, opened, read, now=now)
    return read


def keep_in(connection: sa.Connection, opened: Opened, given: Iterable[Run], *, now: int) -> None:
    """Keep runs in a transaction that is open: their files first, which are named by content.

    Raises:
        InputError: a file cannot be written.
    """
    root, folder = opened.workspace.root, opened.workspace.runs
    for run in given:
        sha256 = fingerprint(run)
        assert sha256 is not None
        path = folder / f"{sha256[:16]}.parquet"
        if not path.is_file():
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(
                    f"runs cannot be kept there: {error.strerror}", file=str(folder)
                ) from None
            write_run(run, path)
        runs.put(
            connection,
            opened.golden.id,
            name=run.name,
            sha256=sha256,
            path=(path.relative_to(root) if path.is_relative_to(root) else path).as_posix(),
            queries=len(run.query_ids),
            rows=len(run),
            about={"source": run.source},
            now=now,
        )


def kept_runs(opened: Opened, names: Sequence[str] = ()) -> list[Run]:
    """Runs of the workspace by name, the newest of each name; all if none are named.

    Raises:
        UsageError: no such run.
        InputError: its file is gone or damaged.
    """
    with opened.store.read() as connection:
        newest = {row.name: row for row in runs.runs(connection, opened.golden.id)}
    unknown = next((name for name in names if name not in newest), None)
    if unknown is not None:
        raise UsageError(
            f"the workspace has no run {unknown!r}",
            nearest=nearest(unknown, list(newest), 1),
            fix="karat golden pool FILE… keeps runs",
        )
    chosen = [newest[name] for name in names or newest]
    return [read_run(opened.workspace.root / row.path).named(row.name) for row in chosen]
