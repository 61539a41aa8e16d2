"""Moments: sums over users within slices, from which ratios and their intervals are computed.

Users are the unit: the searches of one user are not independent, so numerators and denominators are
summed by user first, and the centred moments are of those sums. Engines compute variances and
covariances around the mean; batches are combined by Chan, Golub and LeVeque's update (1983). No
squares of sums are subtracted, which would cancel all digits at values around 1e9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl

from karat.online.flags import USER
from karat.online.metrics.entry import Expression, Metric, Ratio

_SUMS = ("users", "numerator", "denominator")
_CENTRED = ("m2_numerator", "m2_denominator", "comoment")


def terms(metric: Metric) -> dict[str, Expression]:
    """The numerators of a ratio: ``value``, and its bounds ``least`` and ``most`` if any."""
    ratio = metric.compute
    assert isinstance(ratio, Ratio)
    named = {"value": ratio.numerator, "least": ratio.least, "most": ratio.most}
    return {name: expression for name, expression in named.items() if expression is not None}


def rows(facts: nw.LazyFrame[Any], metrics: Sequence[Metric], cut_by: Sequence[str]) -> Any:
    """The contribution of each row to each ratio.

    Args:
        facts: The table of facts of these ratios.
        metrics: Ratios.
        cut_by: Columns to keep for cuts.

    Returns:
        A lazy frame of ``user_key``, those columns, and for ratio number i ``d{i}`` (its
        denominator, 0 where the row does not count) and ``value{i}``, ``least{i}``, ``most{i}``
        (numerators, 0 there too); Float64.
    """
    zero = nw.lit(0.0)
    below: dict[str, nw.Expr] = {}
    above: dict[str, nw.Expr] = {}
    for number, metric in enumerate(metrics):
        ratio = metric.compute
        assert isinstance(ratio, Ratio)
        if ratio.denominator is None:
            below[f"d{number}"] = nw.lit(1.0)
        else:
            below[f"d{number}"] = ratio.denominator().cast(nw.Float64).fill_null(0.0)
        for term, expression in terms(metric).items():
            added = expression().cast(nw.Float64).fill_null(0.0)
            counts = nw.col(f"d{number}") > 0
            above[f"{term}{number}"] = nw.when(counts).then(added).otherwise(zero)
    return facts.with_columns(**below).with_columns(**above).select(USER, *cut_by, *below, *above)


def moments(
    added: nw.LazyFrame[Any], metrics: Sequence[Metric], cut: Sequence[str]
) -> nw.LazyFrame[Any]:
    """The moments of each slice of a cut.

    Args:
        added: From ``rows``.
        metrics: The same ratios.
        cut: Columns to slice by; without nulls.

    Returns:
        One row for each slice, with ``users{i}``, ``sum_d{i}``, ``m2_d{i}`` of ratio number i, and
        ``sum_{term}{i}``, ``m2_{term}{i}``, ``co_{term}{i}`` of each of its terms.
    """
    by_user: dict[str, nw.Expr] = {}
    for number, metric in enumerate(metrics):
        ratio = metric.compute
        assert isinstance(ratio, Ratio)
        below = nw.col(f"d{number}")
        by_user[f"d{number}"] = below.max() if ratio.denominator is None else below.sum()
        for term in terms(metric):
            by_user[f"{term}{number}"] = nw.col(f"{term}{number}").sum()
    users = added.group_by(USER, *cut).agg(**by_user)
    counted = users.with_columns(
        **{
            name: nw.when(nw.col(f"d{number}") > 0).then(nw.col(name))
            for number, metric in enumerate(metrics)
            for name in (f"{term}{number}" for term in (*terms(metric), "d"))
        }
    )
    sums: dict[str, nw.Expr] = {}
    for number, metric in enumerate(metrics):
        below = nw.col(f"d{number}")
        size = below.count().cast(nw.Float64)
        sums[f"users{number}"] = below.count().cast(nw.Int64)
        sums[f"sum_d{number}"] = below.sum()
        sums[f"m2_d{number}"] = below.var(ddof=0) * size
        for term in terms(metric):
            above = nw.col(f"{term}{number}")
            sums[f"sum_{term}{number}"] = above.sum()
            sums[f"m2_{term}{number}"] = above.var(ddof=0) * size
            sums[f"co_{term}{number}"] = nw.cov(above, below, ddof=0) * size
    return counted.group_by(*cut).agg(**sums) if cut else counted.select(**sums)


def long(wide: pl.DataFrame, metrics: Sequence[Metric], cut: Sequence[str]) -> pl.DataFrame:
    """One row for each slice, ratio and term, in the columns of ``Evidence.moments``."""
    parts = []
    for number, metric in enumerate(metrics):
        for term in terms(metric):
            parts.append(
                wide.filter(pl.col(f"users{number}") > 0).select(
                    *cut,
                    metric=pl.lit(metric.name),
                    term=pl.lit(term),
                    users=pl.col(f"users{number}"),
                    numerator=pl.col(f"sum_{term}{number}"),
                    denominator=pl.col(f"sum_d{number}"),
                    m2_numerator=pl.col(f"m2_{term}{number}"),
                    m2_denominator=pl.col(f"m2_d{number}"),
                    comoment=pl.col(f"co_{term}{number}"),
                )
            )
    if not parts:
        return empty(cut)
    return _with_means(pl.concat(parts)).select(empty(cut).columns)


def empty(cut: Sequence[str]) -> pl.DataFrame:
    """An empty table of moments of a cut."""
    labels = {**dict.fromkeys((*cut, "metric", "term"), pl.String), "users": pl.Int64}
    numbers = ("numerator", "denominator", "mean_numerator", "mean_denominator", *_CENTRED)
    return pl.DataFrame(schema={**labels, **dict.fromkeys(numbers, pl.Float64)})


def together(parts: Sequence[pl.DataFrame], cut: Sequence[str]) -> pl.DataFrame:
    """The combined moments of disjoint batches of users, sorted.

    Args:
        parts: Moments of the same cut.
        cut: Its columns.
    """
    keys = [*cut, "metric", "term"]
    every = pl.concat([empty(cut), *parts])
    size = pl.col("users").cast(pl.Float64)
    whole = every.join(
        _with_means(every.group_by(keys).agg(pl.col(name).sum() for name in _SUMS)).select(
            *keys, _above="mean_numerator", _below="mean_denominator"
        ),
        on=keys,
        nulls_equal=True,
    )
    above = pl.col("mean_numerator") - pl.col("_above")
    below = pl.col("mean_denominator") - pl.col("_below")
    merged = whole.group_by(keys).agg(
        *(pl.col(name).sum() for name in _SUMS),
        m2_numerator=pl.col("m2_numerator").sum() + (size * above * above).sum(),
        m2_denominator=pl.col("m2_denominator").sum() + (size * below * below).sum(),
        comoment=pl.col("comoment").sum() + (size * above * below).sum(),
    )
    return _with_means(merged).select(every.columns).sort(keys, nulls_last=True)


def _with_means(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(
        mean_numerator=pl.col("numerator") / pl.col("users"),
        mean_denominator=pl.col("denominator") / pl.col("users"),
    )
