"""Online results: what users did, one row for each metric and slice, and what stands behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from karat.errors import UsageError, nearest

OnlineState = Literal["ok", "none", "unknown"]
"""``ok`` it has a value · ``none`` nothing to count it over (null, not 0) · ``unknown`` the log
does not say what it takes."""

DIMENSIONS = ("day", "hour", "arm", "query", "class")
"""What a slice may be of, besides the attributes of a log."""


@dataclass(frozen=True, slots=True)
class OnlineResult:
    """The value of one online metric in one slice.

    Attributes:
        metric: Its name.
        version: Version of its definition.
        slice: Dimension to value, as ``{"day": "2026-11-20", "arm": "b"}``; empty for all.
        value: Its value in its unit; None if there is none, which is not 0.
        low: Lower end of the 95 % interval; None without (``reason`` says why).
        high: Upper end.
        method: ``users`` (moments of users, delta method) | ``buckets`` (buckets of users
            resampled); None without an interval.
        least: Lower bound over what the log does not say (a last click's dwell); None if it has no
            such bounds.
        most: Upper bound.
        n: What it is over: searches, clicks, sessions or users.
        users: Users in that.
        total: What the numerator adds up to; None for a quantile and such.
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
    """What a log says.

    Attributes:
        results: A row for each metric and slice.
        by: What it is sliced by.
        rules: The rules, as ``Rules.id`` says them.
        period: First and last day, as ``2026-11-01``; None without events.
        events: Events in that.
        health: What to know before any number is read, in sentences.
        notes: What is to be known of the numbers, in sentences.
        simulated: Whether any of it was simulated.
        engine: What computed it.
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

        Raises:
            UsageError: it was not asked for, with the nearest there is, or there is no such slice.
        """
        there = {row.metric.casefold(): row.metric for row in self.results}
        name = there.get(str(metric).casefold())
        if name is None:
            raise UsageError(
                f"{metric!r} was not computed; there are {', '.join(there.values())}",
                nearest=nearest(str(metric), there.values(), 1),
            )
        for row in self.results:
            if row.metric == name and dict(row.slice) == slice_of:
                return row.value
        asked = ", ".join(f"{key}={value}" for key, value in slice_of.items())
        raise UsageError(
            f"there is no slice {asked}" if asked else f"{name} has no value over everything",
            fix='by="day" makes a slice of each day' if not self.by else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)
