"""Watch: the latest window of a log compared with earlier windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Moved = Literal["worse", "better", "usual", "cannot_tell"]
"""Verdict on one metric in one slice."""
Verdict = Literal["unhealthy", "worse", "cannot_tell", "fine"]
"""Verdict of a watch."""
EXIT_CODES: Mapping[Verdict, int] = {"unhealthy": 3, "worse": 1, "cannot_tell": 3, "fine": 0}


@dataclass(frozen=True, slots=True)
class Contribution:
    """The contribution of one query to a change.

    The contributions of all queries add up to the change. Each is the query's numerator minus the
    expected value times its denominator, divided by the denominator of all queries; minus the mean
    of the same over the earlier windows. A query that is only more frequent than before, with an
    average value, contributes nothing.

    Attributes:
        query: Its normalised form; empty for searches without text.
        text: Its most frequent spelling.
        value: Its value in the window; None if it has none.
        before: Its value in the earlier windows together; None if it has none.
        n: Its denominator in the window.
        n_before: Its mean denominator over the earlier windows.
        adds: Its contribution, in the unit of the metric.
    """

    query: str
    text: str
    value: float | None
    before: float | None
    n: float
    n_before: float
    adds: float


@dataclass(frozen=True, slots=True)
class Change:
    """One metric in one slice, in the window and in comparable earlier windows.

    Attributes:
        metric: Name of the metric.
        version: Version of its definition.
        direction: Which direction is better.
        unit: Its unit, as in the catalogue.
        slice: Dimension to value; empty for all.
        verdict: worse | better | usual | cannot_tell.
        reason: The reason for ``cannot_tell``; empty otherwise.
        value: Value in the window; None if there is none.
        expected: Mean over the earlier windows; None if there is none.
        usual_low: Lower end of the 95 % prediction interval; None without one.
        usual_high: Upper end.
        change: ``value - expected``; None without one of them.
        margin: Changes up to this size do not matter.
        n: Number of units behind ``value``.
        users: Number of users among them.
        windows: Number of earlier windows that have a value.
        before: Their values, the latest first.
        df: Degrees of freedom of the test.
        p: P-value of the change against the margin; None without a test.
        p_adjusted: The p-value adjusted (Benjamini and Hochberg) over all tests of its kind:
            overall metrics, or slices.
        queries: The largest contributions to the change; empty unless it is worse or better, and
            for metrics that are not ratios.
        others: Contribution of all other queries; None without ``queries``.
    """

    metric: str
    version: int
    direction: str
    unit: str
    slice: Mapping[str, str]
    verdict: Moved
    reason: str
    value: float | None
    expected: float | None
    usual_low: float | None
    usual_high: float | None
    change: float | None
    margin: float
    n: int
    users: int
    windows: int
    before: Sequence[float]
    df: int | None
    p: float | None
    p_adjusted: float | None
    queries: Sequence[Contribution] = ()
    others: float | None = None


@dataclass(frozen=True)
class Watched:
    """The result of a watch.

    Attributes:
        verdict: The overall verdict.
        window: The window, as ``2026-11-20`` or ``2026-11-20 06:00-12:00``.
        compared: The earlier windows that have events, the latest first.
        absent: The earlier windows without events.
        searches: Number of searches in the window.
        searches_before: Mean number over the earlier windows; None without any.
        health: Problems of the log, in sentences; read them first.
        changes: A row for each metric and slice: worse first, then better, then the rest.
        tests: Number of tests.
        by: Dimensions sliced by.
        rules: The rules (``Rules.id``).
        timezone: Time zone of the window.
        notes: Sentences a reader must know.
        simulated: Whether any of the events are simulated.
        engine: The frame engine that computed it.
    """

    verdict: Verdict
    window: str
    compared: Sequence[str]
    absent: Sequence[str]
    searches: int
    searches_before: float | None
    health: Sequence[str]
    changes: Sequence[Change]
    tests: int
    by: tuple[str, ...]
    rules: str
    timezone: str
    notes: Sequence[str]
    simulated: bool
    engine: str = "polars"

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
