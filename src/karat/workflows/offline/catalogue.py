"""The catalogue of measures: look up a measure, or advice for a task."""

from __future__ import annotations

import re

from karat.errors import UsageError, nearest
from karat.measures import DEFAULTS, Entry, entries
from karat.measures.names import lookup
from karat.measures.tasks import TASKS, Task


def list_entries() -> list[Entry]:
    return entries()


def default_measures() -> tuple[str, ...]:
    """Names of the measures that are computed unless others are chosen."""
    return tuple(DEFAULTS)


def find_entry(name: str) -> Entry:
    """The entry of a measure, by any of its spellings (``MRR``, ``ndcg_cut_10``, ``P@5``)."""
    return lookup(name)


def find_task(name: str) -> Task:
    """The advice for a task, by its name or an alias."""
    typed = re.sub(r"[\s_-]+", "-", name.strip().casefold())
    for task in TASKS:
        if typed in (task.name, *task.also):
            return task
    names = [task.name for task in TASKS]
    names_of_task = {other: task.name for task in TASKS for other in (task.name, *task.also)}
    near = nearest(typed, list(names_of_task), 1)
    raise UsageError(
        f"unknown task {name!r}; expected one of {', '.join(names)}",
        nearest=[names_of_task[other] for other in near],
    )
