"""Looks: is a search worse than it was, asked night after night, query by query?

**What is compared.** Each night asks the same queries, so two nights are paired by query. Nights
with the same values by query are one *state*: a search that nothing changed says the same again,
and that is no new evidence. A *look* is the first night of a new state. It is compared with earlier
states chosen before it was seen: the first, the one before, and those 2, 4, 8, … states back. The
first finds what went little by little; the others find a fall from a level that was reached later.

**The test.** Without a change, the difference of a query is as likely up as down by the same
amount: so it is for two nights of a search that answers by chance, whatever that chance is, as the
two can be exchanged. Each pair of states has Student's t of the differences, one-sided, and never a
p-value below 1 / 2^k, k being the queries that differ: less than that no arrangement of their signs
can reach.

**How often one may look.** The level is spent over looks: the k-th has 0.65 / (k (k + 1)) + 0.35 /
365 of it, half for the first state and half for the others. By Bonferroni's inequality this holds
however the looks depend on each other, and they do. Over 365 looks the shares add up to less than
the level; each 365 looks more add 0.35 of it. Early looks have most: a search that changes seldom
is found out soon.

Sources: spending a level over looks: Lan & DeMets 1983, Biometrika 70 (3). The t test where
differences are symmetric and not normal: Efron 1969, JASA 64 (328). The least p-value: Tarone 1990,
Biometrics 46 (2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from karat.stats.averages import Floats
from karat.stats.paired import t_test

LEVEL = 0.04
"""Most chance that a history in which nothing got worse is said to be worse within 365 looks."""
YEAR = 365
_EARLY = 0.65
_STANDS = 0.05
_SCREEN = -2.0  # a t above this reaches no look's level, whatever the degrees of freedom


@dataclass(frozen=True, slots=True)
class Found:
    """A state that is worse than an earlier one by more than chance makes over all looks.

    Attributes:
        look: Which state, from 1 on.
        reference: The state that it is compared with, from 0 on.
        p: One-sided p-value of these two.
        level: What it had to reach.
    """

    look: int
    reference: int
    p: float
    level: float


def share(look: int) -> float:
    """Share of the level that a look may spend.

    Args:
        look: Counted from 1.
    """
    return _EARLY / (look * (look + 1)) + (1 - _EARLY) / YEAR


def references(look: int) -> Iterator[tuple[int, float]]:
    """The states that a look is compared with, and the share of the look that each has.

    Args:
        look: The state looked at, counted from 0 for the first; 1 or more.
    """
    back = sorted({look - 2**j for j in range(look.bit_length()) if look - 2**j > 0}, reverse=True)
    yield 0, 0.5 if back else 1.0
    for state in back:
        yield state, 0.5 / len(back)


def p_worse(after: Floats, before: Floats, weights: Floats | None = None) -> float:
    """One-sided p-value that queries are worse than they were; 1 if their mean is not lower.

    Args:
        after: Values of the queries, more being better; NaN where there is none; shape (n,).
        before: Earlier values of the same queries; shape (n,).
        weights: Of the queries, above 0; shape (n,).
    """
    difference = after - before
    used = ~np.isnan(difference)
    kept, weigh = difference[used], None if weights is None else weights[used]
    differ = int(np.count_nonzero(kept))
    if not differ:
        return 1.0
    centre = float(np.average(kept, weights=weigh))
    if centre >= 0:
        return 1.0
    least = 0.5**differ
    found = t_test(kept, weigh)
    if found.p is None:  # all are equal, or it is one query
        return least
    return max(found.p / 2, least)


def findings(
    states: Sequence[Floats],
    *,
    weights: Floats | None = None,
    series: int = 1,
    earlier: int = 0,
) -> Iterator[Found]:
    """Each state that is worse than an earlier one, in order; arguments as in ``worse``."""
    table = np.array(states)
    for look in range(1, len(states)):
        level = LEVEL * share(earlier + look) / series
        compared = list(references(look))
        far = _far(table[look] - table[[state for state, _ in compared]])
        for (state, part), hopeless in zip(compared, far.tolist(), strict=True):
            if hopeless and weights is None:
                continue
            p = p_worse(states[look], states[state], weights)
            if p <= level * part:
                yield Found(look, state, p, level * part)


def worse(
    states: Sequence[Floats],
    *,
    weights: Floats | None = None,
    series: int = 1,
    earlier: int = 0,
) -> Found | None:
    """The first state that is worse than an earlier one, if the newest still is.

    Args:
        states: Values by query, more being better, oldest first; each differs from the one before.
            NaN where a query has no value; shape (n,) each.
        weights: Of the queries, above 0; shape (n,).
        series: So many series are looked at: each has its share of the level.
        earlier: Looks that were made before, at states that these cannot be compared with.

    Returns:
        None if there is none. That the newest is worse than the reference at 5 % by itself is
        asked too: it takes alarms back once the search has recovered, and adds none.
    """
    found = findings(states, weights=weights, series=series, earlier=earlier)
    return next(
        (each for each in found if p_worse(states[-1], states[each.reference], weights) <= _STANDS),
        None,
    )


def _far(differences: Floats) -> NDArray[np.bool_]:
    """Where t is so far above what any look asks that it need not be computed; shape (m,)."""
    lacking = np.isnan(differences)
    n = np.maximum((~lacking).sum(axis=1), 1)
    filled = np.where(lacking, 0, differences)
    centre = filled.sum(axis=1) / n
    # Of the deviation what is left of the squares, at least 0; where there is none, t is infinite.
    spread = np.sqrt(np.maximum((filled**2).sum(axis=1) / n - centre**2, 0))
    found: NDArray[np.bool_] = (centre >= 0) | (centre * np.sqrt(n) > _SCREEN * spread)
    return found
