"""Coverage: the share of the documents shown by runs that an edition has grades for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from karat.errors import UsageError
from karat.tables import Pairs, Run

_KEY = ["query_id", "doc_id"]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of the documents shown by runs that has a grade."""

    k: int  # cutoff: documents per query
    # `run`, `queries` (of the edition), `answered` (with a document), `judged` (mean of Judged@k
    # over those; null without any), `unjudged` (pairs)
    runs: pl.DataFrame
    # `run`, `query_id`, `shown` (documents in the top k), `graded` (of those), `judged` (graded /
    # shown; null if nothing was shown)
    queries: pl.DataFrame
    # The pairs of a top k without a grade: `query_id`, `doc_id`, `best_rank`, `systems`; those
    # shown by most systems first, then by rank
    unjudged: Pairs


def coverage(
    queries: pl.DataFrame, grades: pl.DataFrame, runs: Iterable[Run], k: int = 10
) -> Coverage:
    """The share of the top k of runs that an edition has grades for.

    Judged@k is graded in the top k / min(k, returned), as the measure of that name. All queries
    have the same weight, also those without a relevant document.

    Args:
        queries: ``query_id``: the edition's.
        grades: ``query_id``, ``doc_id``, ``grade``; below 0 is not judged, as in TREC.
        runs: Runs with distinct names.
        k: Documents per query, from 1.

    Raises:
        UsageError: k is out of range, or two runs have the same name.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise UsageError(f"k is {k!r}, not a whole number from 1")
    several = list(runs)
    if len({run.name for run in several}) < len(several):
        raise UsageError("two runs have the same name", fix="give each its own name")
    ids = queries["query_id"].unique(maintain_order=True)
    known = grades.filter(pl.col("grade") >= 0).select(*_KEY, graded=pl.lit(value=True))
    shown = pl.concat([_top(run, ids, k) for run in several] or [_NONE]).join(
        known, on=_KEY, how="left", maintain_order="left"
    )
    every = pl.DataFrame({"run": [run.name for run in several]}, {"run": pl.String}).join(
        ids.to_frame(), how="cross"
    )
    counts = shown.group_by("run", "query_id").agg(
        shown=pl.len().cast(pl.Int64), graded=pl.col("graded").sum().cast(pl.Int64)
    )
    per_query = every.join(
        counts, on=["run", "query_id"], how="left", maintain_order="left"
    ).with_columns(
        pl.col("shown", "graded").fill_null(0),
        judged=pl.col("graded") / pl.col("shown"),
    )
    return Coverage(
        k=k,
        runs=per_query.group_by("run", maintain_order=True).agg(
            queries=pl.len().cast(pl.Int64),
            answered=pl.col("judged").count().cast(pl.Int64),
            judged=pl.col("judged").mean(),
            unjudged=(pl.col("shown") - pl.col("graded")).sum(),
        ),
        queries=per_query,
        unjudged=_unjudged(shown, k),
    )


_NONE = pl.DataFrame(
    schema={"run": pl.String, "query_id": pl.String, "doc_id": pl.String, "rank": pl.Int64}
)


def _top(run: Run, ids: pl.Series, k: int) -> pl.DataFrame:
    top = run.top(ids.to_list(), k)
    columns = [
        pl.Series("run", [run.name], dtype=pl.String).new_from_index(0, top.height),
        ids.gather(top["query"]),
        top["doc_id"],
        top["rank"].cast(pl.Int64),
    ]
    return pl.DataFrame(columns)


def _unjudged(shown: pl.DataFrame, k: int) -> Pairs:
    pairs = (
        shown.filter(pl.col("graded").is_null())
        .group_by(_KEY)
        .agg(best_rank=pl.col("rank").min(), systems=pl.col("run").sort())
        .sort(
            pl.col("systems").list.len(),
            "best_rank",
            *_KEY,
            descending=[True, False, False, False],
        )
    )
    return Pairs(pairs, f"unjudged in the top {k}")
