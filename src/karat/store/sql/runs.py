"""Runs: which there are, and where their Parquet files stand; a run is its content's hash.

One content has one row, however many names it is given under: the first is the row's own, and when
each was given last stands in ``about``. The row itself stays as it was first written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from karat.store.sql import golden_sets
from karat.store.sql.schema import run
from karat.tables.about import brief

COLUMNS = ("id", "name", "sha256", "path", "queries", "rows", "about", "added_us")
"""What ``row_of`` makes a run of."""
_NAMES = "names"  # in ``about``: by name when it was last given, where that is not all known


@dataclass(frozen=True)
class RunRow:
    """What is known of a run.

    Attributes:
        id: Number in the store.
        name: Its name: the first it was given under, or the one it was asked for by.
        sha256: Hash of its content.
        path: Its Parquet file, relative to the workspace; absolute where it stands outside.
        queries: Queries it answers.
        rows: Documents it returns.
        about: Configuration, commit and so on.
        added_us: When it was first added, microseconds UTC.
        names: By each of its names when it was last given under it, microseconds UTC.
    """

    id: int
    name: str
    sha256: str
    path: str
    queries: int
    rows: int
    about: dict[str, Any]
    added_us: int
    names: Mapping[str, int] = field(default_factory=dict)

    @property
    def recorded(self) -> str:
        """What its file says about it, in a line; empty if nothing."""
        return brief(self.about.get("recorded", {}))


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


def give(c: sa.Connection, set_id: int, sha256: str, name: str, now: int) -> None:
    """Note that a run that is there already was given again, under its own name or another."""
    golden_sets.hold(c, set_id)
    own = (run.c.golden_set_id == set_id) & (run.c.sha256 == sha256)
    about = dict(c.execute(sa.select(run.c.about).where(own)).scalar_one())
    about[_NAMES] = {**about.get(_NAMES, {}), name: now}
    c.execute(sa.update(run).where(own).values(about=about))


def remove(c: sa.Connection, run_id: int) -> bool:
    """Forget a run.

    Returns:
        Whether its file may go too: False where another golden set has the run in the same file.
    """
    [path] = c.execute(sa.delete(run).where(run.c.id == run_id).returning(run.c.path)).scalars()
    return c.execute(sa.select(run.c.id).where(run.c.path == path)).first() is None


def runs(c: sa.Connection, set_id: int) -> list[RunRow]:
    """The runs of a golden set, the oldest first: by when each was first added."""
    chosen = sa.select(*(run.c[name] for name in COLUMNS)).where(run.c.golden_set_id == set_id)
    ordered = chosen.order_by(run.c.added_us, run.c.id)
    return [row_of(found) for found in c.execute(ordered).mappings()]


def row_of(found: Mapping[Any, Any]) -> RunRow:
    """A run of what the store holds of it."""
    values = {name: found[name] for name in COLUMNS}
    about = dict(values.pop("about"))
    names = {values["name"]: values["added_us"]} | about.pop(_NAMES, {})
    return RunRow(**values, about=about, names=names)


def by_name(rows: Iterable[RunRow]) -> dict[str, RunRow]:
    """The run that each name means: the one last given under it; the last name given is the last.

    Each is called by the name that it stands under.
    """
    given = [(at, row.id, name, row) for row in rows for name, at in row.names.items()]
    newest: dict[str, RunRow] = {}
    for _, _, name, row in sorted(given, key=lambda each: each[:2]):
        newest.pop(name, None)
        newest[name] = row if row.name == name else replace(row, name=name)
    return newest


def others(row: RunRow, meant: Mapping[str, RunRow]) -> list[str]:
    """The names by which a run can be asked for, but for the one it is called by.

    Args:
        row: The run.
        meant: The run that each name means, as ``by_name`` has it.
    """
    own = (name for name in row.names if name in meant and meant[name].id == row.id)
    return [name for name in own if name != row.name]
