"""How certain the parameters of the dynamic Bayesian network are: its observed information.

Source: Louis 1982, JRSS B 44: the information of complete data, less the variance of their score
given the clicks. Ranks looked at below the last click are nested, so the covariance of two of them
is P(lower) - P(lower) P(upper). All is in logits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from karat.online.clicks.counts import Floats, Integers, queries_of
from karat.online.clicks.reading import Reading

_LARGEST = 1000  # documents of a query whose covariances are kept; with more, each is on its own
_AT_ONCE = 4_000_000  # elements of blocks that are filled together
_LEAST = 1e-3  # share of the complete information, where clicks leave less


@dataclass(frozen=True)
class Uncertainty:
    """Variances of logits."""

    attraction: Floats  # by row of `pairs`
    satisfaction: Floats
    both: Floats  # covariance of the two of a pair
    continuation: float


def uncertainty(reading: Reading, values: Floats, trials: Floats) -> Uncertainty:
    """Variances at the optimum.

    Pairs of a query form a block; continuation is joined to all blocks, and eliminated last.

    Args:
        reading: The pages under the parameters.
        values: The parameters: attraction and satisfaction of pairs, continuation.
        trials: Expected trials of each parameter.
    """
    complete = values * (1 - values) * (trials + 2)
    pairs = len(values) // 2
    scale = np.sqrt(complete[:-1]).reshape(2, pairs)
    border, own = _with_continuation(reading)
    border /= scale
    variance, moves, both = np.empty((2, pairs)), np.empty((2, pairs)), np.empty(pairs)
    for rows, block in _Blocks.of(reading).filled(reading, scale):
        inverse = _inverse(block)
        count, size = rows.shape
        joined = border[:, rows].transpose(1, 0, 2).reshape(count, -1, 1)
        moves[:, rows] = (inverse @ joined).reshape(count, 2, size).transpose(1, 0, 2)
        first = np.arange(size)
        variance[0, rows] = inverse[:, first, first]
        variance[1, rows] = inverse[:, first + size, first + size]
        both[rows] = inverse[:, first, first + size]
    left = float(complete[-1] - own - (moves * border).sum())
    continuation = 1 / max(left, _LEAST * float(complete[-1]))
    variance = (variance + moves**2 * continuation) / scale**2
    both = (both + moves[0] * moves[1] * continuation) / (scale[0] * scale[1])
    return Uncertainty(variance[0], variance[1], both, continuation)


def _with_continuation(reading: Reading) -> tuple[Floats, float]:
    """Negative covariances of scores of pairs with that of continuation, and its variance."""
    layout, satisfied, examined = reading.layout, reading.satisfied, reading.examined
    # The score of continuation is a sum: `more` of each rank looked at, `spared` if satisfied
    more = 1 - reading.continuation * (layout.ranks < layout.length - 1)
    spared = reading.continuation * (layout.last < layout.length - 1)
    weighted = np.where(layout.ranks > layout.last, more * examined, 0)
    above = np.cumsum(more * (1 - examined), axis=0)
    below = weighted.sum(axis=0) - np.cumsum(weighted, axis=0)
    of_ranks = examined * above + (1 - examined) * below - spared * satisfied * examined
    of_ranks = np.where((layout.ranks > layout.last) & layout.shown, of_ranks, 0)
    of_last = spared * satisfied * (1 - satisfied) - satisfied * weighted.sum(axis=0)
    own = (more * of_ranks).sum(axis=0) + spared * of_last
    border = np.stack([layout.by_pair(reading.attraction * of_ranks), -layout.by_pair(of_last)])
    return border, float((own * layout.pages.count).sum())


def _inverse(blocks: Floats) -> Floats:
    """Inverses of blocks; where clicks leave next to no information, there is a little."""
    try:
        np.linalg.cholesky(blocks)
        return np.asarray(np.linalg.inv(blocks), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(blocks)
        scaled = vectors / np.maximum(values, _LEAST)[:, None, :]
        return np.asarray(scaled @ vectors.transpose(0, 2, 1))


@dataclass(frozen=True)
class _Blocks:
    """Pairs in blocks: those of a query, or each pair of a large query."""

    block: Integers  # of each pair
    position: Integers  # of each pair in its block
    first: Integers  # pair of each block
    sizes: Integers  # pairs of each block
    chunk: Integers  # of each query: those whose blocks are filled together
    offset: Integers  # of each block among the elements of all

    @classmethod
    def of(cls, reading: Reading) -> _Blocks:
        query = queries_of(reading.layout.pages.pairs)
        alone = np.bincount(query)[query] > _LARGEST
        starts = alone | (np.diff(query, prepend=-1) > 0)
        first = np.flatnonzero(starts)
        sizes = np.diff(first, append=len(query))
        block = np.cumsum(starts) - 1
        offset = np.concatenate([[0], np.cumsum((2 * sizes) ** 2)])
        chunk = offset[block[np.unique(query, return_index=True)[1]]] // _AT_ONCE
        return cls(block, np.arange(len(query)) - first[block], first, sizes, chunk, offset)

    def filled(self, reading: Reading, scale: Floats) -> Iterator[tuple[Integers, Floats]]:
        """Blocks of one size at a time: their pairs, and their share of the complete information.

        A block has attraction of its pairs, then satisfaction; `scale` is the square root of the
        complete information. Shapes are (blocks, size) and (blocks, 2 size, 2 size).
        """
        query = queries_of(reading.layout.pages.pairs)
        chunk_of_page = self.chunk[query[reading.layout.docs[0]]]
        chunk_of_block = self.chunk[query[self.first]]
        order = np.argsort(chunk_of_page, kind="stable")
        for chunk in np.unique(self.chunk):
            blocks = np.flatnonzero(chunk_of_block == chunk)
            base = self.offset[blocks[0]]
            lost = np.zeros(self.offset[blocks[-1] + 1] - base)
            ends = np.searchsorted(chunk_of_page[order], [chunk, chunk + 1])
            self._lose(reading, order[slice(*ends)], scale, lost, base)
            for size in np.unique(self.sizes[blocks]):
                alike = blocks[self.sizes[blocks] == size]
                elements = (self.offset[alike] - base)[:, None] + np.arange(4 * size**2)
                covariance = lost[elements].reshape(-1, 2 * size, 2 * size)
                rows = self.first[alike][:, None] + np.arange(size)
                yield rows, np.eye(2 * size) - covariance

    def _lose(
        self, reading: Reading, pages: Integers, scale: Floats, lost: Floats, base: int
    ) -> None:
        """Add the covariances of scores, given the clicks, of some pages."""
        layout, weight = reading.layout, reading.layout.pages.count[pages]
        docs, examined = layout.docs[:, pages], reading.examined[:, pages]
        attraction, satisfied = reading.attraction[:, pages], reading.satisfied[pages]
        last, final = layout.last[pages], layout.final[pages]

        def add(
            parts: tuple[int, int],
            row: Integers,
            column: Integers,
            values: Floats,
            twice: bool = True,
        ) -> None:
            block, values = (
                self.block[row],
                values / (scale[parts[0], row] * scale[parts[1], column]),
            )
            size, keep = self.sizes[block], (block == self.block[column]) & (values != 0)
            across = parts[0] * size + self.position[row]
            down = parts[1] * size + self.position[column]
            start = self.offset[block] - base
            np.add.at(lost, (start + across * 2 * size + down)[keep], values[keep])
            if twice:
                np.add.at(lost, (start + down * 2 * size + across)[keep], values[keep])

        add((1, 1), final, final, weight * satisfied * (1 - satisfied), twice=False)
        for upper in range(len(docs)):
            below = np.where(upper > last, weight * attraction[upper], 0)
            add((0, 1), docs[upper], final, below * satisfied * examined[upper])
            for lower in range(upper, len(docs)):
                nested = examined[lower] * (1 - examined[upper])
                both = below * attraction[lower] * nested
                add((0, 0), docs[upper], docs[lower], both, twice=lower > upper)
