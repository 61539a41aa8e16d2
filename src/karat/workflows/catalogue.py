"""The catalogue of measures: what there is, what one means, which to use."""

from __future__ import annotations

from karat.errors import UsageError, nearest
from karat.measures import Entry
from karat.measures.names import lookup
from karat.measures.tasks import TASKS, Task


def find_entry(name: str) -> Entry:
    """The entry of a measure, by any of its spellings (``MRR``, ``ndcg_cut_10``, ``P@5``).

    Raises:
        UsageError: there is none; the nearest is named.
    """
    return lookup(name)


def find_task(name: str) -> Task:
    """The advice for one task.

    Raises:
        UsageError: there is no such task; all are named.
    """
    for task in TASKS:
        if task.name == name.casefold():
            return task
    names = [task.name for task in TASKS]
    raise UsageError(
        f"there is no advice for {name!r}; there is for {', '.join(names)}",
        nearest=nearest(name, names, 1),
    )
