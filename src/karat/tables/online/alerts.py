"""Alerts: causes that a watch found, for as long as they last, and what people did about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from karat.tables.online.watch import Cause

Did = Literal["acknowledged", "muted", "resolved", "reopened"]
AlertState = Literal["open", "acknowledged", "muted", "resolved", "over"]
"""State of an alert; ``over``: usual again."""
QUIET: frozenset[AlertState] = frozenset({"muted", "resolved", "over"})
"""States in which an alert is not on home, and does not notify."""


@dataclass(frozen=True, slots=True)
class AlertAction:
    """Something that a person did about an alert, or karat (`reopened`)."""

    time_us: int  # microseconds UTC
    person: str
    action: Did
    until_us: int | None  # when `muted` ends, microseconds UTC; None for others
    note: str  # why; may be empty


@dataclass(frozen=True)
class Alert:
    """A change for the worse of a metric in a slice, with what it explains."""

    id: int
    text: str  # what changed, since when, and how many changes it explains
    metric: str
    slice: Mapping[str, str]  # dimension to value; empty for all
    state: AlertState
    opened_us: int  # when a watch first saw it, microseconds UTC
    onset_us: int  # when it began: the hour, or if that is unknown, the first window that saw it
    seen_us: int  # end of the latest window that saw it
    closed_us: int | None  # end of the first window that was usual again; None while it lasts
    until_us: int | None  # when its mute ends; None unless it is muted
    window: str  # the latest window that saw it, as `2026-11-20 06:00-12:00`
    hours: int  # length of the shortest window that saw it
    timezone: str  # of the windows and of the onset
    simulated: bool  # whether any of the events are simulated
    cause: Cause  # as the latest window saw it
    actions: Sequence[AlertAction] = field(default=())  # in order

    @property
    def lasts(self) -> bool:
        """Whether the latest watch saw it."""
        return self.closed_us is None
