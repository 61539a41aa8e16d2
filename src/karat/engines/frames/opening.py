"""Engines by name, opened when they are wanted: two of the three are optional."""

from __future__ import annotations

from karat.engines.frames.engine import ROWS_AT_ONCE, Engine
from karat.errors import MissingExtra, UsageError, nearest

ENGINES = ("polars", "duckdb", "spark")


def open_engine(
    name: str = "polars", *, master: str | None = None, rows_at_once: int = ROWS_AT_ONCE
) -> Engine:
    """The engine of a name.

    Args:
        name: ``polars`` | ``duckdb`` | ``spark``, in any case.
        master: Where Spark runs, as ``local[2]`` or ``spark://host:7077``; None: the session that
            is open, else what Spark is configured for.
        rows_at_once: Events in memory at once, where an engine holds them in memory.

    Raises:
        UsageError: No engine has the name, or ``master`` is given to another one than Spark.
        MissingExtra: Its package is not installed.
    """
    wanted = name.strip().lower()
    if wanted not in ENGINES:
        raise UsageError(
            f"no engine is called {name}",
            nearest=nearest(wanted, ENGINES),
            fix=f"engines: {', '.join(ENGINES)}",
        )
    if master is not None and wanted != "spark":
        raise UsageError(
            f"the engine {wanted} has no master", fix="--master goes with --engine spark"
        )
    if wanted == "polars":
        from karat.engines.frames.on_polars import OnPolars

        return OnPolars(rows_at_once)
    if wanted == "duckdb":
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
