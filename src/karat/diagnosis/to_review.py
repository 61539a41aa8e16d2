"""Review list: what failing queries miss, and what they show instead, with its failure mode."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from karat.diagnosis.modes import Named
from karat.diagnosis.waterfall import Roads
from karat.tables import Pairs, Qrels
from karat.tables.diagnosis.results import MODES, QueryMode

COLUMNS = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "text": pl.String,
    "list": pl.String,
    "grade": pl.Float64,
    "rank": pl.Int64,
    "mode": pl.String,
    "stage": pl.String,
    "reason": pl.String,
    "chosen_by": pl.String,
}


def to_review(found: Roads, named: Named, rows: Sequence[QueryMode], qrels: Qrels) -> Pairs:
    """The documents of failing queries that people should look at, in the order of the queries.

    Three lists for each query: ``missed``, relevant documents that are not served; then by rank
    those that are served above a document with a loss: ``bad``, judged not relevant, and
    ``unjudged``. These have the mode and stage of the query. A query that nothing answers has what
    is served for it.

    Args:
        found: The roads.
        named: The modes of their documents.
        rows: The failing queries.
        qrels: The judgments.

    Returns:
        ``COLUMNS``. ``rank`` is that in the run, null if it is not there; ``chosen_by`` has list
        and mode, for the queue.
    """
    asked = [row.query_id for row in rows]
    top = found.run.frame().filter(
        pl.col("rank") <= found.k,
        pl.col("query_id").is_in(pl.Series(asked, dtype=pl.String).implode()),
    )
    grades = qrels.frame.select("query_id", "doc_id", "grade")
    served = top.join(grades, on=["query_id", "doc_id"], how="left", maintain_order="left")
    lists = dict(
        served.group_by("query_id", maintain_order=True)
        .agg(pl.struct("doc_id", "rank", "grade"))
        .iter_rows()
    )
    out = []
    for row in rows:
        own = found.documents(found.number[row.query_id])
        losing = own[found.loss[own] > 0]
        # The largest loss first, then by document.
        order = sorted(losing.tolist(), key=lambda at: (-found.loss[at], found.doc_id[at]))
        common = {"query_id": row.query_id, "text": row.text}
        for at in order:
            if not found.held[-1, at] and found.grade[at] >= found.rel:
                mode = MODES[named.mode[at]]
                here = {"mode": mode, "stage": named.stage[at], "reason": named.evidence[at]}
                rank = int(found.below[at]) or None
                out.append(
                    common | here | {"list": "missed", "doc_id": found.doc_id[at], "rank": rank,
                                     "grade": float(found.grade[at])}
                )  # fmt: skip
        ranks = [int(found.rank[-1, at]) or found.k + 1 for at in order]
        last = found.k + 1 if row.query_id in found.unanswerable else max(ranks, default=0)
        reason = f"above {row.doc_id}: {row.evidence}" if row.doc_id else row.evidence
        for each in lists.get(row.query_id, []):
            if each["rank"] < last and (each["grade"] is None or each["grade"] < found.rel):
                which = "unjudged" if each["grade"] is None else "bad"
                here = {"mode": row.mode, "stage": row.stage, "reason": reason, "list": which}
                out.append(common | here | each)
    frame = pl.DataFrame(out, schema=COLUMNS)
    chosen_by = pl.format("diagnosis: {}, {}", "list", "mode")
    return Pairs(frame.with_columns(chosen_by=chosen_by), "diagnosis")
