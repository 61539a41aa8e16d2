"""Annotations of trends: releases, corpus changes and other events."""

from __future__ import annotations

from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.store.sql.schema import mark
from karat.store.sql.upsert import insert

SCHEMA: dict[str, Any] = {
    "id": pl.Int64(),
    "time_us": pl.Int64(),
    "kind": pl.String(),
    "text": pl.String(),
    "made_by": pl.String(),
    "created_us": pl.Int64(),
}


def add(c: sa.Connection, *, time_us: int, kind: str, text: str, made_by: str, now: int) -> int:
    """Add an annotation (``kind``: release | corpus | other); returns its id.

    If the same user has added the same annotation before, that one's id is returned.
    """
    values = {"time_us": time_us, "kind": kind, "text": text, "made_by": made_by}
    same = sa.select(mark.c.id).where(*(mark.c[name] == value for name, value in values.items()))
    existing = c.execute(same.limit(1)).scalar_one_or_none()
    if existing is not None:
        return int(existing)
    return insert(c, mark, **values, created_us=now)


def remove(c: sa.Connection, mark_id: int) -> bool:
    """Delete an annotation; False if there was none."""
    return c.execute(sa.delete(mark).where(mark.c.id == mark_id)).rowcount == 1


def frame(c: sa.Connection) -> pl.DataFrame:
    """All annotations (``SCHEMA``), the earliest first."""
    rows = c.execute(sa.select(mark).order_by(mark.c.time_us, mark.c.id)).mappings()
    return pl.DataFrame([dict(row) for row in rows], schema=SCHEMA)
