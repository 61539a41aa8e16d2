"""Slots: the places that hold a pair's judgments; taken, held, given back, filled."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.dml import ReturningUpdate

from karat.errors import UsageError
from karat.golden.queue import MODULUS, shuffle_keys
from karat.store.sql import golden_sets
from karat.store.sql.schema import deferred, document, judgment, pair, query, slot

OWN = ("rating", "repeat", "gold")
"""Kinds of slots that a rater fills; an adjudicator fills ``adjudication``."""
# Statements are built once: building one takes longer than running it.
_SET = sa.bindparam("set_id", type_=sa.BigInteger)
_RATER = sa.bindparam("the_rater", type_=sa.Text)
_KIND = sa.bindparam("the_kind", type_=sa.Text)
_NOW = sa.bindparam("now", type_=sa.BigInteger)
_A = sa.bindparam("a", type_=sa.BigInteger)
_B = sa.bindparam("b", type_=sa.BigInteger)
_APART, _RELEVANT = 2.0, 1.0  # as golden.aggregation.disagreements has them
_FREE = {"rater": None, "leased_until_us": None, "first_judgment": None}
_GROUPS = 256  # a server has room for thousands of locks, and an import may name more raters


@dataclass(frozen=True)
class Claim:
    """A pair that is a rater's to judge until the lease ends.

    Attributes:
        slot_id: What ``judgments.submit`` wants.
        kind: ``rating`` | ``repeat`` | ``gold`` | ``adjudication``. A rater must not be told.
        query_id: The query.
        doc_id: The document.
        leased_until_us: When the lease ends, microseconds UTC.
        query_text: What was typed.
        need: What the person wanted.
        title: The document's title.
        text: Its text; None if the document is not in the store.
        url: Where it stands.
        document_sha256: Hash of the document as shown, for ``submit(shown=…)``.
        guideline: Version of the guideline in force, for ``submit(guideline=…)``.
        guideline_text: Its text.
        attributes: Of the document, by name.
    """

    slot_id: int
    kind: str
    query_id: str
    doc_id: str
    leased_until_us: int
    query_text: str | None
    need: str | None
    title: str | None
    text: str | None
    url: str | None
    document_sha256: str | None
    guideline: str
    guideline_text: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


# Who waits for whom. A transaction takes locks in this order, and never one of an earlier kind
# after one of a later, so that no two wait for each other:
#   1. the golden set's row (golden_sets.hold): whatever adds to a set, an import among them;
#   2. raters (hold_rater, hold_raters): whatever a rater does at the queue shares the lock of the
#      group the rater falls into with all others, then holds that rater alone; an import holds the
#      groups of every rater it names, by ascending number, and no rater besides;
#   3. a pair's row (hidden.due holds one; pairs.put many, but one of a set at a time);
#   4. slots: found free with SKIP LOCKED; waited for only where the rater holds the slot.
# References lock the row they name against its deletion only, which nothing here does to sets,
# pairs or judgments. SQLite knows one lock: BEGIN IMMEDIATE.
def hold_rater(c: sa.Connection, set_id: int, rater: str) -> None:
    """Let one transaction at a time act for a rater, who may have two pages open.

    Raises:
        UsageError: the rater has no name, or one that cannot be kept.
    """
    if not rater.strip() or "\0" in rater or len(rater) > 200:
        raise UsageError("a rater has a name, of at most 200 characters")
    if c.dialect.name != "postgresql":
        return
    numbers = _group(set_id, rater), _number("karat", set_id, rater)
    lock, share = sa.func.pg_advisory_xact_lock, sa.func.pg_advisory_xact_lock_shared
    c.execute(sa.select(share(numbers[0]), lock(numbers[1])))


def hold_raters(c: sa.Connection, set_id: int, raters: Iterable[str]) -> None:
    """Let nobody act for these raters, of any name; a few others may wait with them."""
    if c.dialect.name != "postgresql":
        return
    numbers = sorted({_group(set_id, rater) for rater in raters})
    each = sa.text("SELECT pg_advisory_xact_lock(n) FROM unnest(CAST(:numbers AS bigint[])) AS n")
    c.execute(each, {"numbers": numbers})


def _group(set_id: int, rater: str) -> int:
    group = _number("karat rater", set_id, rater) % _GROUPS
    return _number("karat group", set_id, str(group))


def _number(what: str, set_id: int, name: str) -> int:
    digest = blake2b(f"{what}\0{set_id}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def held(c: sa.Connection, set_id: int, rater: str, kinds: Collection[str], now: int) -> int | None:
    """The slot the rater holds, the newest lease first: ended or not, as long as nobody took it.

    Adjudications that rest, because the raters agree now, are given back.
    """
    if "adjudication" in kinds:
        c.execute(_resting(), {"set_id": set_id, "the_rater": rater})
    values = {"set_id": set_id, "the_rater": rater, "kinds": list(kinds), "now": now}
    # A row lock, so that nobody takes a slot whose lease has ended while it is renewed here.
    locked = holding().with_for_update(of=slot, skip_locked=True)
    return c.execute(locked, values).scalars().one_or_none()


def take(
    c: sa.Connection,
    declared: golden_sets.GoldenSetRow,
    rater: str,
    kind: str,
    order: str,
    now: int,
    until: int,
) -> int | None:
    """Take a slot that is free, or whose lease has ended: one statement, so nobody else can."""
    a, b = shuffle_keys(declared.salt, rater)
    values = {
        "set_id": declared.id,
        "the_rater": rater,
        "the_kind": kind,
        "now": now,
        "until": until,
        "a": a,
        "b": b,
    }
    return c.execute(_taking(order), values).scalar_one_or_none()


def goes_on(
    c: sa.Connection, set_id: int, rater: str, query_id: str, priority: int, now: int
) -> bool:
    """Whether a pair of this query waits for the rater, of this priority or before it."""
    values = {"set_id": set_id, "the_rater": rater, "the_kind": "rating", "now": now}
    values |= {"of_query": query_id, "at_most": priority}
    return c.execute(_more(), values).first() is not None


def upcoming(
    c: sa.Connection, declared: golden_sets.GoldenSetRow, rater: str, order: str, now: int
) -> str | None:
    """The query of the pair that ``take`` would take for a rating; None if there is none."""
    a, b = shuffle_keys(declared.salt, rater)
    values = {
        "set_id": declared.id,
        "the_rater": rater,
        "the_kind": "rating",
        "now": now,
        "a": a,
        "b": b,
    }
    return c.execute(_next(order).with_only_columns(pair.c.query_id), values).scalar_one_or_none()


def disagree() -> sa.ColumnElement[bool]:
    """Whether the ratings of ``pair`` that count now lie apart: those of people, imported ones too.

    What ``golden.aggregation`` calls a disagreement or a contradiction is one here.
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
    return unfilled(own=False).where(of_query, before).limit(1)


@cache
def unfilled(*, own: bool) -> sa.Select[int]:
    """Slots without a judgment that a rater may fill, of pairs the rater has not rated.

    Its parameters are ``set_id``, ``the_rater``, ``the_kind`` and ``now``.

    Args:
        own: With those the rater holds and those put off; else without.
    """
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
            slot.c.judgment_id.is_(None),
            free,
            (_KIND != "rating") | to_rate,  # a pair whose grade is known tests raters
            # Nobody rates a pair twice, settles their own case, or rates what they settle. What is
            # the rater's is looked up once for all pairs, which halves the time.
            pair.c.id.not_in(
                sa.select(other.c.pair_id).where(
                    other.c.kind.in_(["rating", "adjudication"]),
                    other.c.rater == _RATER,
                    other.c.judgment_id.is_not(None) | (other.c.kind != _KIND)
                    if own
                    else sa.true(),
                )
            ),
            (_KIND == "rating") | disagree(),  # they may have come to agree since
            pair.c.id.not_in(
                sa.select(saw.c.pair_id).where(
                    _KIND == "rating", saw.c.rater == _RATER, saw.c.saw_votes
                )
            ),
            # What came from elsewhere fills no slot; what fills one is found above already.
            # OFFSET 0 has PostgreSQL look up each pair by the index: without fresh statistics it
            # would join all that the rater ever said, again for each pair.
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
    """Whether the rater put ``pair`` off until later than now: ``the_rater`` and ``now``."""
    off = sa.select(deferred.c.pair_id)
    return pair.c.id.in_(off.where(deferred.c.rater == _RATER, deferred.c.until_us > _NOW))


@cache
def holding() -> sa.Select[*tuple[Any, ...]]:
    """``id``, ``kind`` and ``query_id`` of the slot that ``held`` gives.

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
            # Its grade has become known: who is at it may go on, and nobody comes back to it.
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
    """Where a number comes in the rater's own order, by the parameters ``a`` and ``b``."""
    return (shuffle * _A + _B) % MODULUS  # as golden.queue.place


@cache
def _next(order: str) -> sa.Select[int]:
    by_query = [at_place(query.c.shuffle), query.c.id] if order == "query" else []
    in_order = (pair.c.priority, *by_query, at_place(pair.c.shuffle), pair.c.id, slot.c.place)
    return unfilled(own=False).order_by(*in_order).limit(1)


@cache
def _taking(order: str) -> ReturningUpdate[int]:
    chosen = _next(order).with_for_update(of=slot, skip_locked=True).cte("chosen")
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
            slot.c.kind,
            slot.c.leased_until_us,
            pair.c.query_id,
            pair.c.doc_id,
            query.c.text.label("query_text"),
            query.c.need,
            document.c.title,
            document.c.text,
            document.c.url,
            document.c.sha256,
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


def let_go(c: sa.Connection, set_id: int, slot_id: int, rater: str) -> int:
    """Empty a slot that the rater holds; returns its pair."""
    found = c.execute(
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
    if found is None:
        raise UsageError("the pair is not yours to give back: the lease ended, or it is judged")
    if found.kind in {"repeat", "gold"}:  # made for this rater alone
        c.execute(sa.delete(slot).where(slot.c.id == slot_id))
    else:
        c.execute(sa.update(slot).where(slot.c.id == slot_id).values(_FREE))
    return int(found.pair_id)


def claim_again(c: sa.Connection, set_id: int, slot_id: int, rater: str, until: int) -> Claim:
    """Empty a slot whose judgment was withdrawn, and lease it to its rater again."""
    values = {"judgment_id": None, "leased_until_us": until, "rater": rater}
    c.execute(sa.update(slot).where(slot.c.id == slot_id).values(values))
    return read_claim(c, slot_id, golden_sets.by_id(c, set_id))


def read_claim(c: sa.Connection, slot_id: int, declared: golden_sets.GoldenSetRow) -> Claim:
    """A claim, with all that is shown of its pair."""
    row = c.execute(_reading(), {"slot_id": slot_id}).one()
    return Claim(
        slot_id=slot_id,
        kind=row.kind,
        query_id=row.query_id,
        doc_id=row.doc_id,
        leased_until_us=row.leased_until_us,
        query_text=row.query_text,
        need=row.need,
        title=row.title,
        text=row.text,
        url=row.url,
        document_sha256=row.sha256,
        guideline=declared.guideline,
        guideline_text=declared.guideline_text,
        attributes=row.attributes or {},
    )


def query_of_pair() -> sa.ColumnElement[bool]:
    """What joins ``query`` to ``pair``."""
    return (query.c.golden_set_id == pair.c.golden_set_id) & (query.c.query_id == pair.c.query_id)
