"""Click logs for the tests of click models: one of the field notes, and simulated ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from karat.online.clicks.counts import Floats, Pages

_T12 = (
    ("abcdefghij", ({0}, {1}, {0, 2}, set())),
    ("bacdefghij", ({0}, {1}, {1, 2})),
    ("cabdefghij", ({3}, {0}, {1, 4})),
    ("jihgfedcba", ({8}, {7, 9})),
)


def pages_of(rows: Sequence[tuple[str, Sequence[str], set[int]]]) -> Pages:
    """Pages of a query, its documents from the top, and the clicked ones, counted from 0."""
    pairs = sorted({(query, doc) for query, docs, _ in rows for doc in docs})
    number = {pair: row for row, pair in enumerate(pairs)}
    deepest = max((len(docs) for _, docs, _ in rows), default=0)
    docs = np.full((len(rows), deepest), -1, dtype=np.int32)
    clicked = np.zeros((len(rows), deepest), dtype=np.bool_)
    for page, (query, shown, clicks) in enumerate(rows):
        docs[page, : len(shown)] = [number[query, doc] for doc in shown]
        clicked[page, list(clicks)] = True
    frame = pl.DataFrame(pairs, ["query", "doc_id"], orient="row")
    return Pages(frame, docs, clicked, np.ones(len(rows)))


def t12() -> Pages:
    """The log of V26 in the field notes: twelve pages of one query, ten ranks."""
    return pages_of([("q", order, set(each)) for order, pages in _T12 for each in pages])


@dataclass(frozen=True)
class Truth:
    """Documents and users of a simulated log; documents by query, shape (queries, docs)."""

    attraction: Floats
    satisfaction: Floats
    continuation: float
    examination: Floats  # of each rank, from 1

    @classmethod
    def at_random(
        cls, random: np.random.Generator, queries: int, docs: int, ranks: int = 10
    ) -> Truth:
        """Any documents; users who look less at deep ranks."""
        return cls(
            random.uniform(0.05, 0.95, (queries, docs)),
            random.uniform(0.05, 0.95, (queries, docs)),
            random.uniform(0.6, 0.95),
            1 / np.arange(1, ranks + 1) ** random.uniform(0.3, 1),
        )

    def positions(self, random: np.random.Generator, pages: int, noise: float = 3.0) -> Pages:
        """Users of the position-based model."""
        query, order = self._shown(random, pages, noise)
        chance = self.attraction[query, order] * self.examination
        return self._pages(query, order, random.random(order.shape) < chance)

    def reading(
        self,
        random: np.random.Generator,
        pages: int,
        continuation: float | None = None,
        next_page: bool = False,
    ) -> Pages:
        """Users who read from the top.

        With ``next_page`` the last entry of a page is always the last document of its query, which
        all click who reach it: then the last click satisfied, unless it is this one.
        """
        query, order = self._shown(random, pages, 3.0, last_apart=next_page)
        attraction, satisfaction = self.attraction[query, order], self.satisfaction[query, order]
        if next_page:
            attraction[:, -1] = 1
        more = self.continuation if continuation is None else continuation
        reads, clicked = np.ones(pages, dtype=np.bool_), np.zeros(order.shape, dtype=np.bool_)
        for rank in range(order.shape[1]):
            clicked[:, rank] = reads & (random.random(pages) < attraction[:, rank])
            satisfied = clicked[:, rank] & (random.random(pages) < satisfaction[:, rank])
            reads &= ~satisfied & (random.random(pages) < more)
        return self._pages(query, order, clicked)

    def _shown(
        self, random: np.random.Generator, pages: int, noise: float, *, last_apart: bool = False
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Query of each page, and its documents in a fixed order with noise."""
        queries, docs = self.attraction.shape
        query = random.integers(queries, size=(pages, 1))
        places = np.arange(docs) + random.normal(0, noise, (pages, docs))
        if not last_apart:
            return query, np.argsort(places, axis=1)[:, : len(self.examination)]
        order = np.argsort(places[:, :-1], axis=1)[:, : len(self.examination) - 1]
        return query, np.hstack([order, np.full((pages, 1), docs - 1)])

    def _pages(
        self,
        query: npt.NDArray[np.int64],
        order: npt.NDArray[np.int64],
        clicked: npt.NDArray[np.bool_],
    ) -> Pages:
        queries, docs = self.attraction.shape
        names = [(f"q{query:05}", f"d{doc:05}") for query in range(queries) for doc in range(docs)]
        frame = pl.DataFrame(names, ["query", "doc_id"], orient="row")
        number = (query * docs + order).astype(np.int32)
        same, count = np.unique(np.hstack([number, clicked]), axis=0, return_counts=True)
        ranks = order.shape[1]
        return Pages(
            frame,
            same[:, :ranks].astype(np.int32),
            same[:, ranks:].astype(np.bool_),
            count.astype(np.float64),
        )
