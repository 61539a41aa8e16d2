"""Sources of judgments (human, clicks, …), by rater, and their correction."""

from __future__ import annotations

import polars as pl
import sqlalchemy as sa

from karat.store.sql.judgments import counting, current
from karat.store.sql.schema import judgment, slot


def sources(c: sa.Connection, set_id: int) -> dict[str, set[str]]:
    """The sources of the judgments that count, by rater."""
    chosen = sa.select(judgment.c.rater, judgment.c.source).where(
        judgment.c.golden_set_id == set_id, *counting()
    )
    by_rater: dict[str, set[str]] = {}
    for rater, source in c.execute(chosen.distinct()):
        by_rater.setdefault(rater, set()).add(source)
    return by_rater


def correct_source(
    c: sa.Connection, set_id: int, facts: pl.DataFrame, source: str, now: int
) -> int:
    """Correct the source of judgments; the old judgments stay as history.

    A judgment is withdrawn if the same rater already has one of the pair from that source.
    """
    if not facts.height:
        return 0
    key = ["query_id", "doc_id", "rater", "kind"]
    existing = set(current(c, set_id).frame.filter(pl.col("source") == source).select(key).rows())
    numbers = sa.select(judgment).where(judgment.c.id.in_(facts["judgment"].to_list()))
    new = []
    for row in c.execute(numbers.order_by(judgment.c.id)).mappings():
        values = {name: row[name] for name in row if name not in ("id", "token")}
        values |= {"supersedes": row["id"], "time_us": now}
        if tuple(row[name] for name in key) in existing:
            values |= {"state": "withdrawn", "grade": None}
        else:
            values |= {"source": source}
        new.append(values)
    c.execute(sa.insert(judgment), new)
    return len(new)


def given_in_karat(c: sa.Connection, set_id: int) -> pl.Series:
    """Ids of the judgments of a golden set that fill a slot, or were not imported.

    The Series ``judgment`` includes judgments that do not count any more.
    """
    fills = sa.exists().where(slot.c.judgment_id == judgment.c.id)
    chosen = sa.select(judgment.c.id).where(
        judgment.c.golden_set_id == set_id, judgment.c.import_id.is_(None) | fills
    )
    return pl.Series("judgment", c.execute(chosen).scalars().all(), pl.Int64)
