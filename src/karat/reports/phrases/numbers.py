"""Formatting of numbers, the same in terminals, notebooks and sentences."""

from __future__ import annotations

from collections.abc import Sequence

from karat.tables import Result
from karat.tables.results import NoAnswer

DIGITS = 4
"""Decimal places of a value."""


def value_text(row: Result, value: float | None) -> str:
    """The value of a row, or an end of one of its bands."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if row.aggregate == "sum" else f"{value:.{DIGITS}f}"


def moves(row: Result, low: float | None, high: float | None, digits: int = DIGITS) -> bool:
    """Whether an end of a band is printed differently from the value of its row."""
    if row.value is None or low is None or high is None:
        return False
    digits = 0 if row.aggregate == "sum" else digits
    return any(f"{end:.{digits}f}" != f"{row.value:.{digits}f}" for end in (low, high))


def percent(share: float | None) -> str:
    if share is None:
        return ""
    if 0.01 <= share <= 0.99 or share in (0, 1):
        return f"{100 * share:.0f} %"
    if share > 1:
        return f"{100 * share:,.0f} %"
    one_digit = f"{100 * share:.1f}"
    if one_digit not in {"0.0", "100.0"}:
        return f"{one_digit} %"
    return f"{min(max(100 * share, 0.01), 99.99):.2f} %"


def milliseconds(microseconds: float) -> str:
    """A time in milliseconds, to three significant digits or whole."""
    value = microseconds / 1000
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def signed(value: float | None, digits: int = 3) -> str:
    """A difference, with its sign; a dash for None."""
    return "–" if value is None else f"{value:+.{digits}f}".replace("-", "−")


def counted(count: int, noun: str, plural: str = "") -> str:
    """``1 query``, ``1,200 queries``; a plural that is not regular is given."""
    if not plural:
        plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}es"
        plural = plural if noun.endswith(("y", "ch")) else f"{noun}s"
    return f"1 {noun}" if count == 1 else f"{count:,} {plural}"


def first_of(names: Sequence[str], most: int) -> str:
    """The first names, and how many follow: ``a, b and 3 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def silence_heading(rows: Sequence[NoAnswer]) -> str:
    """Heading of the column of silent answers."""
    threshold = rows[0].threshold
    return "Answered with nothing" if threshold is None else f"Nothing, or below {threshold:g}"
