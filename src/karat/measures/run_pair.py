"""Pair: two runs over the same judgments, and the documents that each of them shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from karat.measures.entry import Measure
from karat.measures.evidence import Evidence, Floats, Ints, Mask
from karat.measures.judged_join import reduce
from karat.tables.qrels import Qrels
from karat.tables.ranking import numbered
from karat.tables.run import Run

_BLOCK = 1 << 17  # documents of a block that fits the cache


@dataclass(frozen=True)
class Pool:
    """The documents that either run has in its top k, ``u`` in total, for the judged queries.

    Within a query, they are sorted by the highest rank in either run.
    """

    query: Ints  # index of the query of each document, ascending; shape (u,)
    baseline: Ints  # rank in the baseline from 1; 0 if it is not in its top k; shape (u,)
    candidate: Ints  # the same in the candidate; shape (u,)
    grade: Floats  # grade, NaN if not judged (or pooled but not judged); shape (u,)
    shown: tuple[_Shown, _Shown]  # the baseline and the candidate

    @property
    def n(self) -> int:
        """Number of judged queries."""
        return len(self.shown[0].start)

    def to_depth(self, k: int) -> Pool:
        """The pool of the two runs cut after k documents."""
        baseline = np.where(self.baseline <= k, self.baseline, 0)
        candidate = np.where(self.candidate <= k, self.candidate, 0)
        kept = np.flatnonzero(baseline + candidate)
        query, grade = self.query[kept], self.grade[kept]
        return Pool(query, baseline[kept], candidate[kept], grade, self.shown)

    def doc_id(self, at: Ints) -> pl.Series:
        """Ids of some of the documents."""
        query, before, after = self.query[at], self.baseline[at], self.candidate[at]
        first, second = self.shown
        ids = pl.concat(
            [
                first.doc_id((first.start[query] + before - 1)[before > 0]),
                second.doc_id((second.start[query] + after - 1)[before == 0]),
            ]
        )
        return ids.gather(np.argsort(np.argsort(before == 0, kind="stable")))

    @property
    def unjudged(self) -> Mask:
        """Documents without a grade; shape (u,)."""
        return np.isnan(self.grade)


@dataclass(frozen=True)
class Pair:
    """Two runs to be compared, candidate minus baseline, under the same judgments."""

    baseline: Run  # the run compared with
    candidate: Run  # the run in question
    qrels: Qrels  # judgments of both
    of_baseline: Evidence  # evidence of the baseline, cut at `depth`; n queries
    of_candidate: Evidence  # evidence of the candidate, cut at `depth`; the same queries
    # Number of documents after which rankings are cut; None if they are full
    depth: int | None = None
    _pools: dict[int | None, Pool] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, baseline: Run, candidate: Run, qrels: Qrels, depth: int | None = None) -> Pair:
        """The pair of two settled runs."""
        both = [reduce(run, qrels) for run in (baseline, candidate)]
        first, second = (e if depth is None else e.to_depth(depth) for e in both)
        return cls(baseline, candidate, qrels, first, second, depth)

    @property
    def query_ids(self) -> list[str]:
        """The judged queries, sorted by bytes; length n."""
        return self.of_baseline.query_ids

    def pool(self, measure: Measure) -> Pool:
        """The documents that a measure looks at in either run."""
        k = self._limit(measure)
        if k not in self._pools:
            deeper = [
                pool
                for depth, pool in self._pools.items()
                if k is not None and (depth is None or depth > k)
            ]
            self._pools[k] = deeper[0].to_depth(k) if deeper and k else self._pool(k)
        return self._pools[k]

    def missed(self, measure: Measure) -> tuple[Ints, Ints]:
        """Number of unjudged documents that only the other run shows to a measure.

        Returns:
            Those that the candidate misses, and those that the baseline misses; shape (n,) each.
        """
        shown, queries = self._shown(self._limit(measure)), len(self.query_ids)
        unjudged, shared = np.zeros((2, queries), np.int64), np.zeros(queries, np.int64)
        for block in _blocks(*shown):
            query, _, _, number = _places(shown, block)
            without = [np.isnan(side.grade[side.within(block)]) for side in shown]
            for at in (0, 1):
                unjudged[at] += np.bincount(query[at][without[at]], minlength=queries)
            there = np.zeros(max(each.max(initial=-1) for each in number) + 1, np.bool_)
            there[number[0]] = True
            shared += np.bincount(query[1][without[1] & there[number[1]]], minlength=queries)
        return unjudged[0] - shared, unjudged[1] - shared

    def _limit(self, measure: Measure) -> int | None:
        """How deep a measure looks; None for all documents."""
        limits = [limit for limit in (self.depth, measure.depth) if limit is not None]
        return min(limits, default=None)

    def _shown(self, k: int | None) -> tuple[_Shown, _Shown]:
        return (
            _Shown.of(self.baseline, self.of_baseline, k),
            _Shown.of(self.candidate, self.of_candidate, k),
        )

    def _pool(self, k: int | None) -> Pool:
        shown = self._shown(k)
        parts = [_united(*shown, queries) for queries in _blocks(*shown)]
        query, baseline, candidate, grade = map(np.concatenate, zip(*parts, strict=True))
        return Pool(query, baseline, candidate, grade, shown)


@dataclass(frozen=True, slots=True)
class _Shown:
    """The top k of the judged queries in a run."""

    rows: pl.DataFrame  # of the run
    start: Ints  # first row of each query
    first: Ints  # number of documents of the queries above each query, then of all
    grade: Floats  # grade of each document, NaN if not judged

    @classmethod
    def of(cls, run: Run, evidence: Evidence, k: int | None) -> _Shown:
        start, counts = run.places(evidence.query_ids, k)
        first = np.append(0, np.cumsum(counts))
        grade = np.full(first[-1], np.nan)
        hits = evidence.judged & (evidence.rank <= counts[evidence.query])
        grade[first[evidence.query[hits]] + evidence.rank[hits] - 1] = evidence.grade[hits]
        return cls(run.rows.rechunk(), start, first, grade)

    def within(self, queries: slice) -> slice:
        """The documents of some queries among those of all."""
        return slice(int(self.first[queries.start]), int(self.first[queries.stop]))

    def places(self, queries: slice) -> tuple[Ints, Ints, Ints]:
        """Query, rank and row of each document of some queries."""
        first = self.first[queries.start : queries.stop + 1]
        counts = np.diff(first)
        rank = np.arange(first[0], first[-1]) - np.repeat(first[:-1], counts) + 1
        row = np.repeat(self.start[queries], counts) + rank - 1
        return np.repeat(np.arange(queries.start, queries.stop), counts), rank, row

    def doc_id(self, rows: Ints) -> pl.Series:
        return self.rows["doc_id"].gather(rows)


def _blocks(first: _Shown, second: _Shown) -> Iterator[slice]:
    """Blocks of queries whose documents fit the cache; one of no queries if there are none."""
    total = first.first + second.first
    n, stop = len(total) - 1, 0
    while True:
        begin = stop
        stop = int(np.searchsorted(total, total[begin] + _BLOCK, side="right")) - 1
        stop = min(max(stop, begin + 1), n)
        yield slice(begin, stop)
        if stop >= n:
            return


def _places(sides: tuple[_Shown, _Shown], queries: slice) -> tuple[Sequence[Ints], ...]:
    """Query, rank, row and number of each document of some queries: a pair of arrays each.

    Documents of equal number are the same.
    """
    query, rank, row = zip(*(side.places(queries) for side in sides), strict=True)
    return query, rank, row, numbered([side.rows for side in sides], row, query)


def _united(first: _Shown, second: _Shown, queries: slice) -> tuple[Ints, Ints, Ints, Floats]:
    """The documents of some queries: query, rank in each run and grade, as in a pool."""
    sides = first, second
    query, rank, row, number = _places(sides, queries)
    ranks = np.zeros((2, max(each.max(initial=-1) for each in number) + 1), np.int64)
    for at in (0, 1):
        ranks[at, number[at]] = rank[at]
    # Each document from the run that ranks it higher.
    before, after = ranks[0, number[1]], ranks[1, number[0]]
    kept = (after == 0) | (rank[0] <= after), (before == 0) | (rank[1] < before)

    def both(left: Ints, right: Ints) -> Ints:
        return np.concatenate([left[kept[0]], right[kept[1]]])

    of, highest, at_row = both(*query), both(*rank), both(*row)
    alone = np.repeat([0, 1], [np.count_nonzero(mask) for mask in kept])
    order = np.argsort((of * (highest.max(initial=0) + 1) + highest) * 2 + alone)
    of, highest = of[order], highest[order]
    # At most two documents share a rank: one of each run. They are sorted by id.
    tied = np.flatnonzero((of[1:] == of[:-1]) & (highest[1:] == highest[:-1]))
    pair = first.doc_id(at_row[order[tied]]), second.doc_id(at_row[order[tied + 1]])
    turned = tied[(pair[0] > pair[1]).to_numpy()]
    order[turned], order[turned + 1] = order[turned + 1], order[turned]
    grade = [side.grade[side.within(queries)] for side in sides]
    grades = np.concatenate([each[mask] for each, mask in zip(grade, kept, strict=True)])
    return of, both(rank[0], before)[order], both(after, rank[1])[order], grades[order]
