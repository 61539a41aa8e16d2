"""Reuse: what the uses of a held-out part do to the next result on it.

**The level.** Each use is a further chance that noise looks like a gain. The result of the u-th use
is tested at 5 % / u, so that over u uses the probability of a false "better" is at most 5 % if the
candidates do not depend on earlier results on the part (Bonferroni's inequality).

**Worn.** Candidates that do depend on them can gain more. Choosing each of k directions by the sign
of its result on the part, and combining all, gains 0.8 √k standard errors from noise alone (the
attack of Blum & Hardt 2015, The Ladder, ICML; 0.8 is the mean of half a normal distribution). The
interval of use u = k + 1 reaches 2.8 standard errors at u = 10, where such a gain is 2.4; at 15
both are 2.9 to 3.0, and beyond that the gain is larger. A part is therefore worn after
``MOST_USES`` uses. It is also worn if a gain of the expected size could have been detected in the
first use, but can no longer be at the level of this one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from karat.stats.power import smallest_difference
from karat.stats.student import t_quantile
from karat.stats.verdicts import LEVEL
from karat.tables.comparison import Difference
from karat.tables.searched import PartState

MOST_USES = 10  # uses after which a held-out part no longer shows that something is better


@dataclass(frozen=True, slots=True)
class Reused:
    """A difference on a held-out part, at the level that its uses leave."""

    uses: int  # uses of the part so far, this one included
    level: float  # level of the test: 0.05 over the uses
    ci_low: float | None  # lower end of the interval at this level; None without one
    ci_high: float | None  # upper end
    p: float | None  # p-value times the uses, at most 1; None without a test
    smallest_detected: float | None  # with a power of 80 %, at this level; None without spread
    state: PartState


def reused(row: Difference, uses: int, expected: float) -> Reused:
    """A difference at the level that the uses of its part leave.

    Args:
        row: The difference on the held-out part, at the level of 5 %.
        uses: Number of uses, this one included; from 1.
        expected: Expected gain, in units of the measure; its sign does not matter.
    """
    level = LEVEL / uses
    low, high, smallest = row.ci_low, row.ci_high, row.smallest_detected
    error, centre = row.standard_error, row.difference
    if uses > 1 and low is not None and error is not None and centre is not None:
        reach = t_quantile(1 - level / 2, row.n - 1) * error
        low, high = centre - reach, centre + reach
    if uses > 1 and smallest is not None and error is not None:
        smallest = smallest_difference(error * math.sqrt(row.n), row.n, alpha=level)
    p = None if row.p is None else min(1.0, row.p * uses)
    state: PartState = "good"
    if uses > MOST_USES:
        state = "worn"
    elif smallest is not None and smallest > abs(expected):
        first = row.smallest_detected or 0.0
        state = "small" if first > abs(expected) else "worn"
    return Reused(uses, level, low, high, p, smallest, state)
