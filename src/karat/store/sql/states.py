"""States: a short text that is another once anything of a golden set is."""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa

from karat.store.sql import golden_sets
from karat.store.sql.schema import document, edition, judgment, pair, query, slot

_HIGH = 2**20  # a sum of times would not fit a number; of their upper and lower parts it does


def state_of(c: sa.Connection, set_id: int) -> str:
    """The state of a golden set: its declaration, queries, documents, pairs, judgments, editions.

    Judgments and editions are only ever added, so that their number and the newest tell; of those
    that are written at the same time the newest may be there first. What is changed in place tells
    by its content, documents by the time of their last change. Which slots are leased, and what
    was put off, is left out: no figure is made of it.

    Args:
        c: A connection; the state is that of its transaction.
        set_id: The golden set.
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
    """All queries as one text, which the database makes: a query has no time of its last change."""
    sqlite = c.dialect.name == "sqlite"
    columns: list[sa.ColumnElement[Any]] = [
        each for each in query.c if each.name not in {"golden_set_id", "attributes"}
    ]
    columns.append(sa.cast(query.c.attributes, sa.Text))
    as_text = sa.func.json_array if sqlite else sa.func.json_build_array
    each = sa.select(sa.cast(as_text(*columns), sa.Text).label("said"))
    rows = each.where(query.c.golden_set_id == set_id).order_by(query.c.id).subquery()
    joined = sa.func.aggregate_strings(rows.c.said, "\n")
    whole: str | None = c.execute(sa.select(joined)).scalar_one()
    return whole
