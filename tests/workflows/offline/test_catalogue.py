"""Catalogue: an entry by any of its names, advice for a task."""

from __future__ import annotations

import pytest

from karat.errors import UsageError
from karat.measures import parse
from karat.measures.tasks import TASKS, Task
from karat.workflows.offline.catalogue import find_entry, find_task


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
    with pytest.raises(UsageError, match="unknown measure 'nDGC'; did you mean nDCG"):
        find_entry("nDGC@10")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_task_has_advice_that_can_be_typed(task: Task) -> None:
    for name in (task.name, task.name.upper(), *task.also):
        assert find_task(name) is task
    assert all(parse(advice.measure) for advice in task.advice)


def test_tasks_have_the_names_that_people_type() -> None:
    typed = (
        "qa navigation retrieval retrieval-stage documents hybrid support medical legal ecommerce "
        "code rag research faq one-number one product retrieval_stage"
    )
    found = {name: find_task(name).name for name in typed.split()}
    assert found["faq"] == "qa"
    assert found["product"] == "ecommerce"
    assert found["one"] == "one-number"
    assert found["retrieval-stage"] == found["retrieval_stage"] == "retrieval"
    names = [name for task in TASKS for name in (task.name, *task.also)]
    assert len(set(names)) == len(names)  # no name means two tasks
    assert [advice.measure for advice in find_task("one number").advice] == ["nDCG@10"]


def test_an_unknown_task_names_all() -> None:
    with pytest.raises(UsageError, match="did you mean legal") as caught:
        find_task("legl")
    assert all(task.name in str(caught.value) for task in TASKS)
    with pytest.raises(UsageError, match="did you mean ecommerce"):
        find_task("prodct")  # near another name of it
