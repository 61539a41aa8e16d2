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
        n: Number of these queries.
        groups: With ``all_pairs``: letters of its tie groups; runs that share none are
            significantly different. Otherwise None: only pairs with the baseline are tested.
        honest_difference: Always None: each pair has its own spread, so no single difference is
            significant for all pairs. Kept for readers of older versions.
    """

    measure: str
    run: str
    value: float
    n: int
    groups: str | None
    honest_difference: float | None


@dataclass(frozen=True, slots=True)
class Order:
    """Whether two measures order the runs alike.

    Attributes:
        left: One measure.
        right: The other measure.
        runs: Number of runs.
        kendall: Kendall's tau-b, -1 to 1; None if all runs are equal under one of the measures.
        tau_ap: Tau_AP, which weighs the top of the order by ``right``, -1 to 1; None as above.
        spearman: Spearman's rank correlation, -1 to 1; None as above.
    """

    left: str
    right: str
    runs: int
    kendall: float | None
    tau_ap: float | None
    spearman: float | None
