"""Evidence: the input of measures, from a run and its judgments.

*Hits* are the judged documents that were retrieved; *ideals* are each query's judged grades,
best first. Measures are functions of these two, so their cost depends on the number of judgments,
not on the depth of the run.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Subtopics:
    """Judgments by subtopic; ``s`` judgments."""

    query: Ints  # index of the query of each judgment, ascending; shape (s,)
    # Number of the judged document, as in `Evidence.document`. Numbers ascend within a query while
    # document ids descend by bytes; shape (s,).
    document: Ints
    subtopic: Ints  # number of the subtopic, unique across queries; shape (s,)
    grade: Floats  # grade of the document for that subtopic; shape (s,)

    def relevant(self, rel: float) -> Subtopics:
        """Only judgments of grade ``rel`` or better."""
        return self._keep(self.grade >= rel)

    def at(self, index: Ints) -> Subtopics:
        """Only those of queries whose new index is not negative.

        Args:
            index: New index of each query; shape (n,).
        """
        rest = self._keep(index[self.query] >= 0)
        return dataclasses.replace(rest, query=index[rest.query])

    def _keep(self, rows: Mask) -> Subtopics:
        return Subtopics(
            self.query[rows], self.document[rows], self.subtopic[rows], self.grade[rows]
        )


@dataclass(frozen=True)
class Evidence:
    """Hits and ideals of ``n`` judged queries, with ``h`` hits and ``j`` judgments."""

    query_ids: list[str]  # the judged queries, sorted by bytes; length n
    returned: Ints  # number of documents retrieved for each; shape (n,)
    tied: Ints  # number of these that are tied with another; shape (n,)
    query: Ints  # index of the query of each hit, ascending; shape (h,)
    grade: Floats  # grade of each hit; shape (h,)
    rank: Ints  # rank of each hit from 1, ascending within a query; shape (h,)
    tie_start: Ints  # rank at which the hit's group of equal scores starts; shape (h,)
    tie_size: Ints  # size of that group, 1 if the score is alone; shape (h,)
    ideal_query: Ints  # index of the query of each judgment, ascending; shape (j,)
    ideal_grade: Floats  # grades, best first within a query; shape (j,)
    scale: tuple[float, float]  # lowest and highest grade that a judgment could have given
    subtopics: Subtopics | None = None  # judgments by subtopic, if the qrels have them
    # Number of the document of each hit, for `subtopics`; shape (h,); None if the qrels have no
    # subtopics
    document: Ints | None = None

    @property
    def n(self) -> int:
        """Number of judged queries."""
        return len(self.query_ids)

    @cached_property
    def judged(self) -> Mask:
        """Hits with a grade of 0 or more; below 0 means pooled but not judged, as in TREC."""
        return self.grade >= 0

    @cached_property
    def ideal_rank(self) -> Ints:
        """Rank of each judgment in the ideal ranking, from 1; shape (j,)."""
        return _place(self.ideal_query, np.ones(len(self.ideal_query), np.bool_))

    def per_query(self, value: Floats | Mask, where: Mask | None = None) -> Floats:
        """Sum of a value of each hit, query by query, added in rank order; shape (n,)."""
        return sums(self.query, value, where, self.n)

    def of_ideals(self, value: Floats | Mask) -> Floats:
        """Sum of a value of each judgment, query by query, best grade first; shape (n,)."""
        return sums(self.ideal_query, value, None, self.n)

    def relevant(self, rel: float) -> Mask:
        """Hits of grade ``rel`` or better; shape (h,)."""
        return self.grade >= rel

    def num_rel(self, rel: float) -> Floats:
        """R: documents judged ``rel`` or better, retrieved or not; shape (n,)."""
        return self.of_ideals(self.ideal_grade >= rel)

    def so_far(self, counted: Mask) -> Ints:
        """For each hit, how many counted hits its query has down to it, inclusive; shape (h,)."""
        return _place(self.query, counted)

    def to_depth(self, depth: int) -> Evidence:
        """The evidence of rankings cut after ``depth`` documents."""
        above = self.rank <= depth
        # A tied group that straddles the cut becomes smaller.
        size = np.minimum(self.tie_start + self.tie_size - 1, depth) - self.tie_start + 1
        return self.keep(above, returned=np.minimum(self.returned, depth), tie_size=size[above])

    def only_judged(self) -> Evidence:
        """Rankings condensed to their judged documents (grade 0 or more), as trec_eval -J."""
        judged = self.judged
        rank = _place(self.query, judged)[judged]
        count = np.bincount(self.query[judged], minlength=self.n)
        group = np.flatnonzero(
            np.diff(self.query[judged], prepend=-1).astype(bool)
            | np.diff(self.tie_start[judged], prepend=-1).astype(bool)
        )
        size = np.diff(np.append(group, len(rank)))
        return self.keep(
            judged,
            returned=count,
            rank=rank,
            tie_start=np.repeat(rank[group], size),
            tie_size=np.repeat(size, size),
        )

    def at(self, queries: Ints) -> Evidence:
        """The evidence of some queries only, in the order given (indices, ascending)."""
        index = np.full(self.n, -1)
        index[queries] = np.arange(len(queries))
        hit, ideal = index[self.query] >= 0, index[self.ideal_query] >= 0
        narrowed = self.keep(hit, returned=self.returned[queries], tied=self.tied[queries])
        return dataclasses.replace(
            narrowed,
            query_ids=[self.query_ids[i] for i in queries],
            query=index[narrowed.query],
            ideal_query=index[self.ideal_query[ideal]],
            ideal_grade=self.ideal_grade[ideal],
            subtopics=None if self.subtopics is None else self.subtopics.at(index),
        )

    def keep(self, hits: Mask | Ints, **changed: Any) -> Evidence:
        """Some hits only, or all in another order, with other fields replaced by ``changed``."""
        of_hits = ["query", "grade", "rank", "tie_start", "tie_size"]
        of_hits += ["document"] if self.document is not None else []
        fields = {name: getattr(self, name)[hits] for name in of_hits if name not in changed}
        return dataclasses.replace(self, **fields, **changed)


def sums(group: Ints, value: Floats | Mask, where: Mask | None, n: int) -> Floats:
    """Sum of a value in each of n groups, in the order given; shape (n,)."""
    if where is not None:
        group, value = group[where], value[where]
    total = np.bincount(group, value.astype(np.float64, copy=False), minlength=n)
    return total.astype(np.float64, copy=False)  # bincount of no hits gives integers


def or_nan(norm: Floats | Ints) -> Floats:
    """A divisor, NaN where it is 0 and the measure undefined."""
    return np.where(norm > 0, norm, np.nan)


def _place(group: Ints, counted: Mask) -> Ints:
    """Running count of ``counted`` within each group; groups are contiguous."""
    total: Ints = np.cumsum(counted, dtype=np.int64)
    if not len(group):
        return total
    first = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    before: Ints = total[first] - counted[first]
    return total - np.repeat(before, np.diff(np.append(first, len(group))))
