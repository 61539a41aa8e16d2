"""Judgments that were given in karat, not imported."""

from __future__ import annotations

import polars as pl
import sqlalchemy as sa

from karat.store.sql.schema import judgment, slot


def given_in_karat(c: sa.Connection, set_id: int) -> pl.Series:
    """Ids of the judgments of a golden set that fill a slot, or were not imported.

    The Series ``judgment`` includes judgments that do not count any more.
    """
    fills = sa.exists().where(slot.c.judgment_id == judgment.c.id)
    chosen = sa.select(judgment.c.id).where(
        judgment.c.golden_set_id == set_id, judgment.c.import_id.is_(None) | fills
    )
    return pl.Series("judgment", c.execute(chosen).scalars().all(), pl.Int64)
