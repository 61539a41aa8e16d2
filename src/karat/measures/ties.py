"""Ties: the range of a measure over the orders of documents with equal scores.

The order of tied documents is arbitrary. For each query a measure has a lowest, an expected
and a highest value over all orders of its tied documents (every order equally likely), and all
three are computed, not sampled. The expected values follow McSherry & Najork 2008,
doi:10.1007/978-3-540-78646-7_38; those of Bpref and of cascades (ERR, RR) are derived here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from karat.measures.entry import Measure
from karat.measures.evidence import Evidence, Floats, Ints, Mask, sums
from karat.measures.parameters import gain_of

Discount = Callable[[Ints], Floats]


@dataclass(frozen=True, slots=True)
class Band:
    """The range of a measure for each query; each of shape (n,), or None if not known."""

    low: Floats | None = None
    expected: Floats | None = None
    high: Floats | None = None


def tie_band(measure: Measure, evidence: Evidence, depth: int | None, condensed: bool) -> Band:
    """Lowest, expected and highest value over all orders of tied documents.

    Args:
        measure: The measure.
        evidence: Of full rankings: a group of tied documents may straddle ``depth``.
        depth: Number of documents after which each order is cut; None for no cut.
        condensed: Drop unjudged documents after the cut.

    Returns:
        The band; parts of it are None where the effect of order on the measure is not known, or
        where a cut through a tied group leaves no closed form.
    """
    tied = np.flatnonzero(evidence.per_query(evidence.tie_size > 1))
    some = evidence.at(tied)

    if depth is not None and measure.depth is not None and measure.depth <= depth:
        depth = None if not condensed else depth  # the measure is cut earlier anyway

    def read(order: Evidence) -> Evidence:
        cut = order if depth is None else order.to_depth(depth)
        return cut.only_judged() if condensed else cut

    value = measure(read(evidence))
    straddled = depth is not None and bool(
        ((some.tie_start <= depth) & (some.tie_start + some.tie_size - 1 > depth)).any()
    )
    if not len(tied) or not (measure.ordered or straddled):
        return Band(value, value, value)

    def for_all(of_tied: Floats | None) -> Floats | None:
        if of_tied is None:
            return None
        of_all = value.copy()
        of_all[tied] = of_tied
        return of_all

    expected = None if straddled else measure.expected(read(some))
    if not measure.monotone_in_swaps or (straddled and condensed):
        return Band(None, for_all(expected), None)
    worth = worth_of(measure, some)
    low = measure(read(reordered(some, worth, best=False)))
    high = measure(read(reordered(some, worth, best=True)))
    return Band(for_all(low), for_all(expected), for_all(high))


def worth_of(measure: Measure, evidence: Evidence) -> Floats:
    """Gain of each hit in a measure; shape (h,)."""
    inner = measure.settings.get("of")
    if isinstance(inner, Measure):
        return worth_of(inner, evidence)
    return gain_of(evidence.grade, measure.settings.get("gain", "linear"))


def reordered(evidence: Evidence, worth: Floats, *, best: bool) -> Evidence:
    """The same rankings with the documents of each tied group best first, or best last.

    Documents without a gain keep their order, unjudged ones included.

    Args:
        evidence: Hits and ideals.
        worth: Gain of each hit; shape (h,).
        best: Best first; else best last.
    """
    if not len(evidence.rank):
        return evidence
    gaining = worth > 0
    group, size = _groups(evidence)
    index = np.repeat(np.arange(len(group)), size)
    so_far = np.cumsum(gaining)
    so_far = so_far - np.repeat(so_far[group] - gaining[group], size)
    total = np.bincount(index, gaining).astype(np.int64)[index]
    if best:
        order = np.lexsort((evidence.rank, -worth, ~gaining, index))
        first, moved = evidence.tie_start, evidence.rank + total - so_far
    else:
        order = np.lexsort((evidence.rank, worth, ~gaining, index))
        first = evidence.tie_start + evidence.tie_size - total
        moved = evidence.rank - so_far
    place = np.empty_like(evidence.rank)
    place[order] = np.arange(len(order)) - np.repeat(group, size)
    rank = np.where(gaining, first + place, moved)
    final = np.lexsort((rank, evidence.query))
    return evidence.keep(final, rank=rank[final])


def perfectly_reranked(evidence: Evidence, worth: Floats, depth: int) -> Evidence:
    """Rankings whose first documents a perfect reranker has put in the best order.

    Args:
        evidence: Hits and ideals.
        worth: Gain of each hit; shape (h,).
        depth: Documents passed to the reranker; lower ranks do not change.
    """
    head = evidence.rank <= depth
    as_tied = dataclasses.replace(
        evidence,
        tie_start=np.where(head, 1, evidence.rank),
        tie_size=np.where(head, depth, 1),
    )
    best = reordered(as_tied, worth, best=True)
    return dataclasses.replace(best, tie_start=best.rank, tie_size=np.ones_like(best.rank))


def expected_sum(evidence: Evidence, gain: Floats, discount: Discount, k: float | None) -> Floats:
    """Expected sum of gain times discount over the top k; shape (n,).

    Args:
        evidence: Hits and ideals.
        gain: Gain of each hit at any rank; shape (h,).
        discount: Maps ranks to discounts.
        k: Lowest rank that counts; None for no limit.
    """
    end = evidence.tie_start + evidence.tie_size - 1
    deepest = int(end.max(initial=0))
    ranks = np.arange(1, deepest + 1)
    left = np.where(ranks <= (k or np.inf), discount(ranks), 0.0)
    below = np.concatenate([[0.0], np.cumsum(left)])
    share = (below[end] - below[evidence.tie_start - 1]) / evidence.tie_size
    alone = evidence.tie_size == 1
    share[alone] = left[evidence.rank[alone] - 1]
    return evidence.per_query(gain * share)


def expected_within(evidence: Evidence, counted: Mask, last: Floats | float) -> Floats:
    """Expected number of counted hits down to a rank; shape (n,).

    Args:
        evidence: Hits and ideals.
        counted: Hits that count; shape (h,).
        last: The rank, one for all queries or one for each, shape (n,).
    """
    limit = np.broadcast_to(last, evidence.n)[evidence.query]
    places = np.clip(limit - evidence.tie_start + 1, 0, evidence.tie_size)
    return evidence.per_query(counted * (places / evidence.tie_size))


def expected_average_precision(evidence: Evidence, relevant: Mask, k: float | None) -> Floats:
    """Expected sum of precision at each relevant document of the top k; shape (n,)."""
    group, size = _groups(evidence)
    query, start, length = (
        values[group] for values in (evidence.query, evidence.tie_start, evidence.tie_size)
    )
    good = np.bincount(np.repeat(np.arange(len(group)), size), relevant, minlength=len(group))
    before = evidence.so_far(relevant)[group] - relevant[group]
    end = np.minimum(start + length - 1, np.inf if k is None else k).astype(np.int64)
    inside = np.maximum(end - start + 1, 0)
    deepest = int(end.max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, deepest + 1))])
    reciprocal = harmonic[end] - harmonic[np.minimum(start - 1, end)]
    alone = (length == 1) & (inside > 0)
    reciprocal[alone] = 1.0 / start[alone]
    # At place j of t (from 0), (r - 1) j / (t - 1) of the r - 1 other relevant ones are above.
    others = (good - 1) / np.maximum(length - 1, 1)
    precision = (before + 1) * reciprocal + others * (inside - start * reciprocal)
    return sums(query, good / length * precision, None, evidence.n)


def expected_cascade(evidence: Evidence, stop: Floats, reward: Discount, k: float | None) -> Floats:
    """Expected reward of a user who goes down the list and stops; shape (n,).

    Args:
        evidence: Hits and ideals.
        stop: Probability that a user who reaches a hit stops there; shape (h,).
        reward: Maps ranks to the reward for stopping there.
        k: Lowest rank that the user views; None for no limit.
    """
    last = np.inf if k is None else k
    deepest = int((evidence.tie_start + evidence.tie_size - 1).max(initial=0))
    earned = reward(np.arange(1, deepest + 1))
    group, size = _groups(evidence)
    total = np.zeros(evidence.n)
    still, query = 1.0, -1
    for first, count in zip(group.tolist(), size.tolist(), strict=True):
        if evidence.query[first] != query:
            still, query = 1.0, int(evidence.query[first])
        start, length = int(evidence.tie_start[first]), int(evidence.tie_size[first])
        if start > last or still == 0.0:
            continue
        going = _going_on(1.0 - stop[first : first + count], length)
        ends = int(min(length, last - start + 1))
        left = going[: ends + 1]
        total[query] += still * float((left[:-1] - left[1:]) @ earned[start - 1 : start - 1 + ends])
        still *= float(going[-1])
    return total


def expected_bpref(evidence: Evidence, relevant: Mask, above: Mask, r: Floats, n: Floats) -> Floats:
    """Expected sum over relevant hits of 1 - min(above, R) / min(N, R); shape (n,).

    Args:
        evidence: Hits and ideals.
        relevant: Relevant hits; shape (h,).
        above: Judged non-relevant hits; shape (h,).
        r: R of each query; shape (n,).
        n: N of each query; shape (n,).
    """
    group, size = _groups(evidence)
    index = np.repeat(np.arange(len(group)), size)
    query = evidence.query[group]
    good = np.bincount(index, relevant, minlength=len(group))
    bad = np.bincount(index, above, minlength=len(group))
    before = (evidence.so_far(above)[group] - above[group]).astype(np.float64)
    most = r[query]

    def lost(count: Floats) -> Floats:  # sum of min(y, R) for y from 0 to count
        low: Floats = np.minimum(count, most)
        return low * (low + 1) / 2 + (count - low) * most

    # A good document is equally likely at each place among the bad ones of its group.
    mean_lost = (lost(before + bad) - lost(before - 1)) / (bad + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(mean_lost > 0, mean_lost / np.minimum(n[query], most), 0.0)
    return sums(query, good * (1.0 - share), None, evidence.n)


def _going_on(pass_by: Floats, length: int) -> Floats:
    """Probability to get past the first 0 … length documents of a tied group in random order.

    Elementary symmetric means, adding one hit at a time to the documents without a stop.
    """
    places = np.arange(length + 1, dtype=np.float64)
    going = np.where(places <= length - len(pass_by), 1.0, 0.0)
    for count, chance in enumerate(pass_by.tolist(), start=length - len(pass_by) + 1):
        shifted = np.concatenate([[0.0], going[:-1]])
        going = ((count - places) * going + places * chance * shifted) / count
        going[count + 1 :] = 0.0
    return going


def _groups(evidence: Evidence) -> tuple[Ints, Ints]:
    """Index of the first hit of each tied group, and its number of hits."""
    starts = np.diff(evidence.query, prepend=-1).astype(bool)
    starts |= np.diff(evidence.tie_start, prepend=-1).astype(bool)
    first = np.flatnonzero(starts)
    return first, np.diff(np.append(first, len(evidence.rank)))
