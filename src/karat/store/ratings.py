"""Ratings of one's own: which counts, and which was given before others' were in sight."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import sqlalchemy as sa

from karat.store import judgments
from karat.store.schema import deferred, judgment, pair, slot
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
    """What agreement is of: of ratings corrected with others' votes in sight the first.

    A rating that was corrected in the queue, where nobody sees what others said, stays as it is.

    Args:
        c: A connection.
        set_id: The golden set.
        said: What counts now, as ``judgments.current`` gives it.
    """
    now_and_first = c.execute(_FIRSTS, {"set_id": set_id})
    firsts = {now: old for now, old in now_and_first if now != old}
    if not firsts:
        return said
    old = sa.select(*judgments.columns()).where(judgment.c.id.in_(firsts.values()))
    kept = said.frame.filter(~pl.col("judgment").is_in(list(firsts)))
    frame = pl.concat([kept, judgments.frame_of(c, old)])
    return Judgments(frame, said.scale, said.source)


def first_stays(c: sa.Connection, number: int) -> bool:
    """Whether a rating that counts corrects one that ``first`` gives in place of it."""
    saw = (deferred.c.pair_id == slot.c.pair_id) & (deferred.c.rater == slot.c.rater)
    chosen = (
        sa.select(judgment.c.id)
        .join(slot, slot.c.judgment_id == judgment.c.id)
        .join(deferred, saw & deferred.c.saw_votes)
        .where(judgment.c.id == number, judgment.c.supersedes.is_not(None))
    )
    return c.execute(chosen).first() is not None


def _firsts() -> sa.Select[int, int]:
    """Of those who saw votes: the rating that counts, and the one that it began with."""
    saw = (deferred.c.pair_id == slot.c.pair_id) & (deferred.c.rater == slot.c.rater)
    counts = (
        sa.select(judgment.c.id.label("now"), judgment.c.id, judgment.c.supersedes)
        .join(slot, slot.c.judgment_id == judgment.c.id)
        .join(deferred, saw & deferred.c.saw_votes)
        .where(
            judgment.c.golden_set_id == sa.bindparam("set_id", type_=sa.BigInteger),
            slot.c.kind == "rating",
        )
        .cte("chain", recursive=True)
    )
    old = judgment.alias("old")
    chain = counts.union_all(
        sa.select(counts.c.now, old.c.id, old.c.supersedes).join(
            counts, counts.c.supersedes == old.c.id
        )
    )
    return sa.select(chain.c.now, sa.func.min(chain.c.id)).group_by(chain.c.now)


_FIRSTS = _firsts()
