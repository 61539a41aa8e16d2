"""Upserts: rows of a frame are added to a table, or change existing rows with the same id."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.errors import InputError


@dataclass(frozen=True, slots=True)
class Put:
    """Numbers of rows added, changed, and unchanged (``same``)."""

    added: int
    changed: int
    same: int


def insert(c: sa.Connection, table: sa.Table, **values: Any) -> int:
    """Insert a row; returns its id."""
    return int(c.execute(sa.insert(table).values(values).returning(table.c.id)).scalar_one())


def plain_rows(frame: pl.DataFrame, own: Sequence[str], source: str) -> list[dict[str, Any]]:
    """Rows with the columns ``own``, and all others under ``attributes``; JSON-compatible."""
    others = [name for name in frame.columns if name not in own]
    rows = []
    for cells in frame.iter_rows(named=True):
        row = {name: _plain(cells.get(name)) for name in own}
        attributes = {name: _plain(cells[name]) for name in others}
        row["attributes"] = {name: value for name, value in attributes.items() if value is not None}
        for value in (*row.values(), *row["attributes"].values()):
            if isinstance(value, str) and "\0" in value:
                raise InputError(
                    "a text contains the character NUL, which databases cannot store",
                    file=source,
                    query=row.get("query_id"),
                    doc_id=row.get("doc_id"),
                )
        rows.append(row)
    return rows


def put(
    c: sa.Connection,
    table: sa.Table,  # `query` or `document`
    key: str,  # column of the key
    set_id: int,
    rows: Iterable[dict[str, Any]],  # the columns to compare and store
    *,
    # With the time of the last change: later than that of every other change, whatever the clock
    # says, so that its maximum changes too
    stamped: str,
    now: int,
    when_added: dict[str, Any],  # more values of a new row
    when_changed: dict[str, Any],  # more values of a changed row
) -> Put:
    """Add rows to a table of a golden set, or change existing rows with the same key."""
    existing = {
        row[key]: row
        for row in c.execute(sa.select(table).where(table.c.golden_set_id == set_id)).mappings()
    }
    at = max([now, *(row[stamped] + 1 for row in existing.values())])
    new, changed, same = [], [], 0
    for row in rows:
        old = existing.get(row[key])
        if old is None:
            new.append({**row, "golden_set_id": set_id, **when_added, stamped: at})
        elif any(old[name] != value for name, value in row.items()) or any(
            old[name] is not None for name, value in when_changed.items() if value is None
        ):
            changed.append({"the_id": old["id"], **row, **when_changed, stamped: at})
        else:
            same += 1
    if new:
        c.execute(sa.insert(table), new)
    if changed:
        names = [name for name in changed[0] if name != "the_id"]
        by_id = sa.update(table).where(table.c.id == sa.bindparam("the_id"))
        c.execute(by_id.values({name: sa.bindparam(name) for name in names}), changed)
    return Put(len(new), len(changed), same)


def frame_of(
    rows: Iterable[sa.RowMapping],  # with the columns of `schema`, and optionally `attributes`
    schema: dict[str, pl.DataType],  # type of each column
    *,
    always: Collection[str],  # columns that are included even if empty
) -> pl.DataFrame:
    """Rows as a frame: attributes become columns; empty columns are left out."""
    rows = list(rows)
    columns = [
        pl.Series(name, [row[name] for row in rows], dtype=dtype, strict=False)
        for name, dtype in schema.items()
    ]
    columns = [s for s in columns if s.name in always or s.null_count() < len(s)]
    attributes = [row.get("attributes") or {} for row in rows]
    names = dict.fromkeys(name for values in attributes for name in values)
    for name in names:
        if name not in schema:
            columns.append(_series(name, [values.get(name) for values in attributes]))
    return pl.DataFrame(columns)


def _series(name: str, values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        return pl.Series(name, values, dtype=pl.Int64)
    if kinds and kinds <= {int, float}:
        return pl.Series(name, [None if v is None else float(v) for v in values], dtype=pl.Float64)
    if kinds == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds == {str}:
        return pl.Series(name, values, dtype=pl.String)
    if kinds == {list}:
        return pl.Series(name, values, strict=False)
    return pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String)


def _plain(value: Any) -> Any:
    """A JSON-compatible value: NaN and infinity are None, dates and times text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return str(value)
