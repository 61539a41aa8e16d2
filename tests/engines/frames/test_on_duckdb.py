"""What the database of DuckDB holds, and when it lets go of it."""

from __future__ import annotations

import narwhals as nw
import polars as pl
import pytest

from karat.engines.frames.opening import open_engine

pytest.importorskip("duckdb", reason="needs the package duckdb")


def test_tables_do_not_pile_up_in_a_long_task() -> None:
    with open_engine("duckdb") as engine:
        for at in range(3):
            made = engine.table(pl.DataFrame({"key": [at, at + 1]}))
            other = engine.table(pl.DataFrame({"key": [at], "text": ["here"]}))
            found = engine.collect(made.join(other, on="key", how="inner"))
            assert found.to_dicts() == [{"key": at, "text": "here"}]
        del made, other
        assert engine._connection.execute("SHOW TABLES").fetchall() == []  # type: ignore[attr-defined]


def test_a_plan_holds_the_table_it_is_made_of() -> None:
    with open_engine("duckdb") as engine:
        plan = engine.table(pl.DataFrame({"key": [1, 2]})).filter(nw.col("key") > 1)
        assert engine.collect(plan)["key"].to_list() == [2]
