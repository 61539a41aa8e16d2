"""Where judgments come from: what is known of raters, and its correction by further facts."""

from __future__ import annotations

import polars as pl
import sqlalchemy as sa

from karat.store.sql.judgments import current
from karat.store.sql.schema import judgment


def sources(c: sa.Connection, set_id: int) -> dict[str, set[str]]:
    """The sources of the judgments that count now, by rater."""
    later = judgment.alias()
    chosen = sa.select(judgment.c.rater, judgment.c.source).where(
        judgment.c.golden_set_id == set_id,
        judgment.c.state != "withdrawn",
        ~sa.exists().where(later.c.supersedes == judgment.c.id),
    )
    found: dict[str, set[str]] = {}
    for rater, source in c.execute(chosen.distinct()):
        found.setdefault(rater, set()).add(source)
    return found


def correct_source(
    c: sa.Connection, set_id: int, facts: pl.DataFrame, source: str, now: int
) -> int:
    """Add that judgments come from another source; the facts that said otherwise stay as history.

    A judgment of a pair of which the same rater has one from that source already is withdrawn.

    Args:
        c: A write transaction that holds the raters.
        set_id: The golden set.
        facts: Rows of ``current``: what is corrected.
        source: One of ``tables.judgments.SOURCES``.
        now: Microseconds UTC.

    Returns:
        How many judgments were corrected.
    """
    if not facts.height:
        return 0
    key = ["query_id", "doc_id", "rater", "kind"]
    there = set(current(c, set_id).frame.filter(pl.col("source") == source).select(key).rows())
    numbers = sa.select(judgment).where(judgment.c.id.in_(facts["judgment"].to_list()))
    new = []
    for row in c.execute(numbers.order_by(judgment.c.id)).mappings():
        values = {name: row[name] for name in row if name not in ("id", "token")}
        values |= {"supersedes": row["id"], "time_us": now}
        if tuple(row[name] for name in key) in there:
            values |= {"state": "withdrawn", "grade": None}
        else:
            values |= {"source": source}
        new.append(values)
    c.execute(sa.insert(judgment), new)
    return len(new)
