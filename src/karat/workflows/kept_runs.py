"""Runs of a workspace: kept as Parquet by content, so that a pool can be looked at again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import sqlalchemy as sa

from karat.errors import InputError, UsageError, nearest
from karat.formats import read_run
from karat.formats.writing import write_run
from karat.store import golden_sets, runs
from karat.tables import Run
from karat.workflows.fingerprints import fingerprint
from karat.workflows.workspace import Opened

_CHARACTERS, _BYTES = 60, 180  # of a name in the name of a file: with the hash, below 255 bytes


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


def keep_in(
    connection: sa.Connection, opened: Opened, given: Iterable[Run], *, now: int
) -> list[str]:
    """Keep runs in a transaction that is open: their files first, which are named by content.

    A run is its content: one that is kept under another name already is not kept again.

    Returns:
        A sentence for each run that goes by another name.

    Raises:
        InputError: a file cannot be written.
    """
    root, folder = opened.workspace.root, opened.workspace.runs
    golden_sets.hold(connection, opened.golden.id)
    there = {row.sha256: row for row in runs.runs(connection, opened.golden.id)}
    known = {sha256: (row.name, root / row.path) for sha256, row in there.items()}
    notes = []
    for run in given:
        sha256 = fingerprint(run)
        assert sha256 is not None
        name, path = known.setdefault(sha256, (run.name, folder / _file_name(run.name, sha256)))
        if name != run.name:
            notes.append(f"run {run.name!r} is the same as {name!r}, and kept once, as that")
        if not path.is_file():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(
                    f"runs cannot be kept there: {error.strerror}", file=str(folder)
                ) from None
            write_run(run, path)
        runs.put(
            connection,
            opened.golden.id,
            name=name,
            sha256=sha256,
            path=(path.relative_to(root) if path.is_relative_to(root) else path).as_posix(),
            queries=len(run.query_ids),
            rows=len(run),
            about={"source": run.source},
            now=now,
        )
    return notes


def kept_runs(opened: Opened, names: Sequence[str] = ()) -> list[Run]:
    """Runs of the workspace by name, the newest of each name; all if none are named.

    Raises:
        UsageError: no such run.
        InputError: its file is gone or damaged.
    """
    newest = _newest(opened)
    unknown = next((name for name in names if name not in newest), None)
    if unknown is not None:
        few = ", ".join(list(newest)[-8:])
        raise UsageError(
            f"the workspace has no run {unknown!r}",
            nearest=nearest(unknown, list(newest), 1),
            fix=f"the newest are {few}" if newest else "karat golden pool FILE… keeps runs",
        )
    chosen = [newest[name] for name in dict.fromkeys(names) or newest]
    return [read_run(opened.workspace.root / row.path).named(row.name) for row in chosen]


def names_of_kept(opened: Opened) -> list[str]:
    """The names of the runs a workspace keeps, the oldest first."""
    return list(_newest(opened))


def _newest(opened: Opened) -> dict[str, runs.RunRow]:
    with opened.store.read() as connection:
        return {row.name: row for row in runs.runs(connection, opened.golden.id)}


def _file_name(name: str, sha256: str) -> str:
    """``bm25-0123456789ab.parquet``: letters, digits and ``._-`` of the name, and the hash."""
    safe = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", name)).lstrip(".-_")
    short = safe[:_CHARACTERS].encode()[:_BYTES].decode(errors="ignore")
    return f"{short or 'run'}-{sha256[:12]}.parquet"
