"""Parts of a golden set for lists on pages: beginnings of texts, counts, single documents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.store.sql.schema import document, edition, edition_query, imported

_IMPORTS: dict[str, pl.DataType] = {
    "id": pl.Int64(),
    "file": pl.String(),
    "format": pl.String(),
    "time_us": pl.Int64(),
}


def beginnings(
    c: sa.Connection, set_id: int, doc_ids: Collection[str], characters: int = 200
) -> pl.DataFrame:
    """``doc_id``, ``title`` and ``begins`` (of the text) of up to a few hundred documents."""
    begins = sa.func.substr(document.c.text, 1, characters).label("begins")
    return _texts(c, set_id, (document.c.doc_id, document.c.title, begins), doc_ids)


def documents(
    c: sa.Connection, set_id: int, *names: str, doc_ids: Collection[str] | None = None
) -> pl.DataFrame:
    """``doc_id`` and these columns, which are texts, of every document or a few hundred."""
    return _texts(c, set_id, [document.c[name] for name in ("doc_id", *names)], doc_ids)


def _texts(
    c: sa.Connection,
    set_id: int,
    columns: Sequence[sa.ColumnElement[Any]],
    doc_ids: Collection[str] | None,
) -> pl.DataFrame:
    chosen = sa.select(*columns).where(document.c.golden_set_id == set_id)
    if doc_ids is not None:
        chosen = chosen.where(document.c.doc_id.in_(list(doc_ids)))
    schema: dict[str, pl.DataType] = {column.name: pl.String() for column in columns}
    return _frame(c, chosen, schema)


def one_document(c: sa.Connection, set_id: int, doc_id: str) -> dict[str, Any] | None:
    """``doc_id``, ``title``, ``text``, ``url`` and ``attributes`` of a document, or None."""
    names = ("doc_id", "title", "text", "url", "attributes")
    chosen = sa.select(*(document.c[name] for name in names)).where(
        document.c.golden_set_id == set_id, document.c.doc_id == doc_id
    )
    row = c.execute(chosen).mappings().one_or_none()
    return None if row is None else dict(row)


def editions_of_queries(c: sa.Connection, set_id: int) -> pl.DataFrame:
    """``query_id`` and ``editions``: the number that contain it; queries without are left out."""
    chosen = (
        sa.select(edition_query.c.query_id, sa.func.count())
        .join(edition, edition.c.id == edition_query.c.edition_id)
        .where(edition.c.golden_set_id == set_id)
        .group_by(edition_query.c.query_id)
    )
    schema: dict[str, pl.DataType] = {"query_id": pl.String(), "editions": pl.Int64()}
    return _frame(c, chosen, schema)


def editions_of_query(c: sa.Connection, set_id: int, query_id: str) -> list[str]:
    """Names of the editions that contain a query, the oldest first."""
    chosen = (
        sa.select(edition.c.name)
        .join(edition_query, edition.c.id == edition_query.c.edition_id)
        .where(edition.c.golden_set_id == set_id, edition_query.c.query_id == query_id)
    )
    return list(c.execute(chosen.order_by(edition.c.id)).scalars())


def imports(c: sa.Connection, set_id: int) -> pl.DataFrame:
    """``id``, ``file``, ``format`` and ``time_us`` of imported files, the newest first."""
    chosen = sa.select(*(imported.c[name] for name in _IMPORTS))
    chosen = chosen.where(imported.c.golden_set_id == set_id)
    return _frame(c, chosen.order_by(imported.c.id.desc()), _IMPORTS)


def _frame(
    c: sa.Connection, chosen: sa.Select[Any], schema: dict[str, pl.DataType]
) -> pl.DataFrame:
    rows = [tuple(row) for row in c.execute(chosen)]
    return pl.DataFrame(rows, schema=schema, orient="row")
