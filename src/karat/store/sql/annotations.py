"""Marks: what happened to a search, beside its numbers over time."""

from __future__ import annotations

from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.store.sql.schema import mark

SCHEMA: dict[str, Any] = {
    "id": pl.Int64(),
    "time_us": pl.Int64(),
    "kind": pl.String(),
    "text": pl.String(),
    "made_by": pl.String(),
    "created_us": pl.Int64(),
}


def add(c: sa.Connection, *, time_us: int, kind: str, text: str, made_by: str, now: int) -> int:
    """Add a mark; the same one of the same person is there once.

    Args:
        c: A write transaction.
        time_us: When it happened, microseconds UTC.
        kind: ``release`` | ``corpus`` | ``other``.
        text: What happened.
        made_by: Who says so.
        now: Microseconds UTC.

    Returns:
        Its number.
    """
    said = {"time_us": time_us, "kind": kind, "text": text, "made_by": made_by}
    same = sa.select(mark.c.id).where(*(mark.c[name] == value for name, value in said.items()))
    there = c.execute(same.limit(1)).scalar_one_or_none()
    if there is not None:
        return int(there)
    made = sa.insert(mark).values(said | {"created_us": now}).returning(mark.c.id)
    return int(c.execute(made).scalar_one())


def remove(c: sa.Connection, mark_id: int) -> bool:
    """Take a mark away, in a write transaction. Returns whether it was there."""
    return c.execute(sa.delete(mark).where(mark.c.id == mark_id)).rowcount == 1


def frame(c: sa.Connection) -> pl.DataFrame:
    """Every mark, as ``SCHEMA`` says, the earliest first."""
    rows = c.execute(sa.select(mark).order_by(mark.c.time_us, mark.c.id)).mappings()
    return pl.DataFrame([dict(row) for row in rows], schema=SCHEMA)
