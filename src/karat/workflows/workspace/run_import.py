"""Run import: import and delete runs, and delete comparisons; audited."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import sqlalchemy as sa

from karat.errors import InputError, UsageError
from karat.formats import read_run
from karat.formats.tables.source import shown
from karat.reports.phrases.numbers import first_of
from karat.store.sql import audit, comparisons, golden_sets, imports, queries, runs
from karat.tables import Run
from karat.tables.workspace import ComparisonRow, RunRow
from karat.workflows.workspace.known_queries import followed
from karat.workflows.workspace.stored_comparisons import KIND, SUMMARY
from karat.workflows.workspace.stored_runs import (
    file_of,
    has_other_times,
    hash_of,
    keep_hashed,
    trace_of,
)
from karat.workflows.workspace.workspace import Workspace, display_name

KEPT, REMOVED = "keep run", "remove run"
"""Names in the audit of the import and the deletion of a run."""
_NAMED = "name run"
INCOMING = "incoming"
"""Folder of a workspace from whose files runs can be imported, besides that of its runs."""
_SHOWN = 3  # ids of queries that an error names


@dataclass(frozen=True)
class ImportedRun:
    row: RunRow  # the run, under the name it was imported with
    new: bool  # whether its content was not stored before
    said: str | None  # if it was, a sentence on the outcome; None if it is new


def import_run(
    opened: Workspace, path: Path, called: str, *, name: str = "", person: str, now: int
) -> ImportedRun:
    """Read and store a run; content that is already stored gets another name."""
    with display_name(path, called, opened.workspace.root):
        run = read_run(path)
        run = run.named(shown(name.strip()[:200] or run.name))
        run.source = called
        sha256 = hash_of(run)
        with opened.store.begin() as connection:
            golden_sets.hold(connection, opened.golden.id)
            _refuse_strange(connection, opened, run)
            rows = runs.runs(connection, opened.golden.id)
            same_content = next((row for row in rows if row.sha256 == sha256), None)
            same_name = runs.by_name(rows).get(run.name)
            unchanged = (
                same_content is not None
                and same_name is not None
                and same_name.id == same_content.id
            )
            stored = None if same_content is None else file_of(opened, same_content)
            if stored is not None and not stored.is_file():
                stored = None
            other_times = stored is not None and has_other_times(run, stored)
            if not unchanged or stored is None or other_times:
                keep_hashed(connection, opened, [(run, sha256)], now=now)
            about = {"sha256": sha256, "file": called}
            if same_content is None:
                audit.note(connection, person, KEPT, run.name, now, about)
            elif not unchanged or other_times:
                audit.note(
                    connection, person, _NAMED, run.name, now, about | {"run": same_content.name}
                )
            rows_after = runs.runs(connection, opened.golden.id)
    row = replace(next(row for row in rows_after if row.sha256 == sha256), name=run.name)
    return ImportedRun(
        row,
        same_content is None,
        None
        if same_content is None
        else _said(same_content, same_name, run.name, other_times=other_times),
    )


def _said(same_content: RunRow, same_name: RunRow | None, name: str, *, other_times: bool) -> str:
    """The outcome of importing content that was already stored."""
    if other_times:
        return (
            f"this content is already stored as {same_content.name!r}, with other times: it has "
            "those of this import now, and a trace of the earlier search was deleted"
        )
    if same_name is not None and same_name.id == same_content.id:
        return f"this content is already stored as {name!r}: nothing changed"
    if same_name is not None:
        when = "again" if name in same_content.names else "now"
        other = f"instead of run {same_name.id}"
        return f"this content is already stored: {name!r} {when} names it {other}"
    return (
        f"this content is already stored as {same_content.name!r}: {name!r} is another name of it"
    )


def _refuse_strange(connection: sa.Connection, opened: Workspace, run: Run) -> None:
    """Refuse a run that shares no query with the golden set."""
    golden_ids = queries.frame(connection, opened.golden.id, dropped=True)["query_id"].to_list()
    run_ids = run.answers["query_id"].to_list()
    golden_set_ids = set(golden_ids)
    if not golden_ids or golden_set_ids.intersection(run_ids):
        return
    if followed(run_ids, golden_set_ids, imports.aliases(connection, opened.golden.id)):
        return
    raise InputError(
        f"none of its queries is in the golden set: it has {_few(run_ids)}; the golden set has "
        f"{_few(golden_ids)}",
        file=run.source,
        fix="run the search with the query ids of the golden set, which are on its list of queries",
    )


def _few(ids: list[str]) -> str:
    first = ", ".join(f"{query_id[:60]!r}" for query_id in ids[:_SHOWN])
    return f"{first}, …" if len(ids) > _SHOWN else first or "none"


def within(opened: Workspace, path: str) -> Path:
    """A file in the folder of the runs, or in ``INCOMING``, of a workspace."""
    root = opened.workspace.root.resolve()
    not_found = UsageError(
        f"there is no such file in the folder of the runs, or in {INCOMING}/",
        fix=f"{INCOMING}/bm25.trec, for example; or upload it",
    )
    if not path.strip() or "\0" in path:
        raise not_found
    with suppress(OSError, RuntimeError):
        resolved = (root / path.strip()).resolve()
        for folder in (opened.workspace.runs.resolve(), root / INCOMING):
            if resolved.is_relative_to(folder) and resolved.is_file():
                parts = resolved.relative_to(folder).parts
                if not any(part.startswith(".") for part in parts) and not _own(opened, resolved):
                    return resolved
    raise not_found


def _own(opened: Workspace, path: Path) -> bool:
    """Whether a file is ``karat.toml`` or belongs to the store."""
    database = opened.store.engine.url.database
    if path == (opened.workspace.root / "karat.toml").resolve():
        return True
    if opened.store.shared or not database:
        return False
    return str(path).startswith(str(Path(database).resolve()))  # also -wal and -shm


def needed_by(opened: Workspace, row: RunRow) -> list[ComparisonRow]:
    """The comparisons that use a run, newest first; it cannot be deleted while there are any."""
    with opened.store.read() as connection:
        rows = comparisons.comparisons(connection, opened.golden.id)
    return [each for each in rows if row.id in each.runs]


def remove_run(opened: Workspace, row: RunRow, *, person: str, now: int) -> None:
    """Delete a run, with all its names and its file; audited.

    Judgments of its documents and points of a history stay.

    Args:
        row: The run; not deleted if its id belongs to another run by now.
    """
    with _going() as put_aside, opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)
        current = comparisons.find_run(connection, row.id)
        if current is None or current[1].sha256 != row.sha256:
            raise UsageError(f"the run {row.name!r} was already deleted")
        rows = comparisons.comparisons(connection, opened.golden.id)
        needing = [comparison for comparison in rows if row.id in comparison.runs]
        if needing:
            names = first_of([f"{each.name!r} ({each.id})" for each in needing], _SHOWN)
            subject = "comparisons need" if len(needing) > 1 else "a comparison needs"
            raise UsageError(
                f"{subject} the run {current[1].name!r}: {names}",
                fix=f"remove {'these' if len(needing) > 1 else 'it'} first",
            )
        file = file_of(opened, current[1])
        alone = runs.remove(connection, row.id)
        about = {"run": row.id, "sha256": current[1].sha256, "golden set": opened.golden.name}
        audit.note(connection, person, REMOVED, current[1].name, now, about)
        if alone:
            put_aside(file)
            put_aside(trace_of(file))


def remove_comparison(opened: Workspace, row: ComparisonRow, *, person: str, now: int) -> None:
    """Delete a comparison and its numbers, but not its runs; audited."""
    with opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)
        current = comparisons.find(connection, row.id)
        unchanged = current is not None and current.created_us == row.created_us
        if not unchanged or not comparisons.remove(connection, row.id):
            raise UsageError(f"the comparison {row.name!r} was already deleted")
        about = {"comparison": row.id, "golden set": opened.golden.name}
        audit.note(connection, person, "remove comparison", row.name, now, about)
        shared = comparisons.keys(connection)
    if current is not None and current.key is not None and current.key not in shared:
        for kind in (KIND, SUMMARY):
            opened.artifacts.drop(kind, current.key)


@contextmanager
def _going() -> Iterator[Callable[[Path], None]]:
    """Delete files if the block succeeds; restore them if it raises.

    They are renamed as the last step of a transaction, so files written again after it stay.
    """
    moved: list[tuple[Path, Path]] = []

    def put_aside(path: Path) -> None:
        hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with suppress(OSError):
            path.rename(hidden)
            moved.append((path, hidden))

    try:
        yield put_aside
    except BaseException:
        for path, hidden in moved:
            with suppress(OSError):
                hidden.rename(path)
        raise
    for _, hidden in moved:
        with suppress(OSError):
            hidden.unlink()
