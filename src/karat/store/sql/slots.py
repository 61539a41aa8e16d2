"""Slots: the places for the judgments of a pair; leased, released, filled."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.dml import ReturningUpdate

from karat.errors import UsageError
from karat.golden.queue import MODULUS, Claim, shuffle_keys
from karat.store.sql import golden_sets
from karat.store.sql.schema import deferred, document, judgment, pair, query, slot
from karat.tables.golden.golden_sets import GoldenSetRow

OWN = ("rating", "repeat", "gold")  # kinds of slots for raters; `adjudication` is for adjudicators
# Statements are built once: building one takes longer than executing it.
_SET = sa.bindparam("set_id", type_=sa.BigInteger)
_RATER = sa.bindparam("the_rater", type_=sa.Text)
_KIND = sa.bindparam("the_kind", type_=sa.Text)
_NOW = sa.bindparam("now", type_=sa.BigInteger)
_A = sa.bindparam("a", type_=sa.BigInteger)
_B = sa.bindparam("b", type_=sa.BigInteger)
_LEVEL = sa.bindparam("level", type_=sa.Integer)
_APART, _RELEVANT = 2.0, 1.0  # as in golden.aggregation.disagreements
_FREE = {"rater": None, "leased_until_us": None, "first_judgment": None}
_GROUPS = 256  # PostgreSQL allows some thousand locks, and an import may name more raters


# Lock order. Against deadlocks, a transaction takes locks in this order only:
#   1. the golden set's row (golden_sets.hold): everything that adds to a set, including imports;
#   2. raters (hold_rater, hold_raters): an action of a rater takes a shared lock of the rater's
#      group, then an exclusive lock of the rater; an import takes exclusive locks of the groups of
#      all its raters, by ascending number;
#   3. rows of pairs (_gold_items.due locks one; pairs.put many, for one set at a time);
#   4. slots: free ones with SKIP LOCKED; waiting only for slots of the rater's own.
# Foreign keys lock a referenced row against deletion only, and sets, pairs and judgments are never
# deleted. SQLite has one lock: BEGIN IMMEDIATE.
def hold_rater(c: sa.Connection, set_id: int, rater: str) -> None:
    """Lock a rater, who may have two pages open, until the transaction ends."""
    if not rater.strip() or "\0" in rater or len(rater) > 200:
        raise UsageError("the name of a rater must have 1 to 200 characters")
    if c.dialect.name != "postgresql":
        return
    numbers = _group(set_id, rater), _number("karat", set_id, rater)
    lock, share = sa.func.pg_advisory_xact_lock, sa.func.pg_advisory_xact_lock_shared
    c.execute(sa.select(share(numbers[0]), lock(numbers[1])))


def hold_raters(c: sa.Connection, set_id: int, raters: Iterable[str]) -> None:
    """Lock these raters (and others in their groups) until the transaction ends."""
    if c.dialect.name != "postgresql":
        return
    numbers = sorted({_group(set_id, rater) for rater in raters})
    locks = sa.text("SELECT pg_advisory_xact_lock(n) FROM unnest(CAST(:numbers AS bigint[])) AS n")
    c.execute(locks, {"numbers": numbers})


def _group(set_id: int, rater: str) -> int:
    group = _number("karat rater", set_id, rater) % _GROUPS
    return _number("karat group", set_id, str(group))


def _number(kind: str, set_id: int, name: str) -> int:
    digest = blake2b(f"{kind}\0{set_id}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def held(c: sa.Connection, set_id: int, rater: str, kinds: Collection[str], now: int) -> int | None:
    """The slot leased to a rater, the newest lease first; expired ones until somebody takes them.

    Adjudications of pairs whose raters agree now are released.
    """
    if "adjudication" in kinds:
        c.execute(_resting(), {"set_id": set_id, "the_rater": rater})
    values = {"set_id": set_id, "the_rater": rater, "kinds": list(kinds), "now": now}
    # The row lock prevents that another rater takes an expired slot while its lease is renewed.
    locked = holding().with_for_update(of=slot, skip_locked=True)
    return c.execute(locked, values).scalars().one_or_none()


def take(
    c: sa.Connection,
    declared: GoldenSetRow,
    rater: str,
    kind: str,
    order: str,
    now: int,
    until: int,
) -> int | None:
    """Lease the next slot that is free or expired; an atomic statement takes it."""
    values = _of(declared, rater, kind, now)
    ahead = _first(c, order, values)
    if ahead is None:
        return None
    slot_id = c.execute(_taking(order, by=True), {**values, **ahead, "until": until})
    taken = slot_id.scalar_one_or_none()
    if taken is None:  # other raters lease these just now
        slot_id = c.execute(_taking(order, by=False), {**values, "until": until})
        taken = slot_id.scalar_one_or_none()
    return taken


def goes_on(
    c: sa.Connection, set_id: int, rater: str, query_id: str, priority: int, now: int
) -> bool:
    """Whether a pair of this query, of at most this priority number, waits for the rater."""
    values = {"set_id": set_id, "the_rater": rater, "the_kind": "rating", "now": now}
    values |= {"of_query": query_id, "at_most": priority}
    return c.execute(_more(), values).first() is not None


def upcoming(
    c: sa.Connection, declared: GoldenSetRow, rater: str, order: str, now: int
) -> str | None:
    """The query of the pair that ``take`` would lease for a rating; None if there is none."""
    values = _of(declared, rater, "rating", now)
    ahead = _first(c, order, values)
    return None if ahead is None else str(ahead["of_query"])


def _of(declared: GoldenSetRow, rater: str, kind: str, now: int) -> dict[str, Any]:
    a, b = shuffle_keys(declared.salt, rater)
    key = {"set_id": declared.id, "the_rater": rater, "the_kind": kind}
    return {**key, "now": now, "a": a, "b": b}


def _first(c: sa.Connection, order: str, values: dict[str, Any]) -> dict[str, Any] | None:
    """Priority, query and pair (with the order ``query`` any) of the next slot; None without one.

    Looking at every open slot takes as long as there are open slots. So first the priority is
    sought, then within it the query (or pair), each in order until one has a slot for the rater.
    """
    level = c.execute(_level(), values).scalar_one_or_none()
    if level is None:
        return None
    found = c.execute(_within(order), {**values, "level": level}).one_or_none()
    return None if found is None else {"level": level, **found._mapping}  # noqa: SLF001


def disagree() -> sa.ColumnElement[bool]:
    """Whether the ratings of ``pair`` that count, by humans or imported, disagree.

    Includes the disagreements and the contradictions of ``golden.aggregation``.
    """
    vote = judgment.alias("vote")
    low, high = sa.func.min(vote.c.grade), sa.func.max(vote.c.grade)
    return (
        sa.select(vote.c.golden_set_id)
        .where(
            vote.c.golden_set_id == pair.c.golden_set_id,
            vote.c.query_id == pair.c.query_id,
            vote.c.doc_id == pair.c.doc_id,
            vote.c.kind == "rating",
            vote.c.state == "graded",
            vote.c.source.in_(["human", "import"]),
            ~sa.exists().where(judgment.c.supersedes == vote.c.id),
        )
        .group_by(vote.c.golden_set_id)
        .having((high - low >= _APART) | ((low < _RELEVANT) & (high >= _RELEVANT)))
        .correlate(pair)
        .exists()
    )


@cache
def _more() -> sa.Select[int]:
    of_query = pair.c.query_id == sa.bindparam("of_query", type_=sa.Text)
    before = pair.c.priority <= sa.bindparam("at_most", type_=sa.Integer)
    return unfilled(own=False, by_pair=True).where(of_query, before).limit(1)


@cache
def _level() -> sa.Select[int]:
    """The priority of the next slot."""
    ahead = (
        sa.select(pair.c.id, pair.c.priority)
        .where(pair.c.golden_set_id == _SET)
        .order_by(pair.c.priority)
        .offset(0)
        .subquery()
    )
    there = unfilled(own=False, by_pair=True).where(pair.c.id == ahead.c.id)
    return sa.select(ahead.c.priority).where(_lazily(there, ahead)).limit(1)


@cache
def _within(order: str) -> sa.Select[*tuple[Any, ...]]:
    """The query of the next slot, among those of the priority ``level``; or with its pair."""
    if order == "query":
        table, columns = query, [query.c.query_id.label("of_query")]
        chosen = sa.select(*columns).where(query.c.dropped_us.is_(None))
    else:
        table, columns = pair, [pair.c.query_id.label("of_query"), pair.c.id.label("of_pair")]
        chosen = sa.select(*columns).where(pair.c.priority == _LEVEL)
    in_order = chosen.where(table.c.golden_set_id == _SET)
    ahead = in_order.order_by(at_place(table.c.shuffle), table.c.id).offset(0).subquery()
    same = pair.c.query_id == ahead.c.of_query if order == "query" else pair.c.id == ahead.c.of_pair
    there = unfilled(own=False, by_pair=True).where(pair.c.priority == _LEVEL, same)
    return sa.select(ahead).where(_lazily(there, ahead)).limit(1)


def _lazily(there: sa.Select[int], ahead: sa.Subquery) -> sa.ColumnElement[bool]:
    """Whether there is such a slot; with OFFSET 0, as in ``unfilled``, asked row by row."""
    return there.correlate(ahead).offset(0).exists()


@cache
def unfilled(*, own: bool, by_pair: bool = False) -> sa.Select[int]:
    """Slots without a judgment that a rater may fill, of pairs the rater has not rated.

    Its parameters are ``set_id``, ``the_rater``, ``the_kind`` and ``now``.

    Args:
        own: Include slots leased to the rater, and snoozed pairs.
        by_pair: Slots are looked up pair by pair. An expression keeps SQLite from looking through
            the index of judgments for each.
    """
    filled = (
        sa.func.coalesce(slot.c.judgment_id, 0) != 0 if by_pair else slot.c.judgment_id.is_not(None)
    )
    other, rated, saw = slot.alias("other"), judgment.alias("rated"), deferred.alias("saw")
    free: sa.ColumnElement[bool] = slot.c.rater.is_(None) | (slot.c.leased_until_us <= _NOW)
    to_rate: sa.ColumnElement[bool] = pair.c.gold_grade.is_(None)
    if own:
        free = free | (slot.c.rater == _RATER)
        to_rate = to_rate | ((slot.c.rater == _RATER) & (slot.c.leased_until_us > _NOW))
    chosen = (
        sa.select(slot.c.id)
        .join(pair, pair.c.id == slot.c.pair_id)
        .join(query, query_of_pair())
        .where(
            pair.c.golden_set_id == _SET,
            query.c.dropped_us.is_(None),
            slot.c.kind == _KIND,
            ~filled,
            free,
            (_KIND != "rating") | to_rate,  # gold items are not rated in the queue
            # A rater must not rate a pair twice, settle their own disagreement, or rate a pair they
            # settle. One lookup for all pairs halves the time.
            pair.c.id.not_in(
                sa.select(other.c.pair_id).where(
                    other.c.kind.in_(["rating", "adjudication"]),
                    other.c.rater == _RATER,
                    other.c.judgment_id.is_not(None) | (other.c.kind != _KIND)
                    if own
                    else sa.true(),
                )
            ),
            (_KIND == "rating") | disagree(),  # the raters may agree now
            pair.c.id.not_in(
                sa.select(saw.c.pair_id).where(
                    _KIND == "rating", saw.c.rater == _RATER, saw.c.saw_votes
                )
            ),
            # Imported judgments, which fill no slot. OFFSET 0 makes PostgreSQL look up each pair by
            # the index; without fresh statistics it would join all judgments of the rater.
            ~sa.select(rated.c.id)
            .where(
                rated.c.golden_set_id == pair.c.golden_set_id,
                rated.c.query_id == pair.c.query_id,
                rated.c.doc_id == pair.c.doc_id,
                rated.c.rater == _RATER,
                rated.c.kind == "rating",
                rated.c.state != "withdrawn",
                ~sa.exists().where(judgment.c.supersedes == rated.c.id),
            )
            .offset(0)
            .exists(),
        )
    )
    return chosen if own else chosen.where(~put_off())


def put_off() -> sa.ColumnElement[bool]:
    """Whether ``pair`` is snoozed for the rater; parameters ``the_rater`` and ``now``."""
    off = sa.select(deferred.c.pair_id)
    return pair.c.id.in_(off.where(deferred.c.rater == _RATER, deferred.c.until_us > _NOW))


@cache
def holding() -> sa.Select[*tuple[Any, ...]]:
    """``id``, ``kind`` and ``query_id`` of the slot that ``held`` returns.

    Its parameters are ``set_id``, ``the_rater``, ``kinds`` and ``now``.
    """
    return (
        sa.select(slot.c.id, slot.c.kind, pair.c.query_id)
        .join(pair, pair.c.id == slot.c.pair_id)
        .join(query, query_of_pair())
        .where(
            pair.c.golden_set_id == _SET,
            query.c.dropped_us.is_(None),
            slot.c.rater == _RATER,
            slot.c.judgment_id.is_(None),
            slot.c.kind.in_(sa.bindparam("kinds", expanding=True)),
            (slot.c.kind != "adjudication") | disagree(),
            # A pair that became a gold item stays with its rater until the lease expires.
            (slot.c.kind != "rating")
            | pair.c.gold_grade.is_(None)
            | (slot.c.leased_until_us > _NOW),
        )
        .order_by(slot.c.leased_until_us.desc(), slot.c.id)
        .limit(1)
    )


@cache
def _resting() -> sa.Update:
    rests = sa.select(pair.c.id).where(
        pair.c.id == slot.c.pair_id, pair.c.golden_set_id == _SET, ~disagree()
    )
    return (
        sa.update(slot)
        .where(
            slot.c.kind == "adjudication",
            slot.c.rater == _RATER,
            slot.c.judgment_id.is_(None),
            rests.correlate(slot).offset(0).exists(),  # as in ``unfilled``: pair by pair
        )
        .values(_FREE)
    )


def at_place(shuffle: sa.Column[int]) -> sa.ColumnElement[int]:
    """Position of a shuffle number in the rater's own order; parameters ``a`` and ``b``."""
    return (shuffle * _A + _B) % MODULUS  # as in golden.queue.place


@cache
def _taking(order: str, *, by: bool) -> ReturningUpdate[int]:
    """Lease the next slot; ``by`` of what ``_first`` found, else of all."""
    by_query = [at_place(query.c.shuffle), query.c.id] if order == "query" else []
    in_order = (pair.c.priority, *by_query, at_place(pair.c.shuffle), pair.c.id, slot.c.place)
    free = unfilled(own=False, by_pair=by).order_by(*in_order).limit(1)
    if by:
        of_query = pair.c.query_id == sa.bindparam("of_query", type_=sa.Text)
        free = free.where(pair.c.priority == _LEVEL, of_query)
    if by and order != "query":
        free = free.where(pair.c.id == sa.bindparam("of_pair", type_=sa.BigInteger))
    chosen = free.with_for_update(of=slot, skip_locked=True).cte("chosen")
    return (
        sa.update(slot)
        .where(slot.c.id == sa.select(chosen.c.id).scalar_subquery())
        .values(
            rater=_RATER,
            leased_until_us=sa.bindparam("until", type_=sa.BigInteger),
            first_judgment=None,
        )
        .returning(slot.c.id)
    )


@cache
def _reading() -> sa.Select[*tuple[Any, ...]]:
    return (
        sa.select(
            *(slot.c.kind, slot.c.leased_until_us, pair.c.query_id, pair.c.doc_id),
            *(query.c.text.label("query_text"), query.c.need),
            *(document.c.title, document.c.text, document.c.url),
            document.c.sha256.label("document_sha256"),
            document.c.attributes,
        )
        .select_from(slot)
        .join(pair, pair.c.id == slot.c.pair_id)
        .join(query, query_of_pair())
        .outerjoin(
            document,
            (document.c.golden_set_id == pair.c.golden_set_id)
            & (document.c.doc_id == pair.c.doc_id),
        )
        .where(slot.c.id == sa.bindparam("slot_id"))
    )


def release_slots(c: sa.Connection, set_id: int, slot_id: int, rater: str) -> int:
    """Release a slot leased to the rater; returns its pair."""
    row = c.execute(
        sa.select(slot.c.pair_id, slot.c.kind)
        .join(pair, pair.c.id == slot.c.pair_id)
        .where(
            pair.c.golden_set_id == set_id,
            slot.c.id == slot_id,
            slot.c.rater == rater,
            slot.c.judgment_id.is_(None),
        )
        .with_for_update(of=slot)
    ).one_or_none()
    if row is None:
        raise UsageError("the pair is not yours to give back: the lease expired, or it is judged")
    if row.kind in {"repeat", "gold"}:  # created for this rater
        c.execute(sa.delete(slot).where(slot.c.id == slot_id))
    else:
        c.execute(sa.update(slot).where(slot.c.id == slot_id).values(_FREE))
    return int(row.pair_id)


def claim_again(c: sa.Connection, set_id: int, slot_id: int, rater: str, until: int) -> Claim:
    """Lease the slot of a withdrawn judgment to its rater again."""
    values = {"judgment_id": None, "leased_until_us": until, "rater": rater}
    c.execute(sa.update(slot).where(slot.c.id == slot_id).values(values))
    return read_claim(c, slot_id, golden_sets.by_id(c, set_id))


def read_claim(c: sa.Connection, slot_id: int, declared: GoldenSetRow) -> Claim:
    row: dict[str, Any] = dict(c.execute(_reading(), {"slot_id": slot_id}).mappings().one())
    row |= {"guideline": declared.guideline, "guideline_text": declared.guideline_text}
    return Claim(slot_id=slot_id, **row | {"attributes": row["attributes"] or {}})


def query_of_pair() -> sa.ColumnElement[bool]:
    """The condition that joins ``query`` to ``pair``."""
    return (query.c.golden_set_id == pair.c.golden_set_id) & (query.c.query_id == pair.c.query_id)
