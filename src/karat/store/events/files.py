"""Files of events: what karat adds to each row, and how rows become a file of the store."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import polars as pl

from karat.errors import InputError
from karat.golden.traffic import folded
from karat.tables.online.events import ATTRIBUTE, BUCKETS, KINDS
from karat.tables.schema import EVENTS

GROUP = 250_000
"""Rows of a row group: a reader that wants some users skips the others."""
FILE = 1_000_000
"""Events that a file holds at most, unless a few users have more."""
RESTORE = "restore it from a backup, or import the logs into a new folder"
_MAGIC = b"PAR1"
COMPACT = ("user_key", "time_us", "tie")
SAME = ("user_key", "time_us", "kind", "action", "query_id", "doc_id", "position")
"""Two events equal in these are one, whatever their action is called if their kind is not other;
``COMPACT`` says the same, by one way of hashing."""
ORDER = ("user_bucket", "user_key", "time_us", "tie")
_TYPES = {column.name: column.dtype for column in EVENTS}
_PLACES = 1 << 15  # positions that the order of a tie tells apart
_BITS = 44  # of the content, below kind and position


def with_users(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``user_key`` and ``user_bucket``.

    Args:
        frame: With ``user_id``, no null.
    """
    users = frame["user_id"].unique()
    digests = b"".join(
        hashlib.sha1(user.encode("utf-8", "replace"), usedforsecurity=False).digest()[:8]
        for user in users
    )
    keys = np.frombuffer(digests, dtype=">i8").astype(np.int64)
    buckets = np.frombuffer(digests, dtype=np.uint8)[::8].astype(np.int16)
    table = pl.DataFrame(
        {"user_id": users, "user_key": keys, "user_bucket": buckets},
        schema_overrides={"user_id": pl.String},
    )
    old = [name for name in ("user_key", "user_bucket") if name in frame.columns]
    return frame.drop(old).join(table, on="user_id", how="left", maintain_order="left")


def with_local(frame: pl.DataFrame, timezone: str) -> pl.DataFrame:
    """Add ``local_day`` and ``local_hour``.

    Args:
        frame: With ``time_us``, no null.
        timezone: Where a day begins.
    """
    local = pl.from_epoch("time_us", "us").dt.replace_time_zone("UTC")
    local = local.dt.convert_time_zone(timezone)
    day = local.dt.date().cast(pl.Int32)
    return frame.with_columns(local_day=day, local_hour=local.dt.hour().cast(pl.Int8))


def with_query_key(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``query_key``: the form of ``query`` under which spellings are equal."""
    texts = frame["query"].drop_nulls().unique()
    keys = pl.Series(folded(texts), dtype=pl.String)
    table = pl.DataFrame({"query": texts, "query_key": keys}, schema_overrides={"query": pl.String})
    bare = frame.drop("query_key", strict=False)
    return bare.join(table, on="query", how="left", maintain_order="left")


def with_tie(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``tie``: the kind, then the position, then the content, in one number."""
    kind = pl.col("kind").replace_strict(dict(zip(KINDS, range(len(KINDS)), strict=True)))
    place = pl.col("position").fill_null(0).clip(0, _PLACES - 1)
    said = pl.concat_str(
        told_apart_by().fill_null("\x00"),
        *(pl.col(name).fill_null("\x00") for name in ("query_id", "doc_id")),
        separator="\x01",
    )
    content = (said.hash(seed=0) // (1 << (64 - _BITS))).cast(pl.Int64)
    tie = kind.cast(pl.Int64) * (_PLACES << _BITS) + place.cast(pl.Int64) * (1 << _BITS) + content
    return frame.with_columns(tie=tie)


def told_apart_by() -> pl.Expr:
    """``action`` where it tells events apart: of a kind that is known, the kind does."""
    return pl.when(pl.col("kind") == "other").then("action")


def hashing() -> int:
    """Stands for the way in which ``tie`` hashes: it may change with another version of Polars."""
    return int(pl.Series(["karat: kind before action"]).hash(seed=0)[0])


def in_form(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of ``EVENTS`` in their order and types, null where absent, then attributes."""
    attributes = sorted(name for name in frame.columns if name.startswith(ATTRIBUTE))
    columns = [
        pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in _TYPES.items()
    ]
    return frame.select(*columns, *(pl.col(name).cast(pl.String) for name in attributes))


def ranges(rows_of_bucket: Sequence[int], low: int = 0, high: int = BUCKETS) -> list[range]:
    """Ranges of buckets of one width, a power of two, so narrow that a file is not too large.

    Args:
        rows_of_bucket: Rows of each bucket.
        low: The first bucket.
        high: One more than the last.

    Returns:
        Those with a row in them.
    """
    width = high - low
    while width > 1:
        widest = max(sum(rows_of_bucket[at : at + width]) for at in range(low, high, width))
        if widest <= FILE:
            break
        width //= 2
    cut = (range(at, at + width) for at in range(low, high, width))
    return [each for each in cut if any(rows_of_bucket[each.start : each.stop])]


def write_file(path: Path, frame: pl.DataFrame) -> str:
    """Write a file of events beside its place, then rename it.

    Args:
        path: Its place; what is there, which no manifest lists, is replaced.
        frame: In form.

    Returns:
        SHA-256 of the file.

    Raises:
        InputError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as stream:
            frame.sort(ORDER).write_parquet(
                stream, compression="zstd", compression_level=1, row_group_size=GROUP
            )
            stream.flush()
            os.fsync(stream.fileno())
        with part.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        part.replace(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise unwritten(path, error) from error
    return digest


def unwritten(path: Path, error: Exception) -> InputError:
    """That a file could not be written; Polars makes other errors of a disk that is full.

    Args:
        path: The file.
        error: Why.
    """
    why = (error.strerror if isinstance(error, OSError) else None) or str(error).split("\n")[0]
    fix = "make room there, and import again: nothing was imported"
    return InputError(f"cannot be written: {why}", file=str(path), fix=fix)


def looked_at(path: Path, size: int | None) -> None:
    """A cheap look at whether a file of the store is whole.

    Args:
        path: The file.
        size: Bytes it had when it was written; None if nobody knows.

    Raises:
        InputError: it is gone, cannot be read, has another size, or does not end as Parquet does.
    """
    try:
        with path.open("rb") as stream:
            there = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, there - len(_MAGIC)))
            whole = there == (size or there) and stream.read() == _MAGIC
    except FileNotFoundError:
        raise InputError("a file of the event store is gone", file=str(path), fix=RESTORE) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
    if not whole:
        raise InputError("a file of the event store is damaged", file=str(path), fix=RESTORE)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Reading a file of the store, whose damage is no bug.

    Raises:
        InputError: it cannot be read.
    """
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        why = str(error).split("\n", maxsplit=1)[0]
        raise InputError(
            f"a file of the event store cannot be read ({why})", file=str(path), fix=RESTORE
        ) from None


def scan(path: Path, buckets: range, columns: Sequence[str] | None = None) -> pl.LazyFrame:
    """The rows of a file in a range of buckets.

    Args:
        path: The file, of the store or staged.
        buckets: The range.
        columns: Those wanted; all if None.
    """
    plan = pl.scan_parquet(path, glob=False)
    if columns is not None:
        plan = plan.select(list(dict.fromkeys([*columns, "user_bucket"])))
    return plan.filter(pl.col("user_bucket").is_between(buckets.start, buckets.stop, closed="left"))
