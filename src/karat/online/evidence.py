"""Evidence: the small tables that a log is reduced to, and from which online metrics are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import polars as pl

from karat.online import moments
from karat.online.histograms import added_positions, empty_histogram
from karat.tables.online.events import ATTRIBUTE

Cut = tuple[str, ...]
"""Dimensions to slice by: ``day``, ``hour``, ``arm``, ``query``, ``class``, or attributes; () is
all."""


@dataclass(frozen=True)
class Evidence:
    """The tables of a reduced log."""

    # For each cut a row for each of its slices and each `Ratio`: the cut's columns (String, null if
    # missing in the log), `metric` (a name), `term` (value | least | most), `users` (those with a
    # denominator above 0), `numerator` and `denominator` (sums), and of these sums by user:
    # `mean_numerator`, `mean_denominator`, `m2_numerator`, `m2_denominator` (centred sums of
    # squares) and `comoment`
    moments: Mapping[Cut, pl.DataFrame]
    # For each cut a row for each bin: the cut's columns, `name` of the distribution, `user_bucket`,
    # `bin_us` (Int64: microseconds, truncated to three significant digits), `censored` (0 or 1),
    # `count` and `sum_us`
    histograms: Mapping[Cut, pl.DataFrame]
    # For each cut a row for each position clicked: the cut's columns, `position`, `clicks`
    positions: Mapping[Cut, pl.DataFrame]
    # totals: `events`, `users`, `sessions`, `searches`, `requests`, `clicks`, `unattributed_carts`,
    # `unattributed_purchases`, `users_in_several_arms`, `derived_items` (searches without logged
    # impressions, which use the number returned), `unknown_results` (completed searches for which
    # the log does not show whether they had results), `unknown_query_ids` (events whose query_id is
    # not that of a request)
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
WINDOW = "\x00window"
"""The dimension of several windows that are read at once; no attribute has this name."""
WINDOW_COLUMN = "local_window"  # the first local day of the window that an event was read for
_COLUMN = {
    "day": "local_day",
    "hour": "local_hour",
    "query": "query_key",
    WINDOW: WINDOW_COLUMN,
}
_TIMES = {"local_day", "local_hour", WINDOW_COLUMN}
_NONE = "\x00"  # replaces null in slices: nulls are equal in groups, but not in joins


def column_of(dimension: str) -> str:
    """The column of facts of a dimension; ``arm`` and ``class`` have the same name."""
    if dimension in {"arm", "class"}:
        return dimension
    return _COLUMN.get(dimension, ATTRIBUTE + dimension)


def attributes_of(cuts: Sequence[Cut]) -> list[str]:
    """The columns of attributes in cuts, sorted."""
    columns = {column_of(each) for cut in cuts for each in cut}
    return sorted(each for each in columns if each.startswith(ATTRIBUTE))


def cuttable(facts: nw.LazyFrame[Any], cuts: Sequence[Cut]) -> nw.LazyFrame[Any]:
    """Facts without nulls in the columns of cuts: users without an arm are a slice too.

    Empty texts and nulls are the same slice.
    """
    columns = {column_of(each) for cut in cuts for each in cut} - _TIMES
    return facts.with_columns(
        nw.when(shown(name, None)).then(nw.lit(_NONE)).otherwise(nw.col(name)).alias(name)
        for name in sorted(columns)
    )


def shown(column: str, value: str | int | None) -> nw.Expr:
    """Whether a column of facts has a value; for None, whether it is null or empty."""
    if value is not None:
        return nw.col(column) == value
    none = nw.col(column).is_null()
    return none if column in _TIMES else none | (nw.col(column) == "")


def named(table: pl.DataFrame, cut: Cut) -> pl.DataFrame:
    """A table of slices with the cut's dimensions as text: ``2026-11-20``, ``09``, null.

    Args:
        table: With the columns of the cut, as ``column_of`` names them.
        cut: Its dimensions.
    """
    texts = []
    for dimension in cut:
        value = pl.col(column_of(dimension))
        if dimension == "day":
            value = value.cast(pl.Int32).cast(pl.Date).cast(pl.String)
        elif dimension in {"hour", WINDOW}:
            value = value.cast(pl.String).str.zfill(2)
        else:
            value = pl.when(value != _NONE).then(value)
        texts.append(value.alias(dimension))
    rest = [name for name in table.columns if name not in {column_of(each) for each in cut}]
    return table.select(*texts, *rest)


def together(parts: Sequence[Evidence], cuts: Sequence[Cut]) -> Evidence:
    """The combined evidence of disjoint batches of users, without counts.

    Args:
        parts: Evidence of each batch, of the same cuts and metrics.
        cuts: The cuts.
    """
    return Evidence(
        {cut: moments.together([part.moments[cut] for part in parts], cut) for cut in cuts},
        # Batches have whole buckets of users: no bin is in two batches.
        {
            cut: pl.concat([empty_histogram(cut), *(part.histograms[cut] for part in parts)])
            for cut in cuts
        },
        {cut: added_positions([part.positions[cut] for part in parts], cut) for cut in cuts},
        {},
    )
