"""How alike two runs rank: rank-biased overlap, and how much of the top k they share.

No judgments are needed. Documents of equal score are a tie; a run says nothing of their order.
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

_BLOCK = 1 << 21
"""Pairs of a tied document and a depth held at once."""

_CELLS = 1 << 18
"""Pairs of a query and a depth held at once."""

_LEAST = 2.0**-60
"""Weight below which depths are not looked at: far less than the last bit of a value near 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Similarity:
    """How alike two runs are, query by query.

    Attributes:
        query_ids: Queries that both runs answered, if only with nothing; in the order of the
            first run's answers.
        values: One for each of them, 0 to 1; shape (n,).
        left_out: Queries that were asked of either run (of those given, if any were) and not
            answered by both: they failed in one, or the run does not name them.
    """

    query_ids: list[str]
    values: Floats
    left_out: list[str]

    @property
    def mean(self) -> float | None:
        """Plain mean over the queries; None if there are none."""
        return math.fsum(self.values.tolist()) / len(self.values) if len(self.values) else None


def overlap(
    left: Run, right: Run, k: int, *, query_ids: Collection[str] | None = None
) -> Similarity:
    """Share of the top k that both runs have, whatever its order: overlap@k.

    Documents in common, over k; where neither run returned k, over the longer of the two. Two
    empty answers are alike (1), an empty and another one are not (0). Ties across rank k are
    cut as everywhere in karat, by document id, the same way in both runs.

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

    The mean agreement of the two rankings down to each depth d, weighed by (1 - p) p^(d - 1).
    What stands below the last rank is taken to agree as the part above it did.

    Args:
        left: One run.
        right: The other; the two may be exchanged.
        p: Persistence, between 0 and 1. The first 10 ranks have .86 of the weight at .9.
        ties: How tied documents count. ``expected``: the mean RBO over all orders of the tied
            ones (RBO^a); a ranking with ties is then not wholly like itself, as nobody knows its
            order. ``corrected``: that, less what the ties hide (RBO^b), so that equal rankings
            have 1. ``equal``: tied ones share one rank (RBO^w), as in sports.
        query_ids: Queries that count; all if None.

    Returns:
        1 where the rankings are equal (to rounding) and 0 where they share no document. Two
        empty answers are equal; an empty one and another share none.

    Raises:
        UsageError: ``p`` is not between 0 and 1, or ``ties`` is none of these.

    Source: Webber, Moffat & Zobel 2010, doi:10.1145/1852102.1852106, equation 32 (RBO_EXT);
    Corsi & Urbano 2024, doi:10.1145/3626772.3657700, for ties.
    """
    if not 0 < p < 1:
        raise UsageError(f"p is {p}, not between 0 and 1", fix="p=0.9")
    if ties not in ("corrected", "expected", "equal"):
        raise UsageError(f"ties is {ties!r}", fix="ties='corrected', 'expected' or 'equal'")
    # Agreement is from 0 to 1 at every depth, and so is what is taken to stand below the last. All
    # depths below D weigh p^D together, so another agreement there moves the value by p^D at most.
    # What counts down to D does not depend on what is below, but for ties that D cuts.
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
    """One run at the queries in question, down to a depth; ``m`` documents, query by query.

    Attributes:
        lengths: Documents of each query, those below the depth not counted; shape (n,).
        first: Where the documents of each query start, and m at the end; shape (n + 1,). If a tie
            stands across the depth, its documents below are there too.
        query: Index of the query of each document; shape (m,).
        row: Row of each in the run; shape (m,).
        rank: Rank of each, from 1; shape (m,).
        top: First rank of the tie each belongs to; shape (m,).
        bottom: Last rank of that tie; shape (m,).
    """

    lengths: Ints
    first: Ints
    query: Ints
    row: Ints
    rank: Ints
    top: Ints
    bottom: Ints

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
        """First and last rank of the tie at each depth; below the end each depth stands alone.

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
    """Two runs side by side, and the documents both have, query by query.

    ``query`` is the index of the query of each such document, ``left_at`` and ``right_at`` are its
    place in either side's arrays.
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
        # Numbers are joined far faster than ids; equal hashes are confirmed.
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
            # Squares of what each document counts: whole above the tie, a share within it.
            squares = [
                first - 1 + (depth - first + 1) ** 2 / (last - first + 1) for first, last in tables
            ]
            size = np.sqrt(squares[0] * squares[1])

    # Below the end of the shorter ranking, documents it lacks count as they agreed above.
    end_of_short = each, np.maximum(s - 1, 0)
    agreement = shared[end_of_short] / size[end_of_short]
    seen = shared
    below = depth > s[:, None]
    if (s < longest).any():
        met = np.ones(shape)
        if ties != "equal":
            # Of documents only the longer one has, what each counts at this depth on average.
            left_longer = left > right
            held = _from(query, np.where(left_longer[query], top[0], top[1]), shape)
            last = np.where(left_longer[:, None], left_bottom, right_bottom)
            met = (depth - shared) / np.where(below, last - held, 1.0)
        seen = shared + below * ((depth - s[:, None]) * agreement[:, None] * met)
    last_rank = each, np.maximum(longest - 1, 0)
    end = (shared[last_rank] + (longest - s) * agreement) / size[last_rank]
    # The weights of all depths add up to 1: agreement throughout comes to exactly that.
    parts = (seen / size - end[:, None]) * p ** (depth - 1.0) * (depth <= longest[:, None])
    # A running sum, for what stands below the end of a ranking must not change the last bits.
    values: Floats = end + (1 - p) * np.cumsum(parts, axis=1)[:, -1]
    return np.where(s > 0, values, (longest == 0).astype(np.float64))


def _shared(query: Ints, top: Ints, bottom: Ints, shape: tuple[int, int]) -> Floats:
    """Documents in common down to each depth, on average over the orders of ties.

    A document of a tie is above depth d with probability (d - top + 1) / size, on its own in each
    ranking. Arguments are of the documents in common, of shape (m,) and (2, m). Returns ``shape``.
    """
    start, end = top.max(axis=0), bottom.max(axis=0)
    total = _from(query, end, shape)
    partly = end > start
    if not partly.any():
        return total
    ends = dict(zip("qabcd", (query, *top, *bottom), strict=True))
    # Ties with the same ends count as one, so there is little to go through but in odd cases.
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
    """How many documents count at each depth, each from its rank on; of the shape given."""
    shown = rank <= shape[1]
    here = np.bincount(query[shown] * shape[1] + rank[shown] - 1, minlength=shape[0] * shape[1])
    return np.cumsum(here.reshape(shape), axis=1, dtype=np.float64)
