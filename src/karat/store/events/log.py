"""The event store: a folder of Parquet files, and the manifest that lists them.

A file that the manifest does not list does not exist: files are written first, then the manifest
takes its place in one step. Whoever stops an import at any moment, and runs it again, has the same
store. Files that a manifest lists no more stay until the next import, as somebody may be reading.
"""

from __future__ import annotations

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

from karat.errors import InputError
from karat.store.events import files as event_files
from karat.store.events._verify import checked
from karat.store.events.manifest import Manifest, StoredFile
from karat.tables.online.events import BUCKETS, EventFile, EventLog

MANIFEST = "manifest.json"
STAGING = ".staging"
"""Where an import keeps what it read, before it knows how to cut it."""
_VERSION = 1
_LOCK = ".lock"
_MOST = 16  # files that hold one user, before they are merged


class NoEvents(InputError):
    """A store that is there and holds no event.

    Args:
        folder: The store.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(f"no events in {folder}", fix="karat online import LOG…")


def read_event_log(folder: Path) -> EventLog:
    """What an event store holds.

    Args:
        folder: The store.

    Raises:
        InputError: there are no events in it, or its manifest is damaged or of a newer karat.
    """
    found = read_manifest(folder)
    if found is None:
        raise InputError(f"no events in {folder}", fix="karat online import LOG…")
    if not found.files:
        raise NoEvents(folder)
    files = [
        EventFile(str(folder / each.name), each.low, each.high, each.rows) for each in found.files
    ]
    for each in found.files:
        event_files.looked_at(folder / each.name, each.bytes)
    content = json.dumps([found.timezone, [asdict(each) for each in found.files]])
    return EventLog(
        folder=folder,
        files=files,
        rows=sum(each.rows for each in found.files),
        bots=found.bots,
        kinds=dict(found.kinds),
        attributes=tuple(found.attributes),
        arms=tuple(found.arms),
        known=frozenset(found.known),
        first_us=found.first_us,
        last_us=found.last_us,
        first_day=found.first_day,
        last_day=found.last_day,
        timezone=found.timezone,
        simulated=found.simulated,
        version=hashlib.sha256(content.encode()).hexdigest()[:16],
    )


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a store; None if there is none.

    Raises:
        InputError: it is damaged, or of a newer karat.
    """
    path = folder / MANIFEST
    try:
        held = json.loads(path.read_bytes())
        version = held.pop("karat_events")
        if version == _VERSION:
            return checked(held)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        raise InputError(
            "the manifest of the event store is damaged",
            file=str(path),
            fix="restore it from a backup, or import the logs into a new folder",
        ) from None
    raise InputError(
        f"the event store is of version {version}, and this karat reads {_VERSION}",
        file=str(path),
        fix="use the karat that wrote it, or import the logs into a new folder",
    )


@contextmanager
def importing(folder: Path) -> Iterator[Manifest | None]:
    """The manifest of a store, into which nobody else imports until the block ends.

    The folder is made if absent, and what an import that was stopped left in it is taken away.

    Raises:
        InputError: another import is running, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / _LOCK).open("a+b")
    except OSError as error:
        raise InputError(f"no events can be kept there: {error.strerror}", file=str(folder)) from (
            error
        )
    with lock:
        if not _taken(lock.fileno()):
            raise InputError(
                "another import into this event store is running",
                file=str(folder),
                fix="run it again once that has ended",
            )
        found = read_manifest(folder)
        _sweep(folder, found)
        try:
            yield found
        finally:
            shutil.rmtree(folder / STAGING, ignore_errors=True)


def _taken(lock: int) -> bool:
    """Whether the lock is ours now; it ends with the process, however that ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sweep(folder: Path, found: Manifest | None) -> None:
    listed = {each.name for each in found.files} if found else set()
    shutil.rmtree(folder / STAGING, ignore_errors=True)
    for pattern in ("*.parquet", ".*.part"):
        for path in folder.glob(pattern):
            if path.name not in listed:
                with suppress(OSError):
                    path.unlink()


def store_file(
    folder: Path, frame: pl.DataFrame, buckets: range, number: int, mark: str = ""
) -> StoredFile:
    """Write a file of the store; it exists once a manifest that lists it is committed.

    Args:
        folder: The store.
        frame: Events in form, all of these buckets.
        buckets: A range of buckets.
        number: Of the import.
        mark: Tells files of one range and import apart.

    Raises:
        InputError: it cannot be written.
    """
    low, high = buckets.start, buckets.stop
    name = f"{number:06d}-{low:03d}-{high:03d}{mark}.parquet"
    digest = event_files.write_file(folder / name, frame)
    first, last = frame["time_us"].min(), frame["time_us"].max()
    size = (folder / name).stat().st_size
    return StoredFile(name, low, high, frame.height, first, last, digest, size)  # type: ignore[arg-type]


def commit(folder: Path, manifest: Manifest) -> None:
    """Put a manifest in its place, which makes the store what it lists.

    Raises:
        InputError: it cannot be written.
    """
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
        raise event_files.unwritten(path, error) from error


def there_already(folder: Path, manifest: Manifest, frame: pl.DataFrame) -> pl.Series:
    """Which events a store holds already.

    Args:
        folder: The store.
        manifest: What it lists.
        frame: Events of some buckets, with ``tie``.

    Returns:
        A Boolean for each row.

    Raises:
        InputError: a file of the store cannot be read.
    """
    if frame.is_empty() or not manifest.files:
        return pl.repeat(value=False, n=frame.height, eager=True)
    first, last = frame["time_us"].min(), frame["time_us"].max()
    buckets = range(int(frame["user_bucket"].min()), int(frame["user_bucket"].max()) + 1)  # type: ignore[arg-type]
    one_way = manifest.hashing == event_files.hashing()
    on = event_files.COMPACT if one_way else event_files.SAME
    found = pl.repeat(value=False, n=frame.height, eager=True)
    for each in manifest.files:
        if each.high <= buckets.start or buckets.stop <= each.low:
            continue
        if each.last_us < first or last < each.first_us:  # type: ignore[operator]
            continue
        when = pl.col("time_us").is_between(first, last)
        with event_files.reading(folder / each.name):
            stored = event_files.scan(folder / each.name, buckets, on).filter(when).collect()
        rows, held = frame.select(on), stored.select(on)
        if not one_way:
            rows, held = (each.with_columns(event_files.told_apart_by()) for each in (rows, held))
        same = rows.with_row_index("row").join(held.unique(), on=on, how="semi", nulls_equal=True)
        found = found.scatter(same["row"], values=True)
    return found


def merged(folder: Path, manifest: Manifest, number: int) -> Manifest:
    """The manifest, the smallest files of a range merged where it has too many.

    Args:
        folder: The store.
        manifest: Not committed yet.
        number: Of the import.

    Raises:
        InputError: a file cannot be read or written.
    """
    rounds = 0
    while (crowd := _crowd(manifest.files)) is not None:
        rounds += 1
        low, high = min(each.low for each in crowd), max(each.high for each in crowd)
        sizes = [0] * BUCKETS
        paths = [folder / each.name for each in crowd]
        for path in paths:
            with event_files.reading(path):
                held = pl.read_parquet(path, columns=["user_bucket"])["user_bucket"].value_counts()
            for bucket, rows in held.iter_rows():
                sizes[bucket] += rows
        files = []
        for buckets in event_files.ranges(sizes, low, high):
            parts = []
            for path in paths:
                with event_files.reading(path):
                    parts.append(event_files.scan(path, buckets).collect())
            frame = event_files.in_form(pl.concat(parts, how="diagonal"))
            files.append(store_file(folder, frame, buckets, number, f"-m{rounds}"))
        stay = [each for each in manifest.files if each not in crowd]
        manifest = replace(manifest, files=[*stay, *files])
    return manifest


def _crowd(files: Sequence[StoredFile]) -> list[StoredFile] | None:
    """The smallest files of a bucket that too many files hold; None if there is none."""
    for bucket in range(BUCKETS):
        here = [each for each in files if each.low <= bucket < each.high]
        if len(here) > _MOST:
            return sorted(here, key=lambda each: (each.rows, each.name))[:_MOST]
    return None
