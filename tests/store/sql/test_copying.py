"""Rows of a store, copied into another."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError
from karat.store.sql import copying, documents, golden_sets
from karat.store.sql.opening import open_store


def test_all_rows_are_put_and_counted_however_many(tmp_path: Path) -> None:
    frame = pl.DataFrame({"doc_id": [f"d{number}" for number in range(2001)]})  # three batches
    first = open_store("sqlite:///first.db", make=True, folder=tmp_path)
    second = open_store("sqlite:///second.db", make=True, folder=tmp_path)
    with first.begin() as c:
        set_id = golden_sets.make(c, "g", scale=(0, 1), grades={}, salt="s", guideline="", now=1)
        documents.put(c, set_id, frame, 1)
    with first.read() as c:
        held = {name: list(copying.rows(c, name)) for name in copying.TABLES}
    with second.begin() as c:
        put = {name: copying.put(c, name, held[name]) for name in copying.TABLES}
    assert put == {name: len(rows) for name, rows in held.items()}
    assert put["document"] == 2001
    with second.read() as c:
        assert {name: list(copying.rows(c, name)) for name in copying.TABLES} == held
    with pytest.raises(InputError, match="other columns"), second.begin() as c:
        copying.put(c, "document", [{"id": 9000}])
    first.dispose()
    second.dispose()
