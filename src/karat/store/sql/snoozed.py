"""What is kept of a pair and a rater: until when it is put off, and who has seen the votes."""

from __future__ import annotations

import sqlalchemy as sa

from karat.store.sql.schema import deferred, judgment, slot

_SAID = sa.case((slot.c.kind == "rating", slot.c.judgment_id)).label("said")


def show_votes(c: sa.Connection, slot_id: int, rater: str) -> None:
    """Remember who saw the votes of a slot's pair, and what they had said of it before.

    Such a one is no blind rater of it, and their own rating in agreement is the one before.

    Args:
        c: A write transaction.
        slot_id: The slot: the rater's own, or one to adjudicate.
        rater: Who.
    """
    held = c.execute(sa.select(slot.c.pair_id, _SAID).where(slot.c.id == slot_id)).one()
    note(c, held.pair_id, rater, saw_votes=True)
    if held.said is not None:
        first_seen = (deferred.c.pair_id == held.pair_id) & (deferred.c.rater == rater)
        blind = sa.update(deferred).where(first_seen, deferred.c.blind_judgment.is_(None))
        c.execute(blind.values(blind_judgment=held.said))


def note(c: sa.Connection, pair_id: int, rater: str, **values: int | bool) -> None:
    """Keep of a pair and a rater until when it is put off, or that the rater saw the votes."""
    of_rater = (deferred.c.pair_id == pair_id) & (deferred.c.rater == rater)
    if c.execute(sa.update(deferred).where(of_rater).values(values)).rowcount:
        return
    row = {"pair_id": pair_id, "rater": rater, "until_us": 0} | values
    c.execute(sa.insert(deferred).values(row))


def note_votes(
    c: sa.Connection, set_id: int, slot_id: int, rater: str, query_id: str, doc_id: str
) -> None:
    """If others have rated a pair, remember that the rater may have seen how."""
    if rated_by_others(c, set_id, rater, query_id, doc_id):
        show_votes(c, slot_id, rater)


def rated_by_others(c: sa.Connection, set_id: int, rater: str, query_id: str, doc_id: str) -> bool:
    """Whether anybody but a rater ever rated or settled a pair."""
    theirs = sa.select(judgment.c.id).where(
        judgment.c.golden_set_id == set_id,
        judgment.c.query_id == query_id,
        judgment.c.doc_id == doc_id,
        judgment.c.rater != rater,
        judgment.c.source == "human",
        judgment.c.kind.in_(["rating", "adjudication"]),
    )
    return c.execute(theirs.limit(1)).first() is not None
