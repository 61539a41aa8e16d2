"""PyClick's iteration of the dynamic Bayesian network, with its shortcuts.

Of PyClick 98e7e46: documents below the last click use the examination before any click is known,
pages without clicks add nothing to attraction and count as read to the end, and the probability of
no click below a rank is that of as many documents from the top.
"""

from __future__ import annotations

import numpy as np

from karat.online.clicks.counts import Floats
from karat.online.clicks.reading import Booleans, Layout, Reading

_HIGHEST = 1 - 1e-6


def dbn_step(layout: Layout, values: Floats) -> Floats:
    """An iteration: attraction and satisfaction of each pair, then continuation."""
    pairs = len(layout.pages.pairs)
    reading = Reading.of(layout, values[:pairs], values[pairs:-1], float(values[-1]))
    attraction, clicks = reading.attraction, reading.clicks()
    below = (layout.last >= 0) & (layout.ranks > layout.last) & layout.shown
    looked = clicks / np.where(layout.shown, attraction, 1)  # before any click is known
    missed = (1 - looked) * attraction / (1 - looked * (1 - reading.silent[:-1]))
    attracted = layout.by_pair(np.where(layout.clicked, 1, np.where(below, missed, 0)))
    shown, clicked = layout.by_pair(layout.shown), layout.by_pair(layout.clicked)
    satisfied = layout.by_pair(reading.satisfied)
    continued, trials = _continuation(reading, below)
    successes = np.concatenate([attracted, satisfied, [continued]])
    values = (successes + 1) / (np.concatenate([shown, clicked, [trials]]) + 2)
    return np.asarray(np.minimum(values, _HIGHEST))


def _continuation(reading: Reading, below: Booleans) -> tuple[float, float]:
    """Expected continuations, and ranks after which there could have been one."""
    layout, more = reading.layout, reading.continuation
    silent = _silent_from_the_top(reading)
    page = np.arange(len(layout.last))
    looked = np.ones(len(page))  # at this rank, given the clicks above
    continued = trials = 0.0
    for rank in range(len(layout.docs)):
        attraction, satisfaction = reading.attraction[rank], reading.satisfaction[rank]
        after = silent[np.maximum(layout.length - rank - 1, 0), page] * more
        unsatisfied = after + 1 - more
        total = satisfaction + (1 - satisfaction) * unsatisfied
        at_last = (1 - satisfaction) / total
        further = (1 - attraction) * looked
        elsewhere = (1 - attraction) * (1 - looked)
        with np.errstate(invalid="ignore"):
            is_below = further / (further * unsatisfied + elsewhere)
        weight = np.where(rank == layout.last, at_last, np.where(below[rank], is_below, 0))
        certain = layout.shown[rank] & ((rank < layout.last) | (layout.last < 0))
        count = layout.pages.count
        continued += float((count * (certain + weight * after)).sum())
        trials += float((count * (certain + weight * unsatisfied)).sum())
        missed = looked * (1 - attraction) / (1 - attraction * looked)
        looked = more * np.where(layout.clicked[rank], 1 - satisfaction, missed)
    return continued, trials


def _silent_from_the_top(reading: Reading) -> Floats:
    """Probability of no click on the first n documents, n from 0; shape (k + 1, p)."""
    silent = np.ones((len(reading.attraction) + 1, reading.attraction.shape[1]))
    reached, stopped = np.ones(silent.shape[1]), np.zeros(silent.shape[1])
    for rank, attraction in enumerate(reading.attraction):
        missed = reached * (1 - attraction)
        stopped = stopped + missed * (1 - reading.continuation)
        reached = missed * reading.continuation
        silent[rank + 1] = stopped + reached
    return silent
