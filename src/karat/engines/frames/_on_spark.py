"""PySpark: an engine for logs that are too large for one machine."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import narwhals as nw
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]  # it has no stubs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from karat.engines.frames.files import dtype_of, lacking, reading
from karat.engines.frames.on_polars import integers_alike
from karat.errors import InputError, KaratError, UsageError
from karat.tables.online.events import S3, EventLog

_TYPES = {
    pl.Int8(): "tinyint",
    pl.Int16(): "smallint",
    pl.Int32(): "int",
    pl.Int64(): "bigint",
    pl.Float64(): "double",
    pl.Boolean(): "boolean",
    pl.String(): "string",
    pl.List(pl.String()): "array<string>",
}
_PYTHON = "PYSPARK_PYTHON"
_MODULE = re.compile(r"No module named '([\w.]+)'")
_TASKS = 10_000  # with more items, a task has several
_T = TypeVar("_T")
_R = TypeVar("_R")
_LITERAL = str.maketrans({char: "\\" + char for char in "\\*?[]{}"})  # escapes glob patterns


class OnSpark:
    """Runs plans on Spark: in the active session, or in one of its own, which it closes.

    Args:
        master: Master URL of a new session, such as ``local[2]`` or ``spark://host:7077``; None
            for Spark's configuration. The event store must be readable from there.
    """

    name = "spark"

    def __init__(self, master: str | None = None) -> None:
        self._master = master
        self._own = False
        self._paths: list[str] = []

    def batches(
        self, log: EventLog, columns: Sequence[str], since: int | None, until: int | None
    ) -> Iterator[nw.LazyFrame[Any]]:
        """See ``Engine.batches``: one batch, which Spark distributes."""
        self._paths = [file.path for file in log.files if file.rows]
        if self._paths:
            with reading(self._paths):
                rows = self._read(self._paths, columns, since, until)
            yield nw.from_native(rows)

    def keep(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """See ``Engine.keep``: in the memory of the cluster, or on its disks.

        Not a cache: the plan of a cached frame contains the plans of all its inputs, and Spark's
        text representations of these plans grow until memory is exhausted. Spark frees the
        checkpoint when its last reference is gone.
        """
        with reading(self._paths):
            kept: DataFrame = nw.to_native(frame).localCheckpoint()
        return nw.from_native(kept)

    def table(self, frame: pl.DataFrame) -> nw.LazyFrame[Any]:
        # Spark does not support the string views of Polars.
        schema = pa.schema(
            (field.name, pa.string() if pa.types.is_large_string(field.type) else field.type)
            for field in frame.to_arrow(compat_level=pl.CompatLevel.oldest()).schema
        )
        plain = frame.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema)
        return nw.from_native(self._session.createDataFrame(plain))

    def collect(self, frame: nw.LazyFrame[Any]) -> pl.DataFrame:
        with reading(self._paths):
            collected = pl.from_arrow(nw.to_native(frame).toArrow())
        assert isinstance(collected, pl.DataFrame)
        return integers_alike(collected)

    def spread(self, step: Callable[[_T], _R], items: Sequence[_T]) -> Iterable[_R]:
        """The results of a step for each item, in order: tasks of the executors, in Python.

        Raises:
            InputError, UsageError: The first that a step raised.
        """
        context = getattr(self._session, "sparkContext", None)  # Spark Connect has none
        if context is None:
            raise UsageError(
                "Spark Connect does not run the tasks of an import",
                fix="start it on the cluster: spark-submit, or --master spark://HOST:PORT",
            )
        if self._own and str(context.master).startswith("local") and _PYTHON not in os.environ:
            context.pythonExec = sys.executable  # which has karat, unlike any python3 on PATH

        def task(item: _T) -> _R | KaratError:
            try:
                return step(item)
            except (InputError, UsageError) as error:
                return error

        tasks = context.parallelize(items, max(1, min(len(items), _TASKS)))
        try:
            results: list[_R | KaratError] = tasks.map(task).collect()
        except Exception as error:
            missing = _MODULE.search(str(error))
            if missing is None:
                raise
            raise UsageError(
                f"the Python of Spark's executors lacks the package {missing[1]}",
                fix=f"pip install 'karat[spark]' for it, and name it in the variable {_PYTHON}",
            ) from None
        return [_sound(each) for each in results]

    def __enter__(self) -> Self:
        self._own = SparkSession.getActiveSession() is None
        builder = SparkSession.builder.appName("karat")
        if self._own and self._master is not None:
            builder = builder.master(self._master)
            if self._master.startswith("local"):
                # One machine: no web UI, no host name lookup, few shuffle partitions.
                builder = (
                    builder.config("spark.ui.enabled", "false")
                    .config("spark.driver.host", "127.0.0.1")
                    .config("spark.driver.bindAddress", "127.0.0.1")
                    .config("spark.sql.shuffle.partitions", "8")
                )
        try:
            self._session = builder.getOrCreate()
        except Exception as error:
            raise KaratError(
                f"Spark does not start: {str(error).strip().splitlines()[0]}\n"
                "  fix: it needs Java 17 or newer, found by JAVA_HOME or on PATH"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._own:
            self._session.stop()

    def _read(
        self, files: Sequence[str], columns: Sequence[str], since: int | None, until: int | None
    ) -> DataFrame:
        # The working directory of Java may differ from Python's.
        paths = [
            file.replace(S3, "s3a://", 1) if file.startswith(S3) else str(Path(file).absolute())
            for file in files
        ]
        literal = [path.translate(_LITERAL) for path in paths]
        try:
            rows = self._session.read.option("mergeSchema", "true").parquet(*literal)
        except Exception as error:
            if "S3AFileSystem not found" not in str(error):
                raise
            raise UsageError(
                f"this Spark does not read {S3}: it lacks the package hadoop-aws",
                fix="start it with spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION, or "
                "use --engine polars or duckdb",
            ) from None
        if since is not None:
            rows = rows.filter(sf.col("time_us") >= since)
        if until is not None:
            rows = rows.filter(sf.col("time_us") < until)
        for column in lacking(rows.columns, columns):
            rows = rows.withColumn(column, sf.lit(None).cast(_TYPES[dtype_of(column)]))
        return rows.select(*(f"`{column}`" for column in columns))


def _sound(result: _R | KaratError) -> _R:
    if isinstance(result, KaratError):
        raise result
    return result
