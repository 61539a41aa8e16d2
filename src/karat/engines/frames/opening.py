"""Opening engines by name; imports the optional ones on demand."""

from __future__ import annotations

from karat.engines.frames.engine import ROWS_AT_ONCE, Engine
from karat.errors import MissingExtra, UsageError, nearest

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
    if master is not None and engine != "spark":
        raise UsageError(
            f"the engine {engine} has no master", fix="use --master with --engine spark only"
        )
    if engine == "polars":
        from karat.engines.frames.on_polars import OnPolars

        return OnPolars(rows_at_once)
    if engine == "duckdb":
        try:
            from karat.engines.frames._on_duckdb import OnDuckDB
        except ModuleNotFoundError as error:
            raise MissingExtra(error.name or "duckdb", "duckdb", "the engine duckdb") from None
        return OnDuckDB(rows_at_once)
    try:
        from karat.engines.frames._on_spark import OnSpark
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "pyspark", "spark", "the engine spark") from None
    return OnSpark(master)
