"""Histograms of times by bucket of users, in bins that add up exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl

from karat.online.flags import flag
from karat.online.metrics.entry import Distribution

_LONGEST = 13  # powers of ten: 10^16 us are three hundred years


def bin_us(time_us: nw.Expr) -> nw.Expr:
    """A time in microseconds, truncated to three significant digits; Int64.

    Up to 999 us each microsecond is a bin; 12,345 us is in the bin of 12,300. A bin is at most 1 %
    wide, and the same for all engines, batches and days.
    """
    cut = time_us
    for power in range(1, _LONGEST + 1):
        step = 10**power
        cut = nw.when(time_us >= 100 * step).then(time_us // step * step).otherwise(cut)
    return cut.cast(nw.Int64)


def histogram(
    facts: nw.LazyFrame[Any], distribution: Distribution, cut: Sequence[str]
) -> nw.LazyFrame[Any]:
    """The histogram of a distribution in each slice of a cut.

    Args:
        facts: The table of facts of the distribution.
        distribution: The distribution.
        cut: Columns to slice by; without nulls.

    Returns:
        The cut's columns, ``user_bucket``, ``bin_us``, ``censored``, ``count``, ``sum_us``.
    """
    censored = flag(nw.lit(False)) if distribution.censored is None else distribution.censored()
    keys = [*cut, "user_bucket", "bin_us", "censored"]
    return (
        facts.with_columns(_us=distribution.value().cast(nw.Int64))
        .filter(~nw.col("_us").is_null() & (nw.col("_us") >= 0))
        .with_columns(bin_us=bin_us(nw.col("_us")), censored=censored.cast(nw.Int64).fill_null(0))
        .group_by(*keys)
        .agg(count=nw.len().cast(nw.Int64), sum_us=nw.col("_us").sum().cast(nw.Int64))
    )


def positions(clicks: nw.LazyFrame[Any], cut: Sequence[str]) -> nw.LazyFrame[Any]:
    """The clicks at each position in each slice of a cut.

    Args:
        clicks: CLICKS.
        cut: Columns to slice by; without nulls.
    """
    return (
        clicks.filter(~nw.col("position").is_null())
        .group_by(*cut, "position")
        .agg(clicks=nw.len().cast(nw.Int64))
    )


def empty_histogram(cut: Sequence[str]) -> pl.DataFrame:
    """An empty histogram of a cut."""
    counted = ("user_bucket", "bin_us", "censored", "count", "sum_us")
    return pl.DataFrame(
        schema={
            **dict.fromkeys(cut, pl.String),
            "name": pl.String,
            **dict.fromkeys(counted, pl.Int64),
        }
    )


def empty_positions(cut: Sequence[str]) -> pl.DataFrame:
    """An empty table of positions of a cut."""
    return pl.DataFrame(
        schema={**dict.fromkeys(cut, pl.String), "position": pl.Int64, "clicks": pl.Int64}
    )


def added_positions(parts: Sequence[pl.DataFrame], cut: Sequence[str]) -> pl.DataFrame:
    """Positions of disjoint batches of users: clicks at the same one are added; sorted."""
    keys = [*cut, "position"]
    summed = pl.concat([empty_positions(cut), *parts]).group_by(keys).agg(pl.col("clicks").sum())
    return summed.sort(keys, nulls_last=True)
