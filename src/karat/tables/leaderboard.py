"""Leaderboard: several runs in order, and whether measures order them alike."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Standing:
    """A run's place among several, under one measure."""

    measure: str  # canonical name of the measure
    run: str
    value: float  # its mean over the queries for which every run has a value
    n: int  # number of these queries
    # With `all_pairs`: letters of its tie groups; runs that share none are significantly different.
    # Otherwise None: only pairs with the baseline are tested.
    groups: str | None
    # Always None: each pair has its own spread, so no single difference is significant for all
    # pairs. Kept for readers of older versions.
    honest_difference: float | None


@dataclass(frozen=True, slots=True)
class Order:
    """Whether two measures order the runs alike."""

    left: str  # one measure
    right: str  # the other measure
    runs: int
    # Kendall's tau-b, -1 to 1; None if all runs are equal under one of the measures
    kendall: float | None
    # Tau_AP, which weighs the top of the order by `right`, -1 to 1; None as above
    tau_ap: float | None
    spearman: float | None  # Spearman's rank correlation, -1 to 1; None as above
