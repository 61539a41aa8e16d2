"""Judging priorities: the documents whose judgments settle the sign of a difference soonest."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from karat.errors import UsageError
from karat.measures.difference import EXACT, FIRSTS, single_effects
from karat.measures.entry import Measure
from karat.measures.evidence import Floats, Mask
from karat.measures.linear_numerators import Linear, denominator
from karat.measures.run_pair import Pair


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
            "doc_id": pool.doc_id.gather(rows),
            "baseline_rank": pool.baseline[rows],
            "candidate_rank": pool.candidate[rows],
            "effect": effect[order],
        }
    )
    ranks = pl.col("baseline_rank", "candidate_rank")
    return frame.with_columns(pl.when(ranks > 0).then(ranks))
