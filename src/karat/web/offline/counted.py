"""Queries of zero weight: listed, but excluded from numbers over all queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from karat.errors import UsageError, nearest
from karat.reports.phrases.numbers import counted

_FEW = 5  # slices to suggest if none is similar


def counts_in(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows that count: those of zero weight only if there are no others."""
    counting = frame.filter("counts")
    return counting if counting.height else frame


def narrowed(lead: Mapping[str, str], frame: pl.DataFrame) -> dict[str, str]:
    """The parameters of a link to exactly the queries that a number is over."""
    mixed = frame["counts"].any() and not frame["counts"].all()
    return {**lead, "counts": "yes"} if mixed and "slice" not in lead else dict(lead)


def in_slice(
    rows: pl.DataFrame, part: str, frame: pl.DataFrame, of: Iterable[tuple[str, str]]
) -> pl.DataFrame:
    """The rows of a list in a slice, such as ``lang=de``; all rows if ``part`` is empty."""
    if not part:
        return rows
    known = set(frame["slices"].explode().drop_nulls())
    known |= {f"{attribute}={value}" for attribute, value in of}
    if part not in known:
        near = nearest(part, known) or sorted(known)[:_FEW]
        fix = None if known else "slice by an attribute first"
        raise UsageError(f"unknown slice {part[:100]!r}", nearest=near, fix=fix)
    return rows.filter(pl.col("slices").list.contains(part))


def tallies(frame: pl.DataFrame) -> Mapping[str, int]:
    """Queries by the filter ``counts`` (none, ``yes``, ``no``); empty if all or none count."""
    count = int(frame["counts"].sum())
    if count in {0, frame.height}:
        return {}
    return {"": frame.height, "yes": count, "no": frame.height - count}


def uncounted(frame: pl.DataFrame) -> str:
    """How many queries do not count while others do, in a sentence; empty if all or none count."""
    zero_weight = frame.filter(~pl.col("counts"))["query_id"].n_unique()
    if not zero_weight or not frame["counts"].any():
        return ""
    has, them, they = ("has", "it", "it is") if zero_weight == 1 else ("have", "them", "they are")
    return (
        f"{counted(zero_weight, 'query')} {has} zero weight because no log counted "
        f"{them}: {they} listed but excluded from numbers over all queries."
    )
