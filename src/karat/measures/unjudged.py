"""Unjudged: the lowest and highest value of a measure over all grades of unjudged documents.

That unjudged means not relevant is an assumption. For each query a measure has a lowest and a
highest value over all grades, on the declared scale, that the unjudged documents of its top k could
have; documents that this run did not retrieve count as not relevant, even if another run did. The
set of queries stays the same: one without a known relevant document is left out, whatever was
retrieved for it. For nDCG the assumed value is not the lower bound: a good document also raises
the ideal. Each function returns the two ends, shape (n,), exact; 0 / 0 counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from karat.measures.evidence import Evidence, Floats, Ints, Mask, sums
from karat.measures.ties import Discount

Bounds = tuple[Floats, Floats]

_CELLS = 1 << 17  # queries times ranks in a block that fits the cache


@dataclass(frozen=True, slots=True)
class Gaps:
    """The ranks of unjudged documents in a block of queries."""

    queries: slice  # the queries of the block
    held: Mask  # whether a rank of the top k has an unjudged document; shape (b, ranks)
    hits: Ints  # the judged hits of the block in the top k
    row: Ints  # for each of those hits, the row of its query in the block


def gaps(evidence: Evidence, k: float | None) -> Iterator[Gaps]:
    """The unjudged documents of the top k, block by block of queries."""
    shown = np.minimum(evidence.returned, np.inf if k is None else k).astype(np.int64)
    judged = np.flatnonzero(evidence.judged & (evidence.rank <= shown[evidence.query]))
    inside = evidence.query[judged]
    step = max(1, _CELLS // max(int(shown.max(initial=0)), 1))
    for first in range(0, evidence.n, step):
        queries = slice(first, min(first + step, evidence.n))
        limit = shown[queries]
        hits = judged[np.searchsorted(inside, first) : np.searchsorted(inside, queries.stop)]
        row = evidence.query[hits] - first
        held = np.arange(1, max(int(limit.max(initial=0)), 1) + 1) <= limit[:, None]
        held[row, evidence.rank[hits] - 1] = False
        yield Gaps(queries, held, hits, row)


def counts(evidence: Evidence, k: float | None) -> Floats:
    """Number of unjudged documents in the top k; shape (n,)."""
    shown = np.minimum(evidence.returned, np.inf if k is None else k)
    return shown - evidence.per_query(evidence.judged & (evidence.rank <= shown[evidence.query]))


def relevant_bounds(
    evidence: Evidence, k: float | None, rel: float, value: Callable[[Floats, Floats], Floats]
) -> Bounds:
    """Bounds of a measure that counts relevant documents and never falls with one more.

    Args:
        evidence: Hits and ideals.
        k: The cutoff; None for all that was retrieved.
        rel: Lowest relevant grade.
        value: Function of the number of relevant documents in the top k and in all.
    """
    can, must = can_be(evidence, rel)
    unjudged = counts(evidence, k)
    retrieved = evidence.per_query(evidence.relevant(rel) & (evidence.rank <= (k or np.inf)))
    total = evidence.num_rel(rel)
    return (
        value(retrieved + must * unjudged, total + must * unjudged),
        value(retrieved + can * unjudged, total + can * unjudged),
    )


def can_be(evidence: Evidence, rel: float) -> tuple[bool, bool]:
    """Whether an unjudged document can be relevant, and whether it must be."""
    low, high = evidence.scale
    return high >= rel, low >= rel


def ratio(part: Floats, whole: Floats) -> Floats:
    """Part / whole, where 0 / 0 is 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)


def first_bounds(evidence: Evidence, k: float | None, rel: float) -> Bounds:
    """Bounds of reciprocal rank: the first gap decides the highest value."""
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


def average_precision_bounds(
    evidence: Evidence, k: float | None, rel: float, missed: Ints | None = None
) -> Bounds:
    """Bounds of average precision: c more relevant documents add most at the first c gaps and
    least at the last c; so the ends are among these, for some c from 0 to all gaps.

    They take time for every rank, and depend on the ranks of hits, R and ``missed`` alone: queries
    that are alike in these share them.

    Args:
        evidence: Hits and ideals.
        k: The cutoff; None for all that was retrieved.
        rel: Lowest relevant grade.
        missed: Number of unjudged documents of each query that were not retrieved and only raise R,
            each of any grade; shape (n,); 0 if None.
    """
    missed = np.zeros(evidence.n, np.int64) if missed is None else missed
    some, like = _alike(evidence, rel, missed)
    if len(some) < evidence.n:
        low, high = average_precision_bounds(evidence.at(some), k, rel, missed[some])
        return low[like], high[like]
    can, must = can_be(evidence, rel)
    total = evidence.num_rel(rel)
    fewest, greatest = total + must * missed, total + can * missed
    relevant = evidence.relevant(rel) & (evidence.rank <= (k or np.inf))
    precision = np.where(relevant, evidence.so_far(relevant) / evidence.rank, 0.0)
    known = evidence.per_query(precision)
    if not can:
        return ratio(known, total), ratio(known, total)
    low, high = np.empty(evidence.n), np.empty(evidence.n)
    for block in gaps(evidence, k):
        held, here = block.held, block.queries
        share = 1.0 / np.arange(1, held.shape[1] + 1)
        good = np.zeros(held.shape)
        chosen = relevant[block.hits]
        good[block.row[chosen], evidence.rank[block.hits][chosen] - 1] = 1.0
        above = np.cumsum(good, axis=1)
        below = np.cumsum((good * share)[:, ::-1], axis=1)[:, ::-1]  # a gap itself adds nothing
        known_here, fewest_here, greatest_here = (
            each[here, None] for each in (known, fewest, greatest)
        )

        first = np.cumsum(held, axis=1, dtype=np.float64)
        most = known_here + np.cumsum(held * ((above + first) * share + below), axis=1)
        if must:
            low[here] = high[here] = ratio(most[:, -1:], fewest_here + first[:, -1:])[:, 0]
            continue
        last = _from_end(held)
        deeper = _from_end(held * share) - share  # of the gaps chosen below this one
        least = known_here + _from_end(held * ((above + 1.0) * share + below + deeper))
        most, least = ratio(most, fewest_here + first), ratio(least, greatest_here + last)
        high[here] = np.maximum(ratio(known_here, fewest_here)[:, 0], most.max(axis=1))
        low[here] = np.minimum(ratio(known_here, greatest_here)[:, 0], least.min(axis=1))
    return low, high


def _alike(evidence: Evidence, rel: float, missed: Ints) -> tuple[Ints, Ints]:
    """One query of each kind (documents returned and missed, R, ranks of judged and relevant hits),
    shape (m,), and which of these each query is like, shape (n,).
    """
    hit = 4 * evidence.rank + 2 * evidence.judged + evidence.relevant(rel)
    start = np.searchsorted(evidence.query, np.arange(evidence.n + 1)).tolist()
    kinds: dict[tuple[int, int, float, bytes], int] = {}
    of_query = (each.tolist() for each in (evidence.returned, missed, evidence.num_rel(rel)))
    like = [
        kinds.setdefault((*each, hit[start[at] : start[at + 1]].tobytes()), len(kinds))
        for at, each in enumerate(zip(*of_query, strict=True))
    ]
    return np.unique(like, return_index=True)[1], np.array(like, np.int64)


def _from_end(value: Floats | Mask) -> Floats:
    """Running totals from the last column to the first."""
    total: Floats = np.cumsum(value[:, ::-1], axis=1, dtype=np.float64)[:, ::-1]
    return total


def totals(value: Floats | Mask) -> Floats:
    """Running totals along the columns, starting at 0; shape (b, c + 1)."""
    total = np.zeros((value.shape[0], value.shape[1] + 1))
    np.cumsum(value, axis=1, out=total[:, 1:])
    return total


def _left(discount: Discount, deepest: int) -> Floats:
    """The discount of each rank, to be looked up by rank; 0 at rank 0."""
    return np.concatenate([[0.0], discount(np.arange(1, deepest + 1))])


def sum_bounds(
    evidence: Evidence,
    value: Floats,
    ends: tuple[float, float],
    discount: Discount,
    k: float | None,
) -> Bounds:
    """Bounds of a sum of gain times discount: every gap gains least, or most.

    Args:
        evidence: Hits and ideals.
        value: The sum over the judged; shape (n,).
        ends: Least and greatest gain of an unjudged document.
        discount: Maps ranks to discounts.
        k: The cutoff; None for all that was retrieved.
    """
    room = np.zeros(evidence.n)
    left = _left(discount, int(evidence.returned.max(initial=1)))
    for block in gaps(evidence, k):
        room[block.queries] = block.held @ left[1 : block.held.shape[1] + 1]
    return value + ends[0] * room, value + ends[1] * room


def cascade_bounds(
    evidence: Evidence, stop: Floats, ends: tuple[float, float], k: float | None
) -> Bounds:
    """Bounds of ERR: stopping earlier never earns less, so every gap stops least, or most.

    Args:
        evidence: Hits and ideals.
        stop: Probability that the user stops at each hit; shape (h,).
        ends: Lowest and highest probability of stopping at an unjudged document.
        k: The cutoff; None for all that was retrieved.
    """
    out = np.zeros((2, evidence.n))
    for block in gaps(evidence, k):
        share = 1.0 / np.arange(1, block.held.shape[1] + 1)
        for end, chance in enumerate(ends):
            stops = np.where(block.held, chance, 0.0)
            stops[block.row, evidence.rank[block.hits] - 1] = stop[block.hits]
            going = np.cumprod(1.0 - stops, axis=1)
            reached = np.concatenate([np.ones((len(going), 1)), going[:, :-1]], axis=1)
            out[end, block.queries] = (reached * stops) @ share
    return out[0], out[1]


def normalised_bounds(
    evidence: Evidence,
    gain: Floats,
    ideal: Floats,
    possible: Floats,
    discount: Discount,
    k: float | None,
) -> Bounds:
    """Bounds of nDCG, where the unjudged raise the ideal too.

    The value is a ratio of a linear and a convex function of the gains of the gaps. It is least at
    a corner, where the last j gaps gain most and the others least. It is greatest with gains that
    fall with rank; layer by layer of gain, the first c gaps reach the layer, and c falls with
    the layer. A table solves this exactly for a given ratio, and Dinkelbach's iteration (1967,
    doi:10.1287/mnsc.13.7.492) finds the ratio.

    Args:
        evidence: Hits and ideals.
        gain: Gain of each hit; shape (h,).
        ideal: Gain of each judgment; shape (j,).
        possible: Gains an unjudged document can have, including the least and the greatest.
            Gains in between are allowed too, and change nothing.
        discount: Maps ranks to discounts.
        k: The cutoff; None for all that was retrieved, and an ideal of all judgments.
    """
    least, most = float(possible.min()), float(possible.max())
    pool = np.bincount(evidence.ideal_query, minlength=evidence.n)
    deepest = int(max((pool + evidence.returned).max(initial=0), 1))
    length = deepest if k is None else int(min(k, deepest))
    layers = layers_of(evidence, ideal, (least, most), length)
    left = _left(discount, deepest)
    table = np.cumsum(np.where(np.arange(deepest + 1) <= length, left, 0.0))
    low, high = np.empty(evidence.n), np.empty(evidence.n)
    for block in gaps(evidence, k):
        level, step, reach = layers.of(block.queries)
        gained = gain[block.hits] * left[evidence.rank[block.hits]]
        problem = LayeredRatio(
            step=step,
            forced=level <= least,
            free=(level > least) & (level <= most),
            reach=reach,
            table=table,
            base=sums(block.row, gained, None, len(block.held)),
        )
        ends = _ends(problem, block.held, left[1 : block.held.shape[1] + 1])
        low[block.queries], high[block.queries] = ends
    return low, high


@dataclass(frozen=True, slots=True)
class Layers:
    """Levels of gain that a query's ideal has, or its gaps could have; ``m`` in total."""

    start: Ints  # first level of each query, and the end of the last; shape (n + 1,)
    level: Floats  # the gain, ascending within a query; shape (m,)
    reach: Ints  # how many judgments gain as much, of those that fit into the ideal; shape (m,)

    def of(self, queries: slice) -> tuple[Floats, Floats, Ints]:
        """Levels, their height above the one below, and reach; each of shape (b, q).

        Queries with fewer levels have layers of height 0 at the end.
        """
        start, end = self.start[queries], self.start[queries.start + 1 : queries.stop + 1]
        place = start[:, None] + np.arange(max(int((end - start).max(initial=0)), 1))
        there = place < end[:, None]
        place = np.minimum(place, max(len(self.level) - 1, 0))
        if not len(self.level):
            none = np.zeros(place.shape)
            return none, none, none.astype(np.int64)
        level = np.where(there, self.level[place], 0.0)
        step = np.where(there, np.diff(level, axis=1, prepend=0.0), 0.0)
        return level, step, np.where(there, self.reach[place], 0)


def layers_of(evidence: Evidence, ideal: Floats, ends: tuple[float, float], length: int) -> Layers:
    """The levels of each query; ``ends`` are the least and the greatest gain of a gap."""
    # Pooled and not judged: a gap if it was retrieved, and not relevant if not.
    gaining = np.flatnonzero((ideal > 0) & (evidence.ideal_grade >= 0))
    order = gaining[np.lexsort((-ideal[gaining], evidence.ideal_query[gaining]))]
    query = evidence.ideal_query[order]
    first = np.searchsorted(query, np.arange(evidence.n + 1))
    # Below the places of the ideal all layers are alike, so they need no levels of their own.
    room = np.arange(len(query)) - first[query] < length
    query, gain = query[room], ideal[order][room]
    every = np.arange(evidence.n)
    both = [end for end in ends if end > 0]
    of = np.concatenate([query, *(every for _ in both)])
    gains, code = np.unique(
        np.concatenate([gain, *(np.full(evidence.n, end) for end in both)]), return_inverse=True
    )
    width = max(len(gains), 1)
    keys = np.unique(of * width + code)
    reached = np.sort(query * width + code[: len(query)])
    at = keys // width
    return Layers(
        start=np.searchsorted(at, np.arange(evidence.n + 1)),
        level=gains[keys % width] if len(keys) else np.zeros(0),
        reach=np.searchsorted(reached, (at + 1) * width) - np.searchsorted(reached, keys),
    )


@dataclass(frozen=True, slots=True)
class LayeredRatio:
    """A sum of gains over an ideal DCG, as a function of the gains of the unjudged.

    ``gained`` and ``number`` are tables of shape (b, c): column c is for c of the unjudged, with
    the sum of their discounts or weights, and how many they are. ``fixed`` are the parts of sum and
    ideal that no choice changes, each of shape (b, 1).
    """

    step: Floats  # height of each layer of gain; shape (b, q)
    forced: Mask  # layers that every document reaches; shape (b, q)
    free: Mask  # layers that a document may reach or not; shape (b, q). None reaches the others.
    reach: Ints  # for each layer, judgments and unseen documents that reach it; shape (b, q)
    table: Floats  # sum of the discounts of the first places of the ideal
    base: Floats  # the sum over the judged; shape (b,)

    @property
    def one_layer(self) -> bool:
        """Whether all gains are at corners."""
        return bool((self.free.sum(axis=1) <= 1).all())

    def fixed(self, gained: Floats, number: Ints) -> tuple[Floats, Floats]:
        """Of all unjudged documents: ``gained`` of shape (b,), and ``number`` of shape (b, 1)."""
        every = np.where(self.forced, number, 0)
        fixed = np.where(self.free, 0.0, self.step)
        whole = (fixed * self.table[self.reach + every]).sum(axis=1)
        part = self.base + (fixed * self.forced).sum(axis=1) * gained
        return part[:, None], whole[:, None]

    def corners(self, fixed: tuple[Floats, Floats], gained: Floats, number: Ints) -> Floats:
        """The value where those of a column gain most, and the others least; shape (b, c)."""
        part, whole = fixed
        top = (self.step * self.free).sum(axis=1, keepdims=True)
        raised = np.zeros(number.shape)
        for step, reach in self._choices():
            raised += step * self.table[reach + number]
        return ratio(part + top * gained, whole + raised)

    def greatest_from(
        self, sought: Floats, fixed: tuple[Floats, Floats], gained: Floats, number: Ints
    ) -> Floats:
        """The greatest value, by Dinkelbach's iteration from a lower one; shape (b,)."""
        part, whole = fixed
        while True:
            more, higher = self._best_for(sought, gained, number)
            improved = ratio(part[:, 0] + more, whole[:, 0] + higher)
            if not (improved > sought).any():
                return sought
            sought = np.maximum(sought, improved)

    def _best_for(self, sought: Floats, gained: Floats, number: Ints) -> tuple[Floats, Floats]:
        """Sum and ideal, in the free layers, of the gains for which sum - sought x ideal is
        greatest; each of shape (b,).
        """
        part, whole = np.zeros(gained.shape), np.zeros(gained.shape)
        column = np.arange(gained.shape[1])
        for step, reach in reversed(list(self._choices())):
            part = part + step * gained
            whole = whole + step * self.table[reach + number]
            surplus = part - sought[:, None] * whole
            # As many documents or fewer reach the layers above: keep the best column so far.
            leads = np.where(surplus == np.maximum.accumulate(surplus, axis=1), column, 0)
            chosen = np.maximum.accumulate(leads, axis=1)
            part = np.take_along_axis(part, chosen, axis=1)
            whole = np.take_along_axis(whole, chosen, axis=1)
        return part[:, -1], whole[:, -1]

    def _choices(self) -> Iterator[tuple[Floats, Ints]]:
        """Each layer from below: its height where it is free, and its reach; (b, 1) each."""
        height = self.step * self.free
        for layer in range(height.shape[1]):
            yield height[:, layer, None], self.reach[:, layer, None]


def _ends(problem: LayeredRatio, held: Mask, left: Floats) -> Bounds:
    """DCG over ideal DCG of a block of queries, where the unjudged are gaps: least and greatest.

    Args:
        problem: DCG over ideal DCG.
        held: Which ranks are gaps; shape (b, ranks).
        left: Discount of each rank; shape (ranks,).
    """
    fixed = problem.fixed(held @ left, held.sum(axis=1)[:, None])
    none = np.zeros((len(held), 1))
    # At the least value the last gaps gain most; at the greatest, gains fall with rank.
    number = np.concatenate([_from_end(held), none], axis=1).astype(np.int64)
    gained = np.concatenate([_from_end(held * left), none], axis=1)
    least = problem.corners(fixed, gained, number).min(axis=1)
    number, gained = totals(held).astype(np.int64), totals(held * left)
    if problem.one_layer:
        return least, problem.corners(fixed, gained, number).max(axis=1)
    return least, problem.greatest_from(np.zeros(len(held)), fixed, gained, number)
