"""How certain the parameters of the dynamic Bayesian network are: its observed information.

Source: Louis 1982, JRSS B 44: the information of complete data, less the variance of their score
given the clicks. Ranks looked at below the last click are nested, so the covariance of two of them
is P(lower) - P(lower) P(upper). All is in logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.online.clicks.counts import Floats, queries_of
from karat.online.clicks.reading import Reading

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_LARGEST = 1000  # documents of a query whose covariances are kept; with more, each is on its own
_LEAST = 1e-3  # share of the complete information that remains, where clicks leave less


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
    scale = np.sqrt(np.stack(np.split(complete[:-1], 2), axis=1).ravel())
    covariance, border, own = _covariances(reading)
    border /= scale
    variance, moves = np.empty(len(scale)), np.empty(len(scale))
    both = np.empty(len(scale) // 2)
    query = queries_of(reading.layout.pages.pairs)
    starts = np.diff(query, prepend=-1) > 0
    starts |= np.bincount(query)[query] > _LARGEST
    bounds = 2 * np.append(np.flatnonzero(starts), len(query))
    for first, end in pairwise(bounds):
        part = slice(first, end)
        lost = covariance[part, part].toarray() / np.outer(scale[part], scale[part])
        inverse = _inverse(np.eye(end - first) - lost)
        variance[part] = np.diag(inverse)
        both[first // 2 : end // 2] = np.diag(inverse, 1)[::2]
        moves[part] = inverse @ border[part]
    left = float(complete[-1] - own - moves @ border)
    continuation = 1 / max(left, _LEAST * float(complete[-1]))
    variance = (variance + moves**2 * continuation) / scale**2
    both = (both + moves[::2] * moves[1::2] * continuation) / (scale[::2] * scale[1::2])
    return Uncertainty(variance[::2], variance[1::2], both, continuation)


def _inverse(block: Floats) -> Floats:
    """Inverse of a block; where clicks leave next to no information, there is a little."""
    try:
        np.linalg.cholesky(block)
        return np.asarray(np.linalg.inv(block), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(block)
        return np.asarray(vectors / np.maximum(values, _LEAST) @ vectors.T)


def _covariances(reading: Reading) -> tuple[csr_array[Any, Any], Floats, float]:
    """Covariances of scores given the clicks, summed over pages.

    Between attraction (even rows) and satisfaction (odd rows) of pairs; between them and
    continuation, with the sign of information; of continuation.
    """
    from scipy.sparse import csr_array

    layout, weight = reading.layout, reading.layout.pages.count
    satisfied, examined = reading.satisfied, reading.examined
    below = (layout.ranks > layout.last) & layout.shown
    attraction = np.where(below, reading.attraction, 0)
    size = 2 * len(layout.pages.pairs)
    total: Any = csr_array((size, size))
    final = 2 * layout.final + 1
    variance = weight * satisfied * (1 - satisfied)
    total += csr_array((variance, (final, final)), total.shape)
    for upper, docs in enumerate(2 * layout.docs):
        values = weight * attraction[upper] * satisfied * examined[upper]
        rows: list[Any] = [csr_array((values, (docs, final)), total.shape)]
        for lower in range(upper, len(examined)):
            nested = examined[lower] * (1 - examined[upper]) / (2 if lower == upper else 1)
            values = weight * attraction[upper] * attraction[lower] * nested
            rows.append(csr_array((values, (docs, 2 * layout.docs[lower])), total.shape))
        one_side = sum(rows, csr_array(total.shape))
        total += one_side + one_side.T
    # The score of continuation is a sum: `more` of each rank looked at, `spared` if satisfied
    more = np.where(below, 1 - reading.continuation * (layout.ranks < layout.length - 1), 0)
    spared = reading.continuation * (layout.last < layout.length - 1)
    reached = more * examined
    of_last = spared * satisfied * (1 - satisfied) - satisfied * reached.sum(axis=0)
    above = np.cumsum(more * (1 - examined), axis=0)
    of_ranks = examined * (above - spared * satisfied)
    of_ranks += (1 - examined) * (reached.sum(axis=0) - np.cumsum(reached, axis=0))
    own = (more * of_ranks).sum(axis=0) + spared * of_last
    border = [layout.by_pair(attraction * of_ranks), -layout.by_pair(of_last)]
    return total, np.stack(border, axis=1).ravel(), float(weight @ own)
