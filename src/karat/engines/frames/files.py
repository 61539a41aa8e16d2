"""Reading the files of an event store: columns, batches of buckets, damaged files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import polars as pl

from karat.engines.frames.s3 import polars_options
from karat.errors import InputError, KaratError
from karat.tables.online.events import BUCKETS, S3, EventFile, EventLog
from karat.tables.schema import EVENTS

_TYPES: Mapping[str, pl.DataType] = {column.name: column.dtype for column in EVENTS}


@dataclass(frozen=True, slots=True)
class Batch:
    """Buckets of users that are read together."""

    files: tuple[EventFile, ...]
    low: int
    high: int

    @property
    def whole(self) -> bool:
        """Whether every row of these files is in the batch."""
        return all(self.low <= file.low and file.high <= self.high for file in self.files)


def dtype_of(column: str) -> pl.DataType:
    """The type of a column of ``EVENTS``; attributes are String."""
    return _TYPES.get(column, pl.String())


def batches_of(log: EventLog, rows_at_once: int) -> Iterator[Batch]:
    """Batches of consecutive buckets of a log, of about ``rows_at_once`` events each.

    A bucket is never split, because a user's events are needed together. Users are assumed to
    spread evenly over the buckets of a file.
    """
    rows = [0.0] * BUCKETS
    for file in log.files:
        for bucket in range(file.low, file.high):
            rows[bucket] += file.rows / (file.high - file.low)
    low, total = 0, 0.0
    for bucket in range(BUCKETS):
        if total and total + rows[bucket] > rows_at_once:
            yield _batch(log, low, bucket)
            low, total = bucket, 0.0
        total += rows[bucket]
    if total:
        yield _batch(log, low, BUCKETS)


def _batch(log: EventLog, low: int, high: int) -> Batch:
    files = (file for file in log.files if file.rows and file.low < high and low < file.high)
    return Batch(tuple(files), low, high)


def lacking(existing: Sequence[str], columns: Sequence[str]) -> list[str]:
    names = set(existing)
    return [column for column in columns if column not in names]


@contextmanager
def reading(paths: Iterable[str]) -> Iterator[None]:
    """Runs a plan; if it fails, checks its files and reports a damaged one as the cause."""
    try:
        yield
    except KaratError:
        raise
    except (Exception, pl.exceptions.PanicException):
        for path in dict.fromkeys(paths):
            reason = _damage(path)
            if reason is not None and path.startswith(S3):
                raise InputError(
                    f"a file of the event store cannot be read ({reason})",
                    file=path,
                    fix="try again; if it fails again, copy the event store to S3 again",
                ) from None
            if reason is not None:
                raise InputError(
                    f"a file of the event store is damaged ({reason})",
                    file=path,
                    fix="restore it from a backup, or import the logs into a new folder",
                ) from None
        raise


def _damage(path: str) -> str | None:
    try:
        for _ in pl.scan_parquet(path, glob=False, **polars_options(path)).collect_batches():
            pass
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        return str(error).split("\n", maxsplit=1)[0]
    return None
