"""Hidden repeats and gold items: they test how reliable a rater is."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from karat.golden.queue import (
    MODULUS,
    Standing,
    gold_owed,
    repeat_of,
    repeat_owed,
    shuffle_keys,
    standing,
)
from karat.store.sql.schema import deferred, judgment, pair, query, slot
from karat.store.sql.slots import OWN, goes_on, query_of_pair, upcoming
from karat.store.sql.upsert import insert
from karat.tables.golden.golden_sets import GoldenSetRow

_SEARCHED = 1000  # newest judgments in which the start of the present query is searched


def due(
    c: sa.Connection,
    declared: GoldenSetRow,
    rater: str,
    *,
    now: int,
    until: int,
    order: str,
    golds: float,
) -> int | None:
    """A slot for a hidden repeat or a gold item of the rater, if one is due.

    With the order ``query`` it is never due between two documents of a query, where it would be
    noticed, and never belongs to the query that comes next. It is never the last pair of all.
    """
    at, present, priority = stands(c, declared.id, rater, order)
    repeat = repeat_owed(declared.salt, rater, at, declared.repeats)
    gold = gold_owed(declared.salt, rater, at, golds) and _any_gold(c, declared.id)
    if not repeat and not gold:
        return None
    in_a_query = order == "query" and present is not None
    # Usually the query continues, which is cheaper to find than the next pair of the whole queue.
    if in_a_query and goes_on(c, declared.id, rater, str(present), priority, now):
        return None
    following = upcoming(c, declared, rater, order, now)
    if following is None or (order == "query" and following == present):
        return None
    exclude = following if order == "query" else None
    pair_id, kind = None, "repeat"
    if repeat:
        pair_id = _own_again(c, declared, rater, now, exclude)
    if pair_id is None and gold:
        pair_id, kind = _gold(c, declared, rater, now, exclude), "gold"
    if pair_id is None:
        return None
    if c.dialect.name == "postgresql":  # two raters may get places of one pair at the same time
        c.execute(sa.select(pair.c.id).where(pair.c.id == pair_id).with_for_update(key_share=True))
    places = sa.select(sa.func.coalesce(sa.func.max(slot.c.place), 0))
    before = c.execute(places.where(slot.c.pair_id == pair_id, slot.c.kind == kind)).scalar_one()
    place = {"pair_id": pair_id, "kind": kind, "place": before + 1}
    return insert(c, slot, **place, rater=rater, leased_until_us=until)


def stands(
    c: sa.Connection, set_id: int, rater: str, order: str
) -> tuple[Standing, str | None, int]:
    """A rater's position, and query and priority of the pair rated last; None without any."""
    done = int(c.execute(_counting(), {"set_id": set_id, "the_rater": rater}).scalar_one())
    rows = [tuple(row) for row in c.execute(_newest(), {"set_id": set_id, "the_rater": rater})]
    rated = ((query_id, priority) for kind, query_id, priority in rows if kind == "rating")
    at = standing([(kind, query_id) for kind, query_id, _ in rows], done, order)
    return at, *next(rated, (None, 0))


def unseen_golds(c: sa.Connection, set_id: int, rater: str) -> int:
    """Number of gold items that the rater has not judged."""
    return int(c.execute(_unseen(), {"set_id": set_id, "the_rater": rater}).scalar_one())


# Statements are built once, as in ``slots``.
_SET = sa.bindparam("set_id", type_=sa.BigInteger)
_RATER = sa.bindparam("the_rater", type_=sa.Text)
_DONE = (
    pair.c.golden_set_id == _SET,
    slot.c.rater == _RATER,
    slot.c.judgment_id.is_not(None),
    slot.c.kind.in_(OWN),
)


@cache
def _counting() -> sa.Select[int]:
    joined = slot.join(pair, pair.c.id == slot.c.pair_id)
    return sa.select(sa.func.count()).select_from(joined).where(*_DONE)


@cache
def _newest() -> sa.Select[*tuple[Any, ...]]:
    return (
        sa.select(slot.c.kind, pair.c.query_id, pair.c.priority)
        .join(pair, pair.c.id == slot.c.pair_id)
        .where(*_DONE)
        # In the order they were assigned: a correction does not change it.
        .order_by(slot.c.first_judgment.desc())
        .limit(_SEARCHED)
    )


@cache
def _unseen() -> sa.Select[int]:
    judged = sa.exists().where(
        slot.c.pair_id == pair.c.id, slot.c.rater == _RATER, slot.c.judgment_id.is_not(None)
    )
    chosen = sa.select(sa.func.count(pair.c.id)).join(query, query_of_pair())
    return chosen.where(
        pair.c.golden_set_id == _SET,
        pair.c.gold_grade.is_not(None),
        query.c.dropped_us.is_(None),
        ~judged,
    )


def _any_gold(c: sa.Connection, set_id: int) -> bool:
    chosen = sa.select(pair.c.id).where(pair.c.golden_set_id == set_id)
    return c.execute(chosen.where(pair.c.gold_grade.is_not(None)).limit(1)).first() is not None


def _own_again(
    c: sa.Connection, declared: GoldenSetRow, rater: str, now: int, exclude: str | None
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
        .order_by(slot.c.first_judgment)
    ).all()
    never = {
        (row.query_id, row.doc_id)
        for row in rows
        if row.kind == "gold"
        or row.query_id == exclude
        or row.state != "graded"
        or row.dropped_us is not None
        or (row.until_us or 0) > now
    }
    history = [(row.query_id, row.doc_id) for row in rows]
    again = repeat_of(declared.salt, rater, history, never)
    ids = {(row.query_id, row.doc_id): int(row.id) for row in rows}
    return None if again is None else ids[again]


def _gold(
    c: sa.Connection, declared: GoldenSetRow, rater: str, now: int, exclude: str | None
) -> int | None:
    a, b = (sa.literal(key, sa.BigInteger) for key in shuffle_keys(declared.salt, rater))
    mine = (slot.c.pair_id == pair.c.id) & (slot.c.rater == rater)
    put_off = (deferred.c.pair_id == pair.c.id) & (deferred.c.rater == rater)
    chosen = (
        sa.select(pair.c.id)
        .join(query, query_of_pair())
        .where(
            pair.c.golden_set_id == declared.id,
            pair.c.gold_grade.is_not(None),
            query.c.dropped_us.is_(None),
            sa.true() if exclude is None else query.c.query_id != exclude,
            ~sa.exists().where(mine),
            ~sa.exists().where(put_off, deferred.c.until_us > now),
        )
        .order_by((pair.c.shuffle * a + b) % MODULUS, pair.c.id)
        .limit(1)
    )
    return c.execute(chosen).scalar_one_or_none()
