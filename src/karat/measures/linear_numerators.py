"""Numerators: a difference between two runs as a weighted sum of gains of documents.

For measures that add up gains by rank (P, RBP, DCG), and for those that then divide by a number
that is the same for both runs (nDCG, recall).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from karat.measures.entry import Measure
from karat.measures.evidence import Evidence, Floats, Ints, Mask, sums
from karat.measures.gains import discount_of, ideal_dcg, possible_gains
from karat.measures.parameters import gain_of
from karat.measures.run_pair import Pair, Pool
from karat.measures.unjudged import can_be

_CELLS = 1 << 17  # queries times documents in a block that fits the cache

LINEAR = frozenset({"P", "SetP", "RBP", "DCG"})
RECALLS = frozenset({"R", "SetR", "Rcap"})


@dataclass(frozen=True)
class Linear:
    """The numerator of a difference: a known part, and a weighted sum of the gains of unjudged."""

    base: Floats  # the part of the judged documents; shape (n,)
    query: Ints  # index of the query of each of `m` unjudged documents, ascending; shape (m,)
    weight: Floats  # what each adds for a gain of 1; shape (m,)
    place: Ints  # row of each in the pool; shape (m,)
    # Gains that an unjudged document can have, including the least and the greatest; ascending
    gains: Floats

    @classmethod
    def of(cls, measure: Measure, pair: Pair, pool: Pool) -> Linear:
        """The numerator of a measure of ``LINEAR``, ``RECALLS`` or nDCG."""
        gain, gains = _gains(measure, pair.of_baseline)
        weight = _left(measure, pool.candidate, pool.query, pair.of_candidate) - _left(
            measure, pool.baseline, pool.query, pair.of_baseline
        )
        place, known = np.flatnonzero(pool.unjudged), np.flatnonzero(~pool.unjudged)
        gained = gain(pool.grade[known]) * weight[known]
        return cls(
            base=sums(pool.query[known], gained, None, pool.n),
            query=pool.query[place],
            weight=weight[place],
            place=place,
            gains=gains,
        )

    @property
    def ends(self) -> tuple[float, float]:
        """Least and greatest gain of an unjudged document."""
        return float(self.gains[0]), float(self.gains[-1])

    def greatest(self, sign: float) -> Floats:
        """The greatest value of sign times the numerator; shape (n,)."""
        weight = sign * self.weight
        least, most = self.ends
        gained = weight * np.where(weight > 0, most, least)
        return sign * self.base + sums(self.query, gained, None, len(self.base))

    def blocks(self, sign: float) -> Iterator[tuple[slice, Mask, Floats]]:
        """The documents of each block of queries in falling order of sign times weight.

        Yields:
            The queries; whether each column has a document, shape (b, c); and the weights, 0
            where it has none; shape (b, c).
        """
        weight = sign * self.weight
        order = np.lexsort((-weight, self.query))
        n = len(self.base)
        start = np.searchsorted(self.query, np.arange(n + 1))
        count = np.diff(start)
        step = max(1, _CELLS // max(int(count.max(initial=0)), 1))
        for first in range(0, n, step):
            queries = slice(first, min(first + step, n))
            column = np.arange(int(count[queries].max(initial=0)))
            held = column < count[queries, None]
            weights = np.zeros(held.shape)
            weights[held] = weight[order[start[first] : start[queries.stop]]]
            yield queries, held, weights


def gain_by_grade(measure: Measure) -> Callable[[Floats], Floats]:
    """The gain of grades in a measure of ``LINEAR``, ``RECALLS`` or nDCG."""
    settings = measure.settings
    if "gain" in settings:
        return lambda grade: gain_of(grade, settings["gain"])
    top = settings.get("max")
    if top is not None:
        return lambda grade: np.clip(grade, 0.0, top) / top
    return lambda grade: (grade >= settings["rel"]).astype(np.float64)


def weight_by_rank(measure: Measure, rank: Ints) -> Floats:
    """What a gain of 1 adds at each rank in P, RBP and DCG; 0 at rank 0 and below the cutoff."""
    weight = _left(measure, rank, np.zeros(0, np.int64), None)
    return weight if measure.cutoff is None else np.where(rank <= measure.cutoff, weight, 0.0)


def _gains(measure: Measure, evidence: Evidence) -> tuple[Callable[[Floats], Floats], Floats]:
    """The gain as a function of the grade, and the gains that an unjudged document can have."""
    settings = measure.settings
    if "gain" in settings:
        possible = possible_gains(evidence, settings["gain"])
    elif (top := settings.get("max")) is not None:
        possible = np.unique(np.clip(np.array(evidence.scale), 0.0, top) / top)
    else:
        can, must = can_be(evidence, settings["rel"])
        possible = np.unique([float(must), float(can)])
    return gain_by_grade(measure), possible


def _left(measure: Measure, rank: Ints, query: Ints, evidence: Evidence | None) -> Floats:
    """The discount of each rank, before the ideal; 0 at rank 0; shape as ``rank``."""
    symbol, settings = measure.entry.symbol, measure.settings
    shown = rank > 0
    if symbol == "RBP":
        weight = (1.0 - settings["p"]) * np.power(settings["p"], rank - 1.0)
        return np.where(shown, weight, 0.0)
    if "discount" in settings:
        left = np.zeros(len(rank))
        left[shown] = discount_of(settings["discount"], settings["base"])(rank[shown])
        return left
    if symbol == "P":
        assert measure.cutoff is not None
        return shown / measure.cutoff
    if symbol == "SetP" and evidence is not None:
        return shown / np.maximum(evidence.returned[query], 1)
    return shown.astype(np.float64)


def denominator(measure: Measure, evidence: Evidence) -> Floats:
    """The divisor of a numerator as judged so far, 1 if there is none; shape (n,)."""
    symbol, settings = measure.entry.symbol, measure.settings
    if symbol == "nDCG":
        return ideal_dcg(evidence, k=measure.cutoff, **settings)
    if symbol in RECALLS:
        return capped(measure, evidence.num_rel(settings["rel"]))
    return np.ones(evidence.n)


def capped(measure: Measure, relevant: Floats) -> Floats:
    """The divisor of recall for a number of relevant documents; shape as ``relevant``."""
    if measure.entry.symbol != "Rcap":
        return relevant
    assert measure.cutoff is not None
    return np.minimum(relevant, measure.cutoff)
