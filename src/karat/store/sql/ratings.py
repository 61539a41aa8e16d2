"""Ratings of one's own: which counts, and which was given before others' were in sight."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import sqlalchemy as sa

from karat.store.sql import judgments
from karat.store.sql.schema import deferred, judgment, pair, slot
from karat.tables.judgments import Judgments


@dataclass(frozen=True)
class Own:
    """A rating that counts now and fills a place.

    Attributes:
        judgment: Its number.
        grade: The grade; None if it could not be judged.
    """

    judgment: int
    grade: float | None


def own(c: sa.Connection, set_id: int, rater: str, query_id: str) -> dict[str, Own]:
    """A rater's ratings of a query's documents, by document; imported ones fill no place."""
    chosen = (
        sa.select(pair.c.doc_id, judgment.c.id, judgment.c.grade)
        .join(slot, slot.c.pair_id == pair.c.id)
        .join(judgment, judgment.c.id == slot.c.judgment_id)
        .where(pair.c.golden_set_id == set_id, pair.c.query_id == query_id)
        .where(slot.c.kind == "rating", slot.c.rater == rater)
    )
    return {doc_id: Own(number, grade) for doc_id, number, grade in c.execute(chosen)}


def first(c: sa.Connection, set_id: int, said: Judgments) -> Judgments:
    """What agreement is of: of ratings corrected with others' votes in sight those before.

    A rating that was corrected in the queue, where nobody sees what others said, stays as it is.

    Args:
        c: A connection.
        set_id: The golden set.
        said: What counts now, as ``judgments.current`` gives it.
    """
    of_set = judgment.c.golden_set_id == set_id
    chosen = _corrected().where(of_set).subquery()
    now = c.execute(sa.select(chosen.c.id)).scalars().all()
    if not now:
        return said
    blind = judgment.c.id.in_(sa.select(chosen.c.blind_judgment))
    old = sa.select(*judgments.columns()).where(of_set, blind)
    kept = said.frame.filter(~pl.col("judgment").is_in(now))
    frame = pl.concat([kept, judgments.frame_of(c, old)])
    return Judgments(frame, said.scale, said.source)


def first_stays(c: sa.Connection, number: int) -> bool:
    """Whether a rating that counts is one in place of which ``first`` gives another."""
    return c.execute(_corrected().where(judgment.c.id == number)).first() is not None


def _corrected() -> sa.Select[int, int | None]:
    """Ratings that count and were given with votes in sight, and those that counted before."""
    of_rater = (deferred.c.pair_id == slot.c.pair_id) & (deferred.c.rater == slot.c.rater)
    return (
        sa.select(judgment.c.id, deferred.c.blind_judgment)
        .join(slot, slot.c.judgment_id == judgment.c.id)
        .join(deferred, of_rater)
        .where(slot.c.kind == "rating", deferred.c.blind_judgment != judgment.c.id)
    )
