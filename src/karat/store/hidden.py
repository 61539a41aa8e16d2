"""Hidden repeats and gold items: what tells how far a rater's own judgments can be relied on."""

from __future__ import annotations

import sqlalchemy as sa

from karat.golden.queue import MODULUS, gold_due, repeat_due, repeat_of, shuffle_keys
from karat.store import golden_sets
from karat.store.schema import deferred, judgment, pair, query, slot
from karat.store.slots import OWN, count_done, query_of_pair


def due(
    c: sa.Connection,
    declared: golden_sets.GoldenSetRow,
    rater: str,
    now: int,
    until: int,
    golds: float,
) -> int | None:
    """A slot of the rater's alone for a hidden repeat or a gold item, if one is due."""
    done = count_done(c, declared.id, rater)
    pair_id, kind = None, "repeat"
    if repeat_due(declared.salt, rater, done, declared.repeats):
        pair_id = _own_again(c, declared, rater, now)
    if pair_id is None and gold_due(declared.salt, rater, done, golds):
        pair_id, kind = _gold(c, declared, rater, now), "gold"
    if pair_id is None:
        return None
    if c.dialect.name == "postgresql":  # two raters may be given places of one pair at once
        c.execute(sa.select(pair.c.id).where(pair.c.id == pair_id).with_for_update(key_share=True))
    places = sa.select(sa.func.coalesce(sa.func.max(slot.c.place), 0))
    before = c.execute(places.where(slot.c.pair_id == pair_id, slot.c.kind == kind)).scalar_one()
    values = {
        "pair_id": pair_id,
        "kind": kind,
        "place": before + 1,
        "rater": rater,
        "leased_until_us": until,
    }
    return int(c.execute(sa.insert(slot).values(values).returning(slot.c.id)).scalar_one())


def _own_again(
    c: sa.Connection, declared: golden_sets.GoldenSetRow, rater: str, now: int
) -> int | None:
    rows = c.execute(
        sa.select(
            pair.c.id,
            pair.c.query_id,
            pair.c.doc_id,
            slot.c.kind,
            judgment.c.state,
            query.c.dropped_us,
            deferred.c.until_us,
        )
        .select_from(slot)
        .join(judgment, judgment.c.id == slot.c.judgment_id)
        .join(pair, pair.c.id == slot.c.pair_id)
        .join(query, query_of_pair())
        .outerjoin(deferred, (deferred.c.pair_id == pair.c.id) & (deferred.c.rater == rater))
        .where(pair.c.golden_set_id == declared.id, slot.c.rater == rater, slot.c.kind.in_(OWN))
        .order_by(judgment.c.id)
    ).all()
    never = {
        (row.query_id, row.doc_id)
        for row in rows
        if row.kind == "gold"
        or row.state != "graded"
        or row.dropped_us is not None
        or (row.until_us or 0) > now
    }
    history = [(row.query_id, row.doc_id) for row in rows]
    again = repeat_of(declared.salt, rater, history, never)
    ids = {(row.query_id, row.doc_id): int(row.id) for row in rows}
    return None if again is None else ids[again]


def _gold(c: sa.Connection, declared: golden_sets.GoldenSetRow, rater: str, now: int) -> int | None:
    a, b = (sa.literal(each, sa.BigInteger) for each in shuffle_keys(declared.salt, rater))
    mine = (slot.c.pair_id == pair.c.id) & (slot.c.rater == rater)
    put_off = (deferred.c.pair_id == pair.c.id) & (deferred.c.rater == rater)
    chosen = (
        sa.select(pair.c.id)
        .join(query, query_of_pair())
        .where(
            pair.c.golden_set_id == declared.id,
            pair.c.gold_grade.is_not(None),
            query.c.dropped_us.is_(None),
            ~sa.exists().where(mine),
            ~sa.exists().where(put_off, deferred.c.until_us > now),
        )
        .order_by((pair.c.shuffle * a + b) % MODULUS, pair.c.id)
        .limit(1)
    )
    return c.execute(chosen).scalar_one_or_none()
