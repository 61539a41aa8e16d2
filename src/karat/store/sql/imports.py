"""Imports: the imported files and their reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from karat.store.sql.schema import imported
from karat.store.sql.upsert import insert


def put(
    c: sa.Connection,
    set_id: int,
    *,
    file: str,
    format: str,  # noqa: A002 - the name of the column
    sha256: str,
    report: Mapping[str, Any],
    now: int,
) -> int:
    """Log an import, in its own transaction; returns its number, for ``judgments.record``."""
    values = {"file": file, "format": format, "sha256": sha256, "report": dict(report)}
    return insert(c, imported, golden_set_id=set_id, time_us=now, **values)


def aliases(c: sa.Connection, set_id: int) -> dict[str, str]:
    """Ids of queries in imported files that differ from those in the golden set.

    Of several imports the newest counts. The caller must prefer ids that exist in the golden set.
    """
    chosen = sa.select(imported.c.report).where(imported.c.golden_set_id == set_id)
    out: dict[str, str] = {}
    for report in c.execute(chosen.order_by(imported.c.id)).scalars():
        out.update(report.get("ids") or {})
    return out
