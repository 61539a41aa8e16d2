"""Files of events: computed columns, and reading and writing of Parquet files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import polars as pl

from karat.engines.frames import s3
from karat.errors import InputError
from karat.golden.traffic import folded
from karat.tables.online.events import ATTRIBUTE, BUCKETS, KINDS
from karat.tables.schema import EVENTS

GROUP = 250_000  # rows of a row group; readers of some users skip the other groups
FILE = 1_000_000  # maximum number of events of a file, unless a few users have more
RESTORE = "restore it from a backup, or import the logs into a new folder"
_MAGIC = b"PAR1"
COMPACT = ("user_key", "time_us", "tie")
SAME = ("user_key", "time_us", "kind", "action", "query_id", "doc_id", "position")
"""Events that are equal in these columns are duplicates (``action`` counts only if the kind is
other). ``COMPACT`` is equivalent if all events were hashed by the same version."""
ORDER = ("user_bucket", "user_key", "time_us", "tie")
_TYPES = {column.name: column.dtype for column in EVENTS}
_PLACES = 1 << 15  # positions that ``tie`` distinguishes
_BITS = 44  # bits of the content in ``tie``, below kind and position


def with_users(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``user_key`` and ``user_bucket``, from ``user_id`` without nulls."""
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
    """Add ``local_day`` and ``local_hour`` in a time zone, from ``time_us`` without nulls."""
    local = pl.from_epoch("time_us", "us").dt.replace_time_zone("UTC")
    local = local.dt.convert_time_zone(timezone)
    day = local.dt.date().cast(pl.Int32)
    return frame.with_columns(local_day=day, local_hour=local.dt.hour().cast(pl.Int8))


def with_query_key(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``query_key``, the normalised form of ``query``."""
    texts = frame["query"].drop_nulls().unique()
    keys = pl.Series(folded(texts), dtype=pl.String)
    table = pl.DataFrame({"query": texts, "query_key": keys}, schema_overrides={"query": pl.String})
    bare = frame.drop("query_key", strict=False)
    return bare.join(table, on="query", how="left", maintain_order="left")


def with_tie(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``tie``: the kind, then the position, then the content, in one number."""
    kind = pl.col("kind").replace_strict(dict(zip(KINDS, range(len(KINDS)), strict=True)))
    place = pl.col("position").fill_null(0).clip(0, _PLACES - 1)
    text = pl.concat_str(
        distinct_action().fill_null("\x00"),
        *(pl.col(name).fill_null("\x00") for name in ("query_id", "doc_id")),
        separator="\x01",
    )
    content = (text.hash(seed=0) // (1 << (64 - _BITS))).cast(pl.Int64)
    tie = kind.cast(pl.Int64) * (_PLACES << _BITS) + place.cast(pl.Int64) * (1 << _BITS) + content
    return frame.with_columns(tie=tie)


def distinct_action() -> pl.Expr:
    """``action`` of events of kind other, which distinguishes them; null for all other kinds."""
    return pl.when(pl.col("kind") == "other").then("action")


def hashing() -> int:
    """Fingerprint of the hash function of ``tie``, which depends on the version of Polars."""
    return int(pl.Series(["karat: kind before action"]).hash(seed=0)[0])


def conformed(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of ``EVENTS`` in their order and types, null if absent, then attributes."""
    attributes = sorted(name for name in frame.columns if name.startswith(ATTRIBUTE))
    columns = [
        pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in _TYPES.items()
    ]
    return frame.select(*columns, *(pl.col(name).cast(pl.String) for name in attributes))


def ranges(rows_of_bucket: Sequence[int], low: int = 0, high: int = BUCKETS) -> list[range]:
    """Non-empty ranges of buckets, of one width (a power of two), with at most ``FILE`` rows each.

    ``low`` is the first bucket, ``high`` the last one plus 1.
    """
    width = high - low
    while width > 1:
        widest = max(sum(rows_of_bucket[at : at + width]) for at in range(low, high, width))
        if widest <= FILE:
            break
        width //= 2
    cut = (range(at, at + width) for at in range(low, high, width))
    return [buckets for buckets in cut if any(rows_of_bucket[buckets.start : buckets.stop])]


def write_file(path: Path, frame: pl.DataFrame) -> str:
    """Write a file of events (from ``conformed``) atomically; returns its SHA-256.

    An existing file, which no manifest can list, is replaced.
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
        raise write_error(path, error) from error
    return digest


def write_error(path: Path, error: Exception) -> InputError:
    """The error for a file that cannot be written; Polars raises its own errors for full disks."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error).split("\n")[0]
    fix = "free some space there and import again: nothing was imported"
    return InputError(f"cannot be written: {reason}", file=str(path), fix=fix)


def check_complete(folder: str | Path, sizes: Mapping[str, int | None]) -> None:
    """A quick check that files of a store are complete; sizes in bytes, None if unknown."""
    if isinstance(folder, str):
        stored = {each.address: each.size for each in s3.listed(folder)}
        for name, size in sizes.items():
            address = f"{folder}/{name}"
            if address not in stored or (size or stored[address]) != stored[address]:
                problem = "damaged" if address in stored else "missing"
                fix = "copy the event store again: all *.parquet first, manifest.json last"
                raise InputError(f"a file of the event store is {problem}", file=address, fix=fix)
        return
    for name, size in sizes.items():
        _check_file(folder / name, size)


def _check_file(path: Path, size: int | None) -> None:
    try:
        with path.open("rb") as stream:
            actual = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, actual - len(_MAGIC)))
            complete = actual == (size or actual) and stream.read() == _MAGIC
    except FileNotFoundError:
        raise InputError(
            "a file of the event store is missing", file=str(path), fix=RESTORE
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
    if not complete:
        raise InputError("a file of the event store is damaged", file=str(path), fix=RESTORE)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Reports errors while reading a file of the store as errors of the file."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise InputError(
            f"a file of the event store cannot be read ({reason})", file=str(path), fix=RESTORE
        ) from None


def scan(path: Path, buckets: range, columns: Sequence[str] | None = None) -> pl.LazyFrame:
    """The rows of a file in a range of buckets; all columns if ``columns`` is None."""
    plan = pl.scan_parquet(path, glob=False)
    if columns is not None:
        plan = plan.select(list(dict.fromkeys([*columns, "user_bucket"])))
    return plan.filter(pl.col("user_bucket").is_between(buckets.start, buckets.stop, closed="left"))
