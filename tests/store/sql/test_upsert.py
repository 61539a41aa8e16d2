"""What a frame holds comes back from the store as it was."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError
from karat.store.sql import documents, golden_sets
from karat.store.sql.opening import open_store
from karat.store.sql.upsert import plain_rows


def there_and_back(tmp_path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    """Documents put into a store and read again, without their hashes."""
    store = open_store("sqlite:///karat.db", make=True, folder=tmp_path)
    with store.begin() as c:
        set_id = golden_sets.make(c, "g", scale=(0, 1), grades={}, salt="s", guideline="", now=1)
        documents.put(c, set_id, frame, 1)
        assert documents.put(c, set_id, frame, 2).same == frame.height
    with store.read() as c:
        back = documents.frame(c, set_id).drop("sha256")
    store.dispose()
    return back


def test_attributes_keep_their_types(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "doc_id": ["007", "NA", "é"],
            "title": ["a", None, "“”\u2028"],
            "text": ["", "x\ny", None],
            "price": [1.0, 2.5, None],
            "count": [2**60, None, -1],
            "sold": [True, None, False],
            "tags": [["a", "b"], [], None],
            "metadata": ["null", "{}", "1e5"],
        }
    )
    assert there_and_back(tmp_path, frame).equals(frame)


def test_what_json_has_no_word_for_becomes_text_or_nothing(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "doc_id": ["a", "b"],
            "score": [float("nan"), 1.0],
            "updated": [dt.date(2026, 11, 21), None],
        }
    )
    back = there_and_back(tmp_path, frame)
    assert back["score"].to_list() == [None, 1.0]
    assert back["updated"].to_list() == ["2026-11-21", None]


def test_a_text_no_database_keeps_is_named() -> None:
    frame = pl.DataFrame({"doc_id": ["a", "b"], "colour": ["x", "\0"]})
    with pytest.raises(InputError, match="NUL") as refused:
        plain_rows(frame, ["doc_id"], "documents")
    assert refused.value.doc_id == "b"
