"""Alerts, and what people did about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from karat.store.sql.schema import alert, alert_action
from karat.store.sql.upsert import insert

_RECORDING = 0x6B617261_616C  # "karaal": advisory lock of those who record what a watch saw


def hold(c: sa.Connection) -> None:
    """Let one transaction at a time record alerts; on SQLite every write transaction does."""
    if c.dialect.name == "postgresql":
        c.execute(sa.select(sa.func.pg_advisory_xact_lock(_RECORDING)))


def add(c: sa.Connection, row: Mapping[str, Any]) -> int:
    """Add an alert, a value for each column but the id; its id."""
    return insert(c, alert, **row)


def change(c: sa.Connection, alert_id: int, **values: Any) -> None:
    c.execute(sa.update(alert).where(alert.c.id == alert_id).values(**values))


def still_open(c: sa.Connection) -> list[dict[str, Any]]:
    """The alerts that last, the oldest first."""
    chosen = sa.select(alert).where(alert.c.closed_us.is_(None)).order_by(alert.c.id)
    return [dict(row) for row in c.execute(chosen).mappings()]


def since(c: sa.Connection, time_us: int) -> list[dict[str, Any]]:
    """The alerts that last, or lasted at a time or later, the oldest first."""
    lasted = sa.or_(alert.c.closed_us.is_(None), alert.c.closed_us >= time_us)
    chosen = sa.select(alert).where(lasted).order_by(alert.c.id)
    return [dict(row) for row in c.execute(chosen).mappings()]


def listed(c: sa.Connection, limit: int = 1000) -> list[dict[str, Any]]:
    """Alerts, the newest onset first."""
    chosen = sa.select(alert).order_by(alert.c.onset_us.desc(), alert.c.id.desc())
    return [dict(row) for row in c.execute(chosen.limit(limit)).mappings()]


def find(c: sa.Connection, alert_id: int) -> dict[str, Any] | None:
    row = c.execute(sa.select(alert).where(alert.c.id == alert_id)).mappings().first()
    return None if row is None else dict(row)


def act(c: sa.Connection, alert_id: int, row: Mapping[str, Any]) -> None:
    """Append what a person did: time_us, person, action, until_us, note."""
    c.execute(sa.insert(alert_action).values(alert_id=alert_id, **row))


def actions(c: sa.Connection, alert_ids: Sequence[int]) -> list[dict[str, Any]]:
    """What people did about some alerts, in order."""
    chosen = sa.select(alert_action).where(alert_action.c.alert_id.in_(alert_ids))
    return [dict(row) for row in c.execute(chosen.order_by(alert_action.c.id)).mappings()]
