"""Kept files: what took long to compute, in a folder of the workspace, whole or not at all.

A folder holds one ``kept.json`` and Parquet files that it names with their SHA-256. These are
written first, under names of their own; ``kept.json`` then takes its place in one step. A reader
therefore has all of one computation, whoever writes at the same time.
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
from karat.workflows.workspace.display_names import told_as

HEAD = "kept.json"
GRACE_S = 600.0
"""How long files stay that a newer ``kept.json`` does not name: somebody may be reading them."""
_VERSION = 2
_ROWS = 20_000  # of a group: to read one query, one group is unpacked


@dataclass(frozen=True)
class ArtifactFiles:
    """What was read of a folder.

    Attributes:
        head: The object of ``kept.json``.
        tables: By name, the Parquet files, whose checksums were right.
        stamp: Changes when the folder is written again.
        spoilt: Set when a table could not be read after all.
    """

    head: Mapping[str, Any]
    tables: Mapping[str, Path]
    stamp: str
    spoilt: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read tables in the block.

        Raises:
            ArtifactCorrupted: one is gone or damaged; ``ArtifactCache`` forgets what was read of
                the folder.
        """
        try:
            yield
        except (OSError, pl.exceptions.PolarsError):
            self.spoilt.set()
            raise ArtifactCorrupted(
                "the numbers that were kept are gone or damaged\n"
                "  fix: look again, and they are computed again"
            ) from None


class ArtifactCorrupted(KaratError):
    """Kept files went, or were damaged, after they were found."""


class _Kept(Protocol):
    @property
    def files(self) -> ArtifactFiles: ...


_K = TypeVar("_K", bound=_Kept)


class ArtifactCache(Generic[_K]):
    """What a process read of kept files, at hand until they are written again, go or spoil.

    Args:
        most: So many folders, those that were looked at last.
        read: Reads a folder; None where it holds nothing whole, which is not remembered.
    """

    def __init__(self, most: int, read: Callable[[Path], _K | None]) -> None:
        self._most, self._read = most, read
        self._lock = threading.Lock()
        self._held: OrderedDict[Path, _K] = OrderedDict()

    def get(self, folder: Path) -> _K | None:
        """What a folder holds; None if that is nothing, or any of it is damaged."""
        with self._lock:
            held = self._held.pop(folder, None)
            if held is not None and _whole(held.files, folder):
                self._held[folder] = held
                return held
        found = None
        with suppress(OSError, pl.exceptions.PolarsError, ArtifactCorrupted):
            found = self._read(folder)
        if found is not None:
            with self._lock:
                self._held[folder] = found
                while len(self._held) > self._most:
                    self._held.popitem(last=False)
        return found

    def clear(self) -> None:
        """Forget everything, as a restart does."""
        with self._lock:
            self._held.clear()


def _whole(files: ArtifactFiles, folder: Path) -> bool:
    """Whether what was read of a folder is what it holds, as far as that is cheap to see."""
    if files.spoilt.is_set() or files.stamp != stamp_of(folder):
        return False
    return all(path.is_file() for path in files.tables.values())


def write_artifact(
    folder: Path, head: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]
) -> None:
    """Write a folder anew; what it held before goes when it is written again later.

    Args:
        folder: Made if absent.
        head: What JSON can hold, without NaN.
        tables: Frames, by name.

    Raises:
        InputError: it cannot be written.
    """
    with told_as(folder, f"{folder.parent.name}/{folder.name}"):
        _keep(folder, head, tables)


def _keep(folder: Path, head: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]) -> None:
    before = _read_head(folder)
    mark = secrets.token_hex(4)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"nothing can be kept there: {error.strerror}", file=str(folder)) from None
    files = {}
    for name, frame in tables.items():
        path = folder / f"{name}-{mark}.parquet"
        with beside(path) as stream:
            frame.write_parquet(stream, compression="zstd", row_group_size=_ROWS)
        files[name] = {"file": path.name, "sha256": _sha256(path)}
    body = json.dumps({"head": dict(head), "files": files}, allow_nan=False, ensure_ascii=False)
    digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
    whole = {"karat_kept": _VERSION, "sha256": digest, "body": body}
    with beside(folder / HEAD) as stream:
        stream.write(json.dumps(whole).encode())
    _clear(folder, {file["file"] for file in files.values()}, before or {})


def read_artifact(folder: Path) -> ArtifactFiles | None:
    """What a folder holds; None if there is nothing, or any of it is damaged.

    Args:
        folder: As ``write_artifact`` wrote it.
    """
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
    """The object of ``kept.json`` alone, its checksum right; None if there is none.

    Args:
        folder: As ``write_artifact`` wrote it.
    """
    body = _read_head(folder)
    return None if body is None else body["head"]


def stamp_of(folder: Path) -> str:
    """Changes when the folder is written again; empty if there is none. It costs next to nothing.

    Args:
        folder: As ``write_artifact`` wrote it.
    """
    try:
        found = (folder / HEAD).stat()
    except OSError:
        return ""
    return f"{found.st_mtime_ns}-{found.st_size}-{found.st_ino}"


def _clear(folder: Path, new: set[str], before: Mapping[str, Any]) -> None:
    """Take files away that no ``kept.json`` has named for a while; note which are so from now."""
    replaced = {str(file["file"]) for file in before.get("files", {}).values()}
    with suppress(OSError):
        now = (folder / HEAD).stat().st_mtime  # by the clock that stamps the others
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
        whole = json.loads((folder / HEAD).read_bytes())
        body = str(whole["body"])
        digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
        if whole["karat_kept"] != _VERSION or whole["sha256"] != digest:
            return None
        found: dict[str, Any] = json.loads(body)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
