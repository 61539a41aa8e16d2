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

Facts = Literal["searches", "clicks", "sessions"]
"""The table of facts of a metric."""
BINNED = (
    "Times are truncated to three significant digits: it is accurate to 1 %, and may be between "
    "times of the log."
)
"""A trap of metrics that are read from a histogram of times."""
Expression = Callable[[], nw.Expr]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two sums over users: a mean, a share, a rate.

    Attributes:
        facts: The table of facts.
        numerator: Of each row; null counts as 0, but see ``denominator``.
        denominator: Of each row, 0 or null if neither it nor the numerator counts; None for 1 per
            user with a row.
        least: The numerator with unknowns at their lowest; None without bounds.
        most: The numerator with unknowns at their highest; None without bounds.
    """

    facts: Facts
    numerator: Expression
    denominator: Expression | None
    least: Expression | None = None
    most: Expression | None = None


@dataclass(frozen=True, slots=True)
class Distribution:
    """A statistic of a distribution of times, some of them censored.

    Attributes:
        facts: The table of facts.
        name: Name of the histogram, which metrics can share.
        value: Of each row, in microseconds; null if the row does not count.
        censored: 1 if the time is a lower bound; None if no times are censored.
        statistic: ``mean`` of uncensored times · ``median`` (Kaplan-Meier if censored) ·
            ``restricted_mean`` up to ``up_to`` · ``quantile`` at ``level``.
        up_to: In microseconds, for a restricted mean.
        level: From 0 to 1, for a quantile.
    """

    facts: Facts
    name: Literal["dwell", "first_click", "latency"]
    value: Expression
    censored: Expression | None
    statistic: Literal["mean", "median", "restricted_mean", "quantile"]
    up_to: int | None = None
    level: float | None = None


@dataclass(frozen=True)
class Metric:
    """An online metric.

    Attributes:
        name: Name, as printed.
        version: Version of its definition.
        title: Its name in words.
        definition: In plain text; for a ratio ``numerator / denominator``.
        says: What it measures, in a phrase a newcomer understands.
        source: Paper or tool.
        traps: Pitfalls: common misreadings and biases; sentences.
        direction: Which way is better; ``none`` for neither.
        unit: ``share`` | ``count`` | ``seconds`` | ``milliseconds`` | ``money`` | ``rank``.
        compute: Its computation.
        needs: Required columns of ``EVENTS`` or kinds of events; alternatives are separated by
            ``|``.
        family: Metrics that are shown together: ``clicks``, ``zero``, ``reading`` and so on.
        guardrail: Whether it is watched and not optimised.
        point: Whether it has a value; if not, only bounds (``least``, ``most``).
        highest: Its highest possible value; None without one. For a share it is 1.
    """

    name: str
    version: int
    title: str
    definition: str
    says: str
    source: str
    traps: tuple[str, ...]
    direction: Literal["higher", "lower", "none"]
    unit: Literal["share", "count", "seconds", "milliseconds", "money", "rank"]
    compute: Ratio | Distribution
    needs: tuple[str, ...]
    family: str
    guardrail: bool = False
    point: bool = True
    highest: float | None = None
