"""The catalogue of measures: what there is, what one means, which to use."""

from __future__ import annotations

import re

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
    """The advice for one task, by its name or another name of it.

    Raises:
        UsageError: there is no such task; all are named.
    """
    typed = re.sub(r"[\s_-]+", "-", name.strip().casefold())
    for task in TASKS:
        if typed in (task.name, *task.also):
            return task
    names = [task.name for task in TASKS]
    known = {other: task.name for task in TASKS for other in (task.name, *task.also)}
    near = nearest(typed, list(known), 1)
    raise UsageError(
        f"there is no advice for {name!r}; there is for {', '.join(names)}",
        nearest=[known[other] for other in near],
    )
