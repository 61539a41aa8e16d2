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
    """Add or replace queries; dropped queries are restored.

    Args:
        frame: ``query_id`` and any of ``SCHEMA``; other columns are attributes. Queries are
            replaced as a whole: absent columns become empty.
    """
    golden_sets.hold(c, set_id)
    frame = Queries(frame).frame
    types = {"band": pl.String(), "count": pl.Int64(), "probability": pl.Float64()}
    frame = frame.with_columns(pl.col(n).cast(t) for n, t in types.items() if n in frame.columns)
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
        stamped="added_us",
        now=now,
        when_added={"dropped_us": None},
        when_changed={"dropped_us": None},
    )


def frame(c: sa.Connection, set_id: int, *, dropped: bool = False) -> pl.DataFrame:
    """The queries in the order they were added.

    Args:
        dropped: Include dropped queries, and a column ``dropped_us``.

    Returns:
        ``query_id``, ``text``, ``no_answer``, the non-empty columns of ``SCHEMA``, attributes.
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
    """Remove queries from the set, the queue and the next edition; their judgments are kept."""
    golden_sets.hold(c, set_id)
    there = ids(c, set_id) & set(query_ids)
    of_query = query.c.query_id == sa.bindparam("the_query")
    dropping = sa.update(query).where(query.c.golden_set_id == set_id, of_query)
    if there:
        values = dropping.values(dropped_us=now)
        c.execute(values, [{"the_query": query_id} for query_id in there])
    return len(there)


def ids(c: sa.Connection, set_id: int) -> set[str]:
    """Ids of the queries of a golden set, without dropped ones."""
    chosen = sa.select(query.c.query_id).where(*_active(set_id))
    return set(c.execute(chosen).scalars())


def has(c: sa.Connection, set_id: int, query_id: str) -> bool:
    """Whether a golden set has a query that was not dropped."""
    chosen = sa.select(query.c.id).where(*_active(set_id), query.c.query_id == query_id)
    return c.execute(chosen).first() is not None


def _active(set_id: int) -> tuple[sa.ColumnElement[bool], ...]:
    return query.c.golden_set_id == set_id, query.c.dropped_us.is_(None)
