"""What click models see of a log: impressions and clicks, counted.

``Cells`` count by document and place; ``Pages`` keep the order of each page of results, for models
of reading from the top. Frame engines and the reader of the research form produce both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def queries_of(pairs: pl.DataFrame) -> Integers:
    """Number of the query of each pair, from 0."""
    return pairs["query"].rle_id().cast(pl.Int64).to_numpy()


@dataclass(frozen=True)
class Cells:
    """Impressions and clicks of each document at each place; a row is called a cell.

    A pair is a query and a document. A place is a rank, or a rank and a presentation (such as with
    an image), which users may see differently.
    """

    pairs: pl.DataFrame  # `query`, `doc_id`; sorted, each once; a pair is its row number
    places: pl.DataFrame  # `rank` (Int64, from 1), `presentation` (String or null); sorted
    pair: Integers  # of each cell: row of `pairs`; shape (c,)
    place: Integers  # of each cell: row of `places`; shape (c,)
    shown: Floats  # pages that showed it there, whole or weighted by age; above 0
    clicked: Floats  # those of them on which it was clicked
    # Clicks that satisfied for certain, and those that may have (their dwell is not known); as
    # `clicked` for logs without times
    satisfied_low: Floats
    satisfied_high: Floats
    # Sum over those pages of 1 / documents on the page: of all, and of those with the click
    share: Floats
    share_clicked: Floats
    pages: float  # number of pages, or their weight

    @property
    def anchor(self) -> int:
        """The place that others are compared with: rank 1 as it was shown most often."""
        shown = self.by_place(self.shown)
        top = self.places["rank"].to_numpy() == 1
        return int(np.argmax(np.where(top, shown, -1.0))) if top.any() else int(np.argmax(shown))

    def by_pair(self, values: Floats) -> Floats:
        """Sums over the cells of each pair."""
        return np.bincount(self.pair, values, len(self.pairs)).astype(np.float64)

    def by_place(self, values: Floats) -> Floats:
        """Sums over the cells of each place."""
        return np.bincount(self.place, values, len(self.places)).astype(np.float64)


@dataclass(frozen=True)
class Pages:
    """Distinct pages of results with their clicks; a row is called a page."""

    pairs: pl.DataFrame  # as in `Cells`
    docs: npt.NDArray[np.int32]  # row of `pairs`, by rank from 1; -1 below the last; shape (p, k)
    clicked: npt.NDArray[np.bool_]  # whether it was clicked; shape (p, k)
    count: Floats  # how often this page with these clicks was seen; shape (p,)

    def cells(self) -> Cells:
        """The same log by document and rank; clicks are all taken as satisfied."""
        there = self.docs >= 0
        length = np.maximum(there.sum(axis=1), 1)
        deepest = self.docs.shape[1]
        key = (self.docs.astype(np.int64) * deepest + np.arange(deepest))[there]
        size = len(self.pairs) * deepest
        dense = size <= 4 * len(key)
        if not dense:
            keys, key = np.unique(key, return_inverse=True)
            size = len(keys)
        weight, share = (
            np.broadcast_to(each[:, None], there.shape)[there]
            for each in (self.count, self.count / length)
        )
        click = self.clicked[there]
        sums = [
            np.bincount(key, values, size).astype(np.float64)
            for values in (weight, weight * click, share, share * click)
        ]
        if dense:
            keys = np.flatnonzero(np.bincount(key, minlength=size))
            sums = [each[keys] for each in sums]
        shown, clicked, share, share_clicked = sums
        ranks = pl.int_range(1, deepest + 1, eager=True, dtype=pl.Int64).alias("rank")
        return Cells(
            self.pairs,
            pl.DataFrame([ranks]).with_columns(presentation=pl.lit(None, pl.String)),
            keys // deepest,
            keys % deepest,
            shown,
            clicked,
            clicked,
            clicked,
            share,
            share_clicked,
            float(self.count.sum()),
        )
