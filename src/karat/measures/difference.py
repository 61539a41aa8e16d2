"""Difference: the lowest and highest candidate minus baseline over all grades of the unjudged.

An unjudged document has the same grade in both runs: where they rank it alike it changes nothing.
So the separate bounds of the two runs are too wide or, where the denominator varies (nDCG, AP,
recall), too narrow. Here the lowest and the highest difference are over all grades, on the declared
scale, that the unjudged documents in either run's top k could have together; documents in neither
count as not relevant, and 0 / 0 counts as 0.

The difference of two ratios with one ideal is a ratio N / D: N linear in the gains g, with weight
w = (discount at the rank in the candidate) - (the same in the baseline), and D the ideal, the same
whichever document has which gain. The greatest value (the lowest is minus the greatest of -N / D):

- D is one number (P, RBP, DCG): each document gains most if w > 0, least if not.
- D depends on how many unjudged documents are relevant (recall): for each number, those with
  the largest w; then the best of these numbers.
- D is an ideal DCG, convex in g. If N can be above 0, the ratio r sought is above 0, and
  N - r D is greatest with gains that fall as w falls (D depends only on the set of gains): layer by
  layer of gain, as in ``karat.measures.unjudged``, with places in the order of w for ranks.
  If N is never above 0, -N / D is of a linear function, 0 or more, and a convex one above 0, hence
  quasi-concave, and least at a corner: the j documents with the largest w gain most, the others
  least, for some j.
- Reciprocal rank and success are the maximum over their relevant documents. Of a set of unjudged
  documents made relevant, the one ranked highest in the candidate alone has the same effect there,
  and the others could only help the baseline: so one document is enough, or none.

Relevant documents that neither run shows do not change N and can only raise D. So with any of
them, up to ``unseen`` of the best gain, N / D lies between its values with none and with all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.errors import UsageError
from karat.measures.entry import Measure
from karat.measures.evidence import Floats, Ints, Mask
from karat.measures.gains import discount_of
from karat.measures.linear_numerators import LINEAR, RECALLS, Linear, capped, denominator
from karat.measures.parameters import gain_of
from karat.measures.run_pair import Pair, Pool
from karat.measures.unjudged import (
    Bounds,
    LayeredRatio,
    Layers,
    average_precision_bounds,
    can_be,
    layers_of,
    ratio,
    totals,
)

FIRSTS = frozenset({"RR", "Success"})
EXACT = LINEAR | RECALLS | FIRSTS | {"nDCG"}
OUTER = frozenset({"AP", "ERR"})


@dataclass(frozen=True, slots=True)
class DifferenceBounds:
    """The range of a difference, candidate minus baseline, of each query."""

    low: Floats | None  # lowest difference of each judged query; shape (n,); None if not known
    high: Floats | None  # highest; shape (n,); None if not known
    # Whether both ends can be reached; if not, the difference is within the interval, but the
    # interval may be too wide
    exact: bool
    reason: str = ""  # why the bounds are not exact or not known; empty if exact

    def mean(
        self, used: Mask | None = None, weights: Floats | None = None
    ) -> tuple[float, float] | None:
        """Lowest and highest mean difference: as exact as the bounds of the queries.

        A judgment is of one query, so all queries can reach their ends together.

        Args:
            used: Queries that count; shape (n,); all if None.
            weights: Weight of each judged query; shape (n,); equal if None.

        Returns:
            Both ends, or None if they are not known or no query counts.
        """
        if self.low is None or self.high is None:
            return None
        used = np.ones(len(self.low), np.bool_) if used is None else used
        if not used.any():
            return None
        share = None if weights is None else weights[used]
        low, high = (float(np.average(end[used], weights=share)) for end in (self.low, self.high))
        return low, high


def difference_bounds(measure: Measure, pair: Pair) -> DifferenceBounds:
    """Lowest and highest difference over all grades that the unjudged could have.

    Exact for P, SetP, RBP, DCG, nDCG, R, SetR, Rcap, RR and Success, at any depth; an outer
    interval for AP and ERR; not known for others. Sums may be off in their last bits.
    """
    symbol = measure.entry.symbol
    if not measure.entry.ours or symbol not in EXACT | OUTER:
        reason = f"the effect of unjudged documents on a difference in {measure} is not known"
        return DifferenceBounds(None, None, False, reason)
    if symbol in OUTER:
        low, high = _outer(measure, pair)
        reason = "an outer interval: the two runs are bounded separately, not together"
        return DifferenceBounds(low, high, False, reason)
    greatest = greatest_difference(measure, pair)
    return DifferenceBounds(0.0 - greatest(-1.0, 0), greatest(1.0, 0), exact=True)


def greatest_difference(measure: Measure, pair: Pair) -> Callable[[float, int], Floats]:
    """The greatest value of a sign times the difference, with documents that neither run shows.

    Args:
        measure: One of ``EXACT``.
        pair: The two runs.

    Returns:
        A function of the sign (1 or -1) and of the number of unseen documents with the greatest
        gain in each query, to the greatest value over all grades of the unjudged in the pool;
        shape (n,).
    """
    pool = pair.pool(measure)
    if measure.entry.symbol in FIRSTS:
        return lambda sign, _: _first(measure, pair, pool, sign)
    linear = Linear.of(measure, pair, pool)
    if measure.entry.symbol in RECALLS:
        return lambda sign, unseen: _recall(measure, pair, linear, sign, unseen)
    if measure.entry.symbol == "nDCG":
        return lambda sign, unseen: _normalised(measure, pair, linear, sign, unseen)
    return lambda sign, _: linear.greatest(sign)


def _recall(measure: Measure, pair: Pair, linear: Linear, sign: float, unseen: int) -> Floats:
    """Greatest value for recall: the best number of relevant ones, those of largest weight."""
    can, must = can_be(pair.of_baseline, measure.settings["rel"])
    total = pair.of_baseline.num_rel(measure.settings["rel"]) + can * unseen
    highest = np.empty(len(linear.base))
    for queries, present, weight in linear.blocks(sign):
        number, gained = totals(present), totals(weight)
        retrieved = sign * linear.base[queries, None] + gained
        value = ratio(retrieved, capped(measure, total[queries, None] + number))
        # Column c: the first c documents are relevant.
        highest[queries] = value[:, -1] if must else (value if can else value[:, :1]).max(axis=1)
    return highest


def _normalised(measure: Measure, pair: Pair, linear: Linear, sign: float, unseen: int) -> Floats:
    evidence, k = pair.of_baseline, measure.cutoff
    unseen = unseen if k is None else int(min(unseen, k))  # the ideal has no room for more
    judged = np.bincount(evidence.ideal_query, minlength=evidence.n)
    shown = np.bincount(linear.query, minlength=evidence.n)
    deepest = int(max((judged + shown).max(initial=0), 1)) + unseen
    length = deepest if k is None else int(min(k, deepest))
    ideal = gain_of(evidence.ideal_grade, measure.settings["gain"])
    layers: Layers = layers_of(evidence, ideal, linear.ends, length)
    left = np.zeros(deepest + 1)
    left[1 : length + 1] = discount_of(measure.settings["discount"], measure.settings["base"])(
        np.arange(1, length + 1)
    )
    least, most = linear.ends
    highest = np.empty(evidence.n)
    for queries, present, weight in linear.blocks(sign):
        level, step, reach = layers.of(queries)
        problem = LayeredRatio(
            step=step,
            forced=level <= least,
            free=(level > least) & (level <= most),
            reach=reach + unseen * (level <= most),
            table=np.cumsum(left),
            base=sign * linear.base[queries],
        )
        highest[queries] = _greatest(problem, weight, present)
    return highest


def _greatest(problem: LayeredRatio, weight: Floats, present: Mask) -> Floats:
    """The highest value; documents are sorted by falling weight; shape (b,)."""
    number, gained = totals(present).astype(np.int64), totals(weight)
    fixed = problem.fixed(gained[:, -1], number[:, -1:])
    corner: Floats = problem.corners(fixed, gained, number).max(axis=1)
    if problem.one_layer:
        return corner
    sought = problem.greatest_from(np.maximum(corner, 0.0), fixed, gained, number)
    # The largest numerator is at a corner: if it is above 0, so is the value there.
    return np.where(corner > 0, sought, corner)


def single_effects(measure: Measure, pair: Pair, pool: Pool) -> tuple[Ints, Floats, Floats]:
    """Reciprocal rank and success if one unjudged document is relevant, and if none is.

    Returns:
        Rows of the unjudged documents in the pool, shape (m,); candidate and baseline with each
        of them relevant, shape (2, m); and with none, shape (2, n).
    """
    place = np.flatnonzero(pool.unjudged)
    both = (pool.candidate, pair.of_candidate), (pool.baseline, pair.of_baseline)
    single, none = [], []
    for rank, evidence in both:
        known = measure(evidence)
        worth = np.where(rank > 0, 1.0 / np.maximum(rank, 1), 0.0)
        if measure.entry.symbol == "Success":
            worth = (rank > 0).astype(np.float64)
        none.append(known)
        single.append(np.maximum(known[pool.query], worth)[place])
    return place, np.array(single), np.array(none)


def _first(measure: Measure, pair: Pair, pool: Pool, sign: float) -> Floats:
    """Greatest value for RR and success: one unjudged document is relevant, or none."""
    can, must = can_be(pair.of_baseline, measure.settings["rel"])
    place, single, none = single_effects(measure, pair, pool)
    query = pool.query[place]
    if must:
        for run in (0, 1):
            np.maximum.at(none[run], query, single[run])
    highest: Floats = sign * (none[0] - none[1])
    if can and not must:
        np.maximum.at(highest, query, sign * (single[0] - single[1]))
    return highest


def _outer(measure: Measure, pair: Pair) -> Bounds:
    """Bounds from those of each run, with the documents that only the other run shows.

    Such a document, if relevant, lowers average precision as a missed one; ERR ignores it.
    """
    both = pair.of_candidate, pair.of_baseline
    if measure.entry.symbol == "AP":
        rel = measure.settings["rel"]
        ends = [
            average_precision_bounds(evidence, measure.cutoff, rel, missed)
            for evidence, missed in zip(both, pair.missed(measure), strict=True)
        ]
    else:
        ends = [bounds for evidence in both if (bounds := measure.bounds(evidence)) is not None]
    (low, high), (other_low, other_high) = ends
    return low - other_high, high - other_low


def next_judgments(
    measure: Measure,
    pair: Pair,
    n: int | None = None,
    *,
    used: Mask | None = None,
    weights: Floats | None = None,
) -> pl.DataFrame:
    """Unjudged documents whose grades move the mean difference most.

    The idea of minimal test collections: where a difference is a weighted sum of gains, judging
    the document with the largest weight narrows the interval of the difference most. For nDCG and
    recall the weight is divided by the ideal as judged so far. Documents that both runs rank alike
    are left out.

    Args:
        measure: One whose difference is bounded exactly.
        pair: The two runs.
        n: Maximum number of documents; None for all.
        used: Queries that count; shape (queries,); all if None.
        weights: Weight of each judged query, 0 or more; shape (queries,); equal if None.

    Returns:
        ``query_id``, ``doc_id``, ``baseline_rank`` and ``candidate_rank`` (null if not in that top
        k) and ``effect``: what the best grade instead of the worst adds to the mean difference;
        sorted by its size, descending.

    Raises:
        UsageError: the measure's difference is not bounded exactly.

    Source: Carterette, Allan & Sitaraman 2006, doi:10.1145/1148170.1148219.
    """
    if measure.entry.symbol not in EXACT or not measure.entry.ours:
        raise UsageError(
            f"the effect of one judgment on a difference in {measure} is not known",
            fix="nDCG@10, RBP(p=0.8) or P@10 instead",
        )
    evidence = pair.of_baseline
    used = np.ones(evidence.n, np.bool_) if used is None else used
    share = np.where(used, 1.0 if weights is None else weights, 0.0)
    share = share / max(math.fsum(share.tolist()), np.finfo(np.float64).tiny)
    pool = pair.pool(measure)
    if measure.entry.symbol in FIRSTS:
        place, single, none = single_effects(measure, pair, pool)
        low, high = evidence.scale
        decides = low < measure.settings["rel"] <= high
        query = pool.query[place]
        effect = decides * (single[0] - single[1] - (none[0] - none[1])[query])
    else:
        linear = Linear.of(measure, pair, pool)
        place, query = linear.place, linear.query
        divisor = denominator(measure, evidence)[query]
        span = linear.ends[1] - linear.ends[0]
        # Without a known gain there is no ideal, and the query does not count.
        effect = np.where(
            divisor > 0, linear.weight * span / np.where(divisor > 0, divisor, 1.0), 0.0
        )
    effect = effect * share[query]
    # Weights that differ in the last bits only keep the order of queries and ranks.
    order = np.argsort(-np.abs(effect).round(15), kind="stable")
    order = order[effect[order] != 0][:n]
    rows = place[order]
    frame = pl.DataFrame(
        {
            "query_id": pl.Series(pair.query_ids, dtype=pl.String).gather(query[order]),
            "doc_id": pool.doc_id(rows),
            "baseline_rank": pool.baseline[rows],
            "candidate_rank": pool.candidate[rows],
            "effect": effect[order],
        }
    )
    ranks = pl.col("baseline_rank", "candidate_rank")
    return frame.with_columns(pl.when(ranks > 0).then(ranks))
