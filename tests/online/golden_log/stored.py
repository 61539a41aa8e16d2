"""Event stores made by hand: frames in the columns of EVENTS as Parquet files, and what they hold.

Loaded by path from the tests that need it; independent of the importer, so that a mistake there
does not hide one here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from karat.tables.online.events import ATTRIBUTE, EventFile, EventLog
from karat.tables.schema import EVENTS

HERE = Path(__file__).parent
SCHEMA = {column.name: column.dtype for column in EVENTS}
ZONE = "Europe/Berlin"


def key_of(user: str) -> int:
    """The first eight bytes of SHA-1, signed."""
    return int.from_bytes(hashlib.sha1(user.encode()).digest()[:8], "big", signed=True)


def when(column: str = "time") -> pl.Expr:
    """``11-20 10:00:02.5`` of 2026 in microseconds UTC."""
    text = pl.concat_str(pl.lit("2026-"), column)
    text = pl.when(text.str.contains(".", literal=True)).then(text).otherwise(text + ".0")
    return text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us").cast(pl.Int64)


def table(name: str) -> pl.DataFrame:
    """One of the tables of the golden log, all of it text."""
    return pl.read_csv(HERE / f"{name}.csv", comment_prefix="#", infer_schema=False)


def golden_events() -> pl.DataFrame:
    """The events of the golden log."""
    text = table("events")
    return text.select(
        "kind",
        "query_id",
        "doc_id",
        "query",
        "status",
        "arm",
        user_id="user",
        time_us=when(),
        action="kind",
        query_key="query",
        attribute_device="device",
        latency_us=pl.col("latency_ms").cast(pl.Int64) * 1000,
        value=pl.col("value").cast(pl.Float64),
        **{
            name: pl.col(name).cast(SCHEMA[name]) for name in ("position", "total_hits", "raw_hits")
        },
        returned=pl.col("returned").cast(pl.Int32),
        **{name: pl.col(name) == "true" for name in ("filtered", "bot")},
    )


def completed(events: pl.DataFrame, zone: str = ZONE) -> pl.DataFrame:
    """Events with the columns that follow from others, all columns of EVENTS, and attributes."""
    users = events.select("user_id").unique()
    keys = [key_of(user) for user in users["user_id"]]
    users = users.with_columns(
        user_key=pl.Series(keys, dtype=pl.Int64),
        user_bucket=pl.Series([key >> 56 & 255 for key in keys], dtype=pl.Int16),
    )
    local = pl.from_epoch("time_us", "us").dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    content = ("kind", "query_id", "doc_id", "position", "value", "query_key")
    lacking = {name: pl.lit(None, SCHEMA[name]) for name in content if name not in events.columns}
    whole = (
        events.join(users, on="user_id")
        .with_columns(**lacking)
        .with_columns(_late=pl.col("kind") != "search", local_day=local.dt.date().cast(pl.Int32))
        .sort("user_key", "time_us", "_late", *content)
        .with_columns(
            tie=pl.int_range(pl.len()).over("user_key", "time_us"), local_hour=local.dt.hour()
        )
    )
    columns = [
        pl.col(name).cast(dtype) if name in whole.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in SCHEMA.items()
    ]
    return whole.select(*columns, *(c for c in whole.columns if c.startswith(ATTRIBUTE)))


def store(
    folder: Path,
    events: pl.DataFrame,
    *,
    ranges: int = 2,
    seed: int | None = None,
    zone: str = ZONE,
) -> EventLog:
    """Write events as a store has them.

    Args:
        folder: Where to.
        events: Any columns of EVENTS, with user_id, time_us and kind at least.
        ranges: Files, of equal ranges of buckets.
        seed: Shuffles the rows of each file, which a store never does; None: sorted.
        zone: Of the days.
    """
    whole = completed(events, zone)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number in range(ranges):
        low, high = number * 256 // ranges, (number + 1) * 256 // ranges
        rows = whole.filter(pl.col("user_bucket").is_between(low, high, closed="left"))
        rows = rows.sort("user_bucket", "user_key", "time_us", "tie")
        if seed is not None:
            rows = rows.sample(fraction=1.0, shuffle=True, seed=seed)
        path = folder / f"part [{number}].parquet"  # brackets: a path is no pattern
        rows.write_parquet(path, row_group_size=1000)
        files.append(EventFile(str(path), low, high, rows.height))
    return log_of(folder, whole, files, zone)


def log_of(folder: Path, whole: pl.DataFrame, files: list[EventFile], zone: str = ZONE) -> EventLog:
    """What a store of these events holds."""
    people = whole.filter(~pl.col("bot").fill_null(value=False))
    kinds: Mapping[str, int] = dict(people.group_by("kind").len().iter_rows())
    named = [c.removeprefix(ATTRIBUTE) for c in whole.columns if c.startswith(ATTRIBUTE)]
    known = frozenset(c for c in whole.columns if whole[c].count())
    ends: dict[str, Any] = {
        f"{end}_{of}": getattr(whole[column], least)()
        for of, column in (("us", "time_us"), ("day", "local_day"))
        for end, least in (("first", "min"), ("last", "max"))
    }
    arms = tuple(sorted(whole["arm"].drop_nulls().unique()))
    return EventLog(
        folder=folder,
        files=files,
        rows=whole.height,
        bots=whole.height - people.height,
        kinds=kinds,
        attributes=tuple(sorted(named)),
        arms=arms,
        known=known,
        timezone=zone,
        simulated=False,
        version="by hand",
        **ends,
    )
