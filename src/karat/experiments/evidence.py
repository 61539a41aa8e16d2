"""Evidence of an experiment: the small tables that a log is reduced to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from karat.experiments import moments
from karat.online import histograms
from karat.online.evidence import Cut
from karat.tables.days import day_text

# Cuts that only experiments have; no attribute has such a name
FIRST_CUT: Cut = ("\x00first",)  # by day of first exposure
AGE_CUT: Cut = ("\x00age",)  # by days since first exposure
OWN: Mapping[Cut, str] = {FIRST_CUT: moments.FIRST, AGE_CUT: moments.AGE}  # and their columns


@dataclass(frozen=True)
class Evidence:
    """The tables of a reduced log."""

    # For each cut the columns of `moments.empty`; the covariate is only in the cut of all
    moments: Mapping[Cut, pl.DataFrame]
    # For each cut a row for each bin, as in `online.evidence`, and `arm`
    histograms: Mapping[Cut, pl.DataFrame]
    counts: Mapping[str, tuple[int, int]]  # by name: of control and treatment
    both: int  # users with searches in both arms
    first_day: int | None  # first and last local day on which a user was exposed
    last_day: int | None
    # With a trigger: the moments of all exposed users, triggered or not; else empty
    whole: pl.DataFrame
    queries: pl.DataFrame  # of decision metrics: sums by query and arm, as `moments.empty_queries`

    @property
    def days(self) -> int:
        """Local days from the first to the last; 0 without any."""
        if self.first_day is None or self.last_day is None:
            return 0
        return self.last_day - self.first_day + 1

    @property
    def open_windows(self) -> int:
        """Users who are left out because their window is not over."""
        users, absent, closed = (sum(self.counts[name]) for name in ("users", "absent", "closed"))
        return users - absent - closed

    @property
    def period(self) -> tuple[str, str] | None:
        """First and last day as ``2026-11-01``."""
        if self.first_day is None or self.last_day is None:
            return None
        return day_text(self.first_day), day_text(self.last_day)


COUNTED = (
    "users", "closed", "searches", "unknown_results", "everyone", "bots", "absent", "exposed",
)  # fmt: skip
"""Counts of arms: exposed users, those whose window is closed, searches after the exposure, those
whose results are unknown, users with the arm (``bots`` among them), users exposed by a table who
have no search, and with a trigger all exposed users."""


def empty_histogram(keys: Sequence[str]) -> pl.DataFrame:
    """An empty histogram by arm, in the slices of some columns."""
    return histograms.empty_histogram((*keys, "arm"))


def together(parts: Sequence[Evidence], cuts: Sequence[Cut]) -> Evidence:
    """The combined evidence of disjoint batches of users."""
    days = [(p.first_day, p.last_day) for p in parts if p.first_day is not None]
    return Evidence(
        {cut: moments.together([part.moments[cut] for part in parts], cut) for cut in cuts},
        {
            cut: pl.concat([empty_histogram(cut), *(part.histograms[cut] for part in parts)])
            for cut in cuts
        },
        {
            name: (
                sum(part.counts.get(name, (0, 0))[0] for part in parts),
                sum(part.counts.get(name, (0, 0))[1] for part in parts),
            )
            for name in COUNTED
        },
        sum(part.both for part in parts),
        min((first for first, _ in days if first is not None), default=None),
        max((last for _, last in days if last is not None), default=None),
        moments.together([part.whole for part in parts], ()),
        pl.concat([moments.empty_queries(), *(part.queries for part in parts)])
        .group_by("query", "arm", "metric")
        .agg(pl.col("above", "below").sum()),
    )
