"""Catalogue: an entry by any of its names, advice for a task."""

from __future__ import annotations

import pytest

from karat.errors import UsageError
from karat.measures import parse
from karat.measures.tasks import TASKS
from karat.workflows.catalogue import find_entry, find_task


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("nDCG", "nDCG"),
        ("ndcg@10", "nDCG"),
        ("ndcg_cut_10", "nDCG"),
        ("nDCG(gain=exp)@10", "nDCG"),
        ("MRR", "RR"),
        ("map", "AP"),
        ("P@5", "P"),
        ("P", "P"),
        ("recall_100", "R"),
    ],
)
def test_an_entry_is_found_by_any_spelling(name: str, symbol: str) -> None:
    assert find_entry(name).symbol == symbol


def test_an_unknown_measure_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="there is no measure called 'nDGC'; did you mean nDCG"):
        find_entry("nDGC@10")


@pytest.mark.parametrize("name", ["rag", "code", "product", "faq", "legal", "research", "RAG"])
def test_every_task_of_the_help_has_advice(name: str) -> None:
    task = find_task(name)
    assert task.name == name.casefold()
    for advice in task.advice:
        assert parse(advice.measure), "what is advised can be typed"


def test_an_unknown_task_names_all() -> None:
    with pytest.raises(UsageError, match="did you mean legal") as caught:
        find_task("legl")
    assert all(task.name in str(caught.value) for task in TASKS)
