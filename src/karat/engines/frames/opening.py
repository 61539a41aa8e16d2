"""Opening engines by name; imports the optional ones on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.engines.frames.engine import ROWS_AT_ONCE, Engine
from karat.errors import MissingExtra, UsageError, nearest

if TYPE_CHECKING:
    from karat.engines.frames._on_spark import OnSpark

ENGINES = ("polars", "duckdb", "spark")


def open_engine(
    name: str = "polars", *, master: str | None = None, rows_at_once: int = ROWS_AT_ONCE
) -> Engine:
    """An engine by its name; without a ``master``, Spark's active session is used."""
    engine = name.strip().lower()
    if engine not in ENGINES:
        raise UsageError(
            f"unknown engine {name!r}",
            nearest=nearest(engine, ENGINES),
            fix=f"engines: {', '.join(ENGINES)}",
        )
    if engine == "spark":
        return open_spark(master)
    no_master(engine, master)
    if engine == "polars":
        from karat.engines.frames.on_polars import OnPolars

        return OnPolars(rows_at_once)
    try:
        from karat.engines.frames._on_duckdb import OnDuckDB
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "duckdb", "duckdb", "the engine duckdb") from None
    return OnDuckDB(rows_at_once)


def no_master(engine: str, master: str | None) -> None:
    if master is not None:
        raise UsageError(
            f"the engine {engine} has no master", fix="use --master with --engine spark only"
        )


def open_spark(master: str | None = None) -> OnSpark:
    """Spark, which also runs functions of Python on its executors."""
    try:
        from karat.engines.frames._on_spark import OnSpark
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "pyspark", "spark", "the engine spark") from None
    return OnSpark(master)
