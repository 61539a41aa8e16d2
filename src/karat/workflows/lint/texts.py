"""What is wrong with queries and documents: ids that stand twice, and empty texts."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.workflows.lint.tally import Tally

_CODES = {
    "queries": ("duplicate-query", "empty-query"),
    "documents": ("duplicate-document", "empty-document"),
}


class Texts:
    """Checks the rows of a queries or documents file, piece by piece.

    Of a document only a 64-bit hash of its id is kept, so that a large collection fits.
    """

    def __init__(self, role: str) -> None:
        self.role = role
        self.ids: list[pl.DataFrame] = []  # of queries
        self.silent: set[str] = set()  # queries that have no right answer
        self._hashes: list[NDArray[np.uint64]] = []
        self._lines: list[NDArray[np.int64]] = []

    def see(self, rows: pl.DataFrame, tally: Tally) -> None:
        """Check some rows: ``id``, ``empty``, ``line``, and perhaps ``no_answer``."""
        empty = rows.filter("empty")
        if empty.height:
            first = empty["id"][0]
            query = first if self.role == "queries" else None
            tally.add(_CODES[self.role][1], empty["line"].to_numpy(), example=first, query=query)
        self._hashes.append(rows["id"].hash().to_numpy())
        self._lines.append(rows["line"].to_numpy())
        if self.role == "queries":
            self.ids.append(rows.select(pl.col("id").alias("query_id"), "line"))
            if "no_answer" in rows.columns:
                self.silent.update(rows.filter("no_answer")["id"])

    def finish(self, tally: Tally) -> NDArray[np.uint64]:
        """Report ids that stand twice; the sorted hashes of all ids."""
        if not self._hashes:
            return np.empty(0, np.uint64)
        hashes = np.concatenate(self._hashes)
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
        if len(again):
            lines = np.sort(np.concatenate(self._lines)[order[again]])
            tally.add(_CODES[self.role][0], lines)
        return np.unique(ordered)


def absent(ids: pl.Series, known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which ids are not among those whose sorted hashes are given."""
    if not len(known):
        return np.ones(len(ids), np.bool_)
    hashes = ids.hash().to_numpy()
    at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    held: NDArray[np.bool_] = known[at] != hashes
    return held
