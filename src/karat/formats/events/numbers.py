"""Numbers, and words for yes and no, as people write them in their own country."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from karat.formats.events.vocabulary import NO, YES

_BLANKS = "[ \u00a0\u202f]"


@dataclass(frozen=True)
class Written:
    """How a log writes numbers, and yes and no.

    Attributes:
        decimal: What stands before the fraction: ``.`` | ``,``; None: a point, and no grouping.
        thousands: Between groups of three; None: the other of point and comma.
        without: What may stand before or behind a number and is no part of it, as ``€`` or ``ms``.
        yes: What means yes, beside karat's own words; small letters.
        no: The same of no.
    """

    decimal: str | None = None
    thousands: str | None = None
    without: tuple[str, ...] = ()
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()


def number(text: pl.Expr, written: Written) -> pl.Expr:
    """Texts as Float64; null for what is no number.

    With a decimal sign, groups count only where they are of three digits: ``1.23`` is no number
    where the fraction begins with a comma.

    Args:
        text: Texts.
        written: How they are written.
    """
    bare = text.str.strip_chars()
    for each in sorted(written.without, key=len, reverse=True):
        bare = bare.str.strip_prefix(each).str.strip_suffix(each).str.strip_chars()
    if written.decimal is None:
        return bare.cast(pl.Float64, strict=False)
    group = written.thousands or ("." if written.decimal == "," else ",")
    between = _BLANKS if group == " " else f"[{group}]"
    form = rf"^[+-]?(?:\d{{1,3}}(?:{between}\d{{3}})+|\d+)(?:[{written.decimal}]\d+)?$"
    plain = bare.str.replace_all(between, "").str.replace(written.decimal, ".", literal=True)
    return pl.when(bare.str.contains(form)).then(plain.cast(pl.Float64, strict=False))


def flag(text: pl.Expr, written: Written) -> pl.Expr:
    """Texts as yes and no; null for what is neither.

    Args:
        text: Texts.
        written: Which words there are beside karat's.
    """
    bare = text.str.strip_chars().str.to_lowercase()
    return (
        pl.when(bare.is_in(_words(YES, written.yes)))
        .then(pl.lit(value=True))
        .when(bare.is_in(_words(NO, written.no)))
        .then(pl.lit(value=False))
    )


def _words(own: Sequence[str], more: Sequence[str]) -> list[str]:
    return [*own, *more]
