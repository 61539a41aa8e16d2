"""Runs: which there are, and where their Parquet files stand; a run is its content's hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from karat.store import golden_sets
from karat.store.schema import run


@dataclass(frozen=True)
class RunRow:
    """What is known of a run.

    Attributes:
        id: Number in the store.
        name: Its name.
        sha256: Hash of its content.
        path: Its Parquet file, relative to the workspace; absolute where it stands outside.
        queries: Queries it answers.
        rows: Documents it returns.
        about: Configuration, commit and so on.
        added_us: When it was added, or given again (``renew``), microseconds UTC.
    """

    id: int
    name: str
    sha256: str
    path: str
    queries: int
    rows: int
    about: dict[str, Any]
    added_us: int


def put(
    c: sa.Connection,
    set_id: int,
    *,
    name: str,
    sha256: str,
    path: str,
    queries: int,
    rows: int,
    about: Mapping[str, Any],
    now: int,
) -> int:
    """Note a run; one with this content that is there already stays as it is.

    Returns:
        Its number.
    """
    golden_sets.hold(c, set_id)
    there = sa.select(run.c.id).where(run.c.golden_set_id == set_id, run.c.sha256 == sha256)
    found = c.execute(there).scalar_one_or_none()
    if found is not None:
        return int(found)
    values = {
        "golden_set_id": set_id,
        "name": name,
        "sha256": sha256,
        "path": path,
        "queries": queries,
        "rows": rows,
        "about": dict(about),
        "added_us": now,
    }
    return int(c.execute(sa.insert(run).values(values).returning(run.c.id)).scalar_one())


def renew(c: sa.Connection, set_id: int, sha256: str, now: int) -> None:
    """Make a run the newest that is there already, and was given again."""
    golden_sets.hold(c, set_id)
    given = sa.update(run).where(run.c.golden_set_id == set_id, run.c.sha256 == sha256)
    c.execute(given.values(added_us=now))


def runs(c: sa.Connection, set_id: int) -> list[RunRow]:
    """The runs of a golden set, the oldest first: by when each was last given."""
    names = ("id", "name", "sha256", "path", "queries", "rows", "about", "added_us")
    chosen = sa.select(*(run.c[name] for name in names)).where(run.c.golden_set_id == set_id)
    return [
        RunRow(**row) for row in c.execute(chosen.order_by(run.c.added_us, run.c.id)).mappings()
    ]
