"""Stored runs of a workspace: content-addressed Parquet files."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256 as hashed_bytes
from pathlib import Path

import polars as pl
import sqlalchemy as sa

from karat.errors import InputError, UsageError, nearest
from karat.formats import read_run
from karat.formats.tables.source import shown
from karat.formats.tables.writing import write_run
from karat.store.sql import golden_sets, runs
from karat.tables import Run
from karat.tables.about import facts
from karat.tables.names import check_name
from karat.tables.workspace import RunRow, WorkspaceConfig
from karat.workflows.offline.costs import TIMES
from karat.workflows.workspace.fingerprints import fingerprint
from karat.workflows.workspace.workspace import Workspace, display_name

LONGEST = 500  # maximum length of the name of a run, in characters
_CHARACTERS, _BYTES = 60, 180  # of the run's name in a file name; with the hash below 255 bytes


@dataclass(frozen=True)
class Kept:
    names: list[str]  # the names of the runs, in the order given
    # For each run whose content was already stored: that it was under another name, or had other
    # times
    notes: list[str]


def store_runs(opened: Workspace, given: Iterable[str | Path | Run], *, now: int) -> Kept:
    """Read and store runs, as ``keep_in`` in its own transaction."""
    read = [run if isinstance(run, Run) else read_run(run) for run in given]
    hashed = [(run, hash_of(run)) for run in read]  # slow for large runs: outside the transaction
    with opened.store.begin() as connection:
        return keep_hashed(connection, opened, hashed, now=now)


def keep_in(
    connection: sa.Connection, opened: Workspace, given: Iterable[Run], *, now: int
) -> Kept:
    """Store runs in an open transaction, files first.

    Runs are identified by content: a run already stored under another name is not stored again,
    and gets the new name too. A run that is given again keeps its first date, and its name refers
    to it from now on; its times are those of the last import that has any.
    """
    return keep_hashed(connection, opened, [(run, hash_of(run)) for run in given], now=now)


def keep_hashed(
    connection: sa.Connection,
    opened: Workspace,
    given: Sequence[tuple[Run, str]],
    *,
    now: int,
    retime: bool = True,
) -> Kept:
    """Store runs whose ``hash_of`` is known, as ``keep_in``; without ``retime``, times stay."""
    workspace, set_id = opened.workspace, opened.golden.id
    golden_sets.hold(connection, set_id)
    before = runs.runs(connection, set_id)
    _refuse_names((run for run, _ in given), before)
    stored = {row.sha256: (row.name, _place(workspace, row.name, row.sha256, row.path))
             for row in before}  # fmt: skip
    # Times strictly increase, whatever the clock says.
    latest = max((at for row in before for at in row.names.values()), default=now - 1)
    kept = Kept([], [])
    for run, sha256 in given:
        latest = max(now, latest + 1)
        existing = stored.get(sha256)
        name = shown(run.name)
        first, path = existing or (name, _place(workspace, name, sha256))
        if first != name:
            kept.notes.append(
                f"run {name!r} is the same as {first!r}: it is stored once, with both names"
            )
        root, own_about = workspace.root, facts(run.about)
        where = (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
        if not path.is_file():
            _write(run, path)
        elif retime and has_other_times(run, path):
            _write(run, path)
            trace_of(path).unlink(missing_ok=True)
            runs.put_times(connection, where, _times(run.answers), own_about)
            kept.notes.append(f"run {name!r} has the times of this import now, without a trace")
        if existing is None:
            runs.put(
                connection,
                set_id,
                name=name,
                sha256=sha256,
                path=where,
                queries=len(run.query_ids),
                rows=len(run),
                about={"source": shown(run.source)}
                | ({"recorded": own_about} if own_about else {}),
                now=latest,
            )
            stored[sha256] = (name, path)
        else:
            runs.give(connection, set_id, sha256, name, latest)
        kept.names.append(name)
    return kept


def _refuse_names(given: Iterable[Run], before: Iterable[RunRow]) -> None:
    """Refuse invalid new names; existing names stay valid."""
    known = {name for row in before for name in row.names}
    for run in given:
        if shown(run.name) not in known:
            fix = "give the run another name"
            check_name(shown(run.name), "a run", longest=LONGEST, fix=fix)


def hash_of(run: Run) -> str:
    """SHA-256 of a run's content, independent of its name."""
    sha256 = fingerprint(run)
    assert sha256 is not None
    return sha256


def find_stored(
    connection: sa.Connection, opened: Workspace, names: Sequence[str] = ()
) -> list[RunRow]:
    """Rows of stored runs by name, the newest of each name; all runs if no names are given."""
    rows = runs.runs(connection, opened.golden.id)
    newest = runs.by_name(rows)
    unknown = next((name for name in names if name not in newest), None)
    if unknown is not None:
        few = ", ".join(list(newest)[-8:])
        raise UsageError(
            f"the workspace has no run {unknown!r}",
            nearest=nearest(unknown, list(newest), 1),
            fix=f"the newest are {few}" if newest else "karat golden pool FILE… stores runs",
        )
    return [newest[name] for name in dict.fromkeys(names) or _first_names(newest)]


def stored_rows(opened: Workspace) -> list[RunRow]:
    """The stored runs of the golden set, oldest import first."""
    with opened.store.read() as connection:
        return runs.runs(connection, opened.golden.id)


def read_stored(opened: Workspace, rows: Iterable[RunRow]) -> list[Run]:
    return [_read(opened.workspace, row) for row in rows]


def stored_run_names(opened: Workspace) -> list[str]:
    """Names of the stored runs, oldest first; of a run with several names the first."""
    return _first_names(stored_by_name(opened))


def stored_by_name(opened: Workspace) -> dict[str, RunRow]:
    """The stored run of each name, oldest import first; a run may have several names."""
    return runs.by_name(stored_rows(opened))


def file_of(opened: Workspace, row: RunRow) -> Path:
    return _place(opened.workspace, row.name, row.sha256, row.path)


def trace_of(file: Path) -> Path:
    """Where the trace of a run is, next to the file of the run; it need not exist."""
    return file.with_suffix(".trace.parquet")


def has_other_times(run: Run, path: Path) -> bool:
    """Whether a run has times, and others than its stored file: it was searched again."""
    times = _times(run.answers)
    if not times:
        return False
    try:
        return times != _times(read_run(path).answers)
    except InputError:  # damaged: what reads it says so
        return False


def _times(answers: pl.DataFrame) -> str:
    """A hash of the times of a run; empty without any."""
    if "latency_us" not in answers.columns:
        return ""
    timed = answers.select("query_id", "latency_us").drop_nulls().sort("query_id")
    return hashed_bytes(timed.write_csv().encode()).hexdigest()[:16] if timed.height else ""


def trace_mark(opened: Workspace, row: RunRow) -> str | None:
    """Changes when another trace is stored; None if none is."""
    try:
        status = trace_of(file_of(opened, row)).stat()
    except OSError:
        return None
    return f"{status.st_size} {status.st_mtime_ns}"


def stage_times(opened: Workspace, row: RunRow) -> pl.DataFrame | None:
    """The times of the stages of its trace; None without a readable one."""
    try:
        return pl.scan_parquet(trace_of(file_of(opened, row))).select(TIMES).collect()
    except (OSError, pl.exceptions.PolarsError):
        return None


def _first_names(newest: Mapping[str, RunRow]) -> list[str]:
    """One name per run, so that no content is listed twice."""
    first: dict[int, str] = {}
    for name, row in newest.items():
        if row.id not in first or next(iter(row.names)) == name:
            first[row.id] = name
    return [name for name, row in newest.items() if first[row.id] == name]


def _read(workspace: WorkspaceConfig, row: RunRow) -> Run:
    """A run; its source and errors name the file relative to the workspace."""
    path = _place(workspace, row.name, row.sha256, row.path)
    inside = path.is_relative_to(workspace.root)
    called = path.relative_to(workspace.root).as_posix() if inside else path.name
    with display_name(path, called):
        run = read_run(path).named(row.name)
    run.source = called
    return run


def _place(workspace: WorkspaceConfig, name: str, sha256: str, noted: str | None = None) -> Path:
    """The path of a run's file.

    As a store may be shared, the recorded path may be of another workspace: it is used only if it
    is an existing file of this one.
    """
    root, folder = workspace.root, workspace.runs
    path = folder / _file_name(name, sha256)
    if noted is None:
        return path
    recorded = (root / noted).resolve()
    inside = any(recorded.is_relative_to(each.resolve()) for each in (root, folder))
    if inside and recorded.is_file():
        return root / noted
    moved = folder / Path(noted).name
    return moved if moved.is_file() and not path.is_file() else path


def _write(run: Run, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot store runs: {error.strerror}", file=str(error.filename or path.parent)
        ) from None
    write_run(run, path)


def _file_name(name: str, sha256: str) -> str:
    """``bm25-0123456789ab.parquet``: letters, digits and ``._-`` of the name, and the hash."""
    safe = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", name)).lstrip(".-_")
    short = safe[:_CHARACTERS].encode()[:_BYTES].decode(errors="ignore")
    return f"{short or 'run'}-{sha256[:12]}.parquet"
