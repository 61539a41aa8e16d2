"""Measures of the ranks of relevant documents: RR, AP, R-precision, precision at recall."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from karat.measures.entry import NEVER, Equal, Example, Parameter, Terms
from karat.measures.evidence import Evidence, Floats, Ints
from karat.measures.parameters import REL
from karat.measures.registry import measure
from karat.measures.ties import expected_average_precision, expected_cascade, expected_within
from karat.measures.unjudged import average_precision_bounds, first_bounds

_NO_REL = "no relevant document"
_LEVELS = tuple(level / 10 for level in range(11))


def _expected_reciprocal(evidence: Evidence, *, k: float | None, rel: float) -> Floats:
    relevant = evidence.relevant(rel).astype(np.float64)
    return expected_cascade(evidence, relevant, lambda rank: 1.0 / rank, k)


def _expected_ap(evidence: Evidence, *, rel: float, k: float | None = None) -> Floats:
    norm = average_precision(evidence, k=k, rel=rel).norm
    return expected_average_precision(evidence, evidence.relevant(rel), k) / norm


def _expected_r_precision(evidence: Evidence, *, rel: float) -> Floats:
    norm = r_precision(evidence, rel=rel).norm
    total = evidence.num_rel(rel)
    return expected_within(evidence, evidence.relevant(rel), total) / norm


def _expected_r_multiple(evidence: Evidence, *, k: float, rel: float) -> Floats:
    norm = r_precision_multiple(evidence, k=k, rel=rel).norm
    return expected_within(evidence, evidence.relevant(rel), np.nan_to_num(norm)) / norm


@measure(
    symbol="RR",
    title="reciprocal rank",
    formula="1 / rank of the first relevant document; 0 if it is not in the top k",
    says="how far down the first useful result is; its mean is MRR",
    source="Kantor & Voorhees 2000, TREC-5 confusion track",
    low=0,
    high=1,
    undefined=NEVER,
    cutoff="optional",
    parameters=(REL,),
    equals=(
        Equal("trec_eval 9.0.8 and 10.0", "recip_rank", "no cutoff"),
        Equal("ir_measures 0.4.3", "RR", "with a cutoff it breaks ties in the opposite order"),
        Equal("ranx 0.3.21", "mrr@K"),
    ),
    example=Example("RR@10", (0, 0, 1, 0, 1), (), 0.3333, "the first relevant is third: 1/3"),
    aliases=("MRR",),
    trec="recip_rank",
    monotone_in_swaps=True,
    expected=_expected_reciprocal,
    bounds=first_bounds,
)
def reciprocal_rank(evidence: Evidence, *, k: float | None, rel: float) -> Terms:
    """One over the rank of the first relevant document."""
    relevant = evidence.relevant(rel)
    first = relevant & (evidence.so_far(relevant) == 1) & (evidence.rank <= (k or np.inf))
    return Terms.counting(first, np.ones(evidence.n), 1.0 / evidence.rank)


@measure(
    symbol="AP",
    title="average precision",
    formula="sum over relevant documents of precision at their rank / all relevant",
    says="one number for a whole ranking: precision at each relevant document, 0 for those not "
    "found (or below k); its mean is MAP",
    source="Harman 1992, TREC-1; Buckley & Voorhees 2000",
    low=0,
    high=1,
    undefined=_NO_REL,
    cutoff="optional",
    parameters=(REL,),
    equals=(
        Equal("trec_eval 9.0.8 and 10.0", "map, map_cut_K", "divided by all relevant at K too"),
        Equal("ir_measures 0.4.3", "AP, AP@K"),
        Equal("ranx 0.3.21", "map@K"),
    ),
    example=Example("AP", (1, 0, 1, 0, 1), (), 0.7556, "(1/1 + 2/3 + 3/5) / 3"),
    aliases=("MAP",),
    trec="map",
    trec_at="map_cut_{k}",
    trec_cutoffs=(5, 10, 15, 20, 30, 100, 200, 500, 1000),
    monotone_in_swaps=True,
    expected=_expected_ap,
    bounds=average_precision_bounds,
)
def average_precision(evidence: Evidence, *, k: float | None, rel: float) -> Terms:
    """Precision at each relevant document, averaged over all relevant documents."""
    relevant = evidence.relevant(rel)
    at = evidence.so_far(relevant) / evidence.rank
    counted = relevant & (evidence.rank <= (k or np.inf))
    return Terms.counting(counted, evidence.num_rel(rel), at)


@measure(
    symbol="GMAP",
    title="geometric mean average precision",
    formula="exp of the mean of ln max(AP, 0.00001) over queries",
    says="MAP with emphasis on the worst queries: doubling a bad one counts as much as "
    "doubling a good one",
    source="Robertson 2006, doi:10.1145/1183614.1183630",
    low=0,
    high=1,
    undefined=_NO_REL,
    parameters=(REL,),
    aggregate="geometric",
    equals=(Equal("trec_eval 9.0.8 and 10.0", "gm_map"),),
    example=Example("GMAP", (1, 0, 1, 0, 1), (), 0.7556, "of one query: its AP"),
    trec="gm_map",
    summary_only=True,
    monotone_in_swaps=True,
    bounds=partial(average_precision_bounds, k=None),
)
def geometric_average_precision(evidence: Evidence, *, rel: float) -> Terms:
    """AP; the geometric mean is taken over queries."""
    return average_precision(evidence, k=None, rel=rel)


@measure(
    symbol="Rprec",
    title="R-precision",
    formula="relevant in the top R / R, R = all relevant",
    says="precision at the depth where a perfect ranking has only relevant documents",
    source="Buckley, TREC-1; Buckley & Voorhees 2005",
    low=0,
    high=1,
    undefined=_NO_REL,
    parameters=(REL,),
    equals=(Equal("trec_eval 9.0.8 and 10.0", "Rprec"), Equal("ir_measures 0.4.3", "Rprec")),
    example=Example("Rprec", (1, 0, 1, 0, 1), (), 0.6667, "R = 3: 2 of the first three"),
    aliases=("RPrecision",),
    trec="Rprec",
    monotone_in_swaps=True,
    expected=_expected_r_precision,
)
def r_precision(evidence: Evidence, *, rel: float) -> Terms:
    """Precision at the number of relevant documents."""
    total = evidence.num_rel(rel)
    counted = evidence.relevant(rel) & (evidence.rank <= total[evidence.query])
    return Terms.counting(counted, total)


# How many relevant documents reach a recall level, from level x R.
_NEEDED: dict[str, Callable[[Floats], Floats]] = {
    "up": lambda product: np.ceil(product - 1e-9),
    "nearest": lambda product: np.floor(product + 0.5),
    "trec9": lambda product: np.floor(product + 0.9),
}


def _read_rounding(text: str) -> str:
    if text.casefold() not in _NEEDED:
        raise ValueError("up, nearest or trec9")
    return text.casefold()


_ROUNDING = Parameter(
    "rounding",
    "up: the first rank at which recall reaches the level; nearest: level x R rounded, as "
    "in trec_eval 10, which can stop short of it; trec9: floor(level x R + 0.9), as in "
    "trec_eval 9, which misses it where the product is not exact (0.7 x 3)",
    _read_rounding,
    default="up",
)


@measure(
    symbol="IPrec",
    title="interpolated precision at recall",
    formula="max of precision at any rank where recall is at least the level",
    says="the best precision possible once that share of the relevant documents is found",
    source="Salton; Manning, Raghavan & Schütze 2008, ch. 8.4",
    low=0,
    high=1,
    undefined=_NO_REL,
    cutoff="recall",
    parameters=(REL, _ROUNDING),
    equals=(
        Equal("trec_eval 9.0.8", "iprec_at_recall_LEVEL", "rounding=trec9"),
        Equal("trec_eval 10.0", "iprec_at_recall_LEVEL", "rounding=nearest"),
        Equal("ir_measures 0.4.3", "IPrec@LEVEL", "rounding=trec9"),
    ),
    example=Example(
        "IPrec@0.5",
        (1, 0, 1, 0, 1),
        (),
        0.6667,
        "2 of 3 needed: 2/3 at rank 3, 3/5 at rank 5, the best is 2/3",
    ),
    trec_at="iprec_at_recall_{k}",
    trec_cutoffs=_LEVELS,
    monotone_in_swaps=True,
)
def interpolated_precision(evidence: Evidence, *, k: float, rel: float, rounding: str) -> Floats:
    """Best precision at or after the point where recall reaches level k."""
    best, so_far = _best_precision_from(evidence, rel)
    return _at_level(evidence, k, rel, rounding, best, so_far)


@measure(
    symbol="IPrec11",
    title="11-point average of interpolated precision",
    formula="mean of IPrec at recall 0, .1, … 1",
    says="the classic precision-recall curve in one number",
    source="Salton; Manning, Raghavan & Schütze 2008, ch. 8.4",
    low=0,
    high=1,
    undefined=_NO_REL,
    parameters=(REL, _ROUNDING),
    equals=(
        Equal("trec_eval 9.0.8", "11pt_avg", "rounding=trec9"),
        Equal("trec_eval 10.0", "11pt_avg", "rounding=nearest"),
    ),
    example=Example(
        "IPrec11",
        (1, 0, 1, 0, 1),
        (),
        0.7636,
        "R = 3, precision 1 to recall .3, 2/3 to .6, 3/5 to 1: (4 x 1 + 3 x 2/3 + 4 x 3/5) / 11",
    ),
    aliases=("11pt",),
    trec="11pt_avg",
    monotone_in_swaps=True,
)
def eleven_point(evidence: Evidence, *, rel: float, rounding: str) -> Floats:
    """Interpolated precision averaged over eleven recall levels."""
    best, so_far = _best_precision_from(evidence, rel)
    total = np.zeros(evidence.n)
    for level in reversed(_LEVELS):  # trec_eval adds from recall 1 down
        total = total + _at_level(evidence, level, rel, rounding, best, so_far)
    return total / len(_LEVELS)


@measure(
    symbol="RprecMult",
    title="precision at a multiple of R",
    formula="relevant in the top x R / (x R), with x R = floor(x R + 0.9)",
    says="whether a system is better early or late, at points comparable between queries",
    source="trec_eval (Rprec_mult)",
    low=0,
    high=1,
    undefined=f"{_NO_REL}, or a multiple of R below one rank",
    cutoff="multiple",
    parameters=(REL,),
    equals=(Equal("trec_eval 9.0.8 and 10.0", "Rprec_mult_X"),),
    example=Example("RprecMult@2", (1, 0, 1, 0, 1), (), 0.5, "R = 3: 3 relevant in 6 places"),
    trec_at="Rprec_mult_{k}",
    trec_cutoffs=(0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0),
    monotone_in_swaps=True,
    expected=_expected_r_multiple,
)
def r_precision_multiple(evidence: Evidence, *, k: float, rel: float) -> Terms:
    """Precision at k times the number of relevant documents."""
    total = evidence.num_rel(rel)
    places = np.floor(k * total + 0.9)
    counted = evidence.relevant(rel) & (evidence.rank <= places[evidence.query])
    return Terms.counting(counted, places)


def _best_precision_from(evidence: Evidence, rel: float) -> tuple[Floats, Ints]:
    """For each relevant hit, the best precision at it or any later one; and how many there are
    down to it. Both are over the relevant hits only; shape (relevant hits,).
    """
    relevant = evidence.relevant(rel)
    query = evidence.query[relevant]
    so_far = evidence.so_far(relevant)[relevant]
    if not len(query):
        return np.empty(0), so_far
    levels, place = np.unique(so_far / evidence.rank[relevant], return_inverse=True)
    # One running maximum from the end for all queries: each is lifted above the ones after it.
    lift = (query[-1] - query) * len(levels)
    best = np.maximum.accumulate((place + lift)[::-1])[::-1] - lift
    return levels[best], so_far


def _at_level(
    evidence: Evidence, level: float, rel: float, rounding: str, best: Floats, so_far: Ints
) -> Floats:
    total = evidence.num_rel(rel)
    needed = _NEEDED[rounding](level * total)
    query = evidence.query[evidence.relevant(rel)]
    at = so_far == np.maximum(needed, 1)[query]
    value = np.bincount(query[at], best[at], minlength=evidence.n)
    return np.where(total > 0, value, np.nan)
