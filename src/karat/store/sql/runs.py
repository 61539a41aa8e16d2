"""Stored runs: their metadata and Parquet files. The hash of its content identifies a run.

Content that is imported under several names has one row, with the first name; ``about`` has the
time of the last import under each name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from karat.store.sql import golden_sets
from karat.store.sql.schema import run
from karat.store.sql.upsert import insert
from karat.tables.workspace import RunRow

COLUMNS = ("id", "name", "sha256", "path", "queries", "rows", "about", "added_us")
"""The columns that ``row_of`` needs."""
TRIES = "tries"  # in `about`: by name, what was tried, for a run that is a try
_NAMES = "names"  # in ``about``: time of the last import by name, if there was more than one


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
    """Store a run, unless there is one with the same content; returns its id."""
    golden_sets.hold(c, set_id)
    same = sa.select(run.c.id).where(run.c.golden_set_id == set_id, run.c.sha256 == sha256)
    existing = c.execute(same).scalar_one_or_none()
    if existing is not None:
        return int(existing)
    values = {"name": name, "sha256": sha256, "path": path, "queries": queries, "rows": rows}
    return insert(c, run, golden_set_id=set_id, **values, about=dict(about), added_us=now)


def give(c: sa.Connection, set_id: int, sha256: str, name: str, now: int) -> None:
    """Log that a stored run was imported again, under the same name or another."""
    golden_sets.hold(c, set_id)
    _note(c, set_id, sha256, _NAMES, name, now)


def put_times(c: sa.Connection, path: str, times: str, recorded: Mapping[str, str]) -> None:
    """Record that the file of a run has the times of a later import; ``times`` is their hash."""
    new = {"times": times} | ({"recorded": dict(recorded)} if recorded else {})
    stored = c.execute(sa.select(run.c.id, run.c.about).where(run.c.path == path)).all()
    for run_id, about in stored:
        c.execute(sa.update(run).where(run.c.id == run_id).values(about=dict(about) | new))


def put_try(
    c: sa.Connection, set_id: int, sha256: str, name: str, fields: Mapping[str, Any]
) -> None:
    """Record under one of its names that a stored run is a try, and of what."""
    _note(c, set_id, sha256, TRIES, name, dict(fields))


def _note(c: sa.Connection, set_id: int, sha256: str, key: str, name: str, value: Any) -> None:
    """Store a value under a name of a stored run, in a part of its ``about``."""
    own = (run.c.golden_set_id == set_id) & (run.c.sha256 == sha256)
    about = dict(c.execute(sa.select(run.c.about).where(own)).scalar_one())
    about[key] = {**about.get(key, {}), name: value}
    c.execute(sa.update(run).where(own).values(about=about))


def rename_try(c: sa.Connection, run_id: int, old: str, new: str | None) -> None:
    """Give a try another name, or remove one of several names of a run with its try."""
    row = c.execute(sa.select(run.c.name, run.c.about).where(run.c.id == run_id)).one()
    first, about = row.name, dict(row.about)
    tries, names = dict(about.get(TRIES, {})), dict(about.get(_NAMES, {}))
    fields, at = tries.pop(old), names.pop(old, None)
    if new is not None:
        tries[new] = fields
        names |= {} if at is None else {new: at}
    if first == old:
        first = new or min(names, key=lambda name: names[name])
    about |= {TRIES: tries, _NAMES: names}
    c.execute(sa.update(run).where(run.c.id == run_id).values(name=first, about=about))


def remove(c: sa.Connection, run_id: int) -> bool:
    """Delete a run.

    Returns:
        Whether its file can be deleted too: False if another golden set uses it.
    """
    [path] = c.execute(sa.delete(run).where(run.c.id == run_id).returning(run.c.path)).scalars()
    return c.execute(sa.select(run.c.id).where(run.c.path == path)).first() is None


def runs(c: sa.Connection, set_id: int) -> list[RunRow]:
    """The runs of a golden set, in the order of their first import."""
    chosen = sa.select(*(run.c[name] for name in COLUMNS)).where(run.c.golden_set_id == set_id)
    ordered = chosen.order_by(run.c.added_us, run.c.id)
    return [row_of(row) for row in c.execute(ordered).mappings()]


def row_of(row: Mapping[Any, Any]) -> RunRow:
    values = {name: row[name] for name in COLUMNS}
    about = dict(values.pop("about"))
    names = {values["name"]: values["added_us"]} | about.pop(_NAMES, {})
    return RunRow(**values, about=about, names=names)


def by_name(rows: Iterable[RunRow]) -> dict[str, RunRow]:
    """The run of each name: the one last imported under it, with that name; oldest import first."""
    imports = [(at, row.id, name, row) for row in rows for name, at in row.names.items()]
    newest: dict[str, RunRow] = {}
    for _, _, name, row in sorted(imports, key=lambda item: item[:2]):
        newest.pop(name, None)
        newest[name] = row if row.name == name else replace(row, name=name)
    return newest


def others(row: RunRow, meant: Mapping[str, RunRow]) -> list[str]:
    """The other names of a run; ``meant`` is the run of each name (``by_name``)."""
    own = (name for name in row.names if name in meant and meant[name].id == row.id)
    return [name for name in own if name != row.name]
