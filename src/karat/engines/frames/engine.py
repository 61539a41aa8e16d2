"""What an engine does for a plan: open events, keep what is used twice, and hand over the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self

import narwhals as nw
import polars as pl

from karat.tables.online.events import EventLog

ROWS_AT_ONCE = 4_000_000
"""Events in memory at once, where an engine holds them in memory."""


class Engine(Protocol):
    """Runs plans; one is opened for a task and closed behind it, in a ``with`` statement.

    Attributes:
        name: ``polars`` | ``duckdb`` | ``spark``.
    """

    name: str

    def batches(
        self, log: EventLog, columns: Sequence[str], since: int | None, until: int | None
    ) -> Iterator[nw.LazyFrame[Any]]:
        """The events of a log, in batches that hold all events of their users.

        Args:
            log: What the store holds.
            columns: The columns wanted; one that a file lacks is null there.
            since: No events before this time, in microseconds; None for all.
            until: No events at or after it; None for all.
        """
        ...

    def keep(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """The same, computed once: for what several plans go on from. Dropped with the batch."""
        ...

    def table(self, frame: pl.DataFrame) -> nw.LazyFrame[Any]:
        """A small table, to be joined with events."""
        ...

    def collect(self, frame: nw.LazyFrame[Any]) -> pl.DataFrame:
        """What a plan comes to; integers as Int64, times as Int64, in no order."""
        ...

    def __enter__(self) -> Self:
        """Ready."""
        ...

    def __exit__(self, *_: object) -> None:
        """Let go of what it holds."""
        ...
