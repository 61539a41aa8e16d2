"""Leaderboard: several runs in order, and whether measures order them alike."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Standing:
    """A run's place among several, under one measure.

    Attributes:
        measure: Canonical name of the measure.
        run: Name of the run.
        value: Its mean over the queries for which every run has a value.
        n: These queries.
        groups: With ``all_pairs``: letters of its tie groups. Runs that share none are
            significantly different; else None, as nothing is asked of pairs without the baseline.
        honest_difference: Always None: each pair has a spread of its own, so no one difference
            is significant for all of them. Kept for readers of older versions.
    """

    measure: str
    run: str
    value: float
    n: int
    groups: str | None
    honest_difference: float | None


@dataclass(frozen=True, slots=True)
class Order:
    """Whether two measures put the runs in one order.

    Attributes:
        left: One measure.
        right: Another.
        runs: Number of runs.
        kendall: Tau-b, -1 to 1; None if all runs are equal under one of them.
        tau_ap: Tau_AP, which weighs the top of the right one's order; None likewise.
        spearman: Spearman's correlation; None likewise.
    """

    left: str
    right: str
    runs: int
    kendall: float | None
    tau_ap: float | None
    spearman: float | None
