"""Fusion by rank, for systems whose scores are not comparable."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any

import polars as pl

from karat.errors import UsageError
from karat.fusion.parts import (
    checked_depth,
    checked_runs,
    checked_weights,
    cut,
    is_number,
    unanswered,
)
from karat.tables import Run


def reciprocal_rank(
    runs: Iterable[Run],
    *,
    k: float = 60,
    depth: int | None = None,
    weights: Iterable[float] | None = None,
    name: str = "rrf",
) -> Run:
    """Reciprocal rank fusion: a document's score is the sum over the runs of 1 / (k + rank).

    A run that lacks a document adds nothing for it. Ranks count from 1 in karat's order (score
    descending, then document id descending by bytes), so tied documents have different ranks.
    Scores of the runs do not matter, and the order of the runs changes no digit.

    Each query of any run is in the result: with documents if any run has some; else ``empty`` if
    any run has an empty answer; else ``failed`` (with the first run's ``error``). Latencies are not
    carried over.

    Args:
        runs: One or more.
        k: A higher value gives the first ranks less weight; 0 or more. 60 is the paper's.
        depth: Number of top documents to read of each run and to keep of the fusion; all if None.
        weights: One for each run, above 0, which multiplies its reciprocal ranks. All 1 if None.
        name: Name of the fused run.

    Raises:
        UsageError: no runs; k, depth or a weight out of range; not one weight for each run.

    Source: Cormack, Clarke & Büttcher 2009, Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods, doi:10.1145/1571941.1572114. For the same ranks it equals
    ranx's ``fuse(method="rrf")``, up to the last bit where ranx adds in the order of the runs.
    """
    runs = checked_runs(runs)
    weights = checked_weights(weights, len(runs))
    k, depth = _checked_k(k), checked_depth(depth)
    asked = pl.concat([run.answers.select("query_id") for run in runs]).unique(maintain_order=True)
    number = asked.with_row_index("query")
    shares = [
        _shares(run, number, k, depth, weight) for run, weight in zip(runs, weights, strict=True)
    ]
    # Adding the largest share first makes sums independent of the order of runs to the last bit,
    # and a better rank never lowers a sum. The sum of two numbers never depends on their order.
    terms = pl.concat(shares)
    terms = terms.sort("share", descending=True) if len(runs) > 2 else terms
    fused = (
        terms.group_by("query", "doc_id")
        .agg("share")  # rows keep their order within a group
        .select("query", "doc_id", score=_sum("share", len(runs)))
    )
    fused = cut(fused, depth)
    rows = fused.select(asked["query_id"].gather(fused["query"]), "doc_id", "score")
    about = {"fusion": f"reciprocal rank, k={k:g}", "fused": ", ".join(run.name for run in runs)}
    return Run.from_batches(name, [rows], answers=unanswered(runs, rows), about=about)


def _shares(
    run: Run, number: pl.DataFrame, k: float, depth: int | None, weight: float
) -> pl.DataFrame:
    """The term of each document of one run: ``query`` (its number), ``doc_id``, ``share``."""
    rows = run.frame()
    if depth is not None:
        rows = rows.filter(pl.col("rank") <= depth)
    return rows.join(number, on="query_id").select(
        "query", "doc_id", share=weight / (k + pl.col("rank").cast(pl.Float64))
    )


def _sum(column: str, count: int) -> pl.Expr:
    """The sum of each list of at most ``count`` numbers, added from first to last."""
    parts = [pl.col(column).list.get(at, null_on_oob=True).fill_null(0.0) for at in range(count)]
    return reduce(pl.Expr.__add__, parts)


def _checked_k(k: Any) -> float:
    if not (is_number(k) and math.isfinite(k) and k >= 0):
        raise UsageError(f"k={k!r} is not a number of 0 or more", fix="k=60, as in the paper")
    return float(k)
