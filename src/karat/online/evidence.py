"""Evidence: the small tables that a log reduces to, and from which every online number is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import polars as pl

from karat.online import moments
from karat.online.histograms import added, empty_histogram, empty_positions
from karat.tables.online.events import ATTRIBUTE

Cut = tuple[str, ...]
"""What a log is cut by: ``day``, ``hour``, ``arm``, ``query``, ``class``, or attributes; () is all.
"""


@dataclass(frozen=True)
class Evidence:
    """What a log reduced to.

    Attributes:
        moments: For each cut a row for each of its slices and each ``Ratio``: the cut's columns
            (String, null where the log does not say), ``metric`` (a name), ``term`` (value | least
            | most), ``users`` (those with a denominator above 0), ``numerator`` and
            ``denominator`` (sums), and of these sums by user: ``mean_numerator``,
            ``mean_denominator``, ``m2_numerator``, ``m2_denominator`` (centred sums of squares)
            and ``comoment``.
        histograms: For each cut a row for each bin: the cut's columns, ``name`` of the
            distribution, ``user_bucket``, ``bin_us`` (Int64: microseconds, cut off behind the
            third digit that counts), ``censored`` (0 or 1), ``count`` and ``sum_us``.
        positions: For each cut a row for each position clicked: the cut's columns, ``position``,
            ``clicks``.
        counts: What was counted on the way: ``events``, ``users``, ``sessions``, ``searches``,
            ``requests``, ``clicks``, ``unattributed_carts``, ``unattributed_purchases``,
            ``users_in_several_arms``, ``derived_items`` (searches whose items are what was
            returned), ``unknown_results`` (completed searches that do not say whether they found
            anything), ``unknown_query_ids`` (events whose query_id names no request).
    """

    moments: Mapping[Cut, pl.DataFrame]
    histograms: Mapping[Cut, pl.DataFrame]
    positions: Mapping[Cut, pl.DataFrame]
    counts: Mapping[str, int]


COUNTS = (
    "events",
    "users",
    "sessions",
    "searches",
    "requests",
    "clicks",
    "unattributed_carts",
    "unattributed_purchases",
    "users_in_several_arms",
    "derived_items",
    "unknown_results",
    "unknown_query_ids",
)
_COLUMN = {"day": "local_day", "hour": "local_hour", "query": "query_key"}
_TIMES = {"local_day", "local_hour"}
_NONE = "\x00"
"""Stands for null while slices are made: nulls are equal in no join and in every group."""


def column_of(dimension: str) -> str:
    """The column of facts that a dimension is cut by; ``arm`` and ``class`` are their own."""
    if dimension in {"arm", "class"}:
        return dimension
    return _COLUMN.get(dimension, ATTRIBUTE + dimension)


def attributes_of(cuts: Sequence[Cut]) -> list[str]:
    """The columns of attributes that cuts ask for, sorted."""
    columns = {column_of(each) for cut in cuts for each in cut}
    return sorted(each for each in columns if each.startswith(ATTRIBUTE))


def cuttable(facts: nw.LazyFrame[Any], cuts: Sequence[Cut]) -> nw.LazyFrame[Any]:
    """Facts whose columns of cuts hold no nulls, so that users without an arm are a slice too.

    What is empty says no more than what is lacking: both are that one slice.
    """
    columns = {column_of(each) for cut in cuts for each in cut} - _TIMES
    return facts.with_columns(
        nw.when(shown(name, None)).then(nw.lit(_NONE)).otherwise(nw.col(name)).alias(name)
        for name in sorted(columns)
    )


def shown(column: str, value: str | int | None) -> nw.Expr:
    """Whether a column of facts holds a value; None: whether it holds none, or an empty text."""
    if value is not None:
        return nw.col(column) == value
    none = nw.col(column).is_null()
    return none if column in _TIMES else none | (nw.col(column) == "")


def named(table: pl.DataFrame, cut: Cut) -> pl.DataFrame:
    """A table of slices with the cut's dimensions in words: ``2026-11-20``, ``09``, null.

    Args:
        table: With the columns of the cut, as ``column_of`` names them.
        cut: What it is cut by.
    """
    words = []
    for dimension in cut:
        value = pl.col(column_of(dimension))
        if dimension == "day":
            value = value.cast(pl.Int32).cast(pl.Date).cast(pl.String)
        elif dimension == "hour":
            value = value.cast(pl.String).str.zfill(2)
        else:
            value = pl.when(value != _NONE).then(value)
        words.append(value.alias(dimension))
    rest = [name for name in table.columns if name not in {column_of(each) for each in cut}]
    return table.select(*words, *rest)


def together(parts: Sequence[Evidence], cuts: Sequence[Cut]) -> Evidence:
    """The evidence of several batches of users, of whom none is in two, as if they were one.

    Args:
        parts: Evidence of each batch, of the same cuts and metrics.
        cuts: Those.
    """
    return Evidence(
        {cut: moments.together([part.moments[cut] for part in parts], cut) for cut in cuts},
        # Whole users are whole buckets of users: no bin is in two batches.
        {
            cut: pl.concat([empty_histogram(cut), *(part.histograms[cut] for part in parts)])
            for cut in cuts
        },
        {
            cut: added(
                [empty_positions(cut), *(part.positions[cut] for part in parts)], ("clicks",)
            )
            for cut in cuts
        },
        {name: sum(part.counts.get(name, 0) for part in parts) for name in COUNTS},
    )
