"""Which queries of a list count in the numbers over all: those of weight 0 do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from karat.errors import UsageError, nearest
from karat.reports.phrases.numbers import counted

_FEW = 5  # slices that are named where none looks like the one that is asked for


def counts_in(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows that count together: those of weight 0 only where there are no others.

    Args:
        frame: Of kept numbers, of all queries or those of a slice; ``counts`` says which do.
    """
    held = frame.filter("counts")
    return held if held.height else frame


def narrowed(lead: Mapping[str, str], frame: pl.DataFrame) -> dict[str, str]:
    """What an address says, to lead to the queries that a number is over, and to no other.

    Args:
        lead: What the number is of: a measure, or a slice, which has no others in it.
        frame: Of kept numbers: ``counts`` says which queries do.
    """
    mixed = frame["counts"].any() and not frame["counts"].all()
    return {**lead, "counts": "yes"} if mixed and "slice" not in lead else dict(lead)


def in_slice(
    own: pl.DataFrame, part: str, frame: pl.DataFrame, of: Iterable[tuple[str, str]]
) -> pl.DataFrame:
    """The rows of a list that are in a slice; all of them where none is named.

    Args:
        own: The rows of the list.
        part: The slice as an address says it, ``lang=de``.
        frame: Of kept numbers, all of them: ``slices`` says which each query is in.
        of: Further slices that there are: attribute and value.

    Raises:
        UsageError: there is no such slice; the nearest is named.
    """
    if not part:
        return own
    known = set(frame["slices"].explode().drop_nulls())
    known |= {f"{attribute}={value}" for attribute, value in of}
    if part not in known:
        near = nearest(part, known) or sorted(known)[:_FEW]
        fix = None if known else "slice by an attribute first"
        raise UsageError(f"there is no slice {part[:100]!r}", nearest=near, fix=fix)
    return own.filter(pl.col("slices").list.contains(part))


def tallies(frame: pl.DataFrame) -> Mapping[str, int]:
    """By what a list can be filtered by (nothing, ``yes``, ``no``) how many queries it then has.

    Args:
        frame: Of kept numbers, one row a query.

    Returns:
        Empty if all of them count, or none does.
    """
    count = int(frame["counts"].sum())
    if count in {0, frame.height}:
        return {}
    return {"": frame.height, "yes": count, "no": frame.height - count}


def uncounted(frame: pl.DataFrame) -> str:
    """How many queries do not count while others do, in a sentence; empty if all do alike.

    Args:
        frame: Of kept numbers: ``query_id`` and ``counts``.
    """
    aside = frame.filter(~pl.col("counts"))["query_id"].n_unique()
    if not aside or not frame["counts"].any():
        return ""
    has = "has" if aside == 1 else "have"
    they, count = ("it is", "counts") if aside == 1 else ("they are", "count")
    return (
        f"{counted(aside, 'query', 'queries')} {has} weight 0, as queries have that no log "
        f"counted: {they} listed, and {count} in no number over all queries."
    )
