"""Backup: a workspace in one file, restored to SQLite or PostgreSQL."""

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
from karat.formats.own.click_grades import FOLDER as CLICK_GRADES
from karat.formats.own.workspace import NAME, STORE, read_workspace, without_password
from karat.store.sql import copying
from karat.store.sql.opening import VERSIONS, Store, open_store
from karat.tables.workspace import WorkspaceConfig
from karat.workflows.workspace.workspace import Workspace

_TABLES, _FILES = "tables/", "workspace/"
POLICY = "gate.toml"  # default name of the gate's policy, next to `karat.toml`
_SQLITE = "sqlite:///karat.db"


@dataclass(frozen=True)
class Backup:
    path: Path
    rows: Mapping[str, int]  # number of rows by table
    # Number of workspace files: `karat.toml`, the guideline, `gate.toml`, the ledger of the
    # held-out part, histories, grades from clicks and runs
    files: int
    notes: tuple[str, ...] = ()


def back_up(opened: Workspace, path: Path, *, now: int) -> Backup:
    """Write an online backup: a consistent snapshot of all tables, the settings and the runs.

    It includes the hashes of passwords and API tokens, but no sessions or one-time links. Numbers
    of stored comparisons are not included; they are computed again on demand.
    """
    rows: dict[str, int] = {}
    header = {
        "made": datetime.fromtimestamp(now / 1e6, UTC).isoformat(timespec="seconds"),
        "schema": VERSIONS[-1],
        "store": opened.store.engine.dialect.name,
        "golden": opened.golden.name,
        "rows": rows,
    }
    with bundle.writing(path, header) as archive:
        with opened.store.read() as connection:
            for name in copying.TABLES:
                # An unnamed file: rows contain hashes, and must not survive a killed process.
                with tempfile.TemporaryFile() as stream:
                    rows[name] = _write(copying.rows(connection, name), stream)
                    stream.seek(0)
                    archive.put(f"{_TABLES}{name}.jsonl", stream)
        # After the tables: a run's file is written before its row.
        files = dict(_files(opened.workspace))
        for name, file in files.items():
            archive.add(_FILES + name, file)
    return Backup(path, rows, len(files), tuple(_notes(opened)))


def restore(
    path: Path,
    root: Path,
    *,
    store: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Backup, WorkspaceConfig]:
    """Restore a workspace and its store from a backup of either database engine."""
    header = bundle.checked(path)
    version, rows = str(header.get("schema")), header.get("rows")
    if not isinstance(rows, dict) or f"{_FILES}{NAME}" not in header["files"]:
        raise InputError("this is not a backup of a workspace", file=str(path))
    if version not in VERSIONS:
        raise UsageError(
            f"the backup has schema version {version}, made by a newer karat than this one",
            fix="pip install --upgrade karat",
        )
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{root} exists and is not empty", fix="name a new folder")
    existed = root.exists()
    try:
        root.mkdir(parents=True, exist_ok=True)
        workspace = _made(path, root, version, store, environment)
    except BaseException:
        for each in list(root.iterdir()) if root.is_dir() else ():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        if not existed:
            with suppress(OSError):
                root.rmdir()
        raise
    count = sum(name.startswith(_FILES) for name in header["files"])
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
                for name, rows in _tables(path):
                    if older is None:
                        copying.put(connection, name, rows)
                    else:
                        older.put(name, rows)
                if older is not None:
                    older.upgraded()
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
            raise InputError(f"unknown table {table}", file=str(path))
        yield table, _read(stream, path, name)


def _read(stream: IO[bytes], path: Path, name: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(stream, 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError(f"{name}: this is not a row of a table", file=str(path), line=number)
        yield row


def _write(rows: Iterator[dict[str, Any]], stream: IO[bytes]) -> int:
    count = 0
    for row in rows:
        stream.write(json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        count += 1
    stream.flush()
    return count


def _files(workspace: WorkspaceConfig) -> Iterator[tuple[str, Path]]:
    """Each file of the workspace: its name in the backup, and its path."""
    root = workspace.root
    yield NAME, root / NAME
    for path in (workspace.guideline, root / POLICY, root / held_out.NAME):
        if path.is_file():
            yield path.name, path
    for history in workspace.histories:
        if history.is_file() and history.is_relative_to(root):
            yield history.relative_to(root).as_posix(), history
    for path in sorted((root / CLICK_GRADES).glob("*.parquet")):
        yield path.relative_to(root).as_posix(), path
    inside = workspace.runs.is_relative_to(root)
    for path in sorted(workspace.runs.rglob("*")):
        name = path.relative_to(root) if inside else Path("runs") / path.relative_to(workspace.runs)
        hidden = any(part.startswith(".") for part in name.parts)
        if path.is_file() and not hidden and path.suffix == ".parquet":
            yield name.as_posix(), path


def _notes(opened: Workspace) -> Iterator[str]:
    for history in opened.workspace.histories:
        if history.is_file() and not history.is_relative_to(opened.workspace.root):
            yield f"{history} is outside the workspace and not in the backup"


def _extract(stream: IO[bytes], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as target:
        shutil.copyfileobj(stream, target, 1 << 20)


def _inside(workspace: WorkspaceConfig, root: Path) -> None:
    """Refuse a SQLite database outside the restored workspace."""
    if not workspace.store.startswith("sqlite:"):
        return
    place = Path(workspace.store.removeprefix("sqlite:///")).resolve()
    if not place.is_relative_to(root.resolve()):
        raise UsageError(
            f"the backup's store is {place}, outside {root}",
            fix=f"name the store: --store {_SQLITE}, in the workspace",
        )


def _need_new(store: str, url: str | None) -> None:
    if not store.startswith("sqlite:"):
        return
    place = Path(store.removeprefix("sqlite:///"))
    if place.exists():
        fix = "name another" if url else f"name the store: --store {_SQLITE}"
        raise UsageError(f"the file {place} already exists", fix=fix)
    place.parent.mkdir(parents=True, exist_ok=True)


def _remove(store: str) -> None:
    """Remove a SQLite store that was not there before."""
    if store.startswith("sqlite:"):
        place = Path(store.removeprefix("sqlite:///"))
        for ending in ("", "-wal", "-shm"):
            place.with_name(place.name + ending).unlink(missing_ok=True)


def _with(text: str, key: str, value: str) -> str:
    """``karat.toml`` with one value of ``[workspace]`` replaced, and the rest unchanged."""
    line = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    lines = text.splitlines()
    heads = [place for place, each in enumerate(lines) if re.match(r"\s*\[", each)]
    start = next((at for at in heads if re.match(r"\s*\[\s*workspace\s*\]", lines[at])), None)
    if start is None:
        lines[:0] = ["[workspace]", line, ""]
    else:
        end = next((at for at in heads if at > start), len(lines))
        pattern = re.compile(rf"\s*{key}\s*=")
        at = next((at for at in range(start + 1, end) if pattern.match(lines[at])), None)
        lines[start + 1 if at is None else at : start + 1 if at is None else at + 1] = [line]
    edited = "\n".join(lines) + "\n"
    try:
        applied = toml.table(edited.encode())["workspace"][key] == value
    except (toml.NotToml, KeyError):
        applied = False
    if not applied:
        raise InputError(f"{NAME} has a form in which karat cannot change {key}", file=NAME)
    return edited
