"""Parts of a golden set for lists on pages: beginnings of texts, counts, single documents."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.store.sql.schema import document, edition, edition_query, imported

_BEGINNINGS: dict[str, pl.DataType] = {
    "doc_id": pl.String(),
    "title": pl.String(),
    "begins": pl.String(),
}
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
    text = sa.func.substr(document.c.text, 1, characters)
    chosen = sa.select(document.c.doc_id, document.c.title, text).where(
        document.c.golden_set_id == set_id, document.c.doc_id.in_(list(doc_ids))
    )
    return _frame(c, chosen, _BEGINNINGS)


def titles(c: sa.Connection, set_id: int) -> pl.DataFrame:
    """``doc_id`` and ``title`` of every document."""
    chosen = sa.select(document.c.doc_id, document.c.title)
    schema: dict[str, pl.DataType] = {"doc_id": pl.String(), "title": pl.String()}
    return _frame(c, chosen.where(document.c.golden_set_id == set_id), schema)


def hashes(c: sa.Connection, set_id: int) -> pl.DataFrame:
    """``doc_id`` and ``sha256`` of every document."""
    chosen = sa.select(document.c.doc_id, document.c.sha256)
    schema: dict[str, pl.DataType] = {"doc_id": pl.String(), "sha256": pl.String()}
    return _frame(c, chosen.where(document.c.golden_set_id == set_id), schema)


def wholes(c: sa.Connection, set_id: int, doc_ids: Collection[str]) -> pl.DataFrame:
    """``doc_id``, ``text``, ``url`` and ``sha256`` of up to a few hundred documents."""
    schema = dict.fromkeys(("doc_id", "text", "url", "sha256"), pl.String())
    chosen = sa.select(*(document.c[name] for name in schema)).where(
        document.c.golden_set_id == set_id, document.c.doc_id.in_(list(doc_ids))
    )
    return _frame(c, chosen, dict(schema))


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
