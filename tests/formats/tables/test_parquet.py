"""Parquet: what a small file says, or turns out, to become is bounded."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.errors import InputError
from karat.formats import read_documents, read_qrels, read_run
from karat.formats.tables import parquet
from karat.formats.tables.parquet import weight

BOMB = "expands more than 250 times"


def written(path: Path, frame: pl.DataFrame, **how: Any) -> Path:
    """The frame as a Parquet file."""
    frame.write_parquet(path, **how)
    return path


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_BOMB_FROM", 1 << 20)


def test_one_string_that_many_rows_share_counts_for_each(tmp_path: Path) -> None:
    # A dictionary page holds it once, so that the footer says little: 40 times 100,000 bytes.
    frame = pl.DataFrame({"doc_id": [f"d{k}" for k in range(40)], "text": ["x" * 100_000] * 40})
    path = written(tmp_path / "p.parquet", frame)
    assert path.stat().st_size < 10_000
    with pytest.raises(InputError, match=BOMB):
        read_documents(path)
    packed = tmp_path / "p.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(InputError, match=BOMB):
        read_documents(packed)


@pytest.mark.parametrize("role", ["qrels", "run"])
def test_ids_that_many_rows_share_count_for_each(role: str, tmp_path: Path) -> None:
    ids = [f"{'d' * 60_000}{k % 2}" for k in range(60)]
    frame = pl.DataFrame(
        {"query_id": [f"q{k}" for k in range(60)], "doc_id": ids, "score": 1.0, "grade": 1.0}
    )
    with pytest.raises(InputError, match=BOMB):
        (read_run if role == "run" else read_qrels)(written(tmp_path / "p.parquet", frame))


def test_rows_of_nothing_are_refused_by_the_footer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_args: object) -> None:
        raise AssertionError("read")

    frame = pl.select(pl.repeat("d", 500_000).alias("doc_id"), pl.repeat(1, 500_000).alias("n"))
    path = written(tmp_path / "p.parquet", frame)
    monkeypatch.setattr(parquet, "_collected", never)
    with pytest.raises(InputError, match=BOMB):
        read_documents(path)


def test_what_is_as_large_as_it_lies_is_read(tmp_path: Path) -> None:
    texts = [f"{k} {k * k} {k**3 % 7919}" * 3 for k in range(50_000)]
    frame = pl.DataFrame({"doc_id": [f"d{k}" for k in range(50_000)], "text": texts})
    assert weight(frame) > 1 << 20
    assert len(read_documents(written(tmp_path / "p.parquet", frame)).frame) == 50_000


def test_a_weight_is_that_of_all_that_is_in_it() -> None:
    # Eight bytes a cell, and the bytes of each string, "é" being two.
    assert weight(pl.DataFrame({"a": ["é", "xy", None]})) == 3 * 8 + 4
    assert weight(pl.DataFrame({"a": [1, 2]})) == 16
    assert weight(pl.DataFrame({"a": [["ab", "c"], ["d"]]})) == 3 * 8 + 4
    assert weight(pl.DataFrame({"a": [{"b": "xyz", "c": 1}]})) == 2 * 8 + 3
    assert weight(pl.DataFrame({"a": [b"abc"]})) == 8 + 3
    assert weight(pl.DataFrame({"a": ["xy"]}, schema={"a": pl.Categorical})) == 8 + 2
    two = pl.DataFrame({"a": [["a", "b"]]}, schema={"a": pl.Array(pl.String, 2)})
    assert weight(two) == 2 * 8 + 2
    assert weight(pl.DataFrame()) == 0
