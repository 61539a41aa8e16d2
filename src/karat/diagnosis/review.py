"""Review lists: bad documents that are shown, and relevant ones that are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl

from karat.diagnosis.modes import Named
from karat.diagnosis.movement import places
from karat.diagnosis.slices import Slice
from karat.diagnosis.waterfall import Roads
from karat.errors import UsageError
from karat.measures.run_pair import Pair
from karat.measures.scores import Scores
from karat.tables import Pairs, Qrels, Run
from karat.tables.comparison import Review
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


PER_QUERY = 2  # documents of one query in a list, unless other queries have too few


def review_lists(
    scores: Scores,
    pair: Pair,
    k: int,
    rel: float,
    slices: Sequence[Slice],
    most: int,
) -> list[Review]:
    """Judged documents worth reviewing, by slice.

    Two lists for each slice. ``bad``: judged not relevant (from 0 to below ``rel``) and in the
    candidate's top k; the highest first, then those that the baseline ranks lower or lacks.
    ``missed``: relevant (``rel`` or better) and not in that top k; the best grade first, then those
    that the baseline ranks higher. Further ties are broken by query and document. At most two
    documents of a query, unless the others have too few.

    Args:
        scores: Scores of the candidate. Queries outside its topic set do not count, nor do those
            that failed in either run.
        pair: The two runs.
        k: Depth of the list a user sees; at least 1.
        rel: Lowest grade that counts as relevant.
        slices: Attribute, value, and which queries have it, shape (n,); (None, None, all) for
            all of them.
        most: Maximum length of each list.

    Returns:
        In the order of the slices, ``bad`` before ``missed``. Ranks are those of the pair's
        evidence, as in ``movement.moves``.

    Raises:
        UsageError: ``k`` is less than 1.
    """
    if k < 1:
        raise UsageError(f"k is {k}, not a depth of 1 or more", fix="k=10")
    failed = _failed(pair.baseline) | _failed(pair.candidate)
    answered = np.array([query not in failed for query in pair.query_ids], np.bool_)
    queries = np.flatnonzero(scores.topics & answered)
    table = places(pair, queries).with_columns(
        in_top=(pl.col("candidate") <= k).fill_null(value=False),
        # A document missing from the baseline counts as lower than all.
        lower=pl.col("baseline").fill_null(np.iinfo(np.int64).max),
    )
    bad = table.filter((pl.col("grade") < rel) & pl.col("in_top")).sort(
        "candidate", "lower", "query", "doc_id", descending=[False, True, False, False]
    )
    missed = table.filter((pl.col("grade") >= rel) & ~pl.col("in_top")).sort(
        "grade", "lower", "query", "doc_id", descending=[True, False, False, False]
    )
    out = []
    kinds: tuple[tuple[Literal["bad", "missed"], pl.DataFrame], ...]
    kinds = ("bad", bad), ("missed", missed)
    for attribute, value, chosen in slices:
        here = pl.Series(chosen[queries], dtype=pl.Boolean)
        for kind, rows in kinds:
            listed = _spread(rows.filter(here.gather(rows["query"])), most)
            for query, doc_id, grade, baseline, candidate in listed.select(
                "query", "doc_id", "grade", "baseline", "candidate"
            ).iter_rows():
                row = Review(
                    kind=kind,
                    candidate=pair.candidate.name,
                    attribute=attribute,
                    slice=value,
                    query_id=pair.query_ids[int(queries[query])],
                    doc_id=doc_id,
                    grade=grade,
                    baseline_rank=baseline,
                    candidate_rank=candidate,
                )
                out.append(row)
    return out


def _failed(run: Run) -> set[str]:
    return set(run.answers.filter(pl.col("state") == "failed")["query_id"].to_list())


def _spread(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """The first rows, two of each query; more only to fill up; in the same order."""
    nth = pl.int_range(pl.len()).over("query")
    marked = rows.with_columns(further=nth >= PER_QUERY).with_row_index("place")
    return marked.sort("further", "place").head(most).sort("place")
