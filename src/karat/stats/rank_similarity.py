"""Similarity of the rankings of two runs: rank-biased overlap, and overlap of the top k.

No judgments are needed. Documents with equal scores are tied: their order is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import UsageError
from karat.stats.averages import Floats
from karat.tables import Run
from karat.tables.ranking import numbered

Ints = NDArray[np.int64]
Ties = Literal["corrected", "expected", "equal"]

_BLOCK = 1 << 21  # pairs of a tied document and a depth in memory at once

_CELLS = 1 << 16  # pairs of a query and a depth of a run, whose tables fit the cache

_LEAST = 2.0**-60
"""Weight below which depths are ignored: far below the precision of a value near 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Similarity:
    """Similarity of two runs for each query."""

    # Queries that both runs answered, including empty answers; in the order of the first run's
    # answers
    query_ids: list[str]
    values: Floats  # one for each of them, 0 to 1; shape (n,)
    # Queries of either run (and of `query_ids`, if given) that were not answered by both: they
    # failed in one, or are missing from it
    left_out: list[str]

    @property
    def mean(self) -> float | None:
        """Plain mean over the queries; None if there are none."""
        return math.fsum(self.values.tolist()) / len(self.values) if len(self.values) else None


def overlap(
    left: Run, right: Run, k: int, *, query_ids: Collection[str] | None = None
) -> Similarity:
    """Share of the top k that both runs have, in any order: overlap@k.

    Documents in common, divided by k, or by the longer of the two answers if both are shorter. Two
    empty answers have overlap 1, an empty and a non-empty one 0. Ties across rank k are broken by
    document id, as everywhere in karat.

    Args:
        left: One run.
        right: The other; the two may be exchanged.
        k: Depth, at least 1.
        query_ids: Queries that count; all if None.

    Raises:
        UsageError: ``k`` is less than 1.
    """
    return overlaps([left, right], k, query_ids=query_ids)[0]


def overlaps(
    runs: Sequence[Run], k: int, *, query_ids: Collection[str] | None = None
) -> list[Similarity]:
    """``overlap`` of each pair of runs: the first with each other, then the second, and so on."""
    if k < 1:
        raise UsageError(f"k is {k}, not a depth of 1 or more", fix="k=10")
    return _similarities(runs, k, query_ids, partial(_overlap, k=k))


def rank_biased_overlap(
    left: Run,
    right: Run,
    p: float = 0.9,
    ties: Ties = "corrected",
    *,
    query_ids: Collection[str] | None = None,
) -> Similarity:
    """Extrapolated rank-biased overlap (RBO), for rankings of any two lengths, with ties.

    The mean agreement of the two rankings down to each depth d, weighted by (1 - p) p^(d - 1).
    Below the last rank, agreement is assumed to be as above it.

    Args:
        left: One run.
        right: The other; the two may be exchanged.
        p: Persistence, between 0 and 1. The first 10 ranks have .86 of the weight at .9.
        ties: How tied documents count. ``expected``: the mean RBO over all orders of the tied
            ones (RBO^a), below 1 for a ranking with ties and itself, as its order is not known.
            ``corrected``: the same, corrected for ties (RBO^b): 1 for equal rankings.
            ``equal``: tied documents share one rank (RBO^w), as in sports.
        query_ids: Queries that count; all if None.

    Returns:
        1 where the rankings are equal (to rounding) and 0 where they share no document. Two
        empty answers are equal.

    Raises:
        UsageError: ``p`` is not between 0 and 1, or ``ties`` is none of these.

    Source: Webber, Moffat & Zobel 2010, doi:10.1145/1852102.1852106, equation 32 (RBO_EXT);
    Corsi & Urbano 2024, doi:10.1145/3626772.3657700, for ties.
    """
    return rank_biased_overlaps([left, right], p, ties, query_ids=query_ids)[0]


def rank_biased_overlaps(
    runs: Sequence[Run], p: float, ties: Ties, *, query_ids: Collection[str] | None = None
) -> list[Similarity]:
    """``rank_biased_overlap`` of each pair of runs, in the order of ``overlaps``."""
    if not 0 < p < 1:
        raise UsageError(f"p is {p}, not between 0 and 1", fix="p=0.9")
    if ties not in ("corrected", "expected", "equal"):
        raise UsageError(
            f"unknown value {ties!r} of ties", fix="ties='corrected', 'expected' or 'equal'"
        )
    # Agreement is from 0 to 1 at every depth. All depths below D have the total weight p^D, so
    # agreement there changes the value by p^D at most. Agreement down to D does not depend on lower
    # ranks, except for ties that D cuts.
    depth = math.ceil(math.log(_LEAST) / math.log(p))
    return _similarities(runs, depth, query_ids, partial(_rbo, p=p, ties=ties))


@dataclass(frozen=True, slots=True)
class _Side:
    """One run for the given queries, down to a depth; ``m`` documents, by query."""

    lengths: Ints  # number of documents of each query down to the depth; shape (n,)
    # Where the documents of each query start, and m at the end; shape (n + 1,). If a tie crosses
    # the depth, all of its documents are included.
    first: Ints
    query: Ints  # index of the query of each document; shape (m,)
    row: Ints  # row of each in the run; shape (m,)
    rank: Ints  # rank of each, from 1; shape (m,)
    top: Ints  # first rank of the tie each belongs to; shape (m,)
    bottom: Ints  # last rank of that tie; shape (m,)

    @classmethod
    def of(cls, run: Run, query_ids: list[str], depth: int) -> _Side:
        starts, lengths = run.places(query_ids, depth)
        reach = lengths
        if len(run.tie_start):
            last, size = run.ties_of(starts + lengths - 1)
            reach = np.where(lengths > 0, np.maximum(last + size - starts, lengths), 0)
        rank = _counting(reach) + 1
        row = np.repeat(starts, reach) + rank - 1
        top, bottom = rank, rank
        if len(run.tie_start):
            start, size = run.ties_of(row)
            top = rank - (row - start)
            bottom = top + size - 1
        first = np.append(0, np.cumsum(reach))
        query = np.repeat(np.arange(len(reach)), reach)
        return cls(lengths, first, query, row, rank, top, bottom)

    def block(self, queries: slice, depths: int) -> _Block:
        """The documents of some queries, and the ties at each depth down to one."""
        here = slice(self.first[queries.start], self.first[queries.stop])
        query, rank = self.query[here] - queries.start, self.rank[here]
        top, bottom = self.top[here], self.bottom[here]
        lengths, depth = self.lengths[queries], np.arange(1, depths + 1)
        starts = np.tile(depth, (len(lengths), 1))
        ends = starts.copy()
        tied = np.flatnonzero((bottom > top) & (rank <= depths))
        cell = query[tied], rank[tied] - 1
        starts[cell], ends[cell] = top[tied], bottom[tied]
        # Squares of the share of each document: 1 above the tie, less within it.
        squares = np.asarray(starts - 1 + (depth - starts + 1) ** 2 / (ends - starts + 1), float)
        return _Block(lengths, query, self.row[here], rank, top, bottom, ends, squares)


@dataclass(frozen=True, slots=True)
class _Block:
    """``b`` queries of a side, with ``m`` documents; fields as there."""

    lengths: Ints
    query: Ints
    row: Ints
    rank: Ints
    top: Ints
    bottom: Ints
    ends: Ints  # last rank of the tie at each depth; of shape (b, depths), as the next
    # Sum of the squares of the shares of documents down to each depth. Below the end of a ranking,
    # no depth is tied.
    squares: Floats


def _similarities(
    runs: Sequence[Run],
    depth: int,
    given: Collection[str] | None,
    similarity: Callable[[_Pair], Floats],
) -> list[Similarity]:
    """The similarity of each pair of runs, block by block of queries."""
    asked = list(dict.fromkeys(q for run in runs for q in run.answers["query_id"].to_list()))
    if given is not None:
        wanted = set(given)
        asked = [query for query in asked if query in wanted]
    answered = []
    for run in runs:
        states = dict(run.answers.select("query_id", "state").iter_rows())
        answered.append(np.array([states.get(q, "failed") != "failed" for q in asked], np.bool_))
    sides = [_Side.of(run, asked, depth) for run in runs]
    rows = [run.rows.rechunk() for run in runs]
    lengths = np.array([side.lengths for side in sides])
    pairs = list(combinations(range(len(runs)), 2))
    values = np.empty((len(pairs), len(asked)))
    step = max(1, _CELLS // max(int(lengths.max(initial=0)), 1))
    for first in range(0, len(asked), step):
        queries = slice(first, min(first + step, len(asked)))
        depths = int(lengths[:, queries].max(initial=1))
        blocks = [side.block(queries, depths) for side in sides]
        numbers = numbered(rows, [block.row for block in blocks], [b.query for b in blocks])
        place = np.empty(max(n.max(initial=-1) for n in numbers) + 1, np.int64)
        for at, (left, right) in enumerate(pairs):
            place.fill(-1)
            place[numbers[right]] = np.arange(len(numbers[right]))
            found = place[numbers[left]]
            common = np.flatnonzero(found >= 0)
            pair = _Pair(blocks[left], blocks[right], common, found[common])
            values[at, queries] = np.clip(similarity(pair), 0.0, 1.0)  # the last bits
    every, out = np.array(asked, object), []
    for at, (left, right) in enumerate(pairs):
        both = answered[left] & answered[right]
        out.append(Similarity(every[both].tolist(), values[at, both], every[~both].tolist()))
    return out


@dataclass(frozen=True, slots=True)
class _Pair:
    """Some queries of two runs, and the documents that both have."""

    left: _Block
    right: _Block
    left_at: Ints  # indices of the shared documents among those of the left, ascending
    right_at: Ints  # the same among those of the right


def _overlap(pair: _Pair, k: int) -> Floats:
    """Overlap of some queries; shape (b,)."""
    left, right = pair.left, pair.right
    within = (left.rank[pair.left_at] <= k) & (right.rank[pair.right_at] <= k)
    shared = np.bincount(left.query[pair.left_at[within]], minlength=len(left.lengths))
    longer = np.maximum(left.lengths, right.lengths)
    return np.where(longer > 0, shared / np.maximum(longer, 1), 1.0)


def _rbo(pair: _Pair, p: float, ties: Ties) -> Floats:
    """RBO of some queries; shape (b,)."""
    left, right = pair.left.lengths, pair.right.lengths
    s, longest = np.minimum(left, right), np.maximum(left, right)
    shape = pair.left.ends.shape
    depth, each = np.arange(1, shape[1] + 1), np.arange(len(s))
    query = pair.left.query[pair.left_at]
    at = (pair.left, pair.left_at), (pair.right, pair.right_at)
    top = np.stack([side.top[here] for side, here in at])
    bottom = np.stack([side.bottom[here] for side, here in at])
    left_bottom, right_bottom = pair.left.ends, pair.right.ends

    if ties == "equal":
        shared = _from(query, top.max(axis=0), shape)
        size = (left_bottom + right_bottom) / 2
    else:
        shared = _shared(query, top, bottom, shape)
        size = np.broadcast_to(depth.astype(np.float64), shape)
        if ties == "corrected":
            size = np.sqrt(pair.left.squares * pair.right.squares)

    # Below the end of the shorter ranking, agreement is assumed to be as above.
    end_of_short = each, np.maximum(s - 1, 0)
    agreement = shared[end_of_short] / size[end_of_short]
    seen = shared
    below = depth > s[:, None]
    if (s < longest).any():
        met = np.ones(shape)
        if ties != "equal":
            # Average share, at this depth, of documents that only the longer ranking has.
            left_longer = left > right
            held = _from(query, np.where(left_longer[query], top[0], top[1]), shape)
            last = np.where(left_longer[:, None], left_bottom, right_bottom)
            met = (depth - shared) / np.where(below, last - held, 1.0)
        seen = shared + below * ((depth - s[:, None]) * agreement[:, None] * met)
    last_rank = each, np.maximum(longest - 1, 0)
    end = (shared[last_rank] + (longest - s) * agreement) / size[last_rank]
    # The weights of all depths add up to 1: full agreement gives exactly 1.
    parts = (seen / size - end[:, None]) * p ** (depth - 1.0) * (depth <= longest[:, None])
    # A running sum: depths below the end of a ranking must not change the last bits.
    values: Floats = end + (1 - p) * np.cumsum(parts, axis=1)[:, -1]
    return np.where(s > 0, values, (longest == 0).astype(np.float64))


def _shared(query: Ints, top: Ints, bottom: Ints, shape: tuple[int, int]) -> Floats:
    """Documents in common down to each depth, on average over the orders of ties; of ``shape``.

    A tied document is above depth d with probability (d - top + 1) / size, independently in each
    ranking. Arguments are of the documents in common, of shape (m,) and (2, m).
    """
    start, end = top.max(axis=0), bottom.max(axis=0)
    total = _from(query, end, shape)
    partly = end > start
    if not partly.any():
        return total
    ends = {name: each[partly] for name, each in zip("qabcd", (query, *top, *bottom), strict=True)}
    # Documents with the same ties are counted together, which usually leaves few.
    kinds = pl.DataFrame(ends).group_by(*ends, maintain_order=True).len("count")
    query, count = kinds["q"].to_numpy(), kinds["count"].to_numpy()
    top, bottom = kinds.select("a", "b").to_numpy().T, kinds.select("c", "d").to_numpy().T
    start, end = top.max(axis=0), bottom.max(axis=0)
    partial = np.minimum(end - 1, shape[1]) - start + 1
    cuts = np.searchsorted(np.cumsum(partial), np.arange(_BLOCK, partial.sum() + _BLOCK, _BLOCK))
    begin = 0
    for stop in [*np.unique(cuts).tolist(), len(partial)]:
        part = slice(begin, stop)
        which = np.repeat(np.arange(len(partial))[part], partial[part])
        depth = start[which] + _counting(partial[part])
        size = (bottom - top + 1)[:, which]
        share = np.minimum((depth - top[:, which] + 1) / size, 1.0).prod(axis=0)
        cell = query[which] * shape[1] + depth - 1
        total += np.bincount(cell, share * count[which], total.size).reshape(shape)
        begin = stop
    return total


def _counting(lengths: Ints) -> Ints:
    """0, 1, 2 … for each length, one after the other; shape (sum of lengths,)."""
    counting: Ints = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return counting


def _from(query: Ints, rank: Ints, shape: tuple[int, int]) -> Floats:
    """Number of documents down to each depth, given their ranks; of the shape given."""
    shown = rank <= shape[1]
    here = np.bincount(query[shown] * shape[1] + rank[shown] - 1, minlength=shape[0] * shape[1])
    return np.cumsum(here.reshape(shape), axis=1, dtype=np.float64)
