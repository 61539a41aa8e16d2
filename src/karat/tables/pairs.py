"""Pairs: documents waiting to be judged for a query."""

from __future__ import annotations

import polars as pl

from karat.tables.incoming import conform
from karat.tables.schema import PAIRS


class Pairs:
    """Documents to be judged, in the order in which to judge them.

    Args:
        frame: ``query_id`` and ``doc_id``; every further column says why a pair was chosen.
        source: What messages call it.

    Raises:
        InputError: a column is missing, or an id is not text.
    """

    def __init__(self, frame: pl.DataFrame, source: str = "pairs") -> None:
        self.frame = conform(frame, PAIRS, source, keep_others=True)
        self.source = source

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"<Pairs {self.source}: {len(self)}>"
