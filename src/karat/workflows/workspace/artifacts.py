"""Artifacts: what can be computed again, in one cache with one size limit.

The key of an artifact is a hash of its inputs, its settings and the version of its computation, so
what a key stands for never changes: it is there, or it is computed. Two processes may compute the
same without harm. An artifact is a folder ``artifacts/KIND/KEY`` with ``head.json`` and the Parquet
files that it names with their SHA-256; it is written under another name, and renamed when complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from karat.errors import InputError, KaratError

FOLDER = "artifacts"
HEAD = "head.json"
LIMIT = 4 * 2**30  # bytes on disk above which the least recently used artifacts are deleted
_ROWS = 20_000  # per row group: reading one query unpacks one group
_WRITING_S = 3600.0  # longest time of a write
_MEMORY = 512  # head-only artifacts held by a process
_HEAVY = 32  # of these an artifact with tables counts as
_T = TypeVar("_T")


class ArtifactCorrupted(KaratError):
    """Files of an artifact were deleted or damaged after it was read."""


@dataclass(frozen=True)
class Artifact:
    """What is stored under a key: JSON, and the paths of tables by name."""

    head: Mapping[str, Any]
    tables: Mapping[str, Path]
    damaged: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Context in which tables are read."""
        try:
            yield
        except (OSError, pl.exceptions.PolarsError):
            self.damaged.set()
            raise ArtifactCorrupted(
                "the stored numbers are missing or damaged",
                fix="reload, and they are computed again",
            ) from None

    def whole(self) -> bool:
        """Whether its files are still there, as far as a cheap look tells."""
        return not self.damaged.is_set() and all(path.is_file() for path in self.tables.values())


class Memory:
    """Values that a process makes once for each key; concurrent callers share one computation."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._turns: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The value of a key, made unless it is there."""
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            with self._lock:
                if key in self._values:
                    self._values.move_to_end(key)
                    return self._values[key]  # type: ignore[no-any-return]
            value = make()
            with self._lock:
                self._values[key] = value
                while len(self._values) > self._most:
                    self._turns.pop(self._values.popitem(last=False)[0], None)
        return value


def key_of(*parts: Any) -> str:
    """A key: hash of anything that JSON can hold."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class ArtifactCache:
    def __init__(
        self, root: Path, pinned: Callable[[], Collection[str]] = tuple, limit: int = LIMIT
    ) -> None:
        self._root, self._pinned, self._limit = root, pinned, limit
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, str], tuple[Artifact, Any]] = OrderedDict()

    def find(self, kind: str, key: str, read: Callable[[Artifact], _T]) -> _T | None:
        """What ``read`` makes of an artifact, once per process; None if it is not there."""
        path = self._root / kind / key
        with suppress(OSError):
            os.utime(path / HEAD)  # its last use
        with self._lock:
            held = self._held.pop((kind, key), None)
            if held is not None and held[0].whole():
                self._held[kind, key] = held
                return held[1]  # type: ignore[no-any-return]
        with suppress(OSError, pl.exceptions.PolarsError):
            artifact = _read(path)
            if artifact is not None:
                return self._hold(kind, key, artifact, read(artifact))
        return None

    def put(
        self,
        kind: str,
        key: str,
        head: Mapping[str, Any],
        tables: Mapping[str, pl.DataFrame] | None = None,
    ) -> None:
        """Store an artifact, and evict others above the limit."""
        path = self._root / kind / key
        new = path.with_name(f".{key}.{secrets.token_hex(4)}")
        try:
            new.mkdir(parents=True)
            _write(new, head, tables or {})
            if path.exists() and _read(path) is None:
                path.rename(path.with_name(f"{new.name}.damaged"))
            with suppress(OSError):  # another process has stored the same
                new.rename(path)
        except OSError as error:
            raise InputError(
                f"cannot write the folder: {error.strerror}", file=f"{FOLDER}/{kind}"
            ) from None
        finally:
            for each in (new, path.with_name(f"{new.name}.damaged")):
                shutil.rmtree(each, ignore_errors=True)
        self._evict()

    def answer(self, kind: str, key: str, make: Callable[[], Any]) -> Any:
        """The JSON value of a key; else made and stored, on a full disk in memory only."""
        found = self.find(kind, key, _answer)
        if found is not None:
            return found
        head = {"answer": json.loads(json.dumps(make()))}  # the same now and when read later
        with suppress(InputError):
            self.put(kind, key, head)
        return self._hold(kind, key, Artifact(head, {}), head["answer"])

    def found(self, kind: str, key: str) -> Any:
        """The JSON value that ``answer`` stored; None if it is not there."""
        return self.find(kind, key, _answer)

    def drop(self, kind: str, key: str) -> None:
        with self._lock:
            self._held.pop((kind, key), None)
        shutil.rmtree(self._root / kind / key, ignore_errors=True)

    def newest(self, kind: str, beginning: str) -> str | None:
        """The newest key of a kind with a given beginning: the numbers of before."""
        stored = []
        for path in (self._root / kind).glob(f"{beginning}*"):
            with suppress(OSError):
                stored.append((path.stat().st_mtime_ns, path.name))
        return max(stored, default=(0, None))[1]

    def forget(self) -> None:
        """Clear the memory of this process, as a restart does."""
        with self._lock:
            self._held.clear()

    def _hold(self, kind: str, key: str, artifact: Artifact, value: _T) -> _T:
        with self._lock:
            self._held[kind, key] = artifact, value
            weights = [_HEAVY if each.tables else 1 for each, _ in self._held.values()]
            total = sum(weights)
            for weight in weights[:-1]:
                if total <= _MEMORY:
                    break
                self._held.popitem(last=False)
                total -= weight
        return value

    def _evict(self) -> None:
        """Delete the least recently used artifacts above the limit, and interrupted writes."""
        stored, total = [], 0
        for path in self._root.glob("*/*"):
            with suppress(OSError):
                if path.name.startswith("."):
                    if path.stat().st_mtime < time.time() - _WRITING_S:
                        shutil.rmtree(path, ignore_errors=True)
                    continue
                size = sum(each.stat().st_size for each in path.iterdir())
                stored.append(((path / HEAD).stat().st_mtime, size, path))
                total += size
        if total <= self._limit:
            return
        pinned = self._pinned()
        for _, size, path in sorted(stored):
            if total <= self._limit:
                break
            if path.name not in pinned:
                shutil.rmtree(path, ignore_errors=True)
                total -= size


def _answer(artifact: Artifact) -> Any:
    return artifact.head.get("answer")


def _write(folder: Path, head: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]) -> None:
    files = {}
    for name, frame in tables.items():
        path = folder / f"{name}.parquet"
        frame.write_parquet(path, compression="zstd", row_group_size=_ROWS)
        files[name] = _sha256(path)
    body = json.dumps({"head": dict(head), "files": files}).encode()
    (folder / HEAD).write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def _read(folder: Path) -> Artifact | None:
    """The artifact of a folder, its checksums verified; None if it is missing or damaged."""
    try:
        digest, _, body = (folder / HEAD).read_bytes().partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return None
        content = json.loads(body)
        tables = {name: folder / f"{name}.parquet" for name in content["files"]}
        if any(_sha256(path) != content["files"][name] for name, path in tables.items()):
            return None
    except (OSError, ValueError):
        return None
    return Artifact(content["head"], tables)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
