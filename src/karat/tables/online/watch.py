"""What a watch saw: the latest window of a log beside its own history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Moved = Literal["worse", "better", "usual", "cannot_tell"]
"""What became of one metric in one slice."""
Verdict = Literal["unhealthy", "worse", "cannot_tell", "fine"]
"""What a watch comes to."""
EXIT_CODES: Mapping[Verdict, int] = {"unhealthy": 3, "worse": 1, "cannot_tell": 3, "fine": 0}


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one query adds to a change.

    The contributions of all queries add up to the change: each is its numerator less the expected
    value times its denominator, over the denominator of all, less the mean of the same over the
    earlier windows. A query that is merely asked more often than it was, and is as others are, so
    adds nothing.

    Attributes:
        query: Its folded form; empty where nothing was typed.
        text: It as it was typed most often.
        value: Of this query in the window; None if it has none.
        before: Of it in the earlier windows together; None likewise.
        n: Its denominator in the window: how often it counts.
        n_before: The mean of the same over the earlier windows.
        adds: To the change, in the unit of the metric.
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
    """One metric in one slice, in the window and in the comparable windows before it.

    Attributes:
        metric: Its name.
        version: Of its definition.
        direction: Which way is better.
        unit: As the catalogue has it.
        slice: Dimension to value; empty for all.
        verdict: Worse, better, as usual, or nobody can tell.
        reason: Why nobody can tell; empty otherwise.
        value: In the window; None if there is none.
        expected: The mean over the earlier windows; None if there is none.
        usual_low: Values from here …
        usual_high: … to here come of luck in 95 of 100 windows; None without.
        change: ``value - expected``; None without one of them.
        margin: A change up to this matters to nobody.
        n: What ``value`` is over.
        users: People in that.
        windows: Earlier windows that have a value.
        before: Their values, the latest first.
        df: Degrees of freedom of the test.
        p: How often a change as great beyond the margin comes of luck; None without a test.
        p_adjusted: The same for as many tests as were made (Benjamini and Hochberg): of the whole
            if it is of all, else of slices.
        queries: Queries that add most to the change; empty unless it is worse or better, and for
            metrics that are no ratio.
        others: What all other queries add; None without ``queries``.
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
    """What a watch saw.

    Attributes:
        verdict: What it comes to.
        window: The window, as ``2026-11-20`` or ``2026-11-20 06:00-12:00``.
        compared: The earlier windows that have events, the latest first.
        absent: Those that have none.
        searches: Searches in the window.
        searches_before: The mean over the earlier windows; None without.
        health: What is wrong with the evidence, to be said first, in sentences.
        changes: A row for each metric and slice: what is worse first, then better, then the rest.
        tests: Tests that were made.
        by: What it is sliced by.
        rules: The rules, as ``Rules.id`` says them.
        timezone: That of the window.
        notes: What is to be known of it, in sentences.
        simulated: Whether any of the log was simulated.
        engine: What computed it.
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
        """0 fine · 1 something got worse · 3 nobody can tell, or the evidence is broken."""
        return EXIT_CODES[self.verdict]

    def found(self, verdict: Moved) -> list[Change]:
        """The rows of one verdict."""
        return [change for change in self.changes if change.verdict == verdict]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "exit_code": self.exit_code}
