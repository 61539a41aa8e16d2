"""The queries of a golden set."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl
import sqlalchemy as sa

from karat.golden.queue import shuffle_number
from karat.store.sql import golden_sets
from karat.store.sql.schema import query
from karat.store.sql.upsert import Put, frame_of, plain_rows
from karat.store.sql.upsert import put as put_rows
from karat.tables.queries import Queries

SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "text": pl.String(),
    "need": pl.String(),
    "weight": pl.Float64(),
    "stratum": pl.String(),
    "band": pl.String(),
    "count": pl.Int64(),
    "probability": pl.Float64(),
    "origin": pl.String(),
    "no_answer": pl.Boolean(),
}


def put(c: sa.Connection, set_id: int, frame: pl.DataFrame, now: int) -> Put:
    """Add queries, or change those that are there; one that was dropped comes back.

    Args:
        c: A write transaction.
        set_id: The golden set.
        frame: ``query_id`` and any of ``SCHEMA``; further columns are attributes. A column that is
            absent is emptied: what is put is the whole of each query.
        now: Microseconds UTC.

    Raises:
        InputError: a query that stands twice, or a value that does not fit (``tables.Queries``).
    """
    golden_sets.hold(c, set_id)
    frame = Queries(frame).frame
    wrong = {"band": pl.String(), "count": pl.Int64(), "probability": pl.Float64()}
    frame = frame.with_columns(pl.col(n).cast(t) for n, t in wrong.items() if n in frame.columns)
    salt = golden_sets.by_id(c, set_id).salt
    rows = plain_rows(frame, list(SCHEMA), "queries")
    for row in rows:
        row["no_answer"] = bool(row["no_answer"])
        row["shuffle"] = shuffle_number(salt, row["query_id"])
    return put_rows(
        c,
        query,
        "query_id",
        set_id,
        rows,
        when_added={"added_us": now, "dropped_us": None},
        when_changed={"dropped_us": None},
    )


def frame(c: sa.Connection, set_id: int, *, dropped: bool = False) -> pl.DataFrame:
    """The queries in the order they were added.

    Args:
        c: A connection.
        set_id: The golden set.
        dropped: With those that were dropped, and a column ``dropped_us``.

    Returns:
        ``query_id``, ``text``, ``no_answer``, those of ``SCHEMA`` that hold anything, attributes.
    """
    chosen = sa.select(query).where(query.c.golden_set_id == set_id).order_by(query.c.id)
    schema, always = dict(SCHEMA), {"query_id", "text", "no_answer"}
    if dropped:
        schema["dropped_us"] = pl.Int64()
        always.add("dropped_us")
    else:
        chosen = chosen.where(query.c.dropped_us.is_(None))
    return frame_of(c.execute(chosen).mappings(), schema, always=always)


def drop(c: sa.Connection, set_id: int, query_ids: Collection[str], now: int) -> int:
    """Take queries out of the set: out of the queue and the next edition. Their judgments stay.

    Returns:
        How many were in it.
    """
    golden_sets.hold(c, set_id)
    dropping = (
        sa.update(query)
        .where(
            query.c.golden_set_id == set_id,
            query.c.query_id == sa.bindparam("the_query"),
            query.c.dropped_us.is_(None),
        )
        .values(dropped_us=now)
    )
    before = _in_it(c, set_id)
    if query_ids:
        c.execute(dropping, [{"the_query": each} for each in dict.fromkeys(query_ids)])
    return before - _in_it(c, set_id)


def _in_it(c: sa.Connection, set_id: int) -> int:
    counted = sa.select(sa.func.count()).select_from(query)
    there = counted.where(query.c.golden_set_id == set_id, query.c.dropped_us.is_(None))
    return int(c.execute(there).scalar_one())
