"""Rows of an import: staged in memory or on disk, then deduplicated by ranges of users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from karat.formats.events.json import LINE
from karat.store.events import files
from karat.store.events.files import write_error
from karat.store.events.log import already_stored
from karat.store.events.manifest import Manifest
from karat.tables.online.events import BUCKETS

TWICE = "twice in what was imported"
STORED = "in the event store already"
SUB_QUERY = "a further query of the same search (as _msearch logs them)"


@dataclass
class Observed:
    dropped: Counter[str] = field(default_factory=Counter)  # rows left out, by reason
    # A few `(file, line)` for each reason
    places: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    repeated: int = 0  # events that repeat the record of a search
    before: int = 0  # events before their search
    before_users: int = 0  # users with such events
    below: int = 0  # positions before the first

    def drop(self, reason: str, rows: pl.DataFrame) -> None:
        if rows.height:
            self.dropped[reason] += rows.height
            self._place(reason, rows.select("_file", LINE).head(3).iter_rows())

    def add(self, other: Observed) -> None:
        """Add what was observed of another range."""
        self.dropped.update(other.dropped)
        for reason, places in other.places.items():
            self._place(reason, places)
        for name in ("repeated", "before", "before_users", "below"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def _place(self, reason: str, places: Iterable[tuple[Any, ...]]) -> None:
        known = self.places.setdefault(reason, [])
        known += islice(places, max(0, 3 - len(known)))


def processed(
    frame: pl.DataFrame,  # staged rows
    folder: Path,  # the store
    manifest: Manifest,
    number: int,  # number of the import
    base: int,  # number of the first position in the log, 0 or 1
    observed: Observed,  # updated with what is observed
) -> pl.DataFrame:
    """The events of a range in the form that is stored."""
    frame = frame.with_columns(position=(pl.col("position") + (1 - base)).cast(pl.Int32))
    observed.below += int((frame["position"] < 1).sum())
    frame = frame.with_columns(position=pl.when(pl.col("position") > 0).then("position"))
    frame = without_repeats(frame, observed)
    _count_early(frame, observed)
    frame = files.with_tie(frame)
    frame = frame.sort("user_bucket", "user_key", "time_us", "tie", "_order")
    again = pl.all_horizontal(
        pl.col(name) == pl.col(name).shift() for name in files.COMPACT
    ).fill_null(value=False)
    duplicates = frame.select(again.alias("again"))["again"]
    if duplicates.any():
        _drop_duplicates(frame, duplicates, observed)
        frame = frame.filter(~duplicates)
    known = already_stored(folder, manifest, frame)
    if known.any():
        observed.drop(STORED, frame.filter(known))
        frame = frame.filter(~known)
    frame = frame.with_columns(pl.lit(number, pl.Int32).alias("import"))
    frame = files.with_query_key(files.with_local(frame, manifest.timezone))
    return files.conformed(frame)


def without_repeats(frame: pl.DataFrame, observed: Observed) -> pl.DataFrame:
    """Mark events that repeat a search with its own record as ``other``."""
    if not frame["told"].any():
        return frame
    key = ("user_key", "query_id")
    recorded = frame.filter((pl.col("kind") == "search") & ~pl.col("told")).select(key).unique()
    twice = frame.filter("told").select(*key, "_order").join(recorded, on=key, how="semi")
    if twice.is_empty():
        return frame
    observed.repeated += twice.height
    again = pl.col("_order").is_in(twice["_order"].implode())
    return frame.with_columns(kind=pl.when(again).then(pl.lit("other")).otherwise("kind"))


def _count_early(frame: pl.DataFrame, observed: Observed) -> None:
    """Count events before their own search: clocks of page and server differ."""
    named = frame.select("user_key", "query_id", "time_us", "kind").drop_nulls("query_id")
    named = named.with_columns(query_id=pl.col("query_id").hash())
    search = pl.col("kind") == "search"
    begun = named.filter(search).group_by("user_key", "query_id").agg(begun=pl.col("time_us").min())
    before = named.filter(~search).join(begun, on=["user_key", "query_id"])
    before = before.filter(pl.col("time_us") < pl.col("begun"))
    observed.before += before.height
    observed.before_users += before["user_key"].n_unique()


def _drop_duplicates(frame: pl.DataFrame, duplicates: pl.Series, observed: Observed) -> None:
    """Count duplicates; a search of another text at the same moment is counted separately."""
    group = (~duplicates).cum_sum().alias("group")
    texts = frame.select(group, "kind", "query", "_file", LINE, again=duplicates)
    first = texts.filter(~pl.col("again")).select("group", first="query")
    twins = texts.filter("again").join(first, on="group", maintain_order="left")
    other = (pl.col("kind") == "search") & pl.col("query").ne_missing(pl.col("first"))
    observed.drop(SUB_QUERY, twins.filter(other))
    observed.drop(TWICE, twins.filter(~other))


_FLUSH = 250_000  # rows of a staged file
_HOLD = 500_000  # rows in memory
_GROUP = 16_384


class Staged:
    """Rows of an import, held in memory or on disk until they are cut into ranges of users."""

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self._folder, self._prefix = folder, prefix
        self._frames: list[pl.DataFrame] = []  # of completely read files
        self._paths: list[Path] = []
        self._pending: list[pl.DataFrame] = []  # of the current file
        self._pending_paths: list[Path] = []
        self._written = 0
        self.sizes = [0] * BUCKETS
        self._pending_sizes = [0] * BUCKETS

    def add(self, frame: pl.DataFrame) -> None:
        """Add rows of the current file, with ``user_bucket``."""
        self._pending.append(frame)
        for bucket, rows in frame["user_bucket"].value_counts().iter_rows():
            self._pending_sizes[bucket] += rows
        if sum(each.height for each in self._pending) >= _FLUSH:
            self._pending_paths.append(self._write(self._pending))
            self._pending = []

    def keep(self) -> None:
        """Accept the rows of the current file: it was read completely."""
        self._frames += self._pending
        self._paths += self._pending_paths
        for bucket, rows in enumerate(self._pending_sizes):
            self.sizes[bucket] += rows
        self._begin()
        if sum(each.height for each in self._frames) >= _HOLD:
            self.write()

    def write(self) -> None:
        """Write all accepted rows to disk, for other processes."""
        if self._frames:
            self._paths.append(self._write(self._frames))
            self._frames = []

    def take(self, other: Staged) -> None:
        """Add the rows that another process wrote."""
        self._paths += other._paths
        self.sizes = [ours + more for ours, more in zip(self.sizes, other.sizes, strict=True)]

    def forget(self) -> None:
        """Discard the rows of the current file."""
        for path in self._pending_paths:
            path.unlink(missing_ok=True)
        self._begin()

    def _begin(self) -> None:
        self._pending, self._pending_paths = [], []
        self._pending_sizes = [0] * BUCKETS

    def of(self, buckets: range) -> pl.DataFrame:
        inside = pl.col("user_bucket").is_between(buckets.start, buckets.stop, closed="left")
        parts = [each.filter(inside) for each in self._frames]
        parts += [
            pl.scan_parquet(path, glob=False).filter(inside).collect() for path in self._paths
        ]
        return pl.concat([each for each in parts if each.height], how="diagonal")

    def _write(self, frames: list[pl.DataFrame]) -> Path:
        path = self._folder / f"{self._prefix}{self._written:06d}.parquet"
        self._written += 1
        frame = pl.concat(frames, how="diagonal").sort("user_bucket")
        try:
            self._folder.mkdir(exist_ok=True)
            frame.write_parquet(path, compression="lz4", row_group_size=_GROUP)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise write_error(path, error) from error
        return path
