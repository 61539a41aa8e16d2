"""The interface of frame engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self

import narwhals as nw
import polars as pl

from karat.tables.online.events import EventLog

ROWS_AT_ONCE = 4_000_000
"""Default maximum number of events in memory, for engines that compute in memory."""


class Engine(Protocol):
    """Runs plans; opened for a task and closed after it, by a ``with`` statement."""

    name: str

    def batches(
        self, log: EventLog, columns: Sequence[str], since: int | None, until: int | None
    ) -> Iterator[nw.LazyFrame[Any]]:
        """The events of a log, in batches with all events of their users; times are µs UTC."""
        ...

    def keep(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """The frame, computed once for use in several plans; dropped with the batch."""
        ...

    def table(self, frame: pl.DataFrame) -> nw.LazyFrame[Any]:
        """A small table to join with events."""
        ...

    def collect(self, frame: nw.LazyFrame[Any]) -> pl.DataFrame:
        """The result of a plan, in any order; all integers, including times, as Int64."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
