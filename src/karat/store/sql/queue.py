"""The judging queue: leases the next pair to a rater.

``karat.golden.queue`` decides what is due; each step here is one transaction.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.errors import UsageError
from karat.golden.queue import (
    MOST_PUT_OFF,
    Claim,
    Progress,
    Standing,
    TooManyPutOff,
    checked_order,
    left,
    shuffle_keys,
)
from karat.store.sql import golden_sets
from karat.store.sql._gold_items import due, stands, unseen_golds
from karat.store.sql.schema import deferred, judgment, pair, query, slot
from karat.store.sql.slots import (
    OWN,
    at_place,
    held,
    hold_rater,
    holding,
    put_off,
    query_of_pair,
    read_claim,
    release_slots,
    take,
    unfilled,
)
from karat.tables.incoming import conform
from karat.tables.schema import PAIRS

LEASE_US = 600_000_000  # default duration of a lease: ten minutes
GOLDS = 0.05  # default share of gold items
_RECENT = 50  # judgments in Progress.seconds


class PairRefused(UsageError):
    """The requested pair is not available to this rater."""


def claim(
    c: sa.Connection,
    set_id: int,
    rater: str,
    *,
    now: int,
    lease_us: int = LEASE_US,  # duration of the lease, microseconds
    order: str = "query",  # `query` keeps the documents of a query together, `mixed` shuffles all
    kind: str = "rating",
    golds: float = GOLDS,  # share of judgments that are gold items, if there are any
) -> Claim | None:
    """Lease the next pair to a rater.

    A pair already leased to the rater comes first, with a renewed lease; then a hidden repeat or a
    gold item, if one is due (with the order ``query`` only between two queries); then the pairs by
    priority, in the rater's own order.

    Args:
        kind: ``rating``, or ``adjudication`` for disagreements. Excluded are pairs that the rater
            rated, and pairs whose raters agree now (a lease on one is released). A rater who gets
            an adjudication never gets a rating of its pair.

    Returns:
        The pair; None if all pairs are judged, leased to others or snoozed.
    """
    checked_order(order)
    if kind not in {"rating", "adjudication"}:
        raise UsageError(f"unknown kind {kind!r}; expected rating or adjudication")
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
    doc_id: str,  # the document
    *,
    now: int,
    lease_us: int = LEASE_US,  # duration of the lease, microseconds
) -> Claim:
    """Lease a given pair to a rater, within its maximum number of ratings.

    For a pair the rater has rated in the queue, the next submission is a correction. If others have
    rated it, the rater may have seen their votes: later ratings are not blind, and agreement uses
    the earlier one (``ratings.first``).

    Raises:
        PairRefused: every slot is filled or leased to others, the rater has seen the votes of
            others, or the pair is not in the queue.
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
    """Id of the judgment that ``judgments.undo`` would withdraw; None if there is none."""
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
    """Snooze a pair: it goes back into the queue, hidden from this rater until ``until``.

    Args:
        slot_id: Slot of the claim.
        until: Microseconds UTC.
        now: Microseconds UTC; disagreements snoozed until before now do not count.
    """
    hold_rater(c, set_id, rater)
    pair_id = release_slots(c, set_id, slot_id, rater)
    kind = c.execute(sa.select(slot.c.kind).where(slot.c.id == slot_id)).scalar_one_or_none()
    if kind == "adjudication" and _put_off_now(c, set_id, rater, now) >= MOST_PUT_OFF:
        raise TooManyPutOff(
            f"you have postponed {MOST_PUT_OFF} disagreements already",
            fix="settle this one, or give a reason why it cannot be judged",
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
    """Progress of a rater, including hidden repeats and gold items to come; as in ``claim``."""
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
    """Number of pairs that wait for a rater, by query, in the rater's order."""
    number = sa.func.count(pair.c.id.distinct())
    return (
        unfilled(own=True)
        .with_only_columns(query.c.query_id, number.label("n"))
        .group_by(pair.c.priority, query.c.id)
        .order_by(pair.c.priority, at_place(query.c.shuffle), query.c.id)
    )


def _put_off_of(c: sa.Connection, values: dict[str, Any]) -> int:
    """Number of pairs waiting for a rater that are snoozed."""
    own = (deferred.c.rater == values["the_rater"]) & (deferred.c.until_us > values["now"])
    if c.execute(sa.select(deferred.c.pair_id).where(own).limit(1)).first() is None:
        return 0  # the usual case, without the slow query below
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
    """A rater's position and the numbers of waiting pairs by query, for ``golden.queue.left``.

    ``waiting`` has queries and numbers of their pairs, in the rater's order.
    """
    at, present, _ = stands(c, values["set_id"], values["the_rater"], order)
    now_held = c.execute(holding(), {**values, "kinds": OWN}).one_or_none()
    held_query = None if now_held is None or now_held.kind != "rating" else now_held.query_id
    if held_query is not None and (order == "mixed" or held_query != present):
        at = replace(at, since=at.done, repeats=0, golds=0)  # past the boundary between queries
    runs: list[tuple[str, int]] = []
    for query_id, n in waiting:  # a query may continue in another priority
        before = runs.pop()[1] if runs and runs[-1][0] == query_id else 0
        runs.append((query_id, before + n))
    if order == "mixed":
        n = sum(n for _, n in runs)
        first = int(held_query is not None and n > 0)
        return at, [first] + [1] * (n - first)
    if held_query is not None:
        present = held_query
    at_boundary = not runs or runs[0][0] != present
    return at, [0] * at_boundary + [n for _, n in runs]


def unsettled(c: sa.Connection, set_id: int, rater: str, now: int) -> tuple[int, int]:
    """Number of adjudications that ``claim`` has for a rater, and number of snoozed ones.

    Pairs that the rater rated or that are leased to others do not count.
    """
    values = {"set_id": set_id, "the_rater": rater, "the_kind": "adjudication", "now": now}
    number = sa.func.count(slot.c.id)
    known = unfilled(own=True).with_only_columns(
        number.filter(~put_off()), number.filter(put_off())
    )
    waiting, later = c.execute(known, values).one()
    return int(waiting), int(later)


def open_adjudications(c: sa.Connection, set_id: int, pairs: pl.DataFrame, now: int) -> int:
    """Queue pairs for adjudication, except those that were queued for it before.

    An adjudication is assigned, and counts as open, only while the ratings of its pair disagree.

    Args:
        pairs: ``query_id`` and ``doc_id``; a pair that is not in the queue is added without rating
            slots (its ratings were imported).
    """
    from karat.store.sql import pairs as stored

    wanted = conform(pairs, PAIRS, "pairs").unique(maintain_order=True)
    golden_sets.hold(c, set_id)
    pair_ids = _pair_ids(c, set_id)
    new = [key for key in wanted.iter_rows() if key not in pair_ids]
    if new:
        missing = pl.DataFrame(new, schema=["query_id", "doc_id"], orient="row")
        stored.put(c, set_id, missing.with_columns(chosen_by=pl.lit("adjudication")), 0, now)
        pair_ids = _pair_ids(c, set_id)
    queued = set(
        c.execute(
            sa.select(slot.c.pair_id)
            .join(pair, pair.c.id == slot.c.pair_id)
            .where(pair.c.golden_set_id == set_id, slot.c.kind == "adjudication")
        ).scalars()
    )
    opened = [
        {"pair_id": pair_ids[key], "kind": "adjudication", "place": 1}
        for key in wanted.iter_rows()
        if pair_ids[key] not in queued
    ]
    if opened:
        c.execute(sa.insert(slot), opened)
    return len(opened)


def _put_off_now(c: sa.Connection, set_id: int, rater: str, now: int) -> int:
    """Number of unsettled disagreements that a rater has snoozed."""
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
    """Why a rater cannot have a pair, without revealing what raters must not know."""
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
