"""Looks: is a search worse than before? A sequential test, night after night, by query.

**What is compared.** Each night asks the same queries, so two nights are paired by query. Nights
with the same values by query are one *state*: an unchanged search gives the same values again,
which adds no evidence. A *look* is the first night of a new state. It is compared with earlier
states chosen in advance: the first, the one before, and those 2, 4, 8, … states back. The first
detects gradual changes; the others detect a fall from a level that was reached later.

**The test.** Without a change, the difference of a query is as likely up as down by the same
amount, even for a search with random answers, as the two nights are exchangeable. Each pair of
states is tested with Student's t of the differences, one-sided, with a p-value of at least
1 / 2^k, where k queries differ: no arrangement of their signs can give a lower one.

**Several looks.** The level is spent over looks: the k-th has 0.65 / (k (k + 1)) + 0.35 / 365 of
it, half for the first state and half for the others. By Bonferroni's inequality this holds for
dependent looks too. Over 365 looks the shares add up to less than the level; each further 365
looks add 0.35 of it. Early looks have the largest shares, to detect a fall in a search that
changes rarely.

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

LEVEL = 0.04  # highest probability of a false alarm within 365 looks
YEAR = 365
_EARLY = 0.65
_PERSISTS = 0.05
_SCREEN = -2.0  # a t above this reaches no look's level, whatever the degrees of freedom


@dataclass(frozen=True, slots=True)
class Found:
    """A state that is significantly worse than an earlier one, over all looks."""

    look: int  # index of the state, from 1
    reference: int  # index of the state that it is compared with, from 0
    p: float  # one-sided p-value of this pair
    level: float  # level of this pair


def share(look: int) -> float:
    """Share of the level that a look may spend.

    Args:
        look: Counted from 1.
    """
    return _EARLY / (look * (look + 1)) + (1 - _EARLY) / YEAR


def references(look: int) -> Iterator[tuple[int, float]]:
    """The states that a look is compared with, each with its share of the look's level.

    Args:
        look: Index of the state, 1 or more; the first state has index 0.
    """
    back = sorted({look - 2**j for j in range(look.bit_length()) if look - 2**j > 0}, reverse=True)
    yield 0, 0.5 if back else 1.0
    for state in back:
        yield state, 0.5 / len(back)


def p_worse(after: Floats, before: Floats, weights: Floats | None = None) -> float:
    """One-sided p-value that queries are worse than before; 1 if their mean is not lower.

    Args:
        after: Values of the queries, higher is better; NaN where there is none; shape (n,).
        before: Earlier values of the same queries; shape (n,).
        weights: Of the queries, above 0; shape (n,).
    """
    difference = after - before
    used = ~np.isnan(difference)
    paired, weight = difference[used], None if weights is None else weights[used]
    differ = int(np.count_nonzero(paired))
    if not differ:
        return 1.0
    centre = float(np.average(paired, weights=weight))
    if centre >= 0:
        return 1.0
    least = 0.5**differ
    test = t_test(paired, weight)
    if test.p is None:  # all are equal, or it is one query
        return least
    return max(test.p / 2, least)


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
        states: Values by query, higher is better, oldest first; each differs from the one before.
            NaN where a query has no value; shape (n,) each.
        weights: Of the queries, above 0; shape (n,).
        series: Number of series tested; each has its share of the level.
        earlier: Number of looks before, at states that cannot be compared with these.

    Returns:
        None if there is none. The newest state must also be worse than the reference at 5 %:
        this removes alarms once the search has recovered, and adds none.
    """
    for finding in findings(states, weights=weights, series=series, earlier=earlier):
        if p_worse(states[-1], states[finding.reference], weights) <= _PERSISTS:
            return finding
    return None


def _far(differences: Floats) -> NDArray[np.bool_]:
    """Where t is certainly too high for the level of any look; shape (m,)."""
    lacking = np.isnan(differences)
    n = np.maximum((~lacking).sum(axis=1), 1)
    filled = np.where(lacking, 0, differences)
    centre = filled.sum(axis=1) / n
    # A standard deviation of 0 makes t infinite.
    spread = np.sqrt(np.maximum((filled**2).sum(axis=1) / n - centre**2, 0))
    far: NDArray[np.bool_] = (centre >= 0) | (centre * np.sqrt(n) > _SCREEN * spread)
    return far
