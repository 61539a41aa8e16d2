"""Pairs: documents waiting to be judged for a query."""

from __future__ import annotations

import polars as pl

from karat.tables.incoming import conform
from karat.tables.schema import PAIRS


class Pairs:
    """Documents to be judged, in the order in which to judge them.

    Args:
        frame: ``query_id`` and ``doc_id``; other columns give reasons why a pair was chosen.
        source: Name of the table in error messages.

    Raises:
        InputError: a missing column or an empty id.
    """

    def __init__(self, frame: pl.DataFrame, source: str = "pairs") -> None:
        self.frame = conform(frame, PAIRS, source, keep_others=True)
        self.source = source

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"<Pairs {self.source}: {len(self)}>"
