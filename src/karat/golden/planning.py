"""How many queries and judgments a golden set takes: what it could see, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from karat.errors import UsageError
from karat.stats.power import queries_needed, smallest_difference

SIZES = (50, 100, 200)
"""Numbers of queries shown beside the one that is needed."""
TYPICAL_SD = 0.2
"""Standard deviation, over queries, of the difference of two systems; usual for nDCG@10."""
SECONDS = 30.0
"""For a judgment: what is assumed until a golden set knows better."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a golden set of one size sees and costs.

    Attributes:
        queries: How many.
        sees: The smallest true difference of two systems that it shows with the wanted power.
        judgments: By all raters together, repeats included.
        hours: Of all raters together.
        money: What that costs, in the currency given; None if no price was.
    """

    queries: int
    sees: float
    judgments: int
    hours: float
    money: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a golden set takes.

    Attributes:
        difference: To be seen, in units of the measure.
        sd: Standard deviation of the differences over queries that was assumed.
        power: Chance of seeing it.
        needed: What that takes; None if it vanishes beside the spread.
        sizes: The same for other numbers of queries, ascending.
    """

    difference: float
    sd: float
    power: float
    needed: Cost | None
    sizes: tuple[Cost, ...]


def plan(
    difference: float,
    *,
    sd: float = TYPICAL_SD,
    depth: float = 15,
    raters: int = 2,
    seconds: float = SECONDS,
    repeats: float = 0.05,
    per_hour: float | None = None,
    unequal: float = 1.0,
    sizes: Sequence[int] = SIZES,
    power: float = 0.8,
    alpha: float = 0.05,
) -> Plan:
    """How many queries show a difference of two systems, and what judging them costs.

    Args:
        difference: True mean difference to be seen, in units of the measure; not 0.
        sd: Standard deviation of the differences over queries, above 0.
        depth: Documents judged for each query, on average; above 0.
        raters: Of each document, 1 or more.
        seconds: For one judgment, above 0.
        repeats: Share of the judgments that are asked a second time, from 0 to 1.
        per_hour: What an hour of rating costs.
        unequal: Queries drawn for each effective one (``Sample``: queries over ``effective``), 1
            or more; 1 if all weigh alike.
        sizes: Numbers of queries to show besides, each 2 or more.
        power: Chance of seeing it, above ``alpha`` and below 1.
        alpha: Two-sided level of the paired t test.

    Raises:
        UsageError: any of these out of range.
    """
    _refuse(sd, depth, raters, seconds, repeats, unequal)
    if difference == 0:
        raise UsageError(
            "a difference of 0 cannot be shown: no number of queries would do",
            fix="give the smallest that would matter, such as 0.05",
        )
    if per_hour is not None and not 0 <= per_hour < math.inf:
        raise UsageError(f"{per_hour:g} an hour cannot be", fix="give 0 or more")
    # Unequal weights make the mean of n queries as uncertain as that of n / unequal.
    spread = sd * math.sqrt(unequal)

    def cost(n: int) -> Cost:
        judgments = math.ceil(round(n * depth * raters * (1 + repeats), 9))
        hours = judgments * seconds / 3600
        money = None if per_hour is None else hours * per_hour
        return Cost(n, smallest_difference(spread, n, power, alpha), judgments, hours, money)

    needed = queries_needed(spread, difference, power, alpha)
    return Plan(
        difference=difference,
        sd=sd,
        power=power,
        needed=None if needed is None else cost(needed),
        sizes=tuple(cost(n) for n in sorted(set(sizes))),
    )


def _refuse(
    sd: float, depth: float, raters: int, seconds: float, repeats: float, unequal: float
) -> None:
    for value, low, name in (
        (sd, 0.0, "a standard deviation"),
        (depth, 0.0, "a depth"),
        (seconds, 0.0, "seconds for a judgment"),
    ):
        if not low < value < math.inf:
            raise UsageError(f"{name} of {value:g} cannot be", fix="give a number above 0")
    if raters < 1:
        raise UsageError(f"{raters} raters", fix="give 1 or more; 2 show whether they agree")
    if not 0 <= repeats <= 1:
        raise UsageError(f"repeats of {repeats:g} cannot be", fix="give a share from 0 to 1")
    if not 1 <= unequal < math.inf:
        raise UsageError(f"unequal weights of {unequal:g} cannot be", fix="give 1 or more")
