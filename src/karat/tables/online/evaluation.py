"""Online results: one row for each metric and slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from karat.errors import UsageError, nearest
from karat.tables.records import record_of

OnlineState = Literal["ok", "none", "unknown"]
"""``ok`` it has a value · ``none`` there is nothing to count (null, not 0) · ``unknown`` the log
lacks the data."""

DIMENSIONS = ("day", "hour", "arm", "query", "class")
"""Dimensions to slice by, in addition to the attributes of a log."""


@dataclass(frozen=True, slots=True)
class OnlineResult:
    """The value of one online metric in one slice."""

    metric: str
    version: int  # version of its definition
    # Dimension to value, such as `{"day": "2026-11-20", "arm": "b"}`; empty for all
    slice: Mapping[str, str]
    value: float | None  # the value in the metric's unit; None (not 0) if there is none
    low: float | None  # lower end of the 95 % interval; None without one (`reason` says why)
    high: float | None  # upper end
    # `users` (delta method over users) | `buckets` (resampling of user buckets); None without an
    # interval
    method: str | None
    # Lower bound over what the log leaves open (the dwell of a last click); None if the metric has
    # no bounds
    least: float | None
    most: float | None  # upper bound
    n: int  # number of units: searches, clicks, sessions or users
    users: int  # number of users among them
    total: float | None  # sum of the numerator; None for metrics without one, such as quantiles
    state: OnlineState  # whether it has a value, and if not, why
    reason: str = ""  # why it has no value or no interval, in words; empty if it has both


@dataclass(frozen=True)
class OnlineResults:
    """The results of an online evaluation."""

    results: Sequence[OnlineResult]  # a row for each metric and slice
    by: tuple[str, ...]  # dimensions sliced by
    rules: str  # the rules (`Rules.id`)
    period: tuple[str, str] | None  # first and last day, as `2026-11-01`; None without events
    events: int  # number of events in the period
    health: Sequence[str]  # problems of the log, in sentences; read them before any value
    notes: Sequence[str]  # sentences a reader must know
    simulated: bool  # whether any of the events are simulated
    engine: str = field(default="polars", compare=False)  # the frame engine that computed them

    def value(self, metric: str, **slice_of: str) -> float | None:
        """The value of a metric: over everything, or in a slice (``day="2026-11-20", arm="b"``).

        Returns:
            The value in the metric's unit; None if there is none.

        Raises:
            UsageError: the metric was not computed (the nearest is named), or unknown slice.
        """
        names = {row.metric.casefold(): row.metric for row in self.results}
        name = names.get(str(metric).casefold())
        if name is None:
            raise UsageError(
                f"{metric!r} was not computed; available: {', '.join(names.values())}",
                nearest=nearest(str(metric), names.values(), 1),
            )
        for row in self.results:
            if row.metric == name and dict(row.slice) == slice_of:
                return row.value
        asked = ", ".join(f"{key}={value}" for key, value in slice_of.items())
        raise UsageError(
            f"unknown slice {asked}" if asked else f"{name} has no value over everything",
            fix='by="day" slices by day' if not self.by else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> OnlineResults:
        """Inverse of ``to_dict``."""
        return record_of(cls, content)
