"""DuckDB: an engine that spills to disk if memory is short."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, Self

import duckdb
import narwhals as nw
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]  # noqa: F401  (needed for results)

from karat.engines.frames.engine import ROWS_AT_ONCE
from karat.engines.frames.files import Batch, batches_of, dtype_of, lacking, reading
from karat.engines.frames.on_polars import integers_alike
from karat.engines.frames.s3 import dataset
from karat.tables.online.events import S3, EventLog

_TYPES = {
    pl.Int8(): "TINYINT",
    pl.Int16(): "SMALLINT",
    pl.Int32(): "INTEGER",
    pl.Int64(): "BIGINT",
    pl.Float64(): "DOUBLE",
    pl.Boolean(): "BOOLEAN",
    pl.String(): "VARCHAR",
    pl.List(pl.String()): "VARCHAR[]",
}
_LITERAL = str.maketrans({"[": "[[]", "*": "[*]", "?": "[?]"})  # escapes glob patterns in paths


class OnDuckDB:
    """Runs plans on DuckDB, in a temporary database."""

    name = "duckdb"

    def __init__(self, rows_at_once: int = ROWS_AT_ONCE) -> None:
        self._rows_at_once = rows_at_once
        self._kept: list[str] = []
        self._paths: list[str] = []
        self._made = 0

    def batches(
        self, log: EventLog, columns: Sequence[str], since: int | None, until: int | None
    ) -> Iterator[nw.LazyFrame[Any]]:
        for batch in batches_of(log, self._rows_at_once):
            self._paths = [file.path for file in batch.files]
            with reading(self._paths):
                rows = self._read(batch, columns, since, until)
            yield nw.from_native(rows)
            self._drop()

    def keep(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """See ``Engine.keep``: as a temporary table."""
        name = self._name()
        with reading(self._paths):
            nw.to_native(frame).create(name)
        self._kept.append(name)
        return nw.from_native(self._connection.table(name))

    def table(self, frame: pl.DataFrame) -> nw.LazyFrame[Any]:
        """See ``Engine.table``: unnamed, until its last reference is gone."""
        return nw.from_native(self._connection.from_arrow(frame.to_arrow()))

    def collect(self, frame: nw.LazyFrame[Any]) -> pl.DataFrame:
        with reading(self._paths):
            table = nw.to_native(frame).to_arrow_table()
        collected = pl.from_arrow(table)
        assert isinstance(collected, pl.DataFrame)
        return integers_alike(collected)

    def __enter__(self) -> Self:
        """Open a database in memory that spills to a temporary folder."""
        self._spill = tempfile.TemporaryDirectory(prefix="karat-duckdb-")
        self._connection = duckdb.connect(config={"temp_directory": self._spill.name})
        # Nothing depends on the order of rows, and preserving it costs memory.
        self._connection.execute("SET preserve_insertion_order = false")
        # A progress bar on standard output would break JSON output.
        self._connection.execute("SET enable_progress_bar = false")
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._spill.cleanup()

    def _name(self) -> str:
        self._made += 1
        return f"karat_{self._made}"

    def _drop(self) -> None:
        while self._kept:
            self._connection.execute(f'DROP TABLE "{self._kept.pop()}"')

    def _read(
        self, batch: Batch, columns: Sequence[str], since: int | None, until: int | None
    ) -> duckdb.DuckDBPyRelation:
        paths = [file.path for file in batch.files]
        if paths[0].startswith(S3):  # Arrow reads them: its extension for S3 is a download
            rows = self._connection.from_arrow(dataset(paths))
        else:
            literal = [path.translate(_LITERAL) for path in paths]
            rows = self._connection.read_parquet(literal, union_by_name=True)
        tests = (
            [] if batch.whole else [f"user_bucket >= {batch.low} AND user_bucket < {batch.high}"]
        )
        tests += [] if since is None else [f"time_us >= {since:d}"]
        tests += [] if until is None else [f"time_us < {until:d}"]
        nulls = set(lacking(rows.columns, columns))
        for test in tests:
            rows = rows.filter(test)
        chosen = [
            f"CAST(NULL AS {_TYPES[dtype_of(column)]}) AS {_quoted(column)}"
            if column in nulls
            else _quoted(column)
            for column in columns
        ]
        return rows.project(", ".join(chosen))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
