"""How old documents were when a query was asked: freshness in bands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime

import numpy as np
import polars as pl

from karat.diagnosis.value_slices import Bands, Labels, epoch_unit, numbers
from karat.errors import InputError, UsageError
from karat.measures.scores import Scores
from karat.tables import Documents, Queries

AGE = "age"  # the attribute after `relevant.` or `returned.`

UPDATED = ("updated_at", "modified_at", "published_at", "created_at", "updated", "modified",
           "published", "created", "date", "timestamp")  # fmt: skip
"""Columns with the date of each document; the first that exists is used."""

ASKED = ("asked_at", "asked", "searched_at", "query_time", "time", "timestamp")
"""Columns with the time of each query; the first that exists is used."""

_IN_ABOUT = ASKED[:2]  # keys of a run's about
_BANDS: Bands = (
    (0, "under 1 day"),
    (7, "1 to 7 days"),
    (30, "8 to 30 days"),
    (90, "31 to 90 days"),
    (365, "91 to 365 days"),
)
_OVER, _AFTER = "over a year", "after the query"
_FORMATS = "ISO 8601 (2026-11-23 or 2026-11-23T09:30:00Z), or a number since 1970"
_DAY = 86_400_000_000  # microseconds


def age_labels(
    pairs: pl.DataFrame, documents: Documents, queries: Queries | None, scores: Sequence[Scores]
) -> Labels:
    """The band of the age of each document when its query was asked.

    Age is in days, rounded down. Times without a zone are UTC. Where the document or the query has
    a date only, dates are compared, so that a document of the same day is never after the query.

    Args:
        pairs: ``query`` (its index) and ``doc_id``; shape (m,).
        documents: With a column of ``UPDATED``.
        queries: With a column of ``ASKED``; or else
        scores: Of runs; the first whose ``about`` has ``asked_at`` (or ``asked``) counts.

    Raises:
        UsageError: nothing says when documents were written, or when queries were asked.
        InputError: a value that is not a time.
    """
    written = _column(documents.frame, UPDATED)
    if written is None:
        raise UsageError(
            "the age of documents needs to know when each was updated",
            fix=f"a column {', '.join(UPDATED[:3])} or {UPDATED[3]} of the documents, with dates",
        )
    column = documents.frame.select("doc_id", value=written)
    unit = _unit(column["value"])
    needed = column.join(pairs.select("doc_id").unique(), on="doc_id", how="semi")
    then = _times(needed, unit, f"{written} of document", documents.source)
    now = _asked(queries, scores)
    found = (
        pairs.select(pl.col("query").cast(pl.Int64), "doc_id")
        .join(then, on="doc_id", how="left", maintain_order="left")
        .join(now, on="query", how="left", maintain_order="left", suffix="_now")
    )
    both = pl.col("dated") | pl.col("dated_now")
    now_us, then_us = (
        pl.when(both).then(pl.col(name) // _DAY * _DAY).otherwise(name)
        for name in ("time_now", "time")
    )
    days = found.select((now_us - then_us) // _DAY).to_series()
    names = [*(name for _, name in _BANDS), _OVER, _AFTER]
    value = days.fill_null(0).to_numpy()
    code = np.searchsorted([most for most, _ in _BANDS], value)
    code = np.where(value < 0, len(names) - 1, code)
    return Labels(names, np.where(days.is_null().to_numpy(), -1, code).astype(np.int64))


def _asked(queries: Queries | None, scores: Sequence[Scores]) -> pl.DataFrame:
    """When each query was asked: its index as ``query``, ``time`` and ``dated``."""
    ids = scores[0].evidence.query_ids
    index = pl.DataFrame({"query_id": ids, "query": np.arange(len(ids))})
    name = None if queries is None else _column(queries.frame, ASKED)
    if queries is not None and name is not None:
        column = queries.frame.select("query_id", value=name)
        asked = _times(column, _unit(column["value"]), f"{name} of query", queries.source)
        return index.join(asked, on="query_id").drop("query_id")
    runs = [each.run for each in scores]
    times = [(run, run.about[key]) for run in runs for key in _IN_ABOUT if run.about.get(key)]
    if not times:
        raise UsageError(
            "the age of documents needs to know when each query was asked",
            fix="add a column asked_at, with dates or times, to the queries",
        )
    run, when = times[0]
    try:
        time, dated = _iso(when)
    except ValueError:
        raise InputError(
            f"the run was asked at {when!r}, which is not a time",
            file=run.source,
            fix=_FORMATS,
        ) from None
    return index.select("query", time=pl.lit(time), dated=pl.lit(dated))


def _column(frame: pl.DataFrame, names: Sequence[str]) -> str | None:
    """The first of some columns, in whichever style it is spelt (updated_at, updatedAt)."""
    spelt = {re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower(): name for name in frame.columns}
    return next((spelt[name] for name in names if name in spelt), None)


def _unit(column: pl.Series) -> float | None:
    """Microseconds per unit of a column of numbers since 1970; None for other columns."""
    number = None if column.dtype.is_temporal() else numbers(column)
    return None if number is None else epoch_unit(number)


def _times(rows: pl.DataFrame, unit: float | None, what: str, source: str) -> pl.DataFrame:
    """Rows of an id and a ``value``, as the id, ``time`` (microseconds) and ``dated``.

    ``dated`` is whether it is a date without a time of day; the time is null without a value.
    """
    name, values = rows.columns[0], rows["value"]
    if values.dtype in (pl.Date, pl.Datetime):
        utc = values.cast(pl.Datetime("us", getattr(values.dtype, "time_zone", None)))
        return rows.select(name, time=utc.dt.epoch("us"), dated=pl.lit(values.dtype == pl.Date))
    if unit is not None:
        number = values.cast(pl.Float64).fill_nan(None) * unit
        return rows.select(name, time=number.round().cast(pl.Int64), dated=pl.lit(value=False))
    found: list[tuple[int | None, bool]] = []
    for owner, value in zip(rows[name], values, strict=True):
        text = "" if value is None else str(value).strip()
        try:
            found.append(_iso(text) if text else (None, False))
        except ValueError:
            raise InputError(
                f"{what} {owner} is {text[:40]!r}, which is not a time", file=source, fix=_FORMATS
            ) from None
    times, dated = zip(*found, strict=True) if found else ((), ())
    return pl.DataFrame(
        {name: rows[name], "time": times, "dated": dated},
        schema={name: pl.String, "time": pl.Int64, "dated": pl.Boolean},
    )


def _iso(text: str) -> tuple[int, bool]:
    """Microseconds UTC of an ISO 8601 text, and whether it is a date only."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        time = datetime.fromisoformat(text)
    else:
        return (day.toordinal() - date(1970, 1, 1).toordinal()) * _DAY, True
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds, False
