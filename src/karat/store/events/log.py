"""The event store: a folder of Parquet files, and the manifest that lists them.

Files are written first, then the manifest is replaced atomically; files it does not list do not
count. An import can be interrupted at any time and run again. Files that are not listed any more
are deleted by the next import, because another process may still be reading them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl

from karat.engines.frames import s3
from karat.errors import InputError
from karat.store.events import files as event_files
from karat.store.events._verify import checked
from karat.store.events.manifest import Manifest, StoredFile
from karat.tables.online.events import BUCKETS, S3, EventFile, EventLog, place
from karat.tables.records import shared

MANIFEST = "manifest.json"
STAGING = ".staging"  # folder for rows of a running import that are not yet partitioned
LOCK = ".lock"
_VERSION = 1
_IN_USE = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}  # a lock that another process has
_MOST = 16  # files of one bucket, before they are merged


class NoStore(InputError):
    """There is no event store."""

    def __init__(self, folder: str | Path) -> None:
        inside = Path(folder, "events")
        fix = f"name {inside}" if (inside / MANIFEST).is_file() else "karat online import LOG…"
        super().__init__(f"no events in {folder}", fix=fix)


class NoEvents(NoStore):
    """The event store exists but has no events."""


def read_event_log(folder: str | Path) -> EventLog:
    """The content of an event store: a folder, or the address of its copy in S3."""
    folder = place(folder)
    manifest = read_manifest(folder)
    if manifest is None:
        raise NoStore(folder)
    if not manifest.files:
        raise NoEvents(folder)
    files = [
        EventFile(_inside(folder, file.name), file.low, file.high, file.rows)
        for file in manifest.files
    ]
    event_files.check_complete(folder, {file.name: file.bytes for file in manifest.files})
    content = json.dumps([manifest.timezone, [asdict(file) for file in manifest.files]])
    more = {
        "files": files,
        "kinds": dict(manifest.kinds),
        "attributes": tuple(manifest.attributes),
        "arms": tuple(manifest.arms),
        "known": frozenset(manifest.known),
    }
    return EventLog(
        folder=folder,
        rows=sum(file.rows for file in manifest.files),
        version=hashlib.sha256(content.encode()).hexdigest()[:16],
        **shared(manifest, EventLog) | more,
    )


def _inside(folder: str | Path, name: str) -> str:
    return f"{folder}/{name}" if isinstance(folder, str) else str(folder / name)


def read_manifest(folder: str | Path) -> Manifest | None:
    """The manifest of a store; None if there is none."""
    path = _inside(folder, MANIFEST)
    try:
        content = json.loads(s3.content(path) if path.startswith(S3) else Path(path).read_bytes())
        version = content.pop("karat_events")
        if version == _VERSION:
            return checked(content)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        raise InputError(
            "the manifest of the event store is damaged",
            file=path,
            fix=event_files.RESTORE,
        ) from None
    raise InputError(
        f"the event store has version {version}; this karat reads version {_VERSION}",
        file=path,
        fix="use the karat that wrote it, or import the logs into a new folder",
    )


@contextmanager
def importing(folder: Path) -> Iterator[Manifest | None]:
    """The manifest of a store, locked against other imports until the block ends.

    Creates the folder if missing, and deletes remains of interrupted imports.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a+b")
    except OSError as error:
        reason = f"events cannot be stored there: {error.strerror}"
        raise InputError(reason, file=str(folder)) from error
    with lock:
        try:
            taken = _taken(lock.fileno())
        except OSError as error:
            raise InputError(
                f"the file system does not support locks: {error.strerror}",
                file=str(folder),
                fix="import into a local folder, or mount the shared one with locks",
            ) from error
        if not taken:
            raise InputError(
                "another import into this event store is running",
                file=str(folder),
                fix="run it again after that one has ended",
            )
        manifest = read_manifest(folder)
        _sweep(folder, manifest)
        try:
            yield manifest
        finally:
            shutil.rmtree(folder / STAGING, ignore_errors=True)


def _taken(lock: int) -> bool:
    """Acquire the lock, which ends with the process; False if another process has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _IN_USE:
            raise
        return False
    return True


def _sweep(folder: Path, manifest: Manifest | None) -> None:
    listed = {file.name for file in manifest.files} if manifest else set()
    shutil.rmtree(folder / STAGING, ignore_errors=True)
    for pattern in ("*.parquet", ".*.part"):
        for path in folder.glob(pattern):
            if path.name not in listed:
                with suppress(OSError):
                    path.unlink()


def store_file(
    folder: Path, frame: pl.DataFrame, buckets: range, number: int, mark: str = ""
) -> StoredFile:
    """Write a file of the store; it counts after the commit of a manifest that lists it."""
    low, high = buckets.start, buckets.stop
    name = f"{number:06d}-{low:03d}-{high:03d}{mark}.parquet"
    digest = event_files.write_file(folder / name, frame)
    first, last = frame["time_us"].min(), frame["time_us"].max()
    size = (folder / name).stat().st_size
    return StoredFile(name, low, high, frame.height, first, last, digest, size)  # type: ignore[arg-type]


def commit(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest atomically."""
    path = folder / MANIFEST
    part = folder / f".{MANIFEST}.part"
    body = json.dumps({"karat_events": _VERSION, **asdict(manifest)}, indent=1, ensure_ascii=False)
    try:
        with part.open("wb") as stream:
            stream.write(body.encode("utf-8", "replace"))
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError as error:
        raise event_files.write_error(path, error) from error


def already_stored(folder: Path, manifest: Manifest, frame: pl.DataFrame) -> pl.Series:
    """Whether the store has each event of a frame (with ``tie``) already."""
    if frame.is_empty() or not manifest.files:
        return pl.repeat(value=False, n=frame.height, eager=True)
    first, last = frame["time_us"].min(), frame["time_us"].max()
    buckets = range(int(frame["user_bucket"].min()), int(frame["user_bucket"].max()) + 1)  # type: ignore[arg-type]
    same_hash = manifest.hashing == event_files.hashing()
    on = event_files.COMPACT if same_hash else event_files.SAME
    exists = pl.repeat(value=False, n=frame.height, eager=True)
    for file in manifest.files:
        if file.high <= buckets.start or buckets.stop <= file.low:
            continue
        if file.last_us < first or last < file.first_us:  # type: ignore[operator]
            continue
        when = pl.col("time_us").is_between(first, last)
        with event_files.reading(folder / file.name):
            stored = event_files.scan(folder / file.name, buckets, on).filter(when).collect()
        rows, stored = frame.select(on), stored.select(on)
        if not same_hash:
            action = event_files.distinct_action()
            rows, stored = rows.with_columns(action), stored.with_columns(action)
        same = rows.with_row_index("row").join(stored.unique(), on=on, how="semi", nulls_equal=True)
        exists = exists.scatter(same["row"], values=True)
    return exists


def merged(folder: Path, manifest: Manifest, number: int) -> Manifest:
    """The manifest after merging the smallest files of buckets that have too many."""
    rounds = 0
    while (crowd := _crowd(manifest.files)) is not None:
        rounds += 1
        low, high = min(file.low for file in crowd), max(file.high for file in crowd)
        sizes = [0] * BUCKETS
        paths = [folder / file.name for file in crowd]
        for path in paths:
            with event_files.reading(path):
                users = pl.read_parquet(path, columns=["user_bucket"])["user_bucket"]
            for bucket, rows in users.value_counts().iter_rows():
                sizes[bucket] += rows
        files = []
        for buckets in event_files.ranges(sizes, low, high):
            parts = []
            for path in paths:
                with event_files.reading(path):
                    parts.append(event_files.scan(path, buckets).collect())
            frame = event_files.conformed(pl.concat(parts, how="diagonal"))
            files.append(store_file(folder, frame, buckets, number, f"-m{rounds}"))
        others = [file for file in manifest.files if file not in crowd]
        manifest = replace(manifest, files=[*others, *files])
    return manifest


def _crowd(files: Sequence[StoredFile]) -> list[StoredFile] | None:
    """The smallest files of a bucket that is in too many files; None if there is none."""
    for bucket in range(BUCKETS):
        of_bucket = [file for file in files if file.low <= bucket < file.high]
        if len(of_bucket) > _MOST:
            return sorted(of_bucket, key=lambda file: (file.rows, file.name))[:_MOST]
    return None
