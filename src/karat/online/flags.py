"""Words that the reducers share: flags as integers, and the order of a user's events."""

from __future__ import annotations

import narwhals as nw

USER = "user_key"
ORDER = ("time_us", "tie")
"""The order of a user's events; with the user it is unique."""


def flag(condition: nw.Expr) -> nw.Expr:
    """1 where a condition holds, 0 where it does not or is not known; Int64."""
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0)).cast(nw.Int64)


def known_flag(known: nw.Expr, condition: nw.Expr) -> nw.Expr:
    """1 or 0 where it is known, else null; Int64."""
    return nw.when(known).then(flag(condition))


def before(column: str) -> nw.Expr:
    """What stood in a column at the user's event before; null at the first."""
    return nw.col(column).shift(1).over(USER, order_by=list(ORDER))


def behind(column: str, *, order: tuple[str, ...] = ORDER) -> nw.Expr:
    """What stands in a column at the user's next event; null at the last."""
    return nw.col(column).shift(-1).over(USER, order_by=list(order))


def running(number: nw.Expr) -> nw.Expr:
    """The sum of a number over the user's events so far; Int64, which DuckDB's sums are not."""
    return number.cum_sum().over(USER, order_by=list(ORDER)).cast(nw.Int64)
