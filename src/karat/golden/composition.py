"""Composition of a set of queries, and where it is not representative of users' searches."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from karat.golden.traffic import TAIL
from karat.stats.intervals import TRUSTED_FROM

_FIRST = ("band", "class", "origin", "no_answer")
_FIXED = {"query_id", "text", "need", "weight", "count", "probability", "stratum"}
_MOST_VALUES = 20
_MUCH_SYNTHETIC = 0.25

_SCHEMA = pl.Schema(
    {
        "attribute": pl.String(),
        "value": pl.String(),
        "queries": pl.Int64(),
        "share": pl.Float64(),
        "weight": pl.Float64(),
    }
)


@dataclass(frozen=True, slots=True)
class Composition:
    """Composition of a set of queries."""

    queries: int
    # `attribute` (band, class, origin, no_answer, words, then any others), `value` (null where a
    # query has none), `queries`, `share` of the queries, and `weight`: the share of the weight,
    # null if the queries have no weights
    frame: pl.DataFrame
    warnings: tuple[str, ...]  # gaps, in sentences


def composition(queries: pl.DataFrame) -> Composition:
    """Counts and shares by every attribute with at most 20 values, and by number of words.

    Args:
        queries: The columns of ``schema.QUERIES``, at least ``query_id``, and any attributes.
    """
    frame = queries
    if "text" in frame.columns:
        words = pl.col("text").str.strip_chars().str.count_matches(r"\S+")
        spelt = pl.when(words >= 5).then(pl.lit("5 or more")).otherwise(words.cast(pl.String))
        frame = frame.with_columns(words=spelt)
    others = [name for name in frame.columns if name not in _FIXED and name not in _FIRST]
    names = [name for name in _FIRST if name in frame.columns]
    names += sorted(others, key=lambda name: name != "words")
    parts = [_counted(frame, name) for name in names]
    listed = [part for part in parts if part.height <= _MOST_VALUES]
    return Composition(
        queries=queries.height,
        frame=pl.concat([pl.DataFrame(schema=_SCHEMA), *listed]),
        warnings=tuple(_warnings(queries)),
    )


def _counted(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    total = max(frame.height, 1)
    weighed = "weight" in frame.columns and frame["weight"].sum() > 0
    weight = pl.lit(None, dtype=pl.Float64)
    if weighed:  # rounded: the shares add up to 1 and not to a little less
        weight = (pl.col("weight").sum() / frame["weight"].sum()).round(12)
    counted = frame.group_by(value=pl.col(name).cast(pl.String, strict=False)).agg(
        queries=pl.len().cast(pl.Int64), share=pl.len() / total, weight=weight
    )
    by = ["value"] if name == "words" else ["queries", "value"]
    ordered = counted.sort(by, descending=[each == "queries" for each in by], nulls_last=True)
    return ordered.select(pl.lit(name).alias("attribute"), *_SCHEMA.names()[1:])


def _warnings(queries: pl.DataFrame) -> list[str]:
    warnings = []
    n = queries.height
    if n < TRUSTED_FROM:
        are = "query is" if n == 1 else "queries are"
        warnings.append(f"{n:,} {are} too few: intervals are not reliable below {TRUSTED_FROM}.")
    synthetic = _number(queries, "origin", "synthetic")
    if n and synthetic:
        much = synthetic / n > _MUCH_SYNTHETIC
        warnings.append(
            f"{synthetic:,} of {n:,} queries are synthetic ({synthetic / n:.0%}): these are easier "
            "and more alike than queries of users" + ("; add queries from a log." if much else ".")
        )
    if "band" in queries.columns and n and not _number(queries, "band", TAIL):
        warnings.append("No query is from the tail, where search fails most often.")
    marked = "no_answer" in queries.columns and _number(queries, "no_answer", "true")
    if n and not marked:
        warnings.append("No query is marked no_answer: returning nothing is not tested.")
    return warnings


def _number(queries: pl.DataFrame, name: str, value: str) -> int:
    if name not in queries.columns:
        return 0
    return int((queries[name].cast(pl.String, strict=False) == value).sum())
