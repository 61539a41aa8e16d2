"""A range of users of an import: what is there twice is dropped, the rest put in its place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from karat.formats.events.json import LINE
from karat.store.events import files
from karat.store.events.log import there_already
from karat.store.events.manifest import Manifest

TWICE = "twice in what was imported"
STORED = "in the event store already"
SUB_QUERY = "a further query of the same search (as _msearch logs them)"


@dataclass
class Found:
    """What was seen while ranges were made.

    Attributes:
        dropped: Rows left out, by reason.
        places: Of each reason a few ``(file, line)``.
        told: Events that say what the record of a search says too.
        before: Events that are before their search.
        before_users: Users with such.
        below: Positions before the first.
    """

    dropped: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    told: int = 0
    before: int = 0
    before_users: int = 0
    below: int = 0

    def drop(self, reason: str, rows: pl.DataFrame) -> None:
        """Count rows that are left out."""
        if rows.height:
            self.dropped[reason] += rows.height
            there = self.places.setdefault(reason, [])
            there += rows.select("_file", LINE).head(max(0, 3 - len(there))).iter_rows()


def settled(
    frame: pl.DataFrame, folder: Path, manifest: Manifest, number: int, base: int, found: Found
) -> pl.DataFrame:
    """The events of a range as the store keeps them.

    Args:
        frame: Rows as they were staged.
        folder: The store.
        manifest: What it holds.
        number: Of the import.
        base: Which number the first position has in the log.
        found: Gets what was seen.

    Raises:
        InputError: a file of the store cannot be read.
    """
    frame = frame.with_columns(position=(pl.col("position") + (1 - base)).cast(pl.Int32))
    found.below += int((frame["position"] < 1).sum())
    frame = frame.with_columns(position=pl.when(pl.col("position") > 0).then("position"))
    frame = once_told(frame, found)
    _clocks(frame, found)
    frame = files.with_tie(frame)
    frame = frame.sort("user_bucket", "user_key", "time_us", "tie", "_order")
    again = pl.all_horizontal(
        pl.col(name) == pl.col(name).shift() for name in files.COMPACT
    ).fill_null(value=False)
    mark = frame.select(again.alias("again"))["again"]
    if mark.any():
        _tell_twins(frame, mark, found)
        frame = frame.filter(~mark)
    stored = there_already(folder, manifest, frame)
    if stored.any():
        found.drop(STORED, frame.filter(stored))
        frame = frame.filter(~stored)
    frame = frame.with_columns(pl.lit(number, pl.Int32).alias("import"))
    frame = files.with_query_key(files.with_local(frame, manifest.timezone))
    return files.in_form(frame)


def once_told(frame: pl.DataFrame, found: Found) -> pl.DataFrame:
    """What an event says of a search that has a record of its own is no second search."""
    if not frame["told"].any():
        return frame
    key = ("user_key", "query_id")
    recorded = frame.filter((pl.col("kind") == "search") & ~pl.col("told")).select(key).unique()
    twice = frame.filter("told").select(*key, "_order").join(recorded, on=key, how="semi")
    if twice.is_empty():
        return frame
    found.told += twice.height
    again = pl.col("_order").is_in(twice["_order"].implode())
    return frame.with_columns(kind=pl.when(again).then(pl.lit("other")).otherwise("kind"))


def _clocks(frame: pl.DataFrame, found: Found) -> None:
    """Count events before their own search: the clock of a page is not that of the server."""
    named = frame.select("user_key", "query_id", "time_us", "kind").drop_nulls("query_id")
    named = named.with_columns(query_id=pl.col("query_id").hash())
    search = pl.col("kind") == "search"
    begun = named.filter(search).group_by("user_key", "query_id").agg(begun=pl.col("time_us").min())
    before = named.filter(~search).join(begun, on=["user_key", "query_id"])
    before = before.filter(pl.col("time_us") < pl.col("begun"))
    found.before += before.height
    found.before_users += before["user_key"].n_unique()


def _tell_twins(frame: pl.DataFrame, mark: pl.Series, found: Found) -> None:
    """Count what is there twice; a search of other words at the same moment is counted apart."""
    group = (~mark).cum_sum().alias("group")
    words = frame.select(group, "kind", "query", "_file", LINE, again=mark)
    first = words.filter(~pl.col("again")).select("group", first="query")
    twins = words.filter("again").join(first, on="group", maintain_order="left")
    other = (pl.col("kind") == "search") & pl.col("query").ne_missing(pl.col("first"))
    found.drop(SUB_QUERY, twins.filter(other))
    found.drop(TWICE, twins.filter(~other))
