"""Online results: one row for each metric and slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from karat.errors import UsageError, nearest

OnlineState = Literal["ok", "none", "unknown"]
"""``ok`` it has a value · ``none`` there is nothing to count (null, not 0) · ``unknown`` the log
lacks the data."""

DIMENSIONS = ("day", "hour", "arm", "query", "class")
"""Dimensions to slice by, in addition to the attributes of a log."""


@dataclass(frozen=True, slots=True)
class OnlineResult:
    """The value of one online metric in one slice.

    Attributes:
        metric: Name of the metric.
        version: Version of its definition.
        slice: Dimension to value, such as ``{"day": "2026-11-20", "arm": "b"}``; empty for all.
        value: The value in the metric's unit; None (not 0) if there is none.
        low: Lower end of the 95 % interval; None without one (``reason`` says why).
        high: Upper end.
        method: ``users`` (delta method over users) | ``buckets`` (resampling of user buckets); None
            without an interval.
        least: Lower bound over what the log leaves open (the dwell of a last click); None if the
            metric has no bounds.
        most: Upper bound.
        n: Number of units: searches, clicks, sessions or users.
        users: Number of users among them.
        total: Sum of the numerator; None for metrics without one, such as quantiles.
        state: Whether it has a value, and if not, why.
        reason: Why it has no value or no interval, in words; empty if it has both.
    """

    metric: str
    version: int
    slice: Mapping[str, str]
    value: float | None
    low: float | None
    high: float | None
    method: str | None
    least: float | None
    most: float | None
    n: int
    users: int
    total: float | None
    state: OnlineState
    reason: str = ""


@dataclass(frozen=True)
class OnlineResults:
    """The results of an online evaluation.

    Attributes:
        results: A row for each metric and slice.
        by: Dimensions sliced by.
        rules: The rules (``Rules.id``).
        period: First and last day, as ``2026-11-01``; None without events.
        events: Number of events in the period.
        health: Problems of the log, in sentences; read them before any value.
        notes: Sentences a reader must know.
        simulated: Whether any of the events are simulated.
        engine: The frame engine that computed them.
    """

    results: Sequence[OnlineResult]
    by: tuple[str, ...]
    rules: str
    period: tuple[str, str] | None
    events: int
    health: Sequence[str]
    notes: Sequence[str]
    simulated: bool
    engine: str = field(default="polars", compare=False)

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
