"""The audit log: who did what; append-only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.store.sql.schema import audit

_SCHEMA = {
    "id": pl.Int64(),
    "time_us": pl.Int64(),
    "person": pl.String(),
    "action": pl.String(),
    "subject": pl.String(),
    "about": pl.String(),
}


def note(
    c: sa.Connection,
    person: str,
    action: str,  # a verb with its object, as in `freeze edition`
    subject: str,  # the object's name
    now: int,
    about: Mapping[str, Any] | None = None,  # further details; JSON-compatible
) -> None:
    """Log an action, in the transaction that performs it."""
    values = {"time_us": now, "person": person, "action": action, "subject": subject}
    c.execute(sa.insert(audit).values(values | {"about": dict(about or {})}))


def frame(c: sa.Connection) -> pl.DataFrame:
    """The log, the newest first; ``about`` as text of names and values."""
    rows = []
    for row in c.execute(sa.select(audit).order_by(audit.c.id.desc())).mappings():
        about = ", ".join(f"{name} {value}" for name, value in row["about"].items())
        rows.append({**row, "about": about})
    return pl.DataFrame(rows, schema=_SCHEMA)
