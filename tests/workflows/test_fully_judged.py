"""A collection declared fully judged: nothing is said of unjudged documents, but once that."""

from __future__ import annotations

import io
from typing import Any

import pytest

import karat
from karat.errors import InputError, UsageError
from karat.reports.offline.evaluation import show
from karat.reports.writers.terminal import console
from karat.tables.notes import Concern, Note

QRELS = {f"q{i}": {"a": 2, "b": 1, "c": 0} for i in range(30)}
BEFORE = {f"q{i}": {"a": 3.0, f"new{i}": 2.0, "b": float(i % 2)} for i in range(30)}
AFTER = {f"q{i}": {f"new{i}": 3.0, "b": 2.0, "a": 1.0} for i in range(30)}
DECLARED = "declared fully judged: documents without a judgment count as not relevant"
POLICY: dict[str, Any] = {"rule": [{"measure": "nDCG@10", "max_drop": "90%"}]}


def test_evaluate_says_it_once_and_nothing_else_of_the_unjudged() -> None:
    usual = karat.evaluate(QRELS, BEFORE)
    found = karat.evaluate(QRELS, BEFORE, fully_judged=True)
    assert any("unjudged" in note for note in usual.notes)
    assert [note for note in found.notes if "judg" in note] == [DECLARED]
    assert {row.value for row in found.results} == {row.value for row in usual.results}
    for row in found.results:
        assert (row.judged, row.unjudged_low, row.unjudged_high) == (None, None, None)
    assert found.to_dict()["fully_judged"] is True
    assert "fully_judged" not in usual.to_dict()
    out = io.StringIO()
    show(found, console(out, 80))
    assert "judged" not in out.getvalue().replace(DECLARED, "")


def test_compare_has_no_bounds_of_the_unjudged() -> None:
    usual = karat.compare(QRELS, BEFORE, AFTER, "nDCG@10")
    found = karat.compare(QRELS, BEFORE, AFTER, "nDCG@10", fully_judged=True)
    assert usual.differences[0].unjudged_high is not None
    assert found.differences[0].unjudged_high is None
    assert "unjudged" not in found.differences[0].reason
    assert found.differences[0].verdict == usual.differences[0].verdict
    assert found.notes.count(DECLARED) == 1
    assert found.to_dict()["settings"]["fully_judged"] is True


def test_a_gate_is_told_by_its_policy_or_by_an_argument() -> None:
    by_policy = karat.gate({**POLICY, "fully_judged": True}, QRELS, BEFORE, AFTER)
    by_argument = karat.gate(POLICY, QRELS, BEFORE, AFTER, fully_judged=True)
    for found in (by_policy, by_argument):
        assert found.notes.count(DECLARED) == 1
        assert found.to_dict()["fully_judged"] is True
    assert by_policy.hashes == by_argument.hashes
    assert karat.gate(POLICY, QRELS, BEFORE, AFTER).to_dict()["fully_judged"] is False


def test_it_does_not_go_with_what_asks_for_judgments() -> None:
    for options in ({"bounds": True}, {"judged_only": True}):
        with pytest.raises(UsageError, match="fully_judged") as wrong:
            karat.evaluate(QRELS, BEFORE, fully_judged=True, **options)
        assert wrong.value.fix == "leave out one of the two"
    with pytest.raises(UsageError, match="judge_next lists unjudged documents"):
        karat.compare(QRELS, BEFORE, AFTER, judge_next=5, fully_judged=True)
    with pytest.raises(UsageError, match="not True or False"):
        karat.evaluate(QRELS, BEFORE, fully_judged="yes")
    asks = {**POLICY, "health": {"min_judged": 0.2}}
    with pytest.raises(UsageError, match="min_judged"):
        karat.gate(asks, QRELS, BEFORE, AFTER, fully_judged=True)
    with pytest.raises(InputError, match="min_judged"):
        karat.gate({**asks, "fully_judged": True}, QRELS, BEFORE, AFTER)
    with pytest.raises(InputError, match="not true or false"):
        karat.gate({**POLICY, "fully_judged": 1}, QRELS, BEFORE, AFTER)


def test_unknown_document_ids_are_still_reported_first() -> None:
    other = {query: {f"doc-{doc}": score for doc, score in docs.items()} for query, docs in
             AFTER.items()}  # fmt: skip
    found = karat.evaluate(QRELS, other, fully_judged=True)
    first = found.notes[0]
    assert isinstance(first, Note)
    assert first.concern is Concern.INPUT
    assert "no retrieved document is judged" in first
    assert karat.gate(POLICY, QRELS, BEFORE, other, fully_judged=True).verdict == "unhealthy"


def test_a_benchmark_takes_it_as_evaluate_does() -> None:
    golden = [{"query": "red shoes", "relevant_docs": ["a"]}]
    found = karat.benchmark(golden, lambda _query: ["a", "new"], fully_judged=True)
    assert DECLARED in found.notes
