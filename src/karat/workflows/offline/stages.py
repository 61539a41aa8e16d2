"""Stages of long work: how far it is, and a way to stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from karat.errors import KaratError

Watch = Callable[[str, int, int], None]
"""Called with the stage, how many of it are done, and of how many (0 if unknown); may raise
``Cancelled`` to stop the work."""
_T = TypeVar("_T")


CANCELLED = "cancelled"
"""The reason why there are no results, if a user stopped the work."""


class Cancelled(KaratError):
    """A user cancelled the work."""

    def __init__(self) -> None:
        super().__init__(CANCELLED)


def unwatched(_stage: str, _done: int, _total: int) -> None:
    """A watch that does nothing."""


def watched(watch: Watch, stage: str, items: Sequence[_T]) -> Iterator[_T]:
    """The items, one done after the other."""
    for done, item in enumerate(items):
        watch(stage, done, len(items))
        yield item
    watch(stage, len(items), len(items))
