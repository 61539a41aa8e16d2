"""Imports: which files were taken in, and what was kept, assumed and lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from karat.store.schema import imported


@dataclass(frozen=True)
class ImportRow:
    """A file that was taken in.

    Attributes:
        id: Number in the store.
        file: Its name.
        format: Its format.
        sha256: Hash of its bytes.
        time_us: When, microseconds UTC.
        report: What was kept, assumed and lost.
    """

    id: int
    file: str
    format: str
    sha256: str
    time_us: int
    report: dict[str, Any]


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


def imports(c: sa.Connection, set_id: int) -> list[ImportRow]:
    """The imports of a golden set, the oldest first."""
    names = ("id", "file", "format", "sha256", "time_us", "report")
    chosen = sa.select(*(imported.c[name] for name in names))
    rows = c.execute(chosen.where(imported.c.golden_set_id == set_id).order_by(imported.c.id))
    return [ImportRow(**row) for row in rows.mappings()]
