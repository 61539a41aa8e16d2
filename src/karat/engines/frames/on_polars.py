"""Polars: the default engine; computes batches of users in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import narwhals as nw
import polars as pl

from karat.engines.frames.engine import ROWS_AT_ONCE
from karat.engines.frames.files import Batch, batches_of, dtype_of, lacking, reading
from karat.engines.frames.s3 import polars_options
from karat.tables.online.events import EventLog


class OnPolars:
    name = "polars"

    def __init__(self, rows_at_once: int = ROWS_AT_ONCE) -> None:
        self._rows_at_once = rows_at_once
        self._paths: list[str] = []

    def batches(
        self, log: EventLog, columns: Sequence[str], since: int | None, until: int | None
    ) -> Iterator[nw.LazyFrame[Any]]:
        for batch in batches_of(log, self._rows_at_once):
            self._paths = [file.path for file in batch.files]
            with reading(self._paths):
                plan = _scan(batch, columns, since, until)
            yield nw.from_native(plan)

    def keep(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """See ``Engine.keep``: in memory, until its last reference is gone."""
        with reading(self._paths):
            kept: pl.LazyFrame = nw.to_native(frame).collect().lazy()
        return nw.from_native(kept)

    def table(self, frame: pl.DataFrame) -> nw.LazyFrame[Any]:
        return nw.from_native(frame.lazy())

    def collect(self, frame: nw.LazyFrame[Any]) -> pl.DataFrame:
        with reading(self._paths):
            return integers_alike(nw.to_native(frame).collect())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""


def integers_alike(frame: pl.DataFrame) -> pl.DataFrame:
    """All integers, and decimals of scale 0, as Int64: their types differ between engines."""
    return frame.with_columns(
        pl.col(name).cast(pl.Int64)
        for name, dtype in frame.schema.items()
        if (dtype.is_integer() and dtype != pl.Int64)
        or (isinstance(dtype, pl.Decimal) and dtype.scale == 0)
    )


def _scan(
    batch: Batch, columns: Sequence[str], since: int | None, until: int | None
) -> pl.LazyFrame:
    parts = []
    for file in batch.files:
        part = pl.scan_parquet(file.path, glob=False, **polars_options(file.path))
        if not (batch.low <= file.low and file.high <= batch.high):
            inside = (pl.col("user_bucket") >= batch.low) & (pl.col("user_bucket") < batch.high)
            part = part.filter(inside)
        if since is not None:
            part = part.filter(pl.col("time_us") >= since)
        if until is not None:
            part = part.filter(pl.col("time_us") < until)
        nulls = lacking(part.collect_schema().names(), columns)
        none = [pl.lit(None, dtype_of(column)).alias(column) for column in nulls]
        parts.append(part.with_columns(none).select(columns))
    return pl.concat(parts)
