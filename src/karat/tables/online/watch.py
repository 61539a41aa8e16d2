"""Watch: the latest window of a log compared with earlier windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Moved = Literal["worse", "better", "usual", "cannot_tell"]  # verdict on one metric in one slice
Verdict = Literal["unhealthy", "worse", "cannot_tell", "fine"]  # verdict of a watch
EXIT_CODES: Mapping[Verdict, int] = {"unhealthy": 3, "worse": 1, "cannot_tell": 3, "fine": 0}


@dataclass(frozen=True, slots=True)
class Contribution:
    """The contribution of one query to a change.

    The contributions of all queries add up to the change. Each is the query's numerator minus the
    expected value times its denominator, divided by the denominator of all queries; minus the mean
    of the same over the earlier windows. A query that is only more frequent than before, with an
    average value, contributes nothing.
    """

    query: str  # its normalised form; empty for searches without text
    text: str  # its most frequent spelling
    value: float | None  # its value in the window; None if it has none
    before: float | None  # its value in the earlier windows together; None if it has none
    n: float  # its denominator in the window
    n_before: float  # its mean denominator over the earlier windows
    adds: float  # its contribution, in the unit of the metric


@dataclass(frozen=True, slots=True)
class Change:
    """One metric in one slice, in the window and in comparable earlier windows."""

    metric: str
    version: int  # version of its definition
    direction: str  # which direction is better
    unit: str  # its unit, as in the catalogue
    slice: Mapping[str, str]  # dimension to value; empty for all
    verdict: Moved  # worse | better | usual | cannot_tell
    reason: str  # the reason for `cannot_tell`; empty otherwise
    value: float | None  # value in the window; None if there is none
    expected: float | None  # mean over the earlier windows; None if there is none
    usual_low: float | None  # lower end of the 95 % prediction interval; None without one
    usual_high: float | None  # upper end
    change: float | None  # `value - expected`; None without one of them
    margin: float  # changes up to this size do not matter
    n: int  # number of units behind `value`
    users: int  # number of users among them
    windows: int  # number of earlier windows that have a value
    before: Sequence[float]  # their values, the latest first
    df: int | None  # degrees of freedom of the test
    p: float | None  # p-value of the change against the margin; None without a test
    # The p-value adjusted (Benjamini and Hochberg) over all tests of its kind: overall metrics, or
    # slices
    p_adjusted: float | None
    # The largest contributions to the change; empty unless it is worse or better, and for metrics
    # that are not ratios
    queries: Sequence[Contribution] = ()
    others: float | None = None  # contribution of all other queries; None without `queries`


@dataclass(frozen=True, slots=True)
class Explained:
    """A change that a cause explains."""

    metric: str
    slice: Mapping[str, str]  # dimension to value; empty for all
    share: float | None  # share of it that comes from the searches of the cause; None if unknown


@dataclass(frozen=True, slots=True)
class Hour:
    """A metric in an hour, and what is usual in it."""

    start: str  # local time, as `2026-11-20 03:00`
    value: float | None  # None without anything to count
    n: int  # denominator
    expected: float | None  # of the same weekday and hour in earlier weeks; None without any
    usual_low: float | None  # lower end of the 95 % prediction interval
    usual_high: float | None  # upper end


@dataclass(frozen=True, slots=True)
class Onset:
    """When a change began, by the hour."""

    at: str | None  # first hour of the change, as `2026-11-20 03:00`; None if it is unknown
    earliest: str | None  # the first hour that it may have begun with; None if before all `hours`
    latest: str | None  # the last such hour; None if nothing is known
    ended: str | None  # the first hour after the change; None while it lasts
    reason: str  # why `at` is unknown; empty otherwise
    hours: Sequence[Hour] = ()  # the hours before and in the window


@dataclass(frozen=True, slots=True)
class Cause:
    """Changes for the worse that come from the same searches."""

    lead: Change  # the change that explains the others
    explains: Sequence[Explained]  # the others
    # Queries that make up the change, by their most frequent spelling; empty if it is spread over
    # many queries
    queries: Sequence[str]
    # Share of the change of the metric over all searches that comes from the searches of the
    # cause; None if that did not get worse, or is the lead
    share: float | None
    onset: Onset | None = None  # None if the metric does not add up over hours


@dataclass(frozen=True)
class Watched:
    """The result of a watch."""

    verdict: Verdict  # the overall verdict
    window: str  # the window, as `2026-11-20` or `2026-11-20 06:00-12:00`
    compared: Sequence[str]  # the earlier windows that have events, the latest first
    absent: Sequence[str]  # the earlier windows without events
    searches: int  # number of searches in the window
    searches_before: float | None  # mean number over the earlier windows; None without any
    health: Sequence[str]  # problems of the log, in sentences; read them first
    # A row for each metric and slice: worse first, then better, then the rest
    changes: Sequence[Change]
    tests: int
    by: tuple[str, ...]  # dimensions sliced by
    rules: str  # the rules (`Rules.id`)
    timezone: str  # time zone of the window
    notes: Sequence[str]  # sentences a reader must know
    simulated: bool  # whether any of the events are simulated
    engine: str = "polars"  # the frame engine that computed it
    causes: Sequence[Cause] = ()  # the changes for the worse by cause, the largest cause first
    ends_us: int = 0  # end of the window, microseconds UTC
    hours: int = 24  # length of the window

    @property
    def exit_code(self) -> int:
        """0 fine · 1 something got worse · 3 inconclusive, or problems of the log."""
        return EXIT_CODES[self.verdict]

    def found(self, verdict: Moved) -> list[Change]:
        """The changes with one verdict."""
        return [change for change in self.changes if change.verdict == verdict]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {**asdict(self), "exit_code": self.exit_code}
