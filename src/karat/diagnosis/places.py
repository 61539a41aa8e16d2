"""Places: where judged documents stand in runs."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from karat.measures.evidence import Evidence, Ints
from karat.measures.pair import Pair
from karat.tables import Qrels


def judged(qrels: Qrels, query_ids: Sequence[str], least: float = 0.0) -> pl.DataFrame:
    """Documents judged for some queries, of a grade of ``least`` or better and never below 0.

    Returns:
        ``query`` (index into ``query_ids``), ``doc_id`` and ``grade``, sorted by the first two.
    """
    wanted = pl.DataFrame({"query_id": list(query_ids)}, schema={"query_id": pl.String})
    wanted = wanted.with_row_index("query").with_columns(pl.col("query").cast(pl.Int64))
    return (
        qrels.frame.filter(pl.col("grade") >= max(least, 0.0))
        .join(wanted, on="query_id")
        .select("query", "doc_id", "grade")
        .sort("query", "doc_id")
    )


def places(pair: Pair, queries: Ints) -> pl.DataFrame:
    """Where the judged documents of some queries stand in both runs, returned or not.

    Args:
        pair: Two runs under the same judgments.
        queries: Indices into ``pair.query_ids``, ascending, each once.

    Returns:
        ``query`` (index into ``queries``), ``doc_id``, ``grade``, ``baseline`` and ``candidate``:
        ranks as the pair's evidence has them, null if the run has not returned the document;
        sorted by query and document.
    """
    query_ids = [pair.query_ids[query] for query in queries.tolist()]
    known = judged(pair.qrels, query_ids)
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
