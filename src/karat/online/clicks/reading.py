"""Reading from the top: what users look at, click and stop after.

A user looks at the first document. A document looked at is clicked with its attraction; a click
satisfies with the document's satisfaction, and a satisfied user stops. Others continue to the next
rank with the continuation. Down to the last click everything is certain but that click's
satisfaction; below it, only where the user stopped is unknown, so all sums are in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from karat.online.clicks.counts import Floats, Integers, Pages, queries_of
from karat.online.clicks.posterior import Z95
from karat.tables.online.clicks import Examination

Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Layout:
    """Pages by rank, for arithmetic over all pages at once; shapes are (k, p)."""

    pages: Pages

    @cached_property
    def shown(self) -> Booleans:
        """Whether there is a document."""
        return np.ascontiguousarray(self.pages.docs.T >= 0)

    @cached_property
    def docs(self) -> Integers:
        """Row of `pairs`; 0 where there is none."""
        return np.ascontiguousarray(np.maximum(self.pages.docs.T, 0).astype(np.int64))

    @cached_property
    def clicked(self) -> Booleans:
        """Whether it was clicked."""
        return np.ascontiguousarray(self.pages.clicked.T & self.shown)

    @cached_property
    def last(self) -> Integers:
        """Row of the last click of each page; -1 without a click."""
        deepest = len(self.clicked) - 1
        return np.where(self.clicked.any(axis=0), deepest - self.clicked[::-1].argmax(axis=0), -1)

    @cached_property
    def ranks(self) -> Integers:
        """Row numbers; shape (k, 1)."""
        return np.arange(len(self.docs))[:, None]

    @cached_property
    def length(self) -> Integers:
        """Documents of each page."""
        return np.asarray(self.shown.sum(axis=0))

    @cached_property
    def final(self) -> Integers:
        """The document of the last click; 0 without a click."""
        return self.docs[np.maximum(self.last, 0), np.arange(len(self.last))]

    def by_pair(self, values: Floats | Booleans) -> Floats:
        """Sums over pages and ranks of each pair; values have shape (k, p), or (p,) of `final`."""
        where = self.docs if values.ndim > 1 else self.final
        weighted = (values * self.pages.count).ravel()
        return np.bincount(where.ravel(), weighted, len(self.pages.pairs)).astype(np.float64)


@dataclass(frozen=True)
class Reading:
    """What is known of each page given its clicks."""

    layout: Layout
    attraction: Floats  # shape (k, p); 0 below the last document
    satisfaction: Floats  # shape (k, p)
    continuation: float

    @classmethod
    def of(
        cls, layout: Layout, attraction: Floats, satisfaction: Floats, continuation: float
    ) -> Reading:
        """The pages under parameters by pair."""
        attracts = np.where(layout.shown, attraction[layout.docs], 0)
        return cls(layout, attracts, satisfaction[layout.docs], continuation)

    @cached_property
    def silent(self) -> Floats:
        """Probability of no click from each rank on, once it is looked at; shape (k + 1, p)."""
        silent = np.ones((len(self.attraction) + 1, self.attraction.shape[1]))
        for rank in range(len(self.attraction) - 1, -1, -1):
            after = 1 - self.continuation * (1 - silent[rank + 1])
            silent[rank] = (1 - self.attraction[rank]) * after
        return silent

    @cached_property
    def satisfies(self) -> Floats:
        """Satisfaction of the document of the last click."""
        last = np.maximum(self.layout.last, 0)
        return self.satisfaction[last, np.arange(len(last))]

    @cached_property
    def ending(self) -> Floats:
        """Probability of no click after the last one, of no click at all on pages without."""
        last = self.layout.last
        after = self.silent[last + 1, np.arange(len(last))]
        more = 1 - (1 - self.satisfies) * self.continuation * (1 - after)
        return np.where(last >= 0, more, after)

    @cached_property
    def satisfied(self) -> Floats:
        """Probability that the last click satisfied; 0 without a click."""
        return np.where(self.layout.last >= 0, self.satisfies / self.ending, 0)

    @cached_property
    def examined(self) -> Floats:
        """Probability that each document was looked at, given the clicks; shape (k, p)."""
        last = self.layout.last
        examined = np.empty_like(self.attraction)
        reached = np.ones_like(self.ending)  # looked at this rank, and no click since the last one
        for rank in range(len(examined)):
            certain = rank <= last
            examined[rank] = np.where(certain, 1, reached * self.silent[rank] / self.ending)
            missed = np.where(rank == last, 1 - self.satisfies, 1 - self.attraction[rank])
            reached = np.where(rank < last, 1, reached * missed * self.continuation)
        return np.where(self.layout.shown, examined, 0)

    def log_likelihood(self) -> Floats:
        """Of each page."""
        layout = self.layout
        above = layout.ranks < layout.last
        hits = np.log(np.where(layout.clicked, self.attraction, 1))
        misses = np.log1p(-np.where(above & ~layout.clicked, self.attraction, 0))
        unsatisfied = np.log1p(-np.where(above & layout.clicked, self.satisfaction, 0))
        steps = np.maximum(layout.last, 0) * np.log(self.continuation)
        clicks = np.asarray((hits + misses + unsatisfied).sum(axis=0))
        return np.asarray(clicks + steps + np.log(self.ending))

    def clicks(self) -> Floats:
        """Probability of a click at each rank before any click is known; shape (k, p)."""
        clicks = np.empty_like(self.attraction)
        reached = np.ones_like(self.ending)
        for rank in range(len(clicks)):
            clicks[rank] = reached * self.attraction[rank]
            reached = (reached - clicks[rank] * self.satisfaction[rank]) * self.continuation
        return clicks

    def rows(self) -> list[Examination]:
        """Mean probability that each rank was looked at, over the pages that have it.

        The interval is of its logit, with queries as clusters; it does not have the uncertainty of
        the parameters.
        """
        layout, count = self.layout, self.layout.pages.count
        query = queries_of(layout.pages.pairs)[layout.docs[0]]
        rows = []
        for rank in range(len(layout.docs)):
            shown = np.bincount(query, count * layout.shown[rank])
            looked = np.bincount(query, count * self.examined[rank])
            total, queries = shown.sum(), int((shown > 0).sum())
            value = float(looked.sum() / total)
            low = high = None
            if queries > 1 and value < 1:
                squares = ((looked - value * shown) ** 2).sum() / total**2
                spread = np.sqrt(squares * queries / (queries - 1)) / (value * (1 - value))
                odds = value / (1 - value) * np.exp(np.array([-Z95, Z95]) * spread)
                low, high = (float(end) for end in odds / (1 + odds))
            rows.append(Examination(rank + 1, value, low, high, float(total)))
        return rows
