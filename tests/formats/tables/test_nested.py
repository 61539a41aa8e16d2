"""Nested JSON with lists of documents instead of numbers, as tutorials write it."""

from __future__ import annotations

from pathlib import Path

import pytest

import karat
from karat.errors import InputError


@pytest.mark.parametrize("indent", ["", "\n  "])
def test_lists_are_rankings_and_relevant_documents(tmp_path: Path, indent: str) -> None:
    run, qrels = tmp_path / "run.json", tmp_path / "qrels.json"
    run.write_text(f'{{{indent}"q1": ["a", "b"],{indent}"q2": [],{indent}"q3": ["z"]}}')
    qrels.write_text(f'{{{indent}"q1": ["b", "c"],{indent}"q2": ["a"],{indent}"q3": []}}')
    results = karat.evaluate(qrels, run, ["RR", "R@2"], per_query=True)
    # q1: b at rank 2, one of two relevant documents. q2: empty, 0. q3: nothing relevant, left out.
    assert results.value("RR") == (1 / 2 + 0) / 2
    assert results.value("R@2") == (1 / 2 + 0) / 2
    states = {(row.query_id, row.measure): row.state for row in results.per_query}
    assert states["q2", "R@2"] == "empty"
    assert states["q3", "R@2"] == "undefined"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"q1": ["a", 3]}', "the list of documents contains 3; expected ids, as strings"),
        ('{"q1": ["a", ["b", 1]]}', "the list of documents contains"),
        ('{"q1": ["a", "a"]}', "duplicate document a"),
        ('{"q1": "a"}', "no column"),
    ],
)
def test_lists_of_anything_else_are_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        karat.read_run(path)
