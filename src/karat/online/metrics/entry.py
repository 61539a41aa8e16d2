"""What an online metric is: one entry that says everything about it, and how events reduce to it.

The catalogue, the reference page and the laws are printed from entries. What an entry computes is
said as Narwhals expressions over the facts (SEARCHES, CLICKS and SESSIONS of the schema), so that
one entry runs on every engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import narwhals as nw

Facts = Literal["searches", "clicks", "sessions"]
"""The table of facts a metric is over."""
BINNED = (
    "Times are counted by their first three digits: it is right within 1 %, and may lie between "
    "times that the log has."
)
"""A trap of what is read from a histogram of times."""
Expression = Callable[[], nw.Expr]


@dataclass(frozen=True, slots=True)
class Ratio:
    """One sum divided by another, both over users: a mean, a share, a rate.

    Attributes:
        facts: The table it is over.
        numerator: Of each row; null counts as 0, but see ``denominator``.
        denominator: Of each row, 0 or null where the row does not count, and then its numerator
            does not either; None: 1 for each user who has a row.
        least: A numerator where everything unknown is the worse; None without such bounds.
        most: One where everything unknown is the better.
    """

    facts: Facts
    numerator: Expression
    denominator: Expression | None
    least: Expression | None = None
    most: Expression | None = None


@dataclass(frozen=True, slots=True)
class Distribution:
    """A statistic of how times are distributed, some of them censored.

    Attributes:
        facts: The table it is over.
        name: What the histogram is called; metrics that share it share the histogram.
        value: Of each row, in microseconds; null where the row does not count.
        censored: 1 where it was at least that long; None: never.
        statistic: ``mean`` of the uncensored · ``median`` (Kaplan-Meier where censored) ·
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
    """Everything about one online metric.

    Attributes:
        name: As printed.
        version: Of its definition; a changed definition is another version.
        title: Its name in words.
        definition: In plain text; of a ratio: ``what is counted / what it is counted over``.
        says: What it tells, in a sentence a newcomer understands.
        source: Paper or tool.
        traps: What it is mistaken for, and what bends it; sentences.
        direction: Which way is better; ``none`` for what is neither.
        unit: ``share`` | ``count`` | ``seconds`` | ``milliseconds`` | ``money`` | ``rank``.
        compute: How.
        needs: Columns of ``EVENTS`` or kinds of events, without which a log cannot say it; where
            either will do, with a ``|`` between them.
        family: Metrics that are shown together: ``clicks``, ``zero``, ``time`` and so on.
        guardrail: Whether it is watched so that it does not get worse, and not aimed at.
        point: Whether it has a value of its own; if not, it has bounds only (``least``, ``most``).
        highest: Its highest possible value; None without one. Of a share it is 1.
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
