"""What is wrong with judgments, once every line is read."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from karat.workflows.lint.tally import Tally


def check(rows: pl.DataFrame, tally: Tally, silent: Collection[str] = ()) -> None:
    """Check the judgments of one file.

    Args:
        rows: ``query_id``, ``doc_id``, ``grade``, ``line`` and perhaps ``subtopic``.
        tally: Where to count.
        silent: Queries that are known to have no right answer.
    """
    bad = rows.filter(~pl.col("grade").is_finite())
    if bad.height:
        _add(tally, "grade-not-a-number", bad)
        rows = rows.filter(pl.col("grade").is_finite())
    _add(tally, "negative-grade", rows.filter(pl.col("grade") < 0))
    _add(tally, "fractional-grade", rows.filter(pl.col("grade") != pl.col("grade").floor()))
    _twice(rows, tally)
    _relevant(rows.filter(~pl.col("query_id").is_in(list(silent))), tally)


def _twice(rows: pl.DataFrame, tally: Tally) -> None:
    pair = ["query_id", "doc_id"]
    if "subtopic" in rows.columns and rows["subtopic"].n_unique() > 1:
        pair.append("subtopic")  # one that is the same throughout is none
    if not rows.select(pair).is_duplicated().any():
        return
    several = rows.filter(rows.select(pair).is_duplicated())
    grades = several.group_by(pair).agg(pl.col("grade").n_unique().alias("grades"))
    later = several.filter(~pl.struct(pair).is_first_distinct()).join(
        grades, on=pair, how="left", nulls_equal=True, maintain_order="left"
    )
    _add(tally, "duplicate-judgment", later.filter(pl.col("grades") == 1))
    conflicting = later.filter(pl.col("grades") > 1)
    if conflicting.height:
        row = conflicting.row(0, named=True)
        same = several.filter(pl.col(name).eq_missing(row[name]) for name in pair)
        given = " and ".join(f"{grade:g}" for grade in same["grade"].unique().sort())
        example = f"{' '.join(str(row[name]) for name in pair)}: {given}"
        tally.add(
            "conflicting-judgment",
            conflicting["line"].to_numpy(),
            query=row["query_id"],
            example=example,
        )


def _relevant(rows: pl.DataFrame, tally: Tally) -> None:
    if not rows.height:
        return
    best = rows.group_by("query_id", maintain_order=True).agg(
        pl.col("grade").max(), pl.col("line").first()
    )
    if rows["grade"].max() < 1 and (rows["grade"] > 0).any():  # type: ignore[operator]
        tally.add("no-grade-reaches-1", [], count=1)
        return
    bare = best.filter(pl.col("grade") < 1)
    if bare.height:
        tally.add("no-relevant-document", bare["line"].to_numpy(), query=bare["query_id"][0])


def _add(tally: Tally, code: str, rows: pl.DataFrame) -> None:
    if rows.height:
        first = rows.row(0, named=True)
        example = f"{first['query_id']} {first['doc_id']} {first['grade']:g}"
        tally.add(code, rows["line"].to_numpy(), query=first["query_id"], example=example)
