"""Unjudged: how low and how high a number can be, whatever the unjudged documents are.

That unjudged means not relevant is a guess. For each query a measure has a lowest and a highest
value over all grades, on the declared scale, that the unjudged documents of its top k could have;
documents that nobody retrieved are taken as not relevant. For nDCG the guess is not the lower
bound: a document found good after all raises the ideal too. Each function returns the two ends,
shape (n,), exact; 0 / 0 counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from karat.measures.evidence import Evidence, Floats, Ints, Mask

Bounds = tuple[Floats, Floats]
Discount = Callable[[Ints], Floats]

_CELLS = 1 << 20  # of a block of queries times ranks: what fits the cache


@dataclass(frozen=True, slots=True)
class Gaps:
    """Where a block of queries shows documents that nobody judged.

    Attributes:
        queries: The queries of the block.
        count: Unjudged documents in the top k of each; shape (b,).
        rank: Their ranks, ascending, 0 where there are no more; shape (b, u).
        hits: The judged hits of the block in the top k.
        row: For each of those hits, the row of its query in the block.
    """

    queries: slice
    count: Ints
    rank: Ints
    hits: Ints
    row: Ints

    @property
    def held(self) -> Mask:
        """Which cells of ``rank`` hold one."""
        return np.arange(self.rank.shape[1]) < self.count[:, None]


def gaps(evidence: Evidence, k: float | None) -> Iterator[Gaps]:
    """The unjudged documents of the top k, block by block of queries."""
    shown = np.minimum(evidence.returned, np.inf if k is None else k).astype(np.int64)
    judged = np.flatnonzero(evidence.judged & (evidence.rank <= shown[evidence.query]))
    deepest = int(shown.max(initial=0))
    step = max(1, _CELLS // max(deepest, 1))
    for first in range(0, evidence.n, step):
        queries = slice(first, min(first + step, evidence.n))
        limit = shown[queries]
        inside = evidence.query[judged]
        hits = judged[np.searchsorted(inside, first) : np.searchsorted(inside, queries.stop)]
        row = evidence.query[hits] - first
        empty = np.arange(1, int(limit.max(initial=0)) + 1) <= limit[:, None]
        empty[row, evidence.rank[hits] - 1] = False
        count = empty.sum(axis=1)
        rank = np.zeros((len(limit), int(count.max(initial=0))), np.int64)
        rows, places = np.nonzero(empty)
        starts = np.cumsum(count) - count
        rank[rows, np.arange(len(rows)) - starts[rows]] = places + 1
        yield Gaps(queries, count, rank, hits, row)


def counts(evidence: Evidence, k: float | None) -> Floats:
    """How many of the top k nobody judged; shape (n,)."""
    shown = np.minimum(evidence.returned, np.inf if k is None else k)
    return shown - evidence.per_query(evidence.judged & (evidence.rank <= shown[evidence.query]))


def relevant_bounds(
    evidence: Evidence, k: float | None, rel: float, value: Callable[[Floats, Floats], Floats]
) -> Bounds:
    """Of a measure that counts relevant documents and never falls when one more is found.

    Args:
        evidence: Hits and ideals.
        k: The cutoff; None for all that was retrieved.
        rel: Lowest relevant grade.
        value: From relevant documents in the top k and all relevant ones to the value.
    """
    can, must = can_be(evidence, rel)
    unjudged = counts(evidence, k)
    found = evidence.per_query(evidence.relevant(rel) & (evidence.rank <= (k or np.inf)))
    total = evidence.num_rel(rel)
    return (
        value(found + must * unjudged, total + must * unjudged),
        value(found + can * unjudged, total + can * unjudged),
    )


def can_be(evidence: Evidence, rel: float) -> tuple[bool, bool]:
    """Whether an unjudged document can be relevant, and whether it must be."""
    low, high = evidence.scale
    return high >= rel, low >= rel


def ratio(part: Floats, whole: Floats) -> Floats:
    """A share where nothing of nothing is 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)


def first_bounds(evidence: Evidence, k: float | None, rel: float) -> Bounds:
    """Of reciprocal rank: the first gap decides how high it can be."""
    can, must = can_be(evidence, rel)
    last = np.minimum(evidence.returned, np.inf if k is None else k)
    relevant = evidence.relevant(rel)
    here = relevant & (evidence.so_far(relevant) == 1) & (evidence.rank <= last[evidence.query])
    known = np.full(evidence.n, np.inf)
    known[evidence.query[here]] = evidence.rank[here]
    closed = evidence.judged & (evidence.rank == evidence.so_far(evidence.judged))
    gap = evidence.per_query(closed) + 1
    gap = np.where(gap <= last, gap, np.inf)
    either = 1.0 / np.minimum(known, gap)
    return (either if must else 1.0 / known), (either if can else 1.0 / known)


def average_precision_bounds(evidence: Evidence, k: float | None, rel: float) -> Bounds:
    """Of average precision: c more relevant documents do most at the first c gaps, least at the
    last c; so the ends lie among these, for some c from 0 to all gaps.
    """
    can, must = can_be(evidence, rel)
    total = evidence.num_rel(rel)
    relevant = evidence.relevant(rel) & (evidence.rank <= (k or np.inf))
    precision = np.where(relevant, evidence.so_far(relevant) / evidence.rank, 0.0)
    low, high = np.empty(evidence.n), np.empty(evidence.n)
    for block in gaps(evidence, k):
        here = block.queries
        rows, width = block.rank.shape
        chosen = relevant[block.hits]
        good, row = evidence.rank[block.hits][chosen], block.row[chosen]
        base = _totals(row, precision[block.hits][chosen], rows)
        held = block.held
        rank = np.where(held, block.rank, 1).astype(np.float64)
        # Relevant documents above each gap, and the sum of 1 / rank of those below it.
        depth = int(block.rank.max(initial=0)) + 2
        place = np.searchsorted(row * depth + np.minimum(good, depth - 1), _keys(block, depth))
        starts = np.searchsorted(row, np.arange(rows))[:, None]
        above = place - starts
        upto = np.concatenate([[0.0], np.cumsum(1.0 / good)])
        ends = np.searchsorted(row, np.arange(rows), side="right")[:, None]
        below = upto[ends] - upto[place]
        at = np.arange(1, width + 1)
        shallow = np.where(held, (above + at) / rank + below, 0.0)
        most = _first_to_last(base, shallow)
        # From the last gap up: the gaps chosen before are below.
        own = np.where(held, 1.0 / rank, 0.0)
        deeper = np.cumsum(own[:, ::-1], axis=1)[:, ::-1] - own
        deep = np.where(held, (above + 1) / rank + below + deeper, 0.0)
        least = _first_to_last(base, deep[:, ::-1], skip=width - block.count)
        number = np.arange(width + 1)
        allowed = number <= block.count[:, None]
        allowed &= (number == block.count[:, None]) if must else (number == 0) | can
        of = total[here][:, None] + number
        high[here] = np.where(allowed, ratio(most, of), -np.inf).max(axis=1)
        low[here] = np.where(allowed, ratio(least, of), np.inf).min(axis=1)
    return low, high


def _keys(block: Gaps, depth: int) -> Ints:
    return np.arange(len(block.count))[:, None] * depth + block.rank


def _totals(row: Ints, value: Floats, rows: int) -> Floats:
    return np.bincount(row, value, minlength=rows).astype(np.float64, copy=False)


def _left(discount: Discount, deepest: int) -> Floats:
    """What each rank leaves of a gain, to be looked up by rank; nothing at rank 0."""
    return np.concatenate([[0.0], discount(np.arange(1, deepest + 1))])


def _first_to_last(base: Floats, added: Floats, skip: Ints | None = None) -> Floats:
    """Running totals, 0 first; ``skip`` leading columns hold nothing and are shifted out."""
    total: Floats = np.zeros((len(base), added.shape[1] + 1))
    np.cumsum(added, axis=1, out=total[:, 1:])
    total += base[:, None]
    if skip is None:
        return total
    column = np.minimum(np.arange(total.shape[1]) + skip[:, None], total.shape[1] - 1)
    return np.take_along_axis(total, column, axis=1)


def sum_bounds(
    evidence: Evidence,
    value: Floats,
    ends: tuple[float, float],
    discount: Discount,
    k: float | None,
) -> Bounds:
    """Of a sum of gain times discount: every gap gains least, or most.

    Args:
        evidence: Hits and ideals.
        value: The sum over the judged; shape (n,).
        ends: Least and most that an unjudged document can gain.
        discount: From ranks to what they leave of a gain.
        k: The cutoff; None for all that was retrieved.
    """
    room = np.zeros(evidence.n)
    left = _left(discount, int(evidence.returned.max(initial=0)))
    for block in gaps(evidence, k):
        room[block.queries] = left[block.rank].sum(axis=1)
    return value + ends[0] * room, value + ends[1] * room


def cascade_bounds(
    evidence: Evidence, stop: Floats, ends: tuple[float, float], k: float | None
) -> Bounds:
    """Of ERR: a user who may stop earlier never earns less, so every gap stops least, or most.

    Args:
        evidence: Hits and ideals.
        stop: Probability that the user stops at each hit; shape (h,).
        ends: Least and most likely that he stops at an unjudged document.
        k: The cutoff; None for all that was retrieved.
    """
    out = np.zeros((2, evidence.n))
    for block in gaps(evidence, k):
        rows = len(block.count)
        deepest = max(int(block.rank.max(initial=1)), int(evidence.rank[block.hits].max(initial=1)))
        row, column = np.nonzero(block.held)
        for end, chance in enumerate(ends):
            stops = np.zeros((rows, deepest))
            stops[block.row, evidence.rank[block.hits] - 1] = stop[block.hits]
            stops[row, block.rank[row, column] - 1] = chance
            going = np.cumprod(1.0 - stops, axis=1)
            reached = np.concatenate([np.ones((rows, 1)), going[:, :-1]], axis=1)
            out[end, block.queries] = (reached * stops) @ (1.0 / np.arange(1, deepest + 1))
    return out[0], out[1]


def normalised_bounds(
    evidence: Evidence,
    gain: Floats,
    ideal: Floats,
    possible: Floats,
    discount: Discount,
    k: float | None,
) -> Bounds:
    """Of nDCG, where the unjudged raise the ideal too.

    The value is a ratio of a linear and a convex function of the gains of the gaps. It is least at
    a corner, where the last j gaps gain most and the others least. It is greatest with gains that
    fall with rank; layer by layer of gain, c documents of the gaps reach the layer, c falling with
    the layer, which a table solves exactly for a given ratio, and Dinkelbach's iteration (1967,
    doi:10.1287/mnsc.13.7.492) finds the ratio.

    Args:
        evidence: Hits and ideals.
        gain: What each hit gains; shape (h,).
        ideal: What each judgment gains; shape (j,).
        possible: Gains an unjudged document can have; any number of them, the least and the most
            among them. Gains in between are allowed too, and change nothing.
        discount: From ranks to what they leave of a gain.
        k: The cutoff; None for all that was retrieved, and an ideal of all judgments.
    """
    least, most = float(possible.min()), float(possible.max())
    levels = np.unique(np.concatenate([possible, ideal[ideal > 0], gain[gain > 0]]))
    levels = levels[levels > 0]
    steps = np.diff(levels, prepend=0.0)
    pool = np.bincount(evidence.ideal_query, minlength=evidence.n)
    deepest = int(max((pool + evidence.returned).max(initial=0), 1))
    length = deepest if k is None else int(min(k, deepest))
    left = _left(discount, deepest)
    table = np.cumsum(np.where(np.arange(deepest + 1) <= length, left, 0.0))
    low, high = np.empty(evidence.n), np.empty(evidence.n)
    for block in gaps(evidence, k):
        ideals = slice(
            np.searchsorted(evidence.ideal_query, block.queries.start),
            np.searchsorted(evidence.ideal_query, block.queries.stop),
        )
        problem = _Ratio(
            steps=steps,
            forced=levels <= least,
            allowed=levels <= most,
            reach=_reach(evidence, ideal[ideals], ideals, block, levels),
            table=table,
            count=block.count,
            left=left[block.rank],
            base=_totals(
                block.row, gain[block.hits] * left[evidence.rank[block.hits]], len(block.count)
            ),
        )
        low[block.queries], high[block.queries] = problem.least(), problem.greatest()
    return low, high


def _reach(
    evidence: Evidence, ideal: Floats, ideals: slice, block: Gaps, levels: Floats
) -> list[Ints]:
    """For each level, how many judgments of each query gain as much; each of shape (b,)."""
    row = evidence.ideal_query[ideals] - block.queries.start
    # Pooled and not judged: it is among the gaps if it was retrieved, and not relevant if not.
    judged = evidence.ideal_grade[ideals] >= 0
    rows = len(block.count)
    return [np.bincount(row[judged & (ideal >= level)], minlength=rows) for level in levels]


@dataclass(frozen=True, slots=True)
class _Ratio:
    """DCG over ideal DCG of a block of queries, as a function of what their gaps gain.

    Attributes:
        steps: Height of each layer of gain; shape (q,).
        forced: Layers that every gap reaches; shape (q,).
        allowed: Layers that a gap can reach; shape (q,).
        reach: For each layer, judgments that reach it; q of shape (b,).
        table: Sum of the discounts of the first places of the ideal.
        count: Gaps of each query; shape (b,).
        left: Discount at each gap, 0 where there are no more; shape (b, u).
        base: DCG of the judged; shape (b,).
    """

    steps: Floats
    forced: Mask
    allowed: Mask
    reach: list[Ints]
    table: Floats
    count: Ints
    left: Floats
    base: Floats

    def least(self) -> Floats:
        width = self.left.shape[1]
        number = np.arange(width + 1)
        top, all_gaps = self.steps[self.allowed & ~self.forced].sum(), self.left.sum(axis=1)
        deepest = _first_to_last(
            np.zeros(len(self.count)), self.left[:, ::-1], skip=width - self.count
        )
        under = self.steps[self.forced].sum()
        dcg = (self.base + under * all_gaps)[:, None] + top * deepest
        best = sum(
            (
                step * self.table[reach[:, None] + self._on(number, layer)]
                for layer, (step, reach) in enumerate(zip(self.steps, self.reach, strict=True))
            ),
            np.zeros(dcg.shape),
        )
        value = np.where(number <= self.count[:, None], ratio(dcg, best), np.inf)
        lowest: Floats = value.min(axis=1)
        return lowest

    def _on(self, number: Ints, layer: int) -> Ints:
        """Gaps on a layer if ``number`` of them were free to be there."""
        number = np.minimum(number, self.count[:, None])
        if self.forced[layer]:
            return np.broadcast_to(self.count[:, None], number.shape)
        return number if self.allowed[layer] else np.zeros_like(number)

    def greatest(self) -> Floats:
        width = self.left.shape[1]
        number = np.arange(width + 1)
        first = _first_to_last(np.zeros(len(self.count)), self.left)
        sought = np.zeros(len(self.count))
        while True:
            dcg, best = self._best_for(sought, first, number)
            found = ratio(dcg, best)
            if not (found > sought).any():
                return sought
            sought = np.maximum(sought, found)

    def _best_for(self, sought: Floats, first: Floats, number: Ints) -> tuple[Floats, Floats]:
        """DCG and ideal of the gains for which DCG - sought x ideal is greatest; shape (b,)."""
        shape = first.shape
        dcg, best = np.zeros(shape), np.zeros(shape)
        beyond = number > self.count[:, None]
        for layer in reversed(range(len(self.steps))):
            step, on = self.steps[layer], self._on(number, layer)
            dcg = dcg + step * np.take_along_axis(first, on, axis=1)
            best = best + step * self.table[self.reach[layer][:, None] + on]
            surplus = np.where(beyond, -np.inf, dcg - sought[:, None] * best)
            # As many gaps or fewer reach the layers above: keep the best so far.
            record = np.maximum.accumulate(surplus, axis=1)
            leads = np.where(surplus == record, number, 0)
            chosen = np.maximum.accumulate(leads, axis=1)
            dcg = np.take_along_axis(dcg, chosen, axis=1)
            best = np.take_along_axis(best, chosen, axis=1)
        return self.base + dcg[:, -1], best[:, -1]
