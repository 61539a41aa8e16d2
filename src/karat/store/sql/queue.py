"""The queue: which pair a rater judges next, leased to them for a while.

What is due is decided by ``karat.golden.queue``; each step here is one transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.errors import UsageError
from karat.golden.queue import Standing, checked_order, left, shuffle_keys
from karat.store.sql import golden_sets
from karat.store.sql._gold_items import due, stands, unseen_golds
from karat.store.sql.schema import deferred, judgment, pair, query, slot
from karat.store.sql.slots import (
    OWN,
    Claim,
    at_place,
    held,
    hold_rater,
    holding,
    let_go,
    put_off,
    query_of_pair,
    read_claim,
    take,
    unfilled,
)
from karat.store.sql.snoozed import note, note_votes, show_votes
from karat.tables.incoming import conform
from karat.tables.schema import PAIRS

__all__ = [
    "LEASE_US",
    "Claim",
    "PairRefused",
    "Progress",
    "TooManyPutOff",
    "claim",
    "claim_pair",
    "later",
    "newest",
    "open_adjudications",
    "progress",
    "unsettled",
]
LEASE_US = 600_000_000
"""How long a pair stays the rater's own unless the workspace says otherwise: ten minutes."""
GOLDS = 0.05
"""Share of gold items unless the workspace says otherwise."""
MOST_PUT_OFF = 3
"""Disagreements that a rater may have put off at once: who puts one off has read what was said."""
_RECENT = 50  # judgments whose seconds the progress tells


@dataclass(frozen=True)
class Progress:
    """How far a rater is.

    Attributes:
        done: Judgments given, repeats and gold items among them.
        left: Judgments to give, as far as can be seen now.
        total: The two together.
        later: Pairs among those left that are put off until later.
        seconds: What the newest judgments took, oldest first, at most 50.
    """

    done: int
    left: int
    total: int
    later: int
    seconds: tuple[float | None, ...]


class PairRefused(UsageError):
    """A pair that was asked for by name is not this rater's to rate."""


class TooManyPutOff(UsageError):
    """A disagreement is not put off, because others are."""


def claim(
    c: sa.Connection,
    set_id: int,
    rater: str,
    *,
    now: int,
    lease_us: int = LEASE_US,
    order: str = "query",
    kind: str = "rating",
    golds: float = GOLDS,
) -> Claim | None:
    """Lease the next pair to a rater.

    What the rater holds already comes first, its lease renewed, so that a page that is loaded
    again goes on where it was; then a hidden repeat or a gold item, if one is due (with the order
    ``query`` between two queries only); then the pairs by priority, in the rater's own order.

    Args:
        c: A write transaction.
        set_id: The golden set.
        rater: Who asks.
        now: Microseconds UTC.
        lease_us: How long the pair is theirs, microseconds.
        order: ``query`` keeps the documents of a query together, ``mixed`` shuffles all.
        kind: ``rating``, or ``adjudication`` for the disagreements: never those of pairs that the
            rater rated, nor those whose raters have come to agree (one that is held is given
            back). Who is dealt one is dealt no rating of its pair any more, whether they settle it
            or not.
        golds: Share of judgments that are gold items, if there are any.

    Returns:
        The pair, or None if there is nothing for this rater now: all is judged, leased to others,
        or put off until later.

    Raises:
        UsageError: no rater, an unknown order or kind.
    """
    checked_order(order)
    if kind not in {"rating", "adjudication"}:
        raise UsageError(f"a {kind!r} is not asked for: rating or adjudication")
    hold_rater(c, set_id, rater)
    until = now + lease_us
    kinds = OWN if kind == "rating" else (kind,)
    slot_id = held(c, set_id, rater, kinds, now)
    declared = golden_sets.by_id(c, set_id)
    if slot_id is not None:
        c.execute(sa.update(slot).where(slot.c.id == slot_id).values(leased_until_us=until))
    elif kind == "rating":
        slot_id = due(c, declared, rater, now=now, until=until, order=order, golds=golds)
    if slot_id is None:
        slot_id = take(c, declared, rater, kind, order, now, until)
    if slot_id is None:
        return None
    if kind == "adjudication":
        show_votes(c, slot_id, rater)
    return read_claim(c, slot_id, declared)


def claim_pair(
    c: sa.Connection,
    set_id: int,
    rater: str,
    query_id: str,
    doc_id: str,
    *,
    now: int,
    lease_us: int = LEASE_US,
) -> Claim:
    """Lease one pair to a rater, whatever the queue would deal next; never beyond its places.

    A pair the rater rated in the queue is theirs again: what they submit corrects what they said.
    If others have rated it, whoever asks by name may have seen how: the rater is no blind one of
    it from then on, and agreement is of what they said before (``ratings.first``).

    Args:
        c: A write transaction.
        set_id: The golden set.
        rater: Who asks.
        query_id: The query.
        doc_id: The document.
        now: Microseconds UTC.
        lease_us: How long the pair is theirs, microseconds.

    Raises:
        PairRefused: every place is filled or another's for now, the rater has seen what others
            said of it, or it is not in the queue.
        UsageError: no rater.
    """
    hold_rater(c, set_id, rater)
    of_pair = (pair.c.query_id == query_id) & (pair.c.doc_id == doc_id)
    rated = (
        sa.select(slot.c.id)
        .join(pair, pair.c.id == slot.c.pair_id)
        .join(query, query_of_pair())
        .where(pair.c.golden_set_id == set_id, of_pair, query.c.dropped_us.is_(None))
        .where(slot.c.kind == "rating", slot.c.rater == rater, slot.c.judgment_id.is_not(None))
    )
    slot_id = c.execute(rated).scalar_one_or_none()
    if slot_id is not None:
        note_votes(c, set_id, slot_id, rater, query_id, doc_id)
    else:
        own_first = sa.case((slot.c.rater == rater, 0), else_=1)
        free = unfilled(own=True).where(of_pair).order_by(own_first, slot.c.place).limit(1)
        values = {"set_id": set_id, "the_rater": rater, "the_kind": "rating", "now": now}
        slot_id = c.execute(
            free.with_for_update(of=slot, skip_locked=True), values
        ).scalar_one_or_none()
        if slot_id is None:
            raise PairRefused(_why_not(c, set_id, rater, query_id, doc_id, now))
        leased = {"rater": rater, "leased_until_us": now + lease_us}
        c.execute(sa.update(slot).where(slot.c.id == slot_id).values(leased))
    return read_claim(c, slot_id, golden_sets.by_id(c, set_id))


def newest(c: sa.Connection, set_id: int, rater: str, kind: str = "rating") -> int | None:
    """Number of the judgment that ``judgments.undo`` would withdraw; None if there is none."""
    kinds = OWN if kind == "rating" else (kind,)
    chosen = (
        sa.select(sa.func.max(slot.c.judgment_id))
        .join(pair, pair.c.id == slot.c.pair_id)
        .where(pair.c.golden_set_id == set_id, slot.c.rater == rater, slot.c.kind.in_(kinds))
    )
    return c.execute(chosen).scalar_one_or_none()


def later(
    c: sa.Connection, set_id: int, slot_id: int, rater: str, until: int, now: int = 0
) -> None:
    """Put a pair off: it goes back into the queue, and this rater is not shown it before then.

    Args:
        c: A write transaction.
        set_id: The golden set.
        slot_id: Of the claim.
        rater: Who holds it.
        until: Microseconds UTC.
        now: Likewise; of what was put off, what has come back by then counts no more.

    Raises:
        TooManyPutOff: it is a disagreement, and ``MOST_PUT_OFF`` are put off.
        UsageError: the rater does not hold it.
    """
    hold_rater(c, set_id, rater)
    pair_id = let_go(c, set_id, slot_id, rater)
    kind = c.execute(sa.select(slot.c.kind).where(slot.c.id == slot_id)).scalar_one_or_none()
    if kind == "adjudication" and _put_off_now(c, set_id, rater, now) >= MOST_PUT_OFF:
        raise TooManyPutOff(
            f"{MOST_PUT_OFF} disagreements are put off already",
            fix="settle this one, or say why it cannot be judged",
        )
    note(c, pair_id, rater, until_us=until)


def progress(
    c: sa.Connection,
    set_id: int,
    rater: str,
    *,
    now: int,
    order: str = "query",
    golds: float = GOLDS,
) -> Progress:
    """How far a rater is. Hidden repeats and gold items to come are counted from the start.

    Args:
        c: A connection.
        set_id: The golden set.
        rater: Who.
        now: Microseconds UTC.
        order: As in ``claim``.
        golds: As in ``claim``.
    """
    checked_order(order)
    declared = golden_sets.by_id(c, set_id)
    a, b = shuffle_keys(declared.salt, rater)
    values = {"set_id": set_id, "the_rater": rater, "the_kind": "rating", "now": now}
    rows = c.execute(_waiting(), {**values, "a": a, "b": b}).all()
    at, runs = _ahead(c, values, order, [(row.query_id, row.n) for row in rows])
    seconds = c.execute(_seconds(), {"set_id": set_id, "the_rater": rater}).scalars()
    shares: dict[str, Any] = {
        "repeats": declared.repeats,
        "golds": golds,
        "known": unseen_golds(c, set_id, rater) if golds else 0,
    }
    to_give = left(declared.salt, rater, at, runs, **shares)
    return Progress(
        done=at.done,
        left=to_give,
        total=at.done + to_give,
        later=_put_off_of(c, values),
        seconds=tuple(seconds)[::-1],
    )


# Statements are built once, as in ``slots``.
@cache
def _waiting() -> sa.Select[*tuple[Any, ...]]:
    """Pairs that wait for a rater, query by query in their order: how many."""
    number = sa.func.count(pair.c.id.distinct())
    in_order = (pair.c.priority, at_place(query.c.shuffle).label("at"), query.c.id)
    return (
        unfilled(own=True)
        .with_only_columns(query.c.query_id, number.label("n"), *in_order)
        .group_by(*in_order, query.c.query_id)
        .order_by(*in_order)
    )


def _put_off_of(c: sa.Connection, values: dict[str, Any]) -> int:
    """How many of the pairs that wait for a rater are put off."""
    own = (deferred.c.rater == values["the_rater"]) & (deferred.c.until_us > values["now"])
    if c.execute(sa.select(deferred.c.pair_id).where(own).limit(1)).first() is None:
        return 0  # nearly always, and soon found
    number = sa.func.count(pair.c.id.distinct())
    off = unfilled(own=True).with_only_columns(number).where(put_off())
    return int(c.execute(off, values).scalar_one())


@cache
def _seconds() -> sa.Select[float | None]:
    of_set = judgment.c.golden_set_id == sa.bindparam("set_id", type_=sa.BigInteger)
    of_rater = slot.c.rater == sa.bindparam("the_rater", type_=sa.Text)
    return (
        sa.select(judgment.c.seconds)
        .join(slot, slot.c.judgment_id == judgment.c.id)
        .where(of_set, of_rater, slot.c.kind.in_(OWN))
        .order_by(judgment.c.id.desc())
        .limit(_RECENT)
    )


def _ahead(
    c: sa.Connection, values: dict[str, Any], order: str, waiting: list[tuple[str, int]]
) -> tuple[Standing, list[int]]:
    """Where a rater is, and the pairs that wait, query by query, for ``golden.queue.left``.

    ``waiting`` has the query and the number of its pairs in the order they come.
    """
    at, present, _ = stands(c, values["set_id"], values["the_rater"], order)
    now_held = c.execute(holding(), {**values, "kinds": OWN}).one_or_none()
    held_query = None if now_held is None or now_held.kind != "rating" else now_held.query_id
    if held_query is not None and (order == "mixed" or held_query != present):
        at = replace(at, since=at.done, repeats=0, golds=0)  # its seam lies behind
    runs: list[tuple[str, int]] = []
    for query_id, n in waiting:  # a query may go on in another band of priority
        before = runs.pop()[1] if runs and runs[-1][0] == query_id else 0
        runs.append((query_id, before + n))
    if order == "mixed":
        n = sum(n for _, n in runs)
        first = int(held_query is not None and n > 0)
        return at, [first] + [1] * (n - first)
    if held_query is not None:
        present = held_query
    at_a_seam = not runs or runs[0][0] != present
    return at, [0] * at_a_seam + [n for _, n in runs]


def unsettled(c: sa.Connection, set_id: int, rater: str, now: int) -> tuple[int, int]:
    """How many adjudications ``claim`` would deal the rater, one after the other.

    Args:
        c: A connection.
        set_id: The golden set.
        rater: Who: never those of pairs the rater rated, nor those leased to others.
        now: Microseconds UTC.

    Returns:
        How many, and how many more the rater put off until later.
    """
    values = {"set_id": set_id, "the_rater": rater, "the_kind": "adjudication", "now": now}
    number = sa.func.count(slot.c.id)
    known = unfilled(own=True).with_only_columns(
        number.filter(~put_off()), number.filter(put_off())
    )
    waiting, later = c.execute(known, values).one()
    return int(waiting), int(later)


def open_adjudications(c: sa.Connection, set_id: int, pairs: pl.DataFrame, now: int) -> int:
    """Queue pairs for an adjudicator, those left out that are or were queued so.

    An adjudication is dealt, and counted as open, only while the ratings of its pair lie apart: it
    rests while raters agree, and needs no queueing again if they fall out.

    Args:
        c: A write transaction.
        set_id: The golden set.
        pairs: ``query_id`` and ``doc_id``; a pair that is not in the queue is added to it, without
            rating slots (its ratings were imported).
        now: Microseconds UTC.

    Returns:
        How many were opened.

    Raises:
        InputError: a query that is not in the set.
    """
    from karat.store.sql import pairs as stored

    wanted = conform(pairs, PAIRS, "pairs").unique(maintain_order=True)
    golden_sets.hold(c, set_id)
    there = _pair_ids(c, set_id)
    new = [each for each in wanted.iter_rows() if each not in there]
    if new:
        lacking = pl.DataFrame(new, schema=["query_id", "doc_id"], orient="row")
        stored.put(c, set_id, lacking.with_columns(chosen_by=pl.lit("adjudication")), 0, now)
        there = _pair_ids(c, set_id)
    queued = set(
        c.execute(
            sa.select(slot.c.pair_id)
            .join(pair, pair.c.id == slot.c.pair_id)
            .where(pair.c.golden_set_id == set_id, slot.c.kind == "adjudication")
        ).scalars()
    )
    opened = [
        {"pair_id": there[each], "kind": "adjudication", "place": 1}
        for each in wanted.iter_rows()
        if there[each] not in queued
    ]
    if opened:
        c.execute(sa.insert(slot), opened)
    return len(opened)


def _put_off_now(c: sa.Connection, set_id: int, rater: str, now: int) -> int:
    """How many unsettled disagreements a rater has put off until later than now."""
    counted = (
        sa.select(sa.func.count(slot.c.id))
        .join(pair, pair.c.id == slot.c.pair_id)
        .join(deferred, (deferred.c.pair_id == pair.c.id) & (deferred.c.rater == rater))
        .where(pair.c.golden_set_id == set_id, slot.c.kind == "adjudication")
        .where(slot.c.judgment_id.is_(None), deferred.c.until_us > now)
    )
    return int(c.execute(counted).scalar_one())


def _why_not(
    c: sa.Connection, set_id: int, rater: str, query_id: str, doc_id: str, now: int
) -> str:
    """Why a rater cannot have a pair, as far as a rater may know."""
    rows = c.execute(
        sa.select(slot.c.kind, slot.c.rater, slot.c.leased_until_us, slot.c.judgment_id)
        .select_from(pair)
        .join(query, query_of_pair())
        .outerjoin(slot, slot.c.pair_id == pair.c.id)
        .where(pair.c.golden_set_id == set_id, query.c.dropped_us.is_(None))
        .where(pair.c.query_id == query_id, pair.c.doc_id == doc_id)
    ).all()
    if not rows:
        return "it is not in the queue"
    places = [row for row in rows if row.kind == "rating" and row.judgment_id is None]
    if not places:
        return "it has as many ratings as it may have"
    if all(row.rater not in {None, rater} and row.leased_until_us > now for row in places):
        return "another rater has it just now"
    return "you have rated it elsewhere, or seen what others said of it"


def _pair_ids(c: sa.Connection, set_id: int) -> dict[tuple[str, str], int]:
    chosen = sa.select(pair.c.query_id, pair.c.doc_id, pair.c.id)
    rows = c.execute(chosen.where(pair.c.golden_set_id == set_id))
    return {(row.query_id, row.doc_id): row.id for row in rows}
