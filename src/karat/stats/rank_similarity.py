"""Similarity of the rankings of two runs: rank-biased overlap, and overlap of the top k.

No judgments are needed. Documents with equal scores are tied: their order is not known.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import UsageError
from karat.stats.averages import Floats
from karat.tables import Run
from karat.tables.ranking import mixed

Ints = NDArray[np.int64]
Ties = Literal["corrected", "expected", "equal"]

_BLOCK = 1 << 21  # pairs of a tied document and a depth in memory at once

_CELLS = 1 << 18  # pairs of a query and a depth in memory at once

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
    if k < 1:
        raise UsageError(f"k is {k}, not a depth of 1 or more", fix="k=10")
    pair = _Pair.of(left, right, k, query_ids)
    within = (pair.left.rank[pair.left_at] <= k) & (pair.right.rank[pair.right_at] <= k)
    shared = np.bincount(pair.query[within], minlength=len(pair.query_ids))
    longer = np.maximum(pair.left.lengths, pair.right.lengths)
    values = np.where(longer > 0, shared / np.maximum(longer, 1), 1.0)
    return Similarity(pair.query_ids, values, pair.left_out)


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
    pair = _Pair.of(left, right, depth, query_ids)
    longest = np.maximum(pair.left.lengths, pair.right.lengths)
    values = np.empty(len(longest))
    step = max(1, _CELLS // max(int(longest.max(initial=0)), 1))
    for first in range(0, len(values), step):
        queries = slice(first, min(first + step, len(values)))
        values[queries] = np.clip(_rbo(pair, queries, p, ties), 0.0, 1.0)  # the last bits
    return Similarity(pair.query_ids, values, pair.left_out)


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
        place = {query: index for index, query in enumerate(run.query_ids)}
        at = np.array([place.get(query, -1) for query in query_ids], np.int64)
        returned = np.append(np.diff(run.starts), 0)  # the last is for queries without documents
        starts, lengths = run.starts[at], np.minimum(returned[at], depth)
        reach = lengths
        if len(run.tie_start):
            last, size = _tie_of(starts + lengths - 1, run)
            reach = np.where(lengths > 0, np.maximum(last + size - starts, lengths), 0)
        rank = _counting(reach) + 1
        row = np.repeat(starts, reach) + rank - 1
        top, bottom = rank, rank
        if len(run.tie_start):
            start, size = _tie_of(row, run)
            top = rank - (row - start)
            bottom = top + size - 1
        first = np.append(0, np.cumsum(reach))
        query = np.repeat(np.arange(len(reach)), reach)
        return cls(lengths, first, query, row, rank, top, bottom)

    def table(self, queries: slice, depths: int) -> tuple[Ints, Ints]:
        """First and last rank of the tie at each depth; below the end, no depth is tied.

        Each of shape (queries, depths).
        """
        depth = np.arange(1, depths + 1)
        here = slice(self.first[queries.start], self.first[queries.stop])
        top = np.tile(depth, (queries.stop - queries.start, 1))
        bottom = top.copy()
        tied = np.flatnonzero((self.bottom[here] > self.top[here]) & (self.rank[here] <= depths))
        tied += here.start
        cell = self.query[tied] - queries.start, self.rank[tied] - 1
        top[cell], bottom[cell] = self.top[tied], self.bottom[tied]
        return top, bottom


def _tie_of(row: Ints, run: Run) -> tuple[Ints, Ints]:
    """First row and size of the tie of each row; itself and 1 if its score is alone."""
    group = np.maximum(np.searchsorted(run.tie_start, row, side="right") - 1, 0)
    start, size = run.tie_start[group], run.tie_size[group]
    inside = (row >= start) & (row < start + size)
    return np.where(inside, start, row), np.where(inside, size, 1)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two runs and the documents that both have, by query.

    ``query`` is the index of the query of each shared document, ``left_at`` and ``right_at`` are
    its indices in the arrays of each side.
    """

    query_ids: list[str]
    left_out: list[str]
    left: _Side
    right: _Side
    query: Ints
    left_at: Ints
    right_at: Ints

    @classmethod
    def of(cls, left: Run, right: Run, depth: int, given: Collection[str] | None) -> _Pair:
        answered = [
            set(run.answers.filter(pl.col("state") != "failed")["query_id"].to_list())
            for run in (left, right)
        ]
        asked = dict.fromkeys(
            [*left.answers["query_id"].to_list(), *right.answers["query_id"].to_list()]
        )
        wanted = asked.keys() if given is None else set(given)
        both = answered[0] & answered[1]
        query_ids = [query for query in asked if query in both and query in wanted]
        sides = _Side.of(left, query_ids, depth), _Side.of(right, query_ids, depth)
        frames = []
        for run, side in zip((left, right), sides, strict=True):
            key = mixed(run.rows["doc_hash"].gather(side.row), side.query.astype(np.uint32))
            frames.append(pl.DataFrame({"key": key, "at": np.arange(len(key))}))
        # Joining numbers is far faster than joining ids; matches are then verified.
        likely = frames[0].join(frames[1], on="key", maintain_order="left")
        at = likely["at"].to_numpy(), likely["at_right"].to_numpy()
        docs = (
            run.rows["doc_id"].gather(side.row[here])
            for run, side, here in zip((left, right), sides, at, strict=True)
        )
        query = sides[0].query[at[0]]
        same = (next(docs) == next(docs)).to_numpy() & (query == sides[1].query[at[1]])
        return cls(
            query_ids,
            [query for query in asked if query in wanted and query not in both],
            *sides,
            query[same],
            at[0][same],
            at[1][same],
        )


def _rbo(pair: _Pair, queries: slice, p: float, ties: Ties) -> Floats:
    """RBO of some queries; shape (b,)."""
    left, right = pair.left.lengths[queries], pair.right.lengths[queries]
    s, longest = np.minimum(left, right), np.maximum(left, right)
    depths = int(longest.max(initial=1))
    depth, each = np.arange(1, depths + 1), np.arange(len(s))
    shape = (len(s), depths)
    common = slice(*np.searchsorted(pair.query, [queries.start, queries.stop]).tolist())
    query = pair.query[common] - queries.start
    at = (pair.left, pair.left_at[common]), (pair.right, pair.right_at[common])
    top = np.stack([side.top[here] for side, here in at])
    bottom = np.stack([side.bottom[here] for side, here in at])
    tables = [side.table(queries, depths) for side, _ in at]
    (_, left_bottom), (_, right_bottom) = tables

    if ties == "equal":
        shared = _from(query, top.max(axis=0), shape)
        size = (left_bottom + right_bottom) / 2
    else:
        shared = _shared(query, top, bottom, shape)
        size = np.broadcast_to(depth.astype(np.float64), shape)
        if ties == "corrected":
            # Squares of the share of each document: 1 above the tie, less within it.
            squares = [
                first - 1 + (depth - first + 1) ** 2 / (last - first + 1) for first, last in tables
            ]
            size = np.sqrt(squares[0] * squares[1])

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
    ends = dict(zip("qabcd", (query, *top, *bottom), strict=True))
    # Documents with the same ties are counted together, which usually leaves few.
    kinds = pl.DataFrame(ends).filter(partly).group_by(*ends, maintain_order=True).len("count")
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
