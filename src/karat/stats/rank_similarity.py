"""How alike two runs rank: rank-biased overlap, and how much of the top k they share.

No judgments are needed. Documents of equal score are a tie; a run says nothing of their order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import UsageError
from karat.stats.averages import Floats
from karat.tables import Run

Ints = NDArray[np.int64]
Ties = Literal["corrected", "expected", "equal"]

_BLOCK = 1 << 21
"""Pairs of a tied document and a depth held at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Similarity:
    """How alike two runs are, query by query.

    Attributes:
        query_ids: Queries that both runs answered, if only with nothing; in the order of the
            first run's answers.
        values: One for each of them, 0 to 1; shape (n,).
        left_out: Queries that were asked of either run and not answered by both: they failed in
            one, or the run does not name them.
    """

    query_ids: list[str]
    values: Floats
    left_out: list[str]

    @property
    def mean(self) -> float | None:
        """Plain mean over the queries; None if there are none."""
        return math.fsum(self.values.tolist()) / len(self.values) if len(self.values) else None


def overlap(left: Run, right: Run, k: int) -> Similarity:
    """Share of the top k that both runs have, whatever its order: overlap@k.

    Documents in common, over k; where neither run returned k, over the longer of the two. Two
    empty answers are alike (1), an empty and another one are not (0). Ties across rank k are
    cut as everywhere in karat, by document id, the same way in both runs.

    Args:
        left: One run.
        right: The other; the two may be exchanged.
        k: Depth, at least 1.

    Raises:
        UsageError: ``k`` is less than 1.
    """
    if k < 1:
        raise UsageError(f"k is {k}, not a depth of 1 or more", fix="k=10")
    pair = _Pair.of(left, right, k)
    shared = np.bincount(pair.query, minlength=len(pair.query_ids))
    longer = np.maximum(pair.left.lengths, pair.right.lengths)
    values = np.where(longer > 0, shared / np.maximum(longer, 1), 1.0)
    return Similarity(pair.query_ids, values, pair.left_out)


def churn(left: Run, right: Run, k: int) -> Similarity:
    """Share of the top k that changed from one run to the other: 1 less ``overlap``.

    Arguments and errors as for ``overlap``.
    """
    alike = overlap(left, right, k)
    return Similarity(alike.query_ids, 1 - alike.values, alike.left_out)


def rank_biased_overlap(
    left: Run, right: Run, p: float = 0.9, ties: Ties = "corrected"
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
    pair = _Pair.of(left, right)
    values = np.empty(len(pair.query_ids))
    common = np.searchsorted(pair.query, np.arange(len(values) + 1))
    for index in range(len(values)):
        values[index] = _rbo(pair, index, slice(common[index], common[index + 1]), p, ties)
    return Similarity(pair.query_ids, values, pair.left_out)


@dataclass(frozen=True, slots=True)
class _Side:
    """One run, at the queries in question.

    ``top`` and ``bottom`` are the first and last rank, from 1, of the tie each row belongs to.
    """

    starts: Ints
    lengths: Ints
    top: Ints
    bottom: Ints

    @classmethod
    def of(cls, run: Run, query_ids: list[str], depth: int | None) -> _Side:
        place = {query: index for index, query in enumerate(run.query_ids)}
        at = np.array([place.get(query, -1) for query in query_ids], np.int64)
        returned = np.append(np.diff(run.starts), 0)  # the last is for queries without documents
        lengths = returned[at]
        lengths = lengths if depth is None else np.minimum(lengths, depth)
        rank = _counting(np.diff(run.starts)) + 1
        top, bottom = rank.copy(), rank.copy()
        rows = np.repeat(run.tie_start, run.tie_size) + _counting(run.tie_size)
        top[rows] = np.repeat(rank[run.tie_start], run.tie_size)
        bottom[rows] = np.repeat(rank[run.tie_start] + run.tie_size - 1, run.tie_size)
        return cls(run.starts[at], lengths, top, bottom)

    def rows(self) -> tuple[Ints, Ints]:
        """Query (by index) and row of every document that counts, query by query."""
        query = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return query, np.repeat(self.starts, self.lengths) + _counting(self.lengths)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two runs side by side; ``query`` and the rows are of the documents both have."""

    query_ids: list[str]
    left_out: list[str]
    left: _Side
    right: _Side
    query: Ints
    left_row: Ints
    right_row: Ints

    @classmethod
    def of(cls, left: Run, right: Run, depth: int | None = None) -> _Pair:
        answered = [
            set(run.answers.filter(pl.col("state") != "failed")["query_id"].to_list())
            for run in (left, right)
        ]
        asked = dict.fromkeys(
            [*left.answers["query_id"].to_list(), *right.answers["query_id"].to_list()]
        )
        both = answered[0] & answered[1]
        query_ids = [query for query in asked if query in both]
        sides = _Side.of(left, query_ids, depth), _Side.of(right, query_ids, depth)
        frames = []
        for run, side in zip((left, right), sides, strict=True):
            query, row = side.rows()
            frames.append(
                pl.DataFrame({"query": query, "row": row}).with_columns(
                    run.rows["doc_id"].gather(row)
                )
            )
        common = frames[0].join(frames[1], on=["query", "doc_id"], maintain_order="left")
        return cls(
            query_ids,
            [query for query in asked if query not in both],
            *sides,
            common["query"].to_numpy(),
            common["row"].to_numpy(),
            common["row_right"].to_numpy(),
        )


def _rbo(pair: _Pair, index: int, common: slice, p: float, ties: Ties) -> float:
    """RBO of one query; ``common`` are the documents that both rankings have."""
    sides = [(pair.left, pair.left_row[common]), (pair.right, pair.right_row[common])]
    sides.sort(key=lambda side: int(side[0].lengths[index]))
    (short, short_row), (long, long_row) = sides
    s, longest = int(short.lengths[index]), int(long.lengths[index])
    if s == 0 or len(short_row) == 0:
        return 1.0 if longest == 0 else 0.0
    first = short.starts[index], long.starts[index]
    top = np.stack([short.top[short_row], long.top[long_row]])
    bottom = np.stack([short.bottom[short_row], long.bottom[long_row]])
    # Rank by rank, the tie it stands in; below its end the shorter one has no ties.
    depth = np.arange(1, longest + 1)
    top_at, bottom_at = np.stack([depth, depth]), np.stack([depth, depth])
    for side, (table, start, length) in enumerate(
        ((short, first[0], s), (long, first[1], longest))
    ):
        top_at[side, :length] = table.top[start : start + length]
        bottom_at[side, :length] = table.bottom[start : start + length]

    if ties == "equal":
        shared = _from(top.max(axis=0), longest)
        size = bottom_at.mean(axis=0)
    else:
        shared = _shared(top, bottom, longest)
        size = depth.astype(np.float64)
        if ties == "corrected":
            # Squares of what each document counts: whole above the tie, a share within it.
            squares = top_at - 1 + (depth - top_at + 1) ** 2 / (bottom_at - top_at + 1)
            size = np.sqrt(squares[0] * squares[1])

    # Below the end of the shorter ranking, documents it lacks count as they agreed above.
    agreement = shared[s - 1] / size[s - 1]
    seen = shared.copy()
    if s < longest:
        below = slice(s, longest)
        met = np.ones(longest - s)
        if ties != "equal":
            # Of documents only the longer one has, what each counts at this depth on average.
            met = (depth - shared)[below] / (bottom_at[1] - _from(top[1], longest))[below]
        seen[below] += (depth[below] - s) * agreement * met
    end = (shared[-1] + (longest - s) * agreement) / longest
    # The weights of all depths add up to 1: agreement throughout comes to exactly that.
    return float(end + (1 - p) * ((seen / size - end) @ p ** (depth - 1.0)))


def _shared(top: Ints, bottom: Ints, longest: int) -> Floats:
    """Documents in common down to each depth, on average over the orders of ties.

    A document of a tie is above depth d with probability (d - top + 1) / size, on its own in each
    ranking. Arguments are of the documents in common, of shape (2, m). Shape (longest,).
    """
    if (top == bottom).all():
        return _from(top.max(axis=0), longest)
    kind, count = np.unique(np.concatenate([top, bottom]), axis=1, return_counts=True)
    top, bottom = kind[:2], kind[2:]
    start, end = top.max(axis=0), bottom.max(axis=0)
    total = _from(end, longest, count)
    partial = end - start
    # Ties with the same ends count as one, so there is little to go through but in odd cases.
    cuts = np.searchsorted(np.cumsum(partial), np.arange(_BLOCK, partial.sum() + _BLOCK, _BLOCK))
    begin = 0
    for stop in [*np.unique(cuts).tolist(), len(partial)]:
        part = slice(begin, stop)
        which = np.repeat(np.arange(len(partial))[part], partial[part])
        depth = start[which] + _counting(partial[part])
        size = (bottom - top + 1)[:, which]
        share = np.minimum((depth - top[:, which] + 1) / size, 1.0).prod(axis=0)
        total += np.bincount(depth - 1, share * count[which], minlength=longest)
        begin = stop
    return total


def _counting(lengths: Ints) -> Ints:
    """0, 1, 2 … for each length, one after the other; shape (sum of lengths,)."""
    counting: Ints = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return counting


def _from(rank: Ints, longest: int, count: Ints | None = None) -> Floats:
    """How many documents count at each depth, each from its rank on; shape (longest,)."""
    here = np.bincount(rank, count, minlength=longest + 1)[1:]
    return np.cumsum(here, dtype=np.float64)
