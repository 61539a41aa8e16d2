"""The files of an event store as engines open them: which columns, which files, which buckets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import polars as pl

from karat.errors import InputError, KaratError
from karat.tables.online.events import BUCKETS, EventFile, EventLog
from karat.tables.schema import EVENTS

_TYPES: Mapping[str, pl.DataType] = {column.name: column.dtype for column in EVENTS}


@dataclass(frozen=True, slots=True)
class Batch:
    """Buckets of users that are read at once.

    Attributes:
        files: The files that hold them.
        low: The lowest ``user_bucket``.
        high: One more than the highest.
    """

    files: tuple[EventFile, ...]
    low: int
    high: int

    @property
    def whole(self) -> bool:
        """Whether every row of these files is in the batch."""
        return all(self.low <= each.low and each.high <= self.high for each in self.files)


def dtype_of(column: str) -> pl.DataType:
    """The type of a column of ``EVENTS``; attributes are String."""
    return _TYPES.get(column, pl.String())


def batches_of(log: EventLog, rows_at_once: int) -> Iterator[Batch]:
    """Consecutive buckets of a log, about as many as hold ``rows_at_once`` events.

    A bucket is never split, for a user's events are needed together; users spread evenly over the
    buckets of a file, as a hash does.
    """
    rows = [0.0] * BUCKETS
    for each in log.files:
        for bucket in range(each.low, each.high):
            rows[bucket] += each.rows / (each.high - each.low)
    low, held = 0, 0.0
    for bucket in range(BUCKETS):
        if held and held + rows[bucket] > rows_at_once:
            yield _batch(log, low, bucket)
            low, held = bucket, 0.0
        held += rows[bucket]
    if held:
        yield _batch(log, low, BUCKETS)


def _batch(log: EventLog, low: int, high: int) -> Batch:
    """The buckets from ``low`` to below ``high``."""
    files = (each for each in log.files if each.rows and each.low < high and low < each.high)
    return Batch(tuple(files), low, high)


def lacking(there: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns that a file does not hold."""
    held = set(there)
    return [column for column in columns if column not in held]


@contextmanager
def reading(paths: Iterable[str]) -> Iterator[None]:
    """Running a plan over files: if it fails and one of them is damaged, that is why.

    Only a plan that failed has its files looked at, so what is wrong with a plan stays a bug.

    Args:
        paths: The files, of the store.

    Raises:
        InputError: a file is damaged.
    """
    try:
        yield
    except KaratError:
        raise
    except (Exception, pl.exceptions.PanicException):
        for path in dict.fromkeys(paths):
            why = _damage(path)
            if why is not None:
                raise InputError(
                    f"a file of the event store is damaged ({why})",
                    file=path,
                    fix="restore it from a backup, or import the logs into a new folder",
                ) from None
        raise


def _damage(path: str) -> str | None:
    """Why a file cannot be read; None if it can."""
    try:
        for _ in pl.scan_parquet(path, glob=False).collect_batches():
            pass
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        return str(error).split("\n", maxsplit=1)[0]
    return None
