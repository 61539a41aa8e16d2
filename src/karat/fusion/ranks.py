"""Fusion by rank: what the systems' scores mean need not be comparable, or known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import reduce
from numbers import Integral, Real
from typing import Any

import polars as pl

from karat.errors import UsageError
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
    The result has no knowledge of the runs' scores, and the order of the runs changes no digit.

    Each query of any run is in the result: with documents where any run has some; else
    ``empty`` where any run answered with nothing; else ``failed`` (with the first run's
    ``error``). How long the runs took is not carried over.

    Args:
        runs: One or more.
        k: How little the first ranks stand out; 0 or more. 60 is the paper's.
        depth: Read only the best so many documents of each run, and keep the best so many of
            the fusion; all of them if None.
        weights: One for each run, above 0: its reciprocal ranks are multiplied by it. All 1 if
            None.
        name: What results call the fused run.

    Raises:
        UsageError: no runs; k, depth or a weight out of range; not one weight for each run.

    Source: Cormack, Clarke & Büttcher 2009, Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods, doi:10.1145/1571941.1572114. For the same ranks it equals
    ranx's ``fuse(method="rrf")``, up to the last bit where ranx adds in the order of the runs.
    """
    runs = _runs(runs)
    weights = [1.0] * len(runs) if weights is None else _weights(weights, len(runs))
    k, depth = _check(k, depth)
    asked = pl.concat([run.answers.select("query_id") for run in runs]).unique(maintain_order=True)
    number = asked.with_row_index("query")
    shares = [
        _shares(run, number, k, depth, weight) for run, weight in zip(runs, weights, strict=True)
    ]
    # Adding the largest share first makes the order of the runs irrelevant to the last bit, and a
    # better rank never lowers a sum. Two numbers have one sum in either order.
    given = pl.concat(shares)
    given = given.sort("share", descending=True) if len(runs) > 2 else given
    fused = (
        given.group_by("query", "doc_id")
        .agg("share")  # rows keep their order within a group
        .select("query", "doc_id", score=_sum("share", len(runs)))
        .sort("query", "score", "doc_id", descending=[False, True, True])
    )
    if depth is not None:
        fused = fused.filter(pl.int_range(pl.len()).over("query") < depth)
    rows = fused.select(asked["query_id"].gather(fused["query"]), "doc_id", "score")
    about = {"fusion": f"reciprocal rank, k={k:g}", "fused": ", ".join(run.name for run in runs)}
    return Run.from_batches(name, [rows], answers=_unanswered(runs, rows), about=about)


def _shares(
    run: Run, number: pl.DataFrame, k: float, depth: int | None, weight: float
) -> pl.DataFrame:
    """What each document of one run gets: ``query`` (its number), ``doc_id``, ``share``."""
    found = run.frame()
    if depth is not None:
        found = found.filter(pl.col("rank") <= depth)
    return found.join(number, on="query_id").select(
        "query", "doc_id", share=weight / (k + pl.col("rank").cast(pl.Float64))
    )


def _sum(column: str, count: int) -> pl.Expr:
    """The sum of each list of at most so many numbers, added from first to last."""
    parts = [pl.col(column).list.get(at, null_on_oob=True).fill_null(0.0) for at in range(count)]
    return reduce(pl.Expr.__add__, parts)


def _unanswered(runs: list[Run], rows: pl.DataFrame) -> pl.DataFrame:
    """The answers of the queries that no run has a document for."""
    given = pl.concat([run.answers for run in runs], how="diagonal")
    error = (
        pl.col("error").drop_nulls().first()
        if "error" in given.columns
        else pl.lit(None, pl.String)
    )
    return (
        given.join(rows, on="query_id", how="anti", maintain_order="left")
        .group_by("query_id", maintain_order=True)
        .agg(failed=(pl.col("state") == "failed").all(), error=error)
        .select(
            "query_id",
            state=pl.when("failed").then(pl.lit("failed")).otherwise(pl.lit("empty")),
            error=pl.when("failed").then("error"),
        )
    )


def _runs(runs: Any) -> list[Run]:
    if isinstance(runs, Run) or not isinstance(runs, Iterable) or isinstance(runs, str | Mapping):
        kind = "one run" if isinstance(runs, Run) else f"of type {type(runs).__name__}"
        raise UsageError(f"what to fuse is {kind}, not a list of runs", fix="[bm25, dense]")
    several = list(runs)
    if not several:
        raise UsageError("there are no runs to fuse", fix="give at least one")
    wrong = [each for each in several if not isinstance(each, Run)]
    if wrong:
        raise UsageError(
            f"one of the runs is of type {type(wrong[0]).__name__}",
            fix="karat.read_run(path), or karat.Run.from_dict({query: {document: score}})",
        )
    return several


def _weights(weights: Any, count: int) -> list[float]:
    if not isinstance(weights, Iterable) or isinstance(weights, str | Mapping):
        raise UsageError(f"weights is {weights!r}, not a list of numbers", fix="weights=[2, 1]")
    several = list(weights)
    if len(several) != count:
        given = "1 weight" if len(several) == 1 else f"{len(several)} weights"
        raise UsageError(f"there {'is' if len(several) == 1 else 'are'} {given} for {count} runs")
    for weight in several:
        if not (_is_number(weight) and math.isfinite(weight) and weight > 0):
            raise UsageError(
                f"the weight {weight!r} is not a number above 0",
                fix="leave a run of no weight out",
            )
    return [float(weight) for weight in several]


def _check(k: Any, depth: Any) -> tuple[float, int | None]:
    if not (_is_number(k) and math.isfinite(k) and k >= 0):
        raise UsageError(f"k={k!r} is not a number of 0 or more", fix="k=60, as in the paper")
    whole = isinstance(depth, Integral) and not isinstance(depth, bool)
    if depth is not None and not (whole and depth >= 1):
        raise UsageError(
            f"a depth of {depth!r} is not a whole number from 1", fix="a depth of 1 or more"
        )
    return float(k), None if depth is None else int(depth)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
