"""Backup of a workspace into one file, and a workspace made of one, whatever the database."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from karat.errors import InputError, UsageError
from karat.formats import toml
from karat.formats.own import bundle, held_out
from karat.formats.own.workspace import NAME, STORE, read_workspace, without_password
from karat.store.sql import copying
from karat.store.sql.opening import VERSIONS, Store, open_store
from karat.tables.workspace import WorkspaceConfig
from karat.workflows.workspace.workspace import Workspace

_TABLES, _FILES = "tables/", "workspace/"
POLICY = "gate.toml"
"""The policy of the gate, where it lies beside ``karat.toml`` under its usual name."""
_SQLITE = "sqlite:///karat.db"


@dataclass(frozen=True)
class Backup:
    """What a backup holds.

    Attributes:
        path: Its file.
        rows: Rows of each table.
        files: Files of the workspace: ``karat.toml``, the guideline, ``gate.toml``, the ledger of
            the held-out part, histories and runs.
        notes: What is to be known, in sentences.
    """

    path: Path
    rows: Mapping[str, int]
    files: int
    notes: tuple[str, ...] = ()


def back_up(opened: Workspace, path: Path, *, now: int) -> Backup:
    """Write a backup while others go on: all tables as of one moment, the settings and the runs.

    The hashes of passwords and of API tokens are in it; sessions and one-time links are not.
    Kept comparisons are, but for their numbers, which are computed again when somebody looks.

    Args:
        opened: The workspace.
        path: The file: ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz``.
        now: Microseconds UTC.

    Raises:
        UsageError: the file is there already, or its name ends otherwise.
        InputError: it cannot be written, or a file cannot be read.
    """
    rows: dict[str, int] = {}
    about = {
        "made": datetime.fromtimestamp(now / 1e6, UTC).isoformat(timespec="seconds"),
        "schema": VERSIONS[-1],
        "store": opened.store.engine.dialect.name,
        "golden": opened.golden.name,
        "rows": rows,
    }
    with bundle.writing(path, about) as made:
        with opened.store.read() as connection:
            for name in copying.TABLES:
                # Without a name: rows hold hashes, and nothing cleans up behind a kill.
                with tempfile.TemporaryFile() as stream:
                    rows[name] = _write(copying.rows(connection, name), stream)
                    stream.seek(0)
                    made.put(f"{_TABLES}{name}.jsonl", stream)
        # Behind the tables: a run's file is there before the table names it.
        files = dict(_files(opened.workspace))
        for name, file in files.items():
            made.add(_FILES + name, file)
    return Backup(path, rows, len(files), tuple(_notes(opened)))


def restore(
    path: Path,
    root: Path,
    *,
    store: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Backup, WorkspaceConfig]:
    """Make a workspace and its store of a backup; of either engine, whichever it was made from.

    Args:
        path: The file that ``back_up`` wrote.
        root: The workspace's folder; made if absent, else empty.
        store: URL of an empty database; if None the one that the backup's ``karat.toml`` names.
        environment: Where ``KARAT_STORE`` is looked up; that of the process if None.

    Returns:
        What was in it, and the workspace.

    Raises:
        InputError: the file is no backup or damaged, or the store cannot be reached; nothing was
            made.
        UsageError: the folder or the store is not empty, or the backup is of a newer karat.
    """
    about = bundle.checked(path)
    version, rows = str(about.get("schema")), about.get("rows")
    if not isinstance(rows, dict) or f"{_FILES}{NAME}" not in about["files"]:
        raise InputError("it is no backup of a workspace", file=str(path))
    if version not in VERSIONS:
        raise UsageError(
            f"the backup is of version {version}, made by a newer karat than this one",
            fix="pip install --upgrade karat",
        )
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{root} is there, and not empty", fix="name a new folder")
    there = root.exists()
    try:
        root.mkdir(parents=True, exist_ok=True)
        workspace = _made(path, root, version, store, environment)
    except BaseException:
        for each in list(root.iterdir()) if root.is_dir() else ():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        if not there:
            with suppress(OSError):
                root.rmdir()
        raise
    count = sum(name.startswith(_FILES) for name in about["files"])
    return Backup(path, rows, count), workspace


def _made(
    path: Path,
    root: Path,
    version: str,
    url: str | None,
    environment: Mapping[str, str] | None,
) -> WorkspaceConfig:
    for name, stream in bundle.entries(path):
        if name.startswith(_FILES):
            _extract(stream, root / name.removeprefix(_FILES))
    settings = root / NAME
    variables = dict(os.environ if environment is None else environment)
    if url is not None:
        variables[STORE] = url
        text = settings.read_text(encoding="utf-8-sig")
        settings.write_text(_with(text, "store", without_password(url)), encoding="utf-8")
    workspace = read_workspace(settings, variables)
    if not variables.get(STORE):
        _inside(workspace, root)
    if not workspace.runs.resolve().is_relative_to(root.resolve()):
        text = settings.read_text(encoding="utf-8-sig")
        settings.write_text(_with(text, "runs", "runs"), encoding="utf-8")
        workspace = read_workspace(settings, variables)
    _need_new(workspace.store, url)
    opened = open_store(workspace.store, make=True, folder=root)
    try:
        copying.need_empty(opened)
        _fill(opened, path, version)
    except BaseException:
        opened.dispose()
        _remove(workspace.store)
        raise
    opened.dispose()
    return workspace


def _fill(store: Store, path: Path, version: str) -> None:
    """Put all rows, in one transaction."""
    with tempfile.TemporaryDirectory(prefix="karat-") as folder:
        older = None if version == VERSIONS[-1] else copying.Older(Path(folder) / "old.db", version)
        try:
            with store.begin() as connection:
                for name, given in _tables(path):
                    if older is None:
                        copying.put(connection, name, given)
                    else:
                        older.put(name, given)
                if older is not None:
                    older.brought_up()
                    for name in copying.TABLES:
                        copying.put(connection, name, older.rows(name))
                copying.go_on_numbering(connection)
        finally:
            if older is not None:
                older.close()


def _tables(path: Path) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    for name, stream in bundle.entries(path):
        if not name.startswith(_TABLES):
            continue
        table = name.removeprefix(_TABLES).removesuffix(".jsonl")
        if table not in copying.TABLES:
            raise InputError(f"there is no table {table}", file=str(path))
        yield table, _read(stream, path, name)


def _read(stream: IO[bytes], path: Path, name: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(stream, 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError(f"{name}: this is no row of a table", file=str(path), line=number)
        yield row


def _write(found: Iterator[dict[str, Any]], stream: IO[bytes]) -> int:
    count = 0
    for row in found:
        stream.write(json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        count += 1
    stream.flush()
    return count


def _files(workspace: WorkspaceConfig) -> Iterator[tuple[str, Path]]:
    """Name in the backup and place of each file of the workspace."""
    root = workspace.root
    yield NAME, root / NAME
    for path in (workspace.guideline, root / POLICY, root / held_out.NAME):
        if path.is_file():
            yield path.name, path
    for history in workspace.histories:
        if history.is_file() and history.is_relative_to(root):
            yield history.relative_to(root).as_posix(), history
    inside = workspace.runs.is_relative_to(root)
    for path in sorted(workspace.runs.rglob("*")):
        name = path.relative_to(root) if inside else Path("runs") / path.relative_to(workspace.runs)
        hidden = any(part.startswith(".") for part in name.parts)
        if path.is_file() and not hidden and path.suffix == ".parquet":
            yield name.as_posix(), path


def _notes(opened: Workspace) -> Iterator[str]:
    for history in opened.workspace.histories:
        if history.is_file() and not history.is_relative_to(opened.workspace.root):
            yield f"{history} lies outside the workspace and is not in the backup"


def _extract(stream: IO[bytes], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as target:
        shutil.copyfileobj(stream, target, 1 << 20)


def _inside(workspace: WorkspaceConfig, root: Path) -> None:
    """A file's ``karat.toml`` must not make a database where nobody looks for one."""
    if not workspace.store.startswith("sqlite:"):
        return
    place = Path(workspace.store.removeprefix("sqlite:///")).resolve()
    if not place.is_relative_to(root.resolve()):
        raise UsageError(
            f"the backup's store is {place}, outside of {root}",
            fix=f"say where the store is to be: --store {_SQLITE}, in the workspace",
        )


def _need_new(store: str, given: str | None) -> None:
    if not store.startswith("sqlite:"):
        return
    place = Path(store.removeprefix("sqlite:///"))
    if place.exists():
        fix = "name another" if given else f"say where it is to be: --store {_SQLITE}"
        raise UsageError(f"there is a file {place} already", fix=fix)
    place.parent.mkdir(parents=True, exist_ok=True)


def _remove(store: str) -> None:
    """Remove a SQLite store that was not there before."""
    if store.startswith("sqlite:"):
        place = Path(store.removeprefix("sqlite:///"))
        for ending in ("", "-wal", "-shm"):
            place.with_name(place.name + ending).unlink(missing_ok=True)


def _with(text: str, key: str, value: str) -> str:
    """``karat.toml`` with another value of ``[workspace]``; the rest stays as somebody wrote it."""
    line = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    lines = text.splitlines()
    heads = [place for place, each in enumerate(lines) if re.match(r"\s*\[", each)]
    begin = next((at for at in heads if re.match(r"\s*\[\s*workspace\s*\]", lines[at])), None)
    if begin is None:
        lines[:0] = ["[workspace]", line, ""]
    else:
        end = next((at for at in heads if at > begin), len(lines))
        own = re.compile(rf"\s*{key}\s*=")
        at = next((at for at in range(begin + 1, end) if own.match(lines[at])), None)
        lines[begin + 1 if at is None else at : begin + 1 if at is None else at + 1] = [line]
    changed = "\n".join(lines) + "\n"
    try:
        right = toml.table(changed.encode())["workspace"][key] == value
    except (toml.NotToml, KeyError):
        right = False
    if not right:
        raise InputError(f"{NAME} is written in a way that karat cannot change: {key}", file=NAME)
    return changed
