"""The state of a golden set: a digest that changes whenever the golden set changes."""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa

from karat.store.sql import golden_sets
from karat.store.sql.schema import document, edition, judgment, pair, query, slot

_HIGH = 2**20  # sums of times overflow; sums of their upper and lower parts do not


def state_of(c: sa.Connection, set_id: int) -> str:
    """Digest of the declaration, queries, documents, pairs, judgments and editions of a set.

    For judgments and editions, which are append-only, it uses their number and the newest id (the
    number, because concurrent inserts may commit out of order); for documents, the times of their
    last change; for everything else, the content. Leases and snoozed pairs are not included,
    because no statistic depends on them.
    """
    newest = (sa.func.count(), sa.func.max(judgment.c.id))
    filled = (sa.func.count(), sa.func.max(slot.c.id), sa.func.sum(slot.c.judgment_id))
    changed = document.c.changed_us
    documents = (
        sa.func.count(),
        sa.func.max(document.c.id),
        sa.func.sum(changed // _HIGH),
        sa.func.sum(changed % _HIGH),
    )
    pairs = (sa.func.count(), sa.func.max(pair.c.id))
    golds = sa.select(pair.c.id, pair.c.gold_grade).order_by(pair.c.id)
    parts: list[Any] = [
        golden_sets.by_id(c, set_id),
        c.execute(sa.select(*newest)).one(),
        c.execute(sa.select(*filled)).one(),
        c.execute(sa.select(*documents).where(document.c.golden_set_id == set_id)).one(),
        c.execute(sa.select(*pairs).where(pair.c.golden_set_id == set_id)).one(),
        c.execute(
            golds.where(pair.c.golden_set_id == set_id, pair.c.gold_grade.is_not(None))
        ).all(),
        c.execute(
            sa.select(sa.func.count(), sa.func.max(edition.c.id)).where(
                edition.c.golden_set_id == set_id
            )
        ).one(),
        _queries(c, set_id),
    ]
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _queries(c: sa.Connection, set_id: int) -> str | None:
    """All queries as one text, made by the database: queries have no time of last change."""
    sqlite = c.dialect.name == "sqlite"
    columns: list[sa.ColumnElement[Any]] = [
        column for column in query.c if column.name not in {"golden_set_id", "attributes"}
    ]
    columns.append(sa.cast(query.c.attributes, sa.Text))
    as_json = sa.func.json_array if sqlite else sa.func.json_build_array
    texts = sa.select(sa.cast(as_json(*columns), sa.Text).label("text"))
    rows = texts.where(query.c.golden_set_id == set_id).order_by(query.c.id).subquery()
    joined = sa.func.aggregate_strings(rows.c.text, "\n")
    text: str | None = c.execute(sa.select(joined)).scalar_one()
    return text
