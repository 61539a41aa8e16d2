"""Artifacts: stored results of long computations, written atomically to a folder each.

A folder has one ``kept.json`` and the Parquet files that it names with their SHA-256. Those are
written first, under new names; ``kept.json`` is then replaced in one step. A reader therefore never
sees a mix of two computations.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import polars as pl

from karat.errors import InputError, KaratError
from karat.formats.tables.writing import beside
from karat.workflows.workspace.display_names import display_name

HEAD = "kept.json"
GRACE_S = 600.0
"""How long replaced files stay, as they may still be read."""
_VERSION = 2
_ROWS = 20_000  # per row group: reading one query unpacks one group


@dataclass(frozen=True)
class ArtifactFiles:
    """An artifact as read from its folder.

    Attributes:
        head: The object in ``kept.json``.
        tables: Parquet files by name, with verified checksums.
        stamp: Changes when the folder is written again.
        damaged: Set when a table could not be read later.
    """

    head: Mapping[str, Any]
    tables: Mapping[str, Path]
    stamp: str
    damaged: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Context in which tables are read.

        Raises:
            ArtifactCorrupted: a table is missing or damaged; ``ArtifactCache`` drops the artifact.
        """
        try:
            yield
        except (OSError, pl.exceptions.PolarsError):
            self.damaged.set()
            raise ArtifactCorrupted(
                "the stored numbers are missing or damaged\n"
                "  fix: reload, and they are computed again"
            ) from None


class ArtifactCorrupted(KaratError):
    """Files of an artifact were deleted or damaged after it was opened."""


class _Kept(Protocol):
    @property
    def files(self) -> ArtifactFiles: ...


_K = TypeVar("_K", bound=_Kept)


class ArtifactCache(Generic[_K]):
    """LRU cache of artifacts; entries are dropped when their files change, vanish or are damaged.

    Args:
        most: Maximum number of artifacts.
        read: Reads a folder; None, which is not cached, if there is no complete artifact.
    """

    def __init__(self, most: int, read: Callable[[Path], _K | None]) -> None:
        self._most, self._read = most, read
        self._lock = threading.Lock()
        self._held: OrderedDict[Path, _K] = OrderedDict()

    def get(self, folder: Path) -> _K | None:
        """The artifact of a folder; None if there is none, or it is damaged."""
        with self._lock:
            cached = self._held.pop(folder, None)
            if cached is not None and _whole(cached.files, folder):
                self._held[folder] = cached
                return cached
        artifact = None
        with suppress(OSError, pl.exceptions.PolarsError, ArtifactCorrupted):
            artifact = self._read(folder)
        if artifact is not None:
            with self._lock:
                self._held[folder] = artifact
                while len(self._held) > self._most:
                    self._held.popitem(last=False)
        return artifact

    def clear(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._held.clear()


def _whole(files: ArtifactFiles, folder: Path) -> bool:
    """Whether a cached artifact is still current and complete, by cheap checks."""
    if files.damaged.is_set() or files.stamp != stamp_of(folder):
        return False
    return all(path.is_file() for path in files.tables.values())


def write_artifact(
    folder: Path, head: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]
) -> None:
    """Write an artifact; replaced files are deleted by later writes.

    Args:
        folder: Its folder, made if absent.
        head: JSON-serialisable values, without NaN.
        tables: Data frames by name.

    Raises:
        InputError: the folder cannot be written.
    """
    with display_name(folder, f"{folder.parent.name}/{folder.name}"):
        _keep(folder, head, tables)


def _keep(folder: Path, head: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]) -> None:
    previous = _read_head(folder)
    suffix = secrets.token_hex(4)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write the folder: {error.strerror}", file=str(folder)) from None
    files = {}
    for name, frame in tables.items():
        path = folder / f"{name}-{suffix}.parquet"
        with beside(path) as stream:
            frame.write_parquet(stream, compression="zstd", row_group_size=_ROWS)
        files[name] = {"file": path.name, "sha256": _sha256(path)}
    body = json.dumps({"head": dict(head), "files": files}, allow_nan=False, ensure_ascii=False)
    digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
    document = {"karat_kept": _VERSION, "sha256": digest, "body": body}
    with beside(folder / HEAD) as stream:
        stream.write(json.dumps(document).encode())
    _clear(folder, {file["file"] for file in files.values()}, previous or {})


def read_artifact(folder: Path) -> ArtifactFiles | None:
    """Read an artifact; None if there is none, or it is damaged."""
    for _ in range(2):  # it may be written anew while it is read
        stamp, body = stamp_of(folder), _read_head(folder)
        if body is None:
            return None
        tables = {}
        for name, file in body["files"].items():
            path = folder / file["file"]
            with suppress(OSError):
                if _sha256(path) == file["sha256"]:
                    tables[name] = path
        if len(tables) == len(body["files"]):
            return ArtifactFiles(body["head"], tables, stamp)
    return None


def artifact_head(folder: Path) -> Mapping[str, Any] | None:
    """Only the object in ``kept.json``, its checksum verified; None if there is none."""
    body = _read_head(folder)
    return None if body is None else body["head"]


def stamp_of(folder: Path) -> str:
    """A cheap stamp that changes when the folder is written again; empty if there is none."""
    try:
        stat = (folder / HEAD).stat()
    except OSError:
        return ""
    return f"{stat.st_mtime_ns}-{stat.st_size}-{stat.st_ino}"


def _clear(folder: Path, new: set[str], previous: Mapping[str, Any]) -> None:
    """Delete files replaced more than ``GRACE_S`` ago; restart that time for those replaced now."""
    replaced = {str(file["file"]) for file in previous.get("files", {}).values()}
    with suppress(OSError):
        now = (folder / HEAD).stat().st_mtime  # the clock of the file system
        for path in folder.glob("*.parquet"):
            with suppress(OSError):
                if path.name in new:
                    continue
                if path.name in replaced:
                    os.utime(path)
                elif path.stat().st_mtime < now - GRACE_S:
                    path.unlink()


def _read_head(folder: Path) -> dict[str, Any] | None:
    try:
        document = json.loads((folder / HEAD).read_bytes())
        body = str(document["body"])
        digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
        if document["karat_kept"] != _VERSION or document["sha256"] != digest:
            return None
        parsed: dict[str, Any] = json.loads(body)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return parsed


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
