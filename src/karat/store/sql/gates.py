"""Results of gates, append-only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from karat.store.sql.schema import gate_result
from karat.store.sql.upsert import insert

_COLUMNS = [column for column in gate_result.c if column.name not in ("golden_set_id", "content")]


def add(c: sa.Connection, set_id: int, row: Mapping[str, Any]) -> int:
    """Add a result, a value for each column but the id; its id."""
    return insert(c, gate_result, golden_set_id=set_id, **row)


def listed(c: sa.Connection, set_id: int) -> list[dict[str, Any]]:
    """The results of a golden set without their content, newest first."""
    chosen = sa.select(*_COLUMNS).where(gate_result.c.golden_set_id == set_id)
    newest = chosen.order_by(gate_result.c.time_us.desc(), gate_result.c.id.desc())
    return [dict(row) for row in c.execute(newest).mappings()]


def parts(c: sa.Connection, ids: Sequence[int], *path: str | int) -> dict[int, Any]:
    """A part of the content of some results, by id; of large contents it is much faster."""
    part = gate_result.c.content[path].as_json()
    chosen = sa.select(gate_result.c.id, part).where(gate_result.c.id.in_(ids))
    return {row[0]: row[1] for row in c.execute(chosen)}


def find(c: sa.Connection, gate_id: int) -> dict[str, Any] | None:
    """A result of any golden set in full; None if there is none."""
    chosen = sa.select(gate_result).where(gate_result.c.id == gate_id)
    row = c.execute(chosen).mappings().first()
    return None if row is None else dict(row)
