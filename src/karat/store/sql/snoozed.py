"""Snoozed pairs, and pairs whose votes a rater has seen."""

from __future__ import annotations

import sqlalchemy as sa

from karat.store.sql.schema import deferred, judgment, slot

_RATING = sa.case((slot.c.kind == "rating", slot.c.judgment_id)).label("rating")


def show_votes(c: sa.Connection, slot_id: int, rater: str) -> None:
    """Record that a rater saw the votes of a slot's pair, and their own rating before that.

    The rater is not blind from then on; agreement uses the earlier rating. The slot is the rater's
    own, or one to adjudicate.
    """
    row = c.execute(sa.select(slot.c.pair_id, _RATING).where(slot.c.id == slot_id)).one()
    note(c, row.pair_id, rater, saw_votes=True)
    if row.rating is not None:
        of_rater = (deferred.c.pair_id == row.pair_id) & (deferred.c.rater == rater)
        blind = sa.update(deferred).where(of_rater, deferred.c.blind_judgment.is_(None))
        c.execute(blind.values(blind_judgment=row.rating))


def note(c: sa.Connection, pair_id: int, rater: str, **values: int | bool) -> None:
    """Store ``until_us`` or ``saw_votes`` of a pair and a rater."""
    of_rater = (deferred.c.pair_id == pair_id) & (deferred.c.rater == rater)
    if c.execute(sa.update(deferred).where(of_rater).values(values)).rowcount:
        return
    row = {"pair_id": pair_id, "rater": rater, "until_us": 0} | values
    c.execute(sa.insert(deferred).values(row))


def note_votes(
    c: sa.Connection, set_id: int, slot_id: int, rater: str, query_id: str, doc_id: str
) -> None:
    """If others have rated a pair, record that the rater may have seen their votes."""
    if rated_by_others(c, set_id, rater, query_id, doc_id):
        show_votes(c, slot_id, rater)


def rated_by_others(c: sa.Connection, set_id: int, rater: str, query_id: str, doc_id: str) -> bool:
    """Whether anybody else ever rated or adjudicated a pair."""
    theirs = sa.select(judgment.c.id).where(
        judgment.c.golden_set_id == set_id,
        judgment.c.query_id == query_id,
        judgment.c.doc_id == doc_id,
        judgment.c.rater != rater,
        judgment.c.source == "human",
        judgment.c.kind.in_(["rating", "adjudication"]),
    )
    return c.execute(theirs.limit(1)).first() is not None
