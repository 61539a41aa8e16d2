"""A rater's own ratings: those that count, and those given before seeing others' votes."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import sqlalchemy as sa

from karat.store.sql import judgments
from karat.store.sql.schema import deferred, judgment, pair, slot
from karat.tables.judgments import Judgments


@dataclass(frozen=True)
class Own:
    """A rating that counts and fills a slot; ``grade`` is None for ``cannot_judge``."""

    judgment: int
    grade: float | None


def own(c: sa.Connection, set_id: int, rater: str, query_id: str) -> dict[str, Own]:
    """A rater's ratings of a query's documents, by document, without imported ones."""
    chosen = (
        sa.select(pair.c.doc_id, judgment.c.id, judgment.c.grade)
        .join(slot, slot.c.pair_id == pair.c.id)
        .join(judgment, judgment.c.id == slot.c.judgment_id)
        .where(pair.c.golden_set_id == set_id, pair.c.query_id == query_id)
        .where(slot.c.kind == "rating", slot.c.rater == rater)
    )
    return {doc_id: Own(number, grade) for doc_id, number, grade in c.execute(chosen)}


def first(c: sa.Connection, set_id: int, current: Judgments) -> Judgments:
    """The judgments for agreement: blind ratings instead of corrections made after seeing votes.

    Corrections made in the queue, where votes are hidden, are blind too.
    """
    of_set = judgment.c.golden_set_id == set_id
    corrected = _corrected().where(of_set).subquery()
    corrections = c.execute(sa.select(corrected.c.id)).scalars().all()
    if not corrections:
        return current
    blind = judgment.c.id.in_(sa.select(corrected.c.blind_judgment))
    old = sa.select(*judgments.columns()).where(of_set, blind)
    others = current.frame.filter(~pl.col("judgment").is_in(corrections))
    frame = pl.concat([others, judgments.frame_of(c, old)])
    return Judgments(frame, current.scale, current.source)


def first_stays(c: sa.Connection, number: int) -> bool:
    """Whether ``first`` replaces a rating that counts by an earlier one."""
    return c.execute(_corrected().where(judgment.c.id == number)).first() is not None


def _corrected() -> sa.Select[int, int | None]:
    """Ratings that count but were given after seeing votes, and the blind ones before them."""
    of_rater = (deferred.c.pair_id == slot.c.pair_id) & (deferred.c.rater == slot.c.rater)
    return (
        sa.select(judgment.c.id, deferred.c.blind_judgment)
        .join(slot, slot.c.judgment_id == judgment.c.id)
        .join(deferred, of_rater)
        .where(slot.c.kind == "rating", deferred.c.blind_judgment != judgment.c.id)
    )
