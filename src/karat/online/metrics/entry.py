"""The entry of an online metric: its documentation, and how facts are reduced to it.

The catalogue, the reference page and the law tests use entries. Computations are Narwhals
expressions over the facts (SEARCHES, CLICKS and SESSIONS of the schema): one entry runs on every
engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import narwhals as nw

Facts = Literal["searches", "clicks", "sessions"]  # the table of facts of a metric
BINNED = (
    "Times are truncated to three significant digits: it is accurate to 1 %, and may be between "
    "times of the log."
)
"""A trap of metrics that are read from a histogram of times."""
Expression = Callable[[], nw.Expr]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two sums over users: a mean, a share, a rate."""

    facts: Facts  # the table of facts
    numerator: Expression  # of each row; null counts as 0, but see `denominator`
    # Of each row, 0 or null if neither it nor the numerator counts; None for 1 per user with a row
    denominator: Expression | None
    # The numerator with unknowns at their lowest; None without bounds
    least: Expression | None = None
    # The numerator with unknowns at their highest; None without bounds
    most: Expression | None = None


@dataclass(frozen=True, slots=True)
class Distribution:
    """A statistic of a distribution of times, some of them censored."""

    facts: Facts  # the table of facts
    # Name of the histogram, which metrics can share
    name: Literal["dwell", "first_click", "latency"]
    value: Expression  # of each row, in microseconds; null if the row does not count
    censored: Expression | None  # 1 if the time is a lower bound; None if no times are censored
    # `mean` of uncensored times · `median` (Kaplan-Meier if censored) · `restricted_mean` up to the
    # limit of the rules · `quantile` at `level`
    statistic: Literal["mean", "median", "restricted_mean", "quantile"]
    level: float | None = None  # from 0 to 1, for a quantile


@dataclass(frozen=True)
class Metric:
    """An online metric."""

    name: str  # name, as printed
    version: int  # version of its definition
    title: str  # its name in words
    definition: str  # in plain text; for a ratio `numerator / denominator`
    says: str  # what it measures, in a phrase a newcomer understands
    source: str  # paper or tool
    traps: tuple[str, ...]  # pitfalls: common misreadings and biases; sentences
    direction: Literal["higher", "lower", "none"]  # which way is better; `none` for neither
    # `share` | `count` | `seconds` | `milliseconds` | `money` | `rank`
    unit: Literal["share", "count", "seconds", "milliseconds", "money", "rank"]
    compute: Ratio | Distribution  # its computation
    # Required columns of `EVENTS` or kinds of events; alternatives are separated by `|`
    needs: tuple[str, ...]
    family: str  # metrics that are shown together: `clicks`, `zero`, `reading` and so on
    guardrail: bool = False  # whether it is watched and not optimised
    point: bool = True  # whether it has a value; if not, only bounds (`least`, `most`)
    # Its highest possible value; None without one. For a share it is 1.
    highest: float | None = None
