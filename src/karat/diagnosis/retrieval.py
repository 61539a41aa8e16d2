"""Retrieval: which relevant documents each of several runs finds, and how similar the runs are.

For hybrid search: the documents that only one retriever finds, and, for a fused run and one of its
parts, the gains (only in the fused run) and losses (only in the part) of the fusion.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import polars as pl

from karat.errors import UsageError
from karat.measures.evidence import Ints
from karat.stats import rank_similarity
from karat.tables import Qrels, Run
from karat.tables.comparison import Finds, OnlyFound, Overlap


def finds(
    runs: Sequence[Run], qrels: Qrels, query_ids: Sequence[str], k: int, rel: float
) -> list[Finds]:
    """Number of relevant documents in the top k of each run, and in no other run's.

    Args:
        runs: One run or several.
        qrels: Judgments of all.
        query_ids: Queries that count: those that every run was asked, and none failed.
        k: Depth, at least 1.
        rel: Lowest grade that counts as relevant.

    Returns:
        One for each run, in the order given.

    Raises:
        UsageError: ``k`` is less than 1.
    """
    rank = _ranks(runs, qrels.judged(query_ids, rel), query_ids, k)
    found = rank > 0
    only = found & (found.sum(axis=0) == 1)
    return [
        Finds(
            run=run.name,
            k=k,
            relevant=found.shape[1],
            found=int(found[place].sum()),
            found_only=int(only[place].sum()),
            n=len(query_ids),
        )
        for place, run in enumerate(runs)
    ]


def only_found(
    runs: Sequence[Run], qrels: Qrels, query_ids: Sequence[str], k: int, rel: float
) -> list[OnlyFound]:
    """The relevant documents that only one run has in its top k.

    Arguments and errors as for ``finds``, whose ``found_only`` counts these.

    Returns:
        Run by run in the order given; within a run the best grade first, then the highest rank,
        then in the order of the queries given, then by document.
    """
    relevant = qrels.judged(query_ids, rel)
    rank = _ranks(runs, relevant, query_ids, k)
    alone = (rank > 0).sum(axis=0) == 1
    out = []
    for place, run in enumerate(runs):
        here = np.flatnonzero(alone & (rank[place] > 0))
        rows = relevant[here].with_columns(pl.Series("rank", rank[place, here]))
        rows = rows.sort("grade", "rank", "query", "doc_id", descending=[True, False, False, False])
        out += [
            OnlyFound(run.name, query_ids[query], doc_id, grade, at)
            for query, doc_id, grade, at in rows.iter_rows()
        ]
    return out


def overlaps(
    runs: Sequence[Run], qrels: Qrels, query_ids: Sequence[str], k: int, rel: float
) -> list[Overlap]:
    """Similarity of each pair of runs.

    Arguments and errors as for ``finds``.

    Returns:
        One for each pair: the first run with each other, then the second with those after it, and
        so on.
    """
    found = _ranks(runs, qrels.judged(query_ids, rel), query_ids, k) > 0
    shared = rank_similarity.overlaps(runs, k, query_ids=query_ids)
    rbo = rank_similarity.rank_biased_overlaps(runs, 0.9, "corrected", query_ids=query_ids)
    return [
        Overlap(
            left=runs[left].name,
            right=runs[right].name,
            k=k,
            overlap=shared[at].mean,
            rbo=rbo[at].mean,
            relevant_both=int((found[left] & found[right]).sum()),
            relevant_left=int((found[left] & ~found[right]).sum()),
            relevant_right=int((found[right] & ~found[left]).sum()),
        )
        for at, (left, right) in enumerate(itertools.combinations(range(len(runs)), 2))
    ]


def _ranks(runs: Sequence[Run], relevant: pl.DataFrame, query_ids: Sequence[str], k: int) -> Ints:
    """Rank of each relevant document in each run, 0 below k or not there; shape (runs, m)."""
    if k < 1:
        raise UsageError(f"k is {k}, not a depth of 1 or more", fix="k=10")
    ranks = [
        relevant.join(
            run.top(query_ids, k), on=["query", "doc_id"], how="left", maintain_order="left"
        )["rank"].fill_null(0)
        for run in runs
    ]
    return np.array([rank.to_numpy() for rank in ranks], np.int64).reshape(
        len(runs), relevant.height
    )
