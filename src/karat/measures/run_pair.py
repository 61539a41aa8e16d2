"""Pair: two runs over the same judgments, and the documents that each of them shows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from karat.measures.entry import Measure
from karat.measures.evidence import Evidence, Floats, Ints, Mask
from karat.measures.judged_join import reduce
from karat.tables.qrels import Qrels
from karat.tables.ranking import mixed
from karat.tables.run import Run


@dataclass(frozen=True)
class Pool:
    """The documents that either run has in its top k, ``u`` in total, for the judged queries."""

    n: int  # number of judged queries
    query: Ints  # index of the query of each document, ascending; shape (u,)
    doc_id: pl.Series  # the documents; within a query, by the highest rank in either run
    baseline: Ints  # rank in the baseline from 1; 0 if it is not in its top k; shape (u,)
    candidate: Ints  # the same in the candidate; shape (u,)
    grade: Floats  # grade, NaN if not judged (or pooled but not judged); shape (u,)

    def to_depth(self, k: int) -> Pool:
        """The pool of the two runs cut after k documents."""
        baseline = np.where(self.baseline <= k, self.baseline, 0)
        candidate = np.where(self.candidate <= k, self.candidate, 0)
        kept = np.flatnonzero(baseline + candidate)
        return Pool(
            n=self.n,
            query=self.query[kept],
            doc_id=self.doc_id.gather(kept),
            baseline=baseline[kept],
            candidate=candidate[kept],
            grade=self.grade[kept],
        )

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
        limits = [limit for limit in (self.depth, measure.depth) if limit is not None]
        k = min(limits, default=None)
        if k not in self._pools:
            deeper = [
                pool
                for depth, pool in self._pools.items()
                if k is not None and (depth is None or depth > k)
            ]
            self._pools[k] = deeper[0].to_depth(k) if deeper and k else self._pool(k)
        return self._pools[k]

    def _pool(self, k: int | None) -> Pool:
        topic = {query: index for index, query in enumerate(self.query_ids)}
        graded = self.qrels.frame.filter(pl.col("grade") >= 0).select(
            pl.col("query_id").replace_strict(topic, return_dtype=pl.Int64).alias("query"),
            "doc_id",
            "grade",
        )
        before, after = (run.top(self.query_ids, k) for run in (self.baseline, self.candidate))
        of_before, of_after = _same(before, after)
        alone = np.ones(after.height, np.bool_)
        alone[of_after] = False
        shown = pl.concat([before, after.filter(alone)], rechunk=True)
        ranks = np.zeros((2, shown.height), np.int64)
        ranks[0, : before.height] = before["rank"]
        ranks[1, of_before] = after["rank"].to_numpy()[of_after]
        ranks[1, before.height :] = shown["rank"][before.height :]
        grade = np.full(shown.height, np.nan)
        judged, judgment = _same(shown, graded)
        grade[judged] = graded["grade"].to_numpy()[judgment]
        order = _order(shown, np.where(ranks.all(axis=0), ranks.min(axis=0), ranks.max(axis=0)))
        return Pool(
            n=len(topic),
            query=shown["query"].to_numpy()[order],
            doc_id=shown["doc_id"].gather(order),
            baseline=ranks[0, order],
            candidate=ranks[1, order],
            grade=grade[order],
        )


def _same(left: pl.DataFrame, right: pl.DataFrame) -> tuple[Ints, Ints]:
    """The rows of two frames with the same query and document.

    Joining hashes is far faster than joining ids; matches are then verified.
    """
    keyed = [
        pl.DataFrame(
            {
                "key": mixed(frame["doc_id"].hash(), frame["query"].to_numpy().astype(np.uint32)),
                "at": np.arange(frame.height),
            }
        )
        for frame in (left, right)
    ]
    likely = keyed[0].join(keyed[1], on="key")
    pair = ["query", "doc_id"]
    here, there = left.select(pair)[likely["at"]], right.select(pair)[likely["at_right"]]
    same = (here["doc_id"] == there["doc_id"]) & (here["query"] == there["query"])
    kept = likely.filter(same)
    return kept["at"].to_numpy(), kept["at_right"].to_numpy()


def _order(shown: pl.DataFrame, first: Ints) -> Ints:
    """The order by query, highest rank and document; swapping the runs does not change it."""
    order = np.lexsort((first, shown["query"].to_numpy()))
    query, first, doc_id = shown["query"].to_numpy()[order], first[order], shown["doc_id"]
    # At most two documents share a rank: one of each run.
    tied = np.flatnonzero((query[1:] == query[:-1]) & (first[1:] == first[:-1]))
    turned = tied[(doc_id.gather(order[tied]) > doc_id.gather(order[tied + 1])).to_numpy()]
    order[turned], order[turned + 1] = order[turned + 1], order[turned]
    return order
