"""Shared by all fusions: validation of runs, weights and depth, cutting, and unanswered queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import polars as pl

from karat.errors import UsageError
from karat.tables import Run


def cut(fused: pl.DataFrame, depth: int | None) -> pl.DataFrame:
    """The top ``depth`` documents of each ``query``, in karat's order; columns do not change."""
    fused = fused.sort("query", "score", "doc_id", descending=[False, True, True])
    if depth is None:
        return fused
    return fused.filter(pl.int_range(pl.len()).over("query") < depth)


def unanswered(runs: list[Run], rows: pl.DataFrame) -> pl.DataFrame:
    """The answers to queries for which the fusion has no documents.

    ``empty`` where any run answered, ``failed`` (with the first run's ``error``) where none did.
    """
    answers = pl.concat([run.answers for run in runs], how="diagonal")
    error = (
        pl.col("error").drop_nulls().first()
        if "error" in answers.columns
        else pl.lit(None, pl.String)
    )
    return (
        answers.join(rows, on="query_id", how="anti", maintain_order="left")
        .group_by("query_id", maintain_order=True)
        .agg(failed=(pl.col("state") == "failed").all(), error=error)
        .select(
            "query_id",
            state=pl.when("failed").then(pl.lit("failed")).otherwise(pl.lit("empty")),
            error=pl.when("failed").then("error"),
        )
    )


def checked_runs(runs: Any) -> list[Run]:
    """The runs, as a list.

    Raises:
        UsageError: not a list of runs, or an empty one.
    """
    if isinstance(runs, Run) or not isinstance(runs, Iterable) or isinstance(runs, str | Mapping):
        kind = "one run" if isinstance(runs, Run) else f"of type {type(runs).__name__}"
        raise UsageError(f"what to fuse is {kind}, not a list of runs", fix="[bm25, dense]")
    several = list(runs)
    if not several:
        raise UsageError("there are no runs to fuse", fix="give at least one")
    wrong = [run for run in several if not isinstance(run, Run)]
    if wrong:
        raise UsageError(
            f"one of the runs is of type {type(wrong[0]).__name__}",
            fix="karat.read_run(path), or karat.Run.from_dict({query: {document: score}})",
        )
    return several


def checked_weights(weights: Any, count: int) -> list[float]:
    """One weight for each run; all 1 if None.

    Raises:
        UsageError: not one for each run, or one that is not above 0.
    """
    if weights is None:
        return [1.0] * count
    if not isinstance(weights, Iterable) or isinstance(weights, str | Mapping):
        raise UsageError(f"weights is {weights!r}, not a list of numbers", fix="weights=[2, 1]")
    several = list(weights)
    if len(several) != count:
        given = "1 weight" if len(several) == 1 else f"{len(several)} weights"
        raise UsageError(f"there {'is' if len(several) == 1 else 'are'} {given} for {count} runs")
    for weight in several:
        if not (is_number(weight) and math.isfinite(weight) and weight > 0):
            raise UsageError(
                f"the weight {weight!r} is not a number above 0",
                fix="leave out runs without weight",
            )
    return [float(weight) for weight in several]


def checked_depth(depth: Any) -> int | None:
    """Number of documents of each ranking to read and keep; None for all.

    Raises:
        UsageError: not a whole number from 1.
    """
    whole = isinstance(depth, Integral) and not isinstance(depth, bool)
    if depth is not None and not (whole and depth >= 1):
        raise UsageError(
            f"a depth of {depth!r} is not a whole number from 1", fix="a depth of 1 or more"
        )
    return None if depth is None else int(depth)


def is_number(value: Any) -> bool:
    """Whether it is a real number, of Python or NumPy, but not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)
