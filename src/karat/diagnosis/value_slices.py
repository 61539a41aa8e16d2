"""Slices by value: texts as they are, many different numbers in four bands, times by year."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.errors import UsageError
from karat.measures.evidence import Floats, Ints, Mask

Slices = list[tuple[str, Mask]]
"""The name of each slice, and which of n queries are in it; shape (n,) each."""

Bands = tuple[tuple[int, str], ...]  # the largest number of each band, and its name

NONE = "(none)"  # the slice of queries without a value; always the first

EACH = 12  # up to this many different numbers are slices of their own; more become bands

MOST = 1000  # maximum number of slices; an attribute with more values identifies single queries

_NUMBER = r"^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$"  # 007 is a code
_DATE = r"^\d{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])([T ]\d.*)?)?$"
_TIME = (
    r"(^|_)(at|on|date|timestamp|updated|created|modified|published)$|[a-z](At|On|Date|Timestamp)$"
)
_UNITS = ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0), (np.inf, 1e-3))
"""Upper limit and microseconds per unit: seconds, milliseconds, micro-, nanoseconds."""
_TIMES_FROM = 1e8  # 1973 in seconds; smaller numbers are not times


@dataclass(frozen=True)
class Labels:
    """The slice of each of ``m`` values."""

    names: list[str]  # the slices, in order
    code: Ints  # index of the slice of each value, -1 where there is none; shape (m,)

    def slices(self, query: Ints, counted: Mask, attribute: str) -> Slices:
        """The queries that have a value of each slice, and those that have none.

        Args:
            query: Index of the query of each value; a query may have several; shape (m,).
            counted: Queries that may be in a slice; shape (n,).
            attribute: Name of the attribute in messages.

        Raises:
            UsageError: there are more than ``MOST`` slices.
        """
        held = (self.code >= 0) & counted[query]
        code, member = self.code[held], query[held]
        present = np.unique(code)
        if len(present) > MOST:
            raise UsageError(
                f"{attribute} has {len(present):,} different values among these queries; "
                f"at most {MOST:,} are supported",
                fix="slice by a coarser attribute",
            )
        order = np.argsort(code, kind="stable")
        ends = np.searchsorted(code[order], present, side="right")
        found, rest = [], counted.copy()
        for which, members in zip(present, np.split(member[order], ends), strict=False):
            mask = np.zeros(len(counted), np.bool_)
            mask[members] = True
            found.append((self.names[which], mask))
            rest[members] = False
        return [(NONE, rest), *found] if rest.any() else found


def quartiles(values: pl.Series, unit: str = "") -> Labels:
    """Four bands of about as many values, named by the least and the greatest in them.

    Equal values share a band, so there may be fewer than four.

    Args:
        values: A column of numbers; shape (m,).
        unit: What a number counts, in the singular, for the names: ``4 to 6 words``.

    Raises:
        UsageError: the column has values that are not numbers.
    """
    number = numbers(values)
    if number is None:
        raise UsageError(
            f"quartiles are of numbers, and {values.name} holds something else",
            fix=f"slice by {values.name}",
        )
    whole = values.dtype.is_integer() or _all_whole(_text(values))
    found = _quartiles(number, whole=whole)
    if not unit:
        return found
    counted = [f"{name} {unit}{'' if name == '1' else 's'}" for name in found.names]
    return Labels(counted, found.code)


def labelled(values: pl.Series) -> Labels:
    """The slice of each value of a column.

    Times are sliced by year (UTC): dates, texts that all begin with one (2024-03-01), and whole
    numbers since 1970 in a column called updated_at or the like. More than ``EACH`` different
    numbers become up to four bands, cut at the quartiles and named by the least and the greatest
    in them. Nulls, NaN and empty texts count as missing.

    Args:
        values: A column; shape (m,).

    Raises:
        UsageError: the column has objects or lists.
    """
    if values.dtype.is_nested() or values.dtype == pl.Object:
        raise UsageError(f"{values.name} has objects or lists, which cannot be sliced by")
    years = _years(values)
    text = _text(values) if years is None else years.cast(pl.String).str.zfill(4)
    number = numbers(text if years is not None or values.dtype == pl.String else values)
    if years is None and number is not None and number.n_unique() - number.has_nulls() > EACH:
        return _quartiles(number, whole=values.dtype.is_integer() or _all_whole(text))
    different = pl.DataFrame({"text": text.drop_nulls().unique()})
    if number is not None:
        different = different.sort(pl.col("text").cast(pl.Float64), "text")
    names = different.sort("text")["text"] if number is None else different["text"]
    place = pl.DataFrame({"text": names, "code": np.arange(len(names))})
    code = pl.DataFrame({"text": text}).join(
        place, on="text", how="left", maintain_order="left", validate="m:1"
    )
    return Labels(names.to_list(), code["code"].fill_null(-1).to_numpy())


def numbers(values: pl.Series) -> pl.Series | None:
    """A column as numbers, null where missing; None if it has anything else."""
    if values.dtype.is_numeric():
        return values.cast(pl.Float64).fill_nan(None)
    if values.dtype != pl.String:
        return None
    given = _text(values)
    different = given.drop_nulls().unique()
    if not len(different) or not different.str.contains(_NUMBER).all():
        return None
    return given.cast(pl.Float64)


def one_value(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with one ``value`` each: a row for each item of a list."""
    is_list = rows["value"].dtype.base_type() in (pl.List, pl.Array)
    return rows.explode("value") if is_list else rows


def banded(number: Ints, counted: Mask, bands: Bands) -> Slices:
    """Queries by a number; those above all bands are in none.

    Args:
        number: One for each query; shape (n,).
        counted: Queries that may be in a slice; shape (n,).
        bands: The largest number of each band, ascending, and its name.
    """
    band = np.searchsorted([most for most, _ in bands], number)
    found = [(name, counted & (band == place)) for place, (_, name) in enumerate(bands)]
    return [(name, chosen) for name, chosen in found if chosen.any()]


def _text(values: pl.Series) -> pl.Series:
    """A column as text; null where there is no value."""
    if values.dtype.is_float():
        values = values.fill_nan(None)
    text = values.cast(pl.String, strict=False)
    return text.set(text.is_in(["", NONE]).fill_null(value=False), None)


def _all_whole(text: pl.Series) -> bool:
    return not text.str.contains(r"[.eE]").any()


def _years(values: pl.Series) -> pl.Series | None:
    if isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone is not None:
        values = values.dt.convert_time_zone("UTC")
    if values.dtype in (pl.Date, pl.Datetime):
        return values.dt.year()
    if values.dtype == pl.String:
        text = _text(values)
        different = text.drop_nulls().unique()
        if len(different) and different.str.contains(_DATE).all():
            return text.str.head(4).cast(pl.Int32)
    named = pl.Series([values.name]).str.contains(_TIME).item()
    number = numbers(values) if named and not values.dtype.is_float() else None
    high = None if number is None else number.max()
    if number is None or not isinstance(high, float) or high < _TIMES_FROM:
        return None
    return (number * epoch_unit(number)).cast(pl.Int64).cast(pl.Datetime("us")).dt.year()


def epoch_unit(number: pl.Series) -> float:
    """Microseconds per unit of numbers since 1970, by the size of the largest."""
    high = number.max()
    high = high if isinstance(high, float) else 0.0
    return next(unit for most, unit in _UNITS if high < most)


def _quartiles(number: pl.Series, *, whole: bool) -> Labels:
    """Up to four bands of about as many values; equal values stay together."""
    value = number.to_numpy()
    held = ~np.isnan(value)
    cuts = np.unique(np.quantile(value[held], (0.25, 0.5, 0.75), method="inverted_cdf"))
    code = np.where(held, np.searchsorted(cuts, value), -1).astype(np.int64)
    there = np.unique(code[held])
    code[held] = np.searchsorted(there, code[held])
    inside = [value[code == band] for band in range(len(there))]
    ends = np.array([(band.min(), band.max()) for band in inside])
    shown = _figures(ends.ravel(), whole=whole)
    low, high = shown[::2], shown[1::2]
    names = [a if a == b else f"{a} to {b}" for a, b in zip(low, high, strict=True)]
    return Labels(names, code)


def _figures(values: Floats, *, whole: bool) -> list[str]:
    """Numbers in as few digits (at least four) as distinguish them."""
    for digits in range(4, 18):
        shown = [
            f"{value:.0f}"
            if whole
            else np.format_float_positional(value, digits, fractional=False, trim="-")
            for value in values
        ]
        if whole or len(set(shown)) == len(set(values.tolist())):
            break
    return shown
