"""Planning a golden set: the difference it can detect, and what judging it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from karat.errors import UsageError
from karat.stats.power import queries_needed, smallest_difference

SIZES = (50, 100, 200)  # numbers of queries shown next to the one needed
TYPICAL_SD = 0.2
"""Standard deviation over queries of the difference of two systems; typical for nDCG@10."""
SECONDS = 30.0  # assumed seconds per judgment until a golden set has measured its own


@dataclass(frozen=True, slots=True)
class Cost:
    """What a golden set of one size detects and costs."""

    queries: int
    sees: float  # the smallest true difference of two systems detected with the given power
    judgments: int  # by all raters together, repeats included
    hours: float  # of all raters together
    money: float | None  # cost of these hours, in the currency of `per_hour`; None without it


@dataclass(frozen=True, slots=True)
class Plan:
    """The size and cost of a golden set."""

    difference: float  # difference to detect, in units of the measure
    sd: float  # assumed standard deviation of the differences over queries
    power: float  # probability of detecting it
    needed: Cost | None  # size and cost; None if the difference is negligible relative to `sd`
    sizes: tuple[Cost, ...]  # the same for other numbers of queries, ascending


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
    """How many queries detect a difference of two systems, and what judging them costs.

    Args:
        difference: True mean difference to detect, in units of the measure; not 0.
        sd: Standard deviation of the differences over queries, above 0.
        depth: Documents judged per query, on average; above 0.
        raters: Raters per document, 1 or more.
        seconds: Seconds per judgment, above 0.
        repeats: Share of the judgments that are repeated, from 0 to 1.
        per_hour: Cost of an hour of rating, 0 or more.
        unequal: Queries drawn for each effective one (``Sample``: queries over ``effective``), 1
            or more; 1 if all have equal weights.
        sizes: Other numbers of queries to show, each 2 or more.
        power: Probability of detecting it, above ``alpha`` and below 1.
        alpha: Two-sided level of the paired t test.

    Raises:
        UsageError: any of these out of range.
    """
    _refuse(sd, depth, raters, seconds, repeats, unequal)
    if difference == 0:
        raise UsageError(
            "a difference of 0 cannot be detected with any number of queries",
            fix="give the smallest difference that matters, such as 0.05",
        )
    if per_hour is not None and not 0 <= per_hour < math.inf:
        raise UsageError(f"the cost per hour is {per_hour:g}", fix="give 0 or more")
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
        (sd, 0.0, "the standard deviation is"),
        (depth, 0.0, "the depth is"),
        (seconds, 0.0, "seconds per judgment are"),
    ):
        if not low < value < math.inf:
            raise UsageError(f"{name} {value:g}", fix="give a number above 0")
    if raters < 1:
        raise UsageError(f"{raters} raters", fix="give 1 or more; 2 show whether they agree")
    if not 0 <= repeats <= 1:
        raise UsageError(f"the share of repeats is {repeats:g}", fix="give a share from 0 to 1")
    if not 1 <= unequal < math.inf:
        raise UsageError(f"unequal weights are {unequal:g}", fix="give 1 or more")
