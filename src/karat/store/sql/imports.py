"""Imports: which files were taken in, and what was kept, assumed and lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from karat.store.sql.schema import imported


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
    """Note that a file is taken in, in the transaction that takes it in.

    Returns:
        Number of the import, for ``judgments.record``.
    """
    values = {
        "golden_set_id": set_id,
        "file": file,
        "format": format,
        "sha256": sha256,
        "time_us": now,
        "report": dict(report),
    }
    return int(c.execute(sa.insert(imported).values(values).returning(imported.c.id)).scalar_one())


def aliases(c: sa.Connection, set_id: int) -> dict[str, str]:
    """Ids that queries had in files, where the golden set knows these queries under other ids.

    Of several imports the newest counts. An id that the golden set has means itself whatever is
    said here: that is for the caller to see to.

    Returns:
        Id in the golden set by id in the file, of ``ids`` in the reports.
    """
    chosen = sa.select(imported.c.report).where(imported.c.golden_set_id == set_id)
    out: dict[str, str] = {}
    for report in c.execute(chosen.order_by(imported.c.id)).scalars():
        out.update(report.get("ids") or {})
    return out
