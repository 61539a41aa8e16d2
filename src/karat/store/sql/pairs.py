"""The pairs to be judged, and the slots for their judgments.

A pair has exactly one rating slot for each rater who may rate it, so the database enforces the
maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.golden.queue import shuffle_number
from karat.store.sql import golden_sets, queries
from karat.store.sql.judgments import counting
from karat.store.sql.schema import judgment, pair, query, slot
from karat.store.sql.slots import disagree, query_of_pair
from karat.tables.golden.golden_sets import GoldenSetRow
from karat.tables.incoming import conform, refuse_rows
from karat.tables.schema import PAIRS

SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "doc_id": pl.String(),
    "priority": pl.Int64(),
    "chosen_by": pl.String(),
    "chance": pl.Float64(),
    "gold_grade": pl.Float64(),
    "judgments": pl.Int64(),
    "open": pl.Int64(),
    "leased": pl.Int64(),
    "adjudications_open": pl.Int64(),
}


@dataclass(frozen=True, slots=True)
class Queued:
    added: int  # new pairs
    raised: int  # existing pairs that moved up
    golds: int  # existing pairs with a new or changed gold grade


def put(c: sa.Connection, set_id: int, frame: pl.DataFrame, raters: int, now: int) -> Queued:
    """Add pairs to the queue, with a slot for each rater.

    An existing pair moves up if its new priority number is lower, and gets more slots if ``raters``
    is larger, never fewer. A new gold grade replaces the old one, and deletes the rating slots of
    the pair that are neither filled nor leased.

    Args:
        frame: ``query_id``, ``doc_id``, and optionally ``priority`` (1, the default, goes first),
            ``chosen_by``, ``chance`` (probability of having been sampled), ``gold_grade`` (the
            known grade; the pair gets no rating slots, it tests raters).
        raters: Raters for each pair, 0 or more.
    """
    golden_sets.hold(c, set_id)
    declared = golden_sets.by_id(c, set_id)
    frame = _checked(c, frame, declared)
    existing = {
        (row.query_id, row.doc_id): row
        for row in c.execute(sa.select(pair).where(pair.c.golden_set_id == set_id))
    }
    new: list[dict[str, Any]] = []
    higher: list[dict[str, Any]] = []
    golds: list[dict[str, Any]] = []
    for row in frame.iter_rows(named=True):
        old = existing.get((row["query_id"], row["doc_id"]))
        if old is None:
            number = shuffle_number(declared.salt, row["query_id"], row["doc_id"])
            new.append({**row, "golden_set_id": set_id, "shuffle": number, "added_us": now})
            continue
        if row["priority"] < old.priority:
            higher.append({"the_id": old.id, "priority": row["priority"]})
        if row["gold_grade"] not in {None, old.gold_grade}:
            golds.append({"the_id": old.id, "gold_grade": row["gold_grade"]})
    if new:
        c.execute(sa.insert(pair), new)
    for changed in (higher, golds):
        if changed:
            c.execute(sa.update(pair).where(pair.c.id == sa.bindparam("the_id")), changed)
    if golds:
        ended = slot.c.rater.is_(None) | (slot.c.leased_until_us <= now)
        free = (slot.c.kind == "rating") & slot.c.judgment_id.is_(None) & ended
        of_pair = slot.c.pair_id == sa.bindparam("the_id")
        c.execute(sa.delete(slot).where(of_pair, free), [{"the_id": r["the_id"]} for r in golds])
    _add_slots(c, set_id, set(frame.select("query_id", "doc_id").iter_rows()), raters)
    return Queued(len(new), len(higher), len(golds))


def places(c: sa.Connection, set_id: int, query_id: str, doc_id: str) -> tuple[int, int]:
    """How many raters a pair has in the queue: in all, and without a judgment yet."""
    of_pair = pair.join(slot, slot.c.pair_id == pair.c.id)
    found = sa.select(sa.func.count(), sa.func.count() - sa.func.count(slot.c.judgment_id))
    asked = (pair.c.golden_set_id == set_id, pair.c.query_id == query_id, pair.c.doc_id == doc_id)
    every, free = c.execute(found.select_from(of_pair).where(*asked, slot.c.kind == "rating")).one()
    return every, free


def frame(c: sa.Connection, set_id: int) -> pl.DataFrame:
    """The pairs of the queue in the order they were added, without those of dropped queries.

    Returns:
        ``SCHEMA``. ``judgments``: ratings that count, including imported ones and
        ``cannot_judge``; ``open``: rating slots without a judgment (0 for gold items); ``leased``:
        those of them with a lease, perhaps expired; ``adjudications_open``: 1 if the ratings
        disagree and an adjudication is queued, otherwise 0.
    """
    counts = (
        sa.select(judgment.c.query_id, judgment.c.doc_id, sa.func.count().label("judgments"))
        .where(judgment.c.golden_set_id == set_id, judgment.c.kind == "rating", *counting())
        .group_by(judgment.c.query_id, judgment.c.doc_id)
        .subquery()
    )

    def number(kind: str, *further: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        met = sa.and_(slot.c.kind == kind, slot.c.judgment_id.is_(None), *further)
        return sa.func.coalesce(sa.func.sum(sa.case((met, 1), else_=0)), 0)

    to_rate = pair.c.gold_grade.is_(None)
    slots = (
        sa.select(
            slot.c.pair_id,
            number("rating", to_rate).label("open"),
            number("rating", to_rate, slot.c.rater.is_not(None)).label("leased"),
            number("adjudication", disagree()).label("adjudications_open"),
        )
        .join(pair, pair.c.id == slot.c.pair_id)
        .where(pair.c.golden_set_id == set_id)
        .group_by(slot.c.pair_id)
        .subquery()
    )
    names = ("query_id", "doc_id", "priority", "chosen_by", "chance", "gold_grade")
    chosen = (
        sa.select(
            *(pair.c[name] for name in names),
            sa.func.coalesce(counts.c.judgments, 0).label("judgments"),
            *(
                sa.func.coalesce(slots.c[name], 0).label(name)
                for name in ("open", "leased", "adjudications_open")
            ),
        )
        .select_from(pair)
        .join(query, query_of_pair())
        .outerjoin(
            counts,
            (counts.c.query_id == pair.c.query_id) & (counts.c.doc_id == pair.c.doc_id),
        )
        .outerjoin(slots, slots.c.pair_id == pair.c.id)
        .where(pair.c.golden_set_id == set_id, query.c.dropped_us.is_(None))
        .order_by(pair.c.id)
    )
    rows = c.execute(chosen).all()
    columns = zip(*rows, strict=True) if rows else ([] for _ in SCHEMA)
    return pl.DataFrame(
        [
            pl.Series(name, list(values), dtype=dtype, strict=False)
            for (name, dtype), values in zip(SCHEMA.items(), columns, strict=True)
        ]
    )


def _checked(c: sa.Connection, frame: pl.DataFrame, declared: GoldenSetRow) -> pl.DataFrame:
    frame = conform(frame, PAIRS, "pairs", keep_others=True)
    own = ("priority", "chosen_by", "chance", "gold_grade")
    for name in own:
        column = pl.col(name) if name in frame.columns else pl.lit(None)
        frame = frame.with_columns(column.cast(SCHEMA[name]).alias(name))
    frame = frame.select("query_id", "doc_id", *own).with_columns(pl.col("priority").fill_null(1))
    twice = frame.select("query_id", "doc_id").is_duplicated()
    known = queries.ids(c, declared.id)
    low, high = declared.scale
    refuse_rows(frame, twice, "duplicate pair", "pairs")
    unknown = ~frame["query_id"].is_in(list(known))
    refuse_rows(frame, unknown, "the query is not in the golden set", "pairs", "add it first")
    off = ~frame["gold_grade"].is_between(low, high).fill_null(value=True)
    what = f"its gold grade is not on the scale from {low:g} to {high:g}"
    refuse_rows(frame, off, what, "pairs")
    return frame


def _add_slots(c: sa.Connection, set_id: int, chosen: set[tuple[str, str]], raters: int) -> None:
    """Add rating slots, up to one for each rater, to the chosen pairs without a gold grade."""
    places = (
        sa.select(slot.c.pair_id, sa.func.count().label("n"))
        .where(slot.c.kind == "rating")
        .group_by(slot.c.pair_id)
        .subquery()
    )
    rows = c.execute(
        sa.select(pair.c.id, pair.c.query_id, pair.c.doc_id, sa.func.coalesce(places.c.n, 0))
        .outerjoin(places, places.c.pair_id == pair.c.id)
        .where(pair.c.golden_set_id == set_id, pair.c.gold_grade.is_(None))
    )
    new = [
        {"pair_id": pair_id, "kind": "rating", "place": place}
        for pair_id, query_id, doc_id, slots in rows
        if (query_id, doc_id) in chosen
        for place in range(slots + 1, raters + 1)
    ]
    if new:
        c.execute(sa.insert(slot), new)
    if new and c.dialect.name == "postgresql":  # otherwise it plans for empty tables for a minute
        c.exec_driver_sql("ANALYZE query, pair, slot")
