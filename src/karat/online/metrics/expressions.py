"""Expressions of entries, over the columns of the facts.

They use only what Polars, DuckDB and Spark compute alike: whole numbers, comparisons, ``when``.
Nulls count as 0 in ``moments.rows``, both as a numerator and as a denominator.
"""

from __future__ import annotations

import narwhals as nw

from karat.online.metrics.entry import Expression


def column(name: str) -> Expression:
    """A column, with its nulls."""
    return lambda: nw.col(name)


def one() -> nw.Expr:
    """1 for every row."""
    return nw.lit(1)


def known(name: str) -> Expression:
    """1 where a column is not null; else 0."""
    return lambda: nw.when(~nw.col(name).is_null()).then(1).otherwise(0)


def equals(name: str, value: str | int) -> Expression:
    """1 where a column has this value; else 0, for null too."""
    return lambda: nw.when(nw.col(name) == value).then(1).otherwise(0)


def at_most(name: str, value: int) -> Expression:
    """1 where a column is this or less; else 0, for null too."""
    return lambda: nw.when(nw.col(name) <= value).then(1).otherwise(0)


def ranked(over: str = "seen") -> Expression:
    """1 where ``over`` is 1 and the position of the click, if any, is known; else 0."""
    unknown = (nw.col("clicked") == 1) & nw.col("first_rank").is_null()
    return lambda: nw.when((nw.col(over) == 1) & ~unknown).then(1).otherwise(0)


def reciprocal() -> nw.Expr:
    """One divided by the best position clicked; null without one."""
    return 1.0 / nw.col("first_rank")


def clicked_and_ranked() -> nw.Expr:
    """1 where results were seen and a position clicked is known; else 0."""
    counts = (nw.col("seen") == 1) & ~nw.col("first_rank").is_null()
    return nw.when(counts).then(1).otherwise(0)


def to_first_click() -> nw.Expr:
    """Time to the first click, else until the search was left; null where no results were seen."""
    until = nw.when(nw.col("clicked") == 1).then(nw.col("first_click_us")).otherwise(
        nw.col("left_us")
    )  # fmt: skip
    return nw.when(nw.col("seen") == 1).then(until)


def not_clicked() -> nw.Expr:
    """1 where nothing was clicked; else 0."""
    return nw.when(nw.col("clicked") == 1).then(0).otherwise(1)
