"""Expressions that the reducers share: flags as integers, and the order of a user's events."""

from __future__ import annotations

import narwhals as nw

USER = "user_key"
ORDER = ("time_us", "tie")  # the order of a user's events; unique per user


def flag(condition: nw.Expr) -> nw.Expr:
    """1 where a condition is true, 0 where it is false or null; Int64."""
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0)).cast(nw.Int64)


def known_flag(known: nw.Expr, condition: nw.Expr) -> nw.Expr:
    """1 or 0 where known, else null; Int64."""
    return nw.when(known).then(flag(condition))


def before(column: str) -> nw.Expr:
    """The value of a column at the user's previous event; null at the first."""
    return nw.col(column).shift(1).over(USER, order_by=list(ORDER))


def behind(column: str, *, order: tuple[str, ...] = ORDER) -> nw.Expr:
    """The value of a column at the user's next event; null at the last."""
    return nw.col(column).shift(-1).over(USER, order_by=list(order))


def running(number: nw.Expr) -> nw.Expr:
    """The running sum over the user's events; cast to Int64, as DuckDB's sums have another type."""
    return number.cum_sum().over(USER, order_by=list(ORDER)).cast(nw.Int64)
