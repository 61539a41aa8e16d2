"""The queue: which pair a rater judges next, leased to them for a while.

What is due when is decided by ``karat.golden.queue``; here it is done in one transaction, so that
any number of raters may ask at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import sqlalchemy as sa

from karat.errors import UsageError
from karat.golden.queue import checked_order, left
from karat.store import golden_sets
from karat.store.hidden import due
from karat.store.schema import deferred, judgment, pair, slot
from karat.store.slots import (
    OWN,
    Claim,
    count_done,
    held,
    hold_rater,
    let_go,
    read_claim,
    take,
    unfilled,
    waits,
)
from karat.tables.incoming import conform
from karat.tables.schema import PAIRS

__all__ = [
    "LEASE_US",
    "Claim",
    "Progress",
    "claim",
    "later",
    "open_adjudications",
    "progress",
    "release",
]
LEASE_US = 600_000_000
"""How long a pair stays the rater's own unless the workspace says otherwise: ten minutes."""
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


def claim(
    c: sa.Connection,
    set_id: int,
    rater: str,
    *,
    now: int,
    lease_us: int = LEASE_US,
    order: str = "query",
    kind: str = "rating",
    golds: float = 0.05,
) -> Claim | None:
    """Lease the next pair to a rater.

    What the rater holds already comes first, its lease renewed, so that a page that is loaded
    again goes on where it was; then a hidden repeat or a gold item, if one is due; then the pairs
    by priority, in the rater's own order.

    Args:
        c: A write transaction.
        set_id: The golden set.
        rater: Who asks.
        now: Microseconds UTC.
        lease_us: How long the pair is theirs, microseconds.
        order: ``query`` keeps the documents of a query together, ``mixed`` shuffles all.
        kind: ``rating``, or ``adjudication`` for the disagreements: never those of pairs that the
            rater rated.
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
    slot_id = held(c, set_id, rater, kinds)
    declared = golden_sets.by_id(c, set_id)
    if slot_id is not None:
        c.execute(sa.update(slot).where(slot.c.id == slot_id).values(leased_until_us=until))
    elif kind == "rating" and waits(c, set_id, rater, now):  # a repeat is not the last of all
        slot_id = due(c, declared, rater, now, until, golds)
    if slot_id is None:
        slot_id = take(c, declared, rater, kind, order, now, until)
    return None if slot_id is None else read_claim(c, slot_id, declared.guideline)


def later(c: sa.Connection, set_id: int, slot_id: int, rater: str, until: int) -> None:
    """Put a pair off: it goes back into the queue, and this rater is not shown it before then.

    Args:
        c: A write transaction.
        set_id: The golden set.
        slot_id: Of the claim.
        rater: Who holds it.
        until: Microseconds UTC.

    Raises:
        UsageError: the rater does not hold it.
    """
    hold_rater(c, set_id, rater)
    pair_id = let_go(c, set_id, slot_id, rater)
    of_rater = (deferred.c.pair_id == pair_id) & (deferred.c.rater == rater)
    c.execute(sa.delete(deferred).where(of_rater))
    c.execute(sa.insert(deferred).values(pair_id=pair_id, rater=rater, until_us=until))


def release(c: sa.Connection, set_id: int, slot_id: int, rater: str) -> None:
    """Give a pair back unjudged.

    Raises:
        UsageError: the rater does not hold it.
    """
    hold_rater(c, set_id, rater)
    let_go(c, set_id, slot_id, rater)


def progress(c: sa.Connection, set_id: int, rater: str, *, now: int | None = None) -> Progress:
    """How far a rater is.

    Args:
        c: A connection.
        set_id: The golden set.
        rater: Who.
        now: Microseconds UTC; without it, leases of others count as if they never ended, and what
            is put off as if it were so still.
    """
    declared = golden_sets.by_id(c, set_id)
    done = count_done(c, set_id, rater)
    values: dict[str, int | str] = {"set_id": set_id, "the_rater": rater, "the_kind": "rating"}
    put_off = sa.select(deferred.c.pair_id).where(deferred.c.rater == rater)
    if now is not None:
        values["now"] = now
        put_off = put_off.where(deferred.c.until_us > now)
    waiting = unfilled(timed=now is not None, own=True).with_only_columns(pair.c.id).distinct()
    every = waiting.subquery()
    n = int(c.execute(sa.select(sa.func.count()).select_from(every), values).scalar_one())
    off = sa.select(sa.func.count()).select_from(every).where(every.c.id.in_(put_off))
    seconds = c.execute(
        sa.select(judgment.c.seconds)
        .join(slot, slot.c.judgment_id == judgment.c.id)
        .where(judgment.c.golden_set_id == set_id, slot.c.rater == rater, slot.c.kind.in_(OWN))
        .order_by(judgment.c.id.desc())
        .limit(_RECENT)
    ).scalars()
    to_give = left(declared.salt, rater, done, n, declared.repeats)
    return Progress(
        done=done,
        left=to_give,
        total=done + to_give,
        later=int(c.execute(off, values).scalar_one()),
        seconds=tuple(seconds)[::-1],
    )


def open_adjudications(c: sa.Connection, set_id: int, pairs: pl.DataFrame, now: int) -> int:
    """Queue pairs for an adjudicator, those left out that are or were queued so.

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
    from karat.store import pairs as stored

    wanted = conform(pairs, PAIRS, "pairs").unique(maintain_order=True)
    golden_sets.hold(c, set_id)
    there = _pair_ids(c, set_id)
    new = [each for each in wanted.iter_rows() if each not in there]
    if new:
        lacking = pl.DataFrame(new, schema=["query_id", "doc_id"], orient="row")
        stored.add(c, set_id, lacking.with_columns(chosen_by=pl.lit("adjudication")), 0, now)
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


def _pair_ids(c: sa.Connection, set_id: int) -> dict[tuple[str, str], int]:
    chosen = sa.select(pair.c.query_id, pair.c.doc_id, pair.c.id)
    rows = c.execute(chosen.where(pair.c.golden_set_id == set_id))
    return {(row.query_id, row.doc_id): row.id for row in rows}
