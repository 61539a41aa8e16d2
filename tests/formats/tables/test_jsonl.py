from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from karat import formats


def test_attributes_keep_their_type_if_they_share_one(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(
        '{"_id": 7, "text": "x", "metadata": {"n": 1, "tags": ["a"], "text": "t"}, "mixed": 1}\n'
        '{"_id": "NA", "text": "y", "b": true, "x": 0.5, "mixed": "one"}\n'
    )
    frame = formats.read_queries(tmp_path / "x").frame
    assert frame["query_id"].to_list() == ["7", "NA"]
    assert frame["n"].to_list() == [1, None]
    assert frame["tags"].to_list() == ['["a"]', None]
    assert frame["metadata.text"].to_list() == ["t", None]
    assert frame["mixed"].to_list() == ["1", "one"]
    assert frame.schema["b"] == pl.Boolean
    assert frame.schema["x"] == pl.Float64


def test_the_careful_way_reads_the_same(tmp_path: Path) -> None:
    plain = '{"query_id": "1", "doc_id": "a", "score": 1.5}\n'
    for odd in (
        '{"score": 1.5, "doc_id": "a", "query_id": "1"}\n',  # another order
        '{"query_id":"1","doc_id":"\\u0061","score":"1.5"}\n',  # escapes, a number as text
        '{"query_id": "1", "doc_id": "a", "score": 15e-1, "note": "score"}\n',
        '  {"query_id": 1, "doc_id": "a", "score": 1.5}  \n\n',
    ):
        (tmp_path / "x").write_text(odd)
        assert formats.read_run(tmp_path / "x").to_dict() == {"1": {"a": 1.5}}, odd
        (tmp_path / "x").write_text(plain.replace('"a"', '"b"') + odd)
        assert formats.read_run(tmp_path / "x").to_dict() == {"1": {"a": 1.5, "b": 1.5}}, odd


@pytest.mark.parametrize("blank", ["", '"doc_id": null, "score": null, "rank": null, '])
def test_a_run_may_begin_with_a_query_that_failed(tmp_path: Path, blank: str) -> None:
    failed = f'{{"query_id": "1", {blank}"state": "failed", "error": "timeout"}}\n'
    (tmp_path / "x").write_text(failed + '{"query_id": "2", "doc_id": "a", "score": 1.5}\n')
    run = formats.read_run(tmp_path / "x")
    assert run.to_dict() == {"2": {"a": 1.5}}
    states = dict(run.answers.select("query_id", "state").iter_rows())
    assert states == {"1": "failed", "2": "ok"}
    (tmp_path / "x").write_text(failed)
    dead = formats.read_run(tmp_path / "x").answers
    assert dead.select("query_id", "state", "error").rows() == [("1", "failed", "timeout")]
