"""Bringing runs, and removing them: what people do with kept runs and comparisons, noted."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import sqlalchemy as sa

from karat.errors import InputError, UsageError
from karat.formats import read_run
from karat.formats.tables.source import shown
from karat.store.sql import audit, comparisons, golden_sets, imports, queries, runs
from karat.store.sql.comparisons import ComparisonRow
from karat.store.sql.runs import RunRow
from karat.tables import Run
from karat.workflows.workspace.display_names import told_as
from karat.workflows.workspace.known_queries import followed
from karat.workflows.workspace.stored_comparisons import folder_of
from karat.workflows.workspace.stored_runs import file_of, hash_of, keep_hashed
from karat.workflows.workspace.workspace import Workspace

KEPT, REMOVED = "keep run", "remove run"
"""What the audit calls a run that somebody brought, and one that somebody took away."""
_NAMED = "name run"
INCOMING = "incoming"
"""The folder of a workspace, beside that of its runs, of whose files a run may be brought."""
_SHOWN = 3  # ids of queries that an error names


@dataclass(frozen=True)
class ImportedRun:
    """A run that somebody brought.

    Attributes:
        row: The run, by the name that it was brought under.
        new: Whether its content was not kept before.
        said: What became of it if it was, in a sentence; None if it is new.
    """

    row: RunRow
    new: bool
    said: str | None


def import_run(
    opened: Workspace, path: Path, called: str, *, name: str = "", person: str, now: int
) -> ImportedRun:
    """Read a run and keep it; a content that is kept already gets one more name.

    Args:
        opened: The workspace.
        path: The file, of any format that ``read_run`` reads; messages do not name this place.
        called: What whoever brings it calls the file.
        name: What the run is to be called; as the file is if empty.
        person: Who brings it.
        now: Microseconds UTC.

    Raises:
        InputError: it is no run, or has no query of the golden set.
        UsageError: its name cannot be one (``check_name``).
    """
    with told_as(path, called, opened.workspace.root):
        run = read_run(path)
        run = run.named(shown(name.strip()[:200] or run.name))
        run.source = called
        sha256 = hash_of(run)
        with opened.store.begin() as connection:
            golden_sets.hold(connection, opened.golden.id)
            _refuse_strange(connection, opened, run)
            before = runs.runs(connection, opened.golden.id)
            there = next((row for row in before if row.sha256 == sha256), None)
            meant = runs.by_name(before).get(run.name)
            as_before = there is not None and meant is not None and meant.id == there.id
            if there is None or not as_before or not file_of(opened, there).is_file():
                keep_hashed(connection, opened, [(run, sha256)], before, now=now)
            about = {"sha256": sha256, "file": called}
            if there is None:
                audit.note(connection, person, KEPT, run.name, now, about)
            elif not as_before:
                audit.note(connection, person, _NAMED, run.name, now, about | {"run": there.name})
            after = runs.runs(connection, opened.golden.id)
    row = replace(next(row for row in after if row.sha256 == sha256), name=run.name)
    return ImportedRun(row, there is None, None if there is None else _said(there, meant, run.name))


def _said(there: RunRow, meant: RunRow | None, name: str) -> str:
    """What became of a content that was kept before."""
    if meant is not None and meant.id == there.id:
        return f"this content is kept as {name!r} already: nothing changed"
    if meant is not None:
        since = "again" if name in there.names else "now"
        return f"this content is kept already: {name!r} means it {since}, and not run {meant.id}"
    return f"this content is kept already, as {there.name!r}: {name!r} is another name of it"


def _refuse_strange(connection: sa.Connection, opened: Workspace, run: Run) -> None:
    """Refuse a run that has no query in common with the golden set, which could not be measured."""
    own = queries.frame(connection, opened.golden.id, dropped=True)["query_id"].to_list()
    asked = run.answers["query_id"].to_list()
    known = set(own)
    if not own or known.intersection(asked):
        return
    if followed(asked, known, imports.aliases(connection, opened.golden.id)):
        return
    raise InputError(
        f"none of its queries is in the golden set: it has {_few(asked)}; the golden set has "
        f"{_few(own)}",
        file=run.source,
        fix="ask the search with the query ids of the golden set, which its list of queries has",
    )


def _few(ids: list[str]) -> str:
    first = ", ".join(f"{each[:60]!r}" for each in ids[:_SHOWN])
    return f"{first}, …" if len(ids) > _SHOWN else first or "none"


def within(opened: Workspace, path: str) -> Path:
    """A file that lies in the folder of the runs, or in ``INCOMING``, of a workspace.

    Args:
        opened: The workspace.
        path: Relative to its folder.

    Raises:
        UsageError: it lies elsewhere, whatever links there are, is no file, hidden, or part of the
            workspace itself.
    """
    root = opened.workspace.root.resolve()
    wrong = UsageError(
        f"there is no such file in the folder of the runs, or in {INCOMING}/",
        fix=f"{INCOMING}/bm25.trec, for example; or upload it",
    )
    if not path.strip() or "\0" in path:
        raise wrong
    with suppress(OSError, RuntimeError):
        found = (root / path.strip()).resolve()
        for folder in (opened.workspace.runs.resolve(), root / INCOMING):
            if found.is_relative_to(folder) and found.is_file():
                parts = found.relative_to(folder).parts
                if not any(each.startswith(".") for each in parts) and not _own(opened, found):
                    return found
    raise wrong


def _own(opened: Workspace, path: Path) -> bool:
    """Whether a file is one that a workspace is made of: its rules, or its store."""
    database = opened.store.engine.url.database
    if path == (opened.workspace.root / "karat.toml").resolve():
        return True
    if opened.store.shared or not database:
        return False
    return str(path).startswith(str(Path(database).resolve()))  # SQLite has further files beside


def needed_by(opened: Workspace, row: RunRow) -> list[ComparisonRow]:
    """The comparisons that a run is in, the newest first: while there are any, it stays."""
    with opened.store.read() as connection:
        rows = comparisons.comparisons(connection, opened.golden.id)
    return [each for each in rows if row.id in each.runs]


def remove_run(opened: Workspace, row: RunRow, *, person: str, now: int) -> None:
    """Take a run away, with all its names and its file.

    Judgments of what it returned stay. A history stays too; its points lead to the run no more.

    Args:
        opened: The workspace, with the run's golden set.
        row: The run; another that has its number by now stays.
        person: Who takes it away.
        now: Microseconds UTC.

    Raises:
        UsageError: a comparison needs it, or it is gone already.
    """
    with _going() as put_aside, opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)
        found = comparisons.find_run(connection, row.id)
        if found is None or found[1].sha256 != row.sha256:
            raise UsageError(f"the run {row.name!r} is gone already")
        rows = comparisons.comparisons(connection, opened.golden.id)
        needing = [each for each in rows if row.id in each.runs]
        if needing:
            named = ", ".join(f"{each.name!r} ({each.id})" for each in needing[:_SHOWN])
            more = f" and {len(needing) - _SHOWN:,} more" if len(needing) > _SHOWN else ""
            many = "comparisons need" if len(needing) > 1 else "a comparison needs"
            raise UsageError(
                f"{many} the run {found[1].name!r}: {named}{more}",
                fix=f"remove {'these' if len(needing) > 1 else 'it'} first",
            )
        file = file_of(opened, found[1])
        alone = runs.remove(connection, row.id)
        about = {"run": row.id, "sha256": found[1].sha256, "golden set": opened.golden.name}
        audit.note(connection, person, REMOVED, found[1].name, now, about)
        if alone:
            put_aside(file)


def remove_comparison(opened: Workspace, row: ComparisonRow, *, person: str, now: int) -> None:
    """Take a comparison away, with its numbers; its runs stay.

    Raises:
        UsageError: it is gone already; another that has its number by now stays.
    """
    with _going() as put_aside, opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)
        found = comparisons.find(connection, row.id)
        same = found is not None and found.created_us == row.created_us
        if not same or not comparisons.remove(connection, row.id):
            raise UsageError(f"the comparison {row.name!r} is gone already")
        about = {"comparison": row.id, "golden set": opened.golden.name}
        audit.note(connection, person, "remove comparison", row.name, now, about)
        put_aside(folder_of(opened, row.id))


@contextmanager
def _going() -> Iterator[Callable[[Path], None]]:
    """Files and folders go when the block has ended well, and stay if it raises.

    They are put aside as the last step of a transaction: what is brought back after it is written
    anew, and does not go with them.
    """
    moved: list[tuple[Path, Path]] = []

    def put_aside(path: Path) -> None:
        zero_weight = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with suppress(OSError):
            path.rename(zero_weight)
            moved.append((path, zero_weight))

    try:
        yield put_aside
    except BaseException:
        for path, zero_weight in moved:
            with suppress(OSError):
                zero_weight.rename(path)
        raise
    for _, zero_weight in moved:
        if zero_weight.is_dir():
            shutil.rmtree(zero_weight, ignore_errors=True)
        else:
            with suppress(OSError):
                zero_weight.unlink()
