"""Editions: immutable copies of grades and queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.errors import UsageError, check_known
from karat.store.sql import golden_sets
from karat.store.sql.schema import edition as edition_table
from karat.store.sql.schema import edition_grade, edition_query
from karat.store.sql.upsert import frame_of, insert, plain_rows
from karat.tables.golden.golden_sets import Edition

GRADES: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "doc_id": pl.String(),
    "grade": pl.Float64(),
    "votes": pl.Int64(),
    "rule": pl.String(),
    "raters": pl.List(pl.String()),
}


def freeze(
    c: sa.Connection,
    set_id: int,
    *,
    name: str,  # its name, unique in the golden set
    sha256: str,  # hash of its content (`golden.editions`)
    about: Mapping[str, Any],  # how it was made; JSON-compatible
    queries: pl.DataFrame,  # `query_id` and every other column to store
    grades: pl.DataFrame,
    now: int,
) -> int:
    """Store an edition; returns its number.

    Args:
        grades: ``query_id``, ``doc_id``, ``grade``, and optionally ``votes``, ``rule``, ``raters``
            (a list of names, or one text).
    """
    golden_sets.hold(c, set_id)
    if name in {row.name for row in editions(c, set_id)}:
        raise UsageError(
            f"there is already an edition {name!r}", fix="use a new name: editions never change"
        )
    values = {"name": name, "sha256": sha256, "created_us": now, "about": dict(about)}
    edition_id = insert(c, edition_table, golden_set_id=set_id, **values)
    query_rows = [
        {
            "edition_id": edition_id,
            "query_id": row["query_id"],
            "content": row["attributes"] | {"query_id": row["query_id"]},
        }
        for row in plain_rows(queries, ["query_id"], "queries")
    ]
    if query_rows:
        c.execute(sa.insert(edition_query), query_rows)
    grade_rows = [
        {name: row[name] for name in GRADES}
        | {"edition_id": edition_id, "raters": _names(row["raters"])}
        for row in plain_rows(grades, list(GRADES), "grades")
    ]
    if grade_rows:
        c.execute(sa.insert(edition_grade), grade_rows)
    return edition_id


def editions(c: sa.Connection, set_id: int) -> list[Edition]:
    """The editions of a golden set, the oldest first."""

    def number(table: sa.Table) -> sa.ScalarSelect[int]:
        counted = sa.select(sa.func.count()).select_from(table)
        return counted.where(table.c.edition_id == edition_table.c.id).scalar_subquery()

    rows = c.execute(
        sa.select(
            edition_table,
            number(edition_query).label("queries"),
            number(edition_grade).label("grades"),
        )
        .where(edition_table.c.golden_set_id == set_id)
        .order_by(edition_table.c.id)
    )
    return [
        Edition(r.id, r.name, r.sha256, r.created_us, r.about, r.queries, r.grades) for r in rows
    ]


def edition(c: sa.Connection, set_id: int, name: str) -> tuple[Edition, pl.DataFrame, pl.DataFrame]:
    """An edition, its queries, and its grades (``GRADES``), each sorted by id."""
    by_name = {row.name: row for row in editions(c, set_id)}
    check_known(
        name, by_name, f"no edition {name!r}; there are {', '.join(by_name) or 'none'}", None
    )
    row = by_name[name]
    content = c.execute(
        sa.select(edition_query.c.query_id, edition_query.c.content.label("attributes")).where(
            edition_query.c.edition_id == row.id
        )
    ).mappings()
    queries = frame_of(content, {"query_id": pl.String()}, always={"query_id"}).sort("query_id")
    graded = c.execute(sa.select(edition_grade).where(edition_grade.c.edition_id == row.id))
    grades = frame_of(graded.mappings(), GRADES, always=set(GRADES)).sort("query_id", "doc_id")
    return row, queries, grades


def _names(raters: Any) -> list[str]:
    if raters is None:
        return []
    return [str(rater) for rater in raters] if isinstance(raters, list) else [str(raters)]
