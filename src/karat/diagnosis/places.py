"""Ranks of judged documents in runs."""

from __future__ import annotations

import polars as pl

from karat.measures.evidence import Evidence, Ints
from karat.measures.run_pair import Pair


def places(pair: Pair, queries: Ints) -> pl.DataFrame:
    """Ranks of the judged documents of some queries in both runs, returned or not.

    Args:
        pair: Two runs under the same judgments.
        queries: Indices into ``pair.query_ids``, ascending, each once.

    Returns:
        ``query`` (index into ``queries``), ``doc_id``, ``grade``, ``baseline`` and ``candidate``:
        ranks as in the pair's evidence, null if the run did not return the document; sorted by
        query and document.
    """
    query_ids = [pair.query_ids[query] for query in queries.tolist()]
    known = pair.qrels.judged(query_ids)
    out = known
    for name, run, evidence in (
        ("baseline", pair.baseline, pair.of_baseline),
        ("candidate", pair.candidate, pair.of_candidate),
    ):
        held = run.top(query_ids, pair.depth).join(known, on=["query", "doc_id"])
        # Hits are these documents in the same order: their ranks are condensed if only judged
        # documents count, and those of the run if not.
        ranks = held.sort("query", "rank").select(
            "query", "doc_id", pl.Series(name, _ranks(evidence.at(queries)), dtype=pl.Int64)
        )
        out = out.join(ranks, on=["query", "doc_id"], how="left", maintain_order="left")
    return out


def _ranks(evidence: Evidence) -> Ints:
    return evidence.rank[evidence.judged]
