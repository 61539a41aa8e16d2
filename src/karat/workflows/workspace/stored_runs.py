"""Runs of a workspace: kept as Parquet by content, so that a pool can be looked at again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from karat.errors import Advice, InputError, UsageError, nearest
from karat.formats import read_run
from karat.formats.tables.source import shown
from karat.formats.tables.writing import write_run
from karat.store.sql import golden_sets, runs
from karat.store.sql.runs import RunRow
from karat.tables import Run
from karat.tables.about import facts
from karat.tables.names import check_name
from karat.tables.workspace import WorkspaceConfig
from karat.workflows.workspace.display_names import told_as
from karat.workflows.workspace.fingerprints import fingerprint
from karat.workflows.workspace.workspace import Workspace

LONGEST = 500
"""Characters that the name of a run has at most."""
_CHARACTERS, _BYTES = 60, 180  # of a name in the name of a file: with the hash, below 255 bytes


@dataclass(frozen=True)
class Kept:
    """Runs that were kept.

    Attributes:
        runs: As they were given, in that order.
        names: The name that each was given under, and by which it can be asked for.
        notes: A sentence for each run whose content has another name too.
    """

    runs: list[Run]
    names: list[str]
    notes: list[str]


def keep_runs(opened: Workspace, given: Iterable[str | Path | Run], *, now: int) -> Kept:
    """Read runs and keep them in the workspace; as ``keep_in``, in a transaction of its own.

    Args:
        opened: The workspace.
        given: Files, or runs.
        now: Microseconds UTC.

    Raises:
        InputError: a file cannot be read, or a run cannot be kept.
    """
    read = [run if isinstance(run, Run) else read_run(run) for run in given]
    hashed = [(run, hash_of(run)) for run in read]  # of large ones that takes long
    with opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)
        before = runs.runs(connection, opened.golden.id)
        return keep_hashed(connection, opened, hashed, before, now=now)


def keep_in(
    connection: sa.Connection, opened: Workspace, given: Iterable[Run], *, now: int
) -> Kept:
    """Keep runs in a transaction that is open: their files first.

    A run is its content: one that is kept under another name already is not kept again. One that
    is given again stays as it is, with its first day, and its name means it from now on.

    Args:
        connection: A write transaction.
        opened: The workspace.
        given: The runs.
        now: Microseconds UTC.

    Raises:
        InputError: a file cannot be written.
    """
    hashed = [(run, hash_of(run)) for run in given]
    golden_sets.hold(connection, opened.golden.id)
    before = runs.runs(connection, opened.golden.id)
    return keep_hashed(connection, opened, hashed, before, now=now)


def keep_hashed(
    connection: sa.Connection,
    opened: Workspace,
    given: Iterable[tuple[Run, str]],
    before: Sequence[RunRow],
    *,
    now: int,
) -> Kept:
    """Keep runs whose ``hash_of`` is known; as ``keep_in``.

    Args:
        connection: A write transaction that holds the golden set (``golden_sets.hold``).
        opened: The workspace.
        given: The runs, each with its hash.
        before: The runs that the golden set has.
        now: Microseconds UTC.

    Raises:
        InputError: a file cannot be written.
        UsageError: a name that is new cannot be one (``check_name``).
    """
    workspace, set_id = opened.workspace, opened.golden.id
    given = list(given)
    _refuse_names((run for run, _ in given), before)
    there = {row.sha256: (row.name, _place(workspace, row.name, row.sha256, row.path))
             for row in before}  # fmt: skip
    # Each is later than all that were given before it, whatever the clock says.
    latest = max((at for row in before for at in row.names.values()), default=now - 1)
    made = Kept([], [], [])
    for run, sha256 in given:
        latest = max(now, latest + 1)
        known = there.get(sha256)
        own = shown(run.name)
        first, path = known or (own, _place(workspace, own, sha256))
        if first != own:
            made.notes.append(
                f"run {own!r} is the same as {first!r}: it is kept once, and has both names"
            )
        if not path.is_file():
            _write(run, path)
        if known is None:
            root, own_about = workspace.root, facts(run.about)
            runs.put(
                connection,
                set_id,
                name=own,
                sha256=sha256,
                path=(path.relative_to(root) if path.is_relative_to(root) else path).as_posix(),
                queries=len(run.query_ids),
                rows=len(run),
                about={"source": shown(run.source)}
                | ({"recorded": own_about} if own_about else {}),
                now=latest,
            )
            there[sha256] = (own, path)
        else:
            runs.give(connection, set_id, sha256, own, latest)
        made.runs.append(run)
        made.names.append(own)
    return made


def _refuse_names(given: Iterable[Run], before: Iterable[RunRow]) -> None:
    """Refuse new names by the one rule; those that the golden set has stay good."""
    known = {name for row in before for name in row.names}
    for run in given:
        if shown(run.name) not in known:
            fix = Advice("rename the file", page="give the run another name")
            check_name(shown(run.name), "a run", longest=LONGEST, fix=fix)


def hash_of(run: Run) -> str:
    """What a run is known by, whatever it is called: SHA-256 of its content."""
    found = fingerprint(run)
    assert found is not None
    return found


def stored_run_rows(opened: Workspace, names: Sequence[str] = ()) -> list[Run]:
    """Runs of the workspace by name, the newest of each name; all if none are named.

    Raises:
        UsageError: no such run.
        InputError: its file is gone or damaged.
    """
    with opened.store.read() as connection:
        rows = find_kept(connection, opened, names)
    return read_kept(opened, rows)


def find_kept(
    connection: sa.Connection, opened: Workspace, names: Sequence[str] = ()
) -> list[RunRow]:
    """What is known of runs by name, the newest of each name; of all if none are named.

    Raises:
        UsageError: no such run.
    """
    rows = runs.runs(connection, opened.golden.id)
    newest = runs.by_name(rows)
    unknown = next((name for name in names if name not in newest), None)
    if unknown is not None:
        few = ", ".join(list(newest)[-8:])
        raise UsageError(
            f"the workspace has no run {unknown!r}",
            nearest=nearest(unknown, list(newest), 1),
            fix=f"the newest are {few}" if newest else "karat golden pool FILE… keeps runs",
        )
    return [newest[name] for name in dict.fromkeys(names) or _first_names(newest)]


def read_kept(opened: Workspace, rows: Iterable[RunRow]) -> list[Run]:
    """The runs that were found, read.

    Raises:
        InputError: a file is gone or damaged.
    """
    return [_read(opened.workspace, row) for row in rows]


def stored_run_names(opened: Workspace) -> list[str]:
    """The names of the runs a workspace keeps, the oldest first; of one with several the first."""
    with opened.store.read() as connection:
        return _first_names(runs.by_name(runs.runs(connection, opened.golden.id)))


def file_of(opened: Workspace, row: RunRow) -> Path:
    """Where the file of a run is."""
    return _place(opened.workspace, row.name, row.sha256, row.path)


def _first_names(newest: Mapping[str, RunRow]) -> list[str]:
    """Names that mean different runs, so that no content is taken twice."""
    first: dict[int, str] = {}
    for name, row in newest.items():
        if row.id not in first or next(iter(row.names)) == name:
            first[row.id] = name
    return [name for name, row in newest.items() if first[row.id] == name]


def _read(workspace: WorkspaceConfig, row: RunRow) -> Run:
    """A run; it and its errors speak of its file as the workspace has it, not this machine."""
    path = _place(workspace, row.name, row.sha256, row.path)
    inside = path.is_relative_to(workspace.root)
    called = path.relative_to(workspace.root).as_posix() if inside else path.name
    with told_as(path, called):
        run = read_run(path).named(row.name)
    run.source = called
    return run


def _place(workspace: WorkspaceConfig, name: str, sha256: str, noted: str | None = None) -> Path:
    """Where the file of a run is, or is to be.

    A store may be shared: the path in it may be of another workspace, and is followed only to a
    file that is there and in this one.
    """
    root, folder = workspace.root, workspace.runs
    own = folder / _file_name(name, sha256)
    if noted is None:
        return own
    there = (root / noted).resolve()
    inside = any(there.is_relative_to(each.resolve()) for each in (root, folder))
    if inside and there.is_file():
        return root / noted
    moved = folder / Path(noted).name
    return moved if moved.is_file() and not own.is_file() else own


def _write(run: Run, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"runs cannot be kept there: {error.strerror}", file=str(error.filename or path.parent)
        ) from None
    write_run(run, path)


def _file_name(name: str, sha256: str) -> str:
    """``bm25-0123456789ab.parquet``: letters, digits and ``._-`` of the name, and the hash."""
    safe = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", name)).lstrip(".-_")
    short = safe[:_CHARACTERS].encode()[:_BYTES].decode(errors="ignore")
    return f"{short or 'run'}-{sha256[:12]}.parquet"
