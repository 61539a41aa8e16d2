"""Digests of a golden set's content, which change whenever it does and are cheap to compute.

Judgments and editions are append-only; queries and documents note their last change, each later
than the one before (``upsert.put``).
"""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa

from karat.store.sql import golden_sets
from karat.store.sql.judgments import of_golden_set
from karat.store.sql.schema import document, edition, judgment, pair, query, slot

_NEWEST = 1_000  # judgments whose ids are summed: concurrent transactions may commit out of order


def inputs_state(c: sa.Connection, set_id: int, *, live: bool, with_documents: bool) -> str:
    """Digest of what numbers are computed from."""
    parts: list[Any] = [_judgments(c, set_id), _queries(c, set_id)] if live else []
    return _digest([*parts, *([_documents(c, set_id)] if with_documents else [])])


def queries_state(c: sa.Connection, set_id: int) -> str:
    """Digest of the queries of a set."""
    return _digest([_queries(c, set_id)])


def state_of(c: sa.Connection, set_id: int) -> str:
    """Digest of the declaration, queries, documents, pairs, judgments and editions of a set.

    Leases and snoozed pairs are not included, because no statistic depends on them.
    """
    gold, numbered = pair.c.gold_grade, sa.cast(pair.c.id % 1_009, sa.Double)
    totals = sa.func.sum(pair.c.priority), sa.func.sum(gold), sa.func.sum(gold * numbered)
    queue = sa.select(sa.func.count(), sa.func.max(pair.c.id), sa.func.count(gold), *totals)
    still_open = (sa.func.count(), sa.func.max(slot.c.pair_id), sa.func.sum(slot.c.pair_id))
    frozen = sa.select(sa.func.max(edition.c.id)).where(edition.c.golden_set_id == set_id)
    return _digest(
        [
            golden_sets.by_id(c, set_id),
            _judgments(c, set_id),
            _queries(c, set_id),
            _documents(c, set_id),
            c.execute(queue.where(pair.c.golden_set_id == set_id)).one(),
            c.execute(sa.select(*still_open).where(slot.c.judgment_id.is_(None))).one(),
            c.execute(frozen).scalar_one(),
        ]
    )


def _judgments(c: sa.Connection, set_id: int) -> Any:
    newest = sa.select(judgment.c.id, judgment.c.time_us).where(of_golden_set(c, set_id))
    rows = newest.order_by(judgment.c.id.desc()).limit(_NEWEST).subquery()
    totals = sa.func.max(rows.c.id), sa.func.sum(rows.c.id), sa.func.max(rows.c.time_us)
    return c.execute(sa.select(*totals)).one()


def _queries(c: sa.Connection, set_id: int) -> Any:
    dropped = query.c.dropped_us
    counts = sa.func.count(), sa.func.max(query.c.added_us), sa.func.count(dropped)
    of_set = sa.select(*counts, sa.func.max(dropped)).where(query.c.golden_set_id == set_id)
    return c.execute(of_set).one()


def _documents(c: sa.Connection, set_id: int) -> Any:
    counts = sa.func.count(), sa.func.max(document.c.changed_us)
    return c.execute(sa.select(*counts).where(document.c.golden_set_id == set_id)).one()


def _digest(parts: list[Any]) -> str:
    text = repr([tuple(part) if isinstance(part, sa.Row) else part for part in parts])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
