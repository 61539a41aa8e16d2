"""Numbers and booleans in local spellings."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from karat.formats.events.vocabulary import NO, YES

_BLANKS = "[ \u00a0\u202f]"


@dataclass(frozen=True)
class Written:
    """How a log writes numbers and booleans.

    Attributes:
        decimal: Decimal sign, ``.`` | ``,``; None: a point, without grouping.
        thousands: Thousands separator; None: the other of point and comma.
        without: Prefixes and suffixes to strip, such as ``€`` or ``ms``.
        yes: Further words for true, in lower case.
        no: Further words for false, in lower case.
    """

    decimal: str | None = None
    thousands: str | None = None
    without: tuple[str, ...] = ()
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()


def number(text: pl.Expr, written: Written) -> pl.Expr:
    """Text as Float64; null if it is not a number.

    If a decimal sign is set, groups must have three digits: with a decimal comma, ``1.23`` is not
    a number.
    """
    bare = text.str.strip_chars()
    for affix in sorted(written.without, key=len, reverse=True):
        bare = bare.str.strip_prefix(affix).str.strip_suffix(affix).str.strip_chars()
    if written.decimal is None:
        return bare.cast(pl.Float64, strict=False)
    group = written.thousands or ("." if written.decimal == "," else ",")
    between = _BLANKS if group == " " else f"[{group}]"
    form = rf"^[+-]?(?:\d{{1,3}}(?:{between}\d{{3}})+|\d+)(?:[{written.decimal}]\d+)?$"
    plain = bare.str.replace_all(between, "").str.replace(written.decimal, ".", literal=True)
    return pl.when(bare.str.contains(form)).then(plain.cast(pl.Float64, strict=False))


def flag(text: pl.Expr, written: Written) -> pl.Expr:
    bare = text.str.strip_chars().str.to_lowercase()
    return (
        pl.when(bare.is_in([*YES, *written.yes]))
        .then(pl.lit(value=True))
        .when(bare.is_in([*NO, *written.no]))
        .then(pl.lit(value=False))
    )
