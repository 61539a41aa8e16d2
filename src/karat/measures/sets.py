"""Measures of sets: precision and recall, of the top k or of everything returned."""

from __future__ import annotations

from functools import partial

import numpy as np

from karat.measures.entry import NEVER, Equal, Example, Parameter, Terms, show_number
from karat.measures.evidence import Evidence, Floats, or_nan
from karat.measures.parameters import REL, read_positive
from karat.measures.registry import measure
from karat.measures.ties import expected_cascade, expected_within
from karat.measures.unjudged import Bounds, ratio, relevant_bounds

_TREC_CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_SWETS = "Cleverdon 1967; Manning, Raghavan & Schütze 2008, ch. 8"
_WORKED = (1, 0, 1, 0, 0, 1, 0, 0, 0, 0)  # A X B Y Z C W V U T, relevant are A to E
_NO_REL = "no relevant document"


def _expected_precision(evidence: Evidence, *, k: float, rel: float) -> Floats:
    return expected_within(evidence, evidence.relevant(rel), k) / k


def _expected_recall(evidence: Evidence, *, k: float, rel: float) -> Floats:
    return expected_within(evidence, evidence.relevant(rel), k) / or_nan(evidence.num_rel(rel))


def _expected_capped(evidence: Evidence, *, k: float, rel: float) -> Floats:
    return expected_within(evidence, evidence.relevant(rel), k) / or_nan(
        np.minimum(evidence.num_rel(rel), k)
    )


def _expected_success(evidence: Evidence, *, k: float, rel: float) -> Floats:
    return expected_cascade(evidence, evidence.relevant(rel).astype(np.float64), np.ones_like, k)


def _precision_bounds(evidence: Evidence, *, k: float, rel: float) -> Bounds:
    return relevant_bounds(evidence, k, rel, lambda found, _total: found / k)


def _capped_bounds(evidence: Evidence, *, k: float, rel: float) -> Bounds:
    return relevant_bounds(
        evidence, k, rel, lambda found, total: ratio(found, np.minimum(total, k))
    )


def _success_bounds(evidence: Evidence, *, k: float, rel: float) -> Bounds:
    return relevant_bounds(evidence, k, rel, lambda found, _total: (found > 0).astype(np.float64))


def _set_precision_bounds(evidence: Evidence, *, rel: float) -> Bounds:
    returned = evidence.returned.astype(np.float64)
    return relevant_bounds(evidence, None, rel, lambda found, _total: ratio(found, returned))


@measure(
    symbol="P",
    title="precision",
    formula="relevant in the top k / k",
    says="the share of the first k results that is relevant; k counts even if fewer were returned",
    source=_SWETS,
    low=0,
    high=1,
    undefined=NEVER,
    cutoff="required",
    parameters=(REL,),
    equals=(
        Equal("trec_eval 9.0.8 and 10.0", "P_K", "-l LEVEL is rel"),
        Equal("ir_measures 0.4.3", "P@K"),
        Equal("ranx 0.3.21", "precision@K"),
    ),
    example=Example("P@3", _WORKED, (1, 1), 0.6667, "A and B of A X B: 2/3"),
    aliases=("Precision",),
    trec_at="P_{k}",
    trec_cutoffs=_TREC_CUTOFFS,
    monotone_in_swaps=True,
    expected=_expected_precision,
    bounds=_precision_bounds,
)
def precision(evidence: Evidence, *, k: float, rel: float) -> Terms:
    """Relevant in the top k, divided by k."""
    counted = evidence.relevant(rel) & (evidence.rank <= k)
    return Terms.counting(counted, np.full(evidence.n, k))


@measure(
    symbol="R",
    title="recall",
    formula="relevant in the top k / all relevant",
    says="the share of the relevant documents that are in the first k results",
    source=_SWETS,
    low=0,
    high=1,
    undefined=_NO_REL,
    cutoff="required",
    parameters=(REL,),
    equals=(
        Equal("trec_eval 9.0.8 and 10.0", "recall_K"),
        Equal("ir_measures 0.4.3", "R@K"),
        Equal("ranx 0.3.21", "recall@K"),
    ),
    example=Example("R@10", _WORKED, (1, 1), 0.6, "A B C of A B C D E: 3/5"),
    aliases=("Recall",),
    trec_at="recall_{k}",
    trec_cutoffs=_TREC_CUTOFFS,
    monotone_in_swaps=True,
    expected=_expected_recall,
    bounds=partial(relevant_bounds, value=ratio),
)
def recall(evidence: Evidence, *, k: float, rel: float) -> Terms:
    """Relevant in the top k, divided by all relevant."""
    return Terms.counting(evidence.relevant(rel) & (evidence.rank <= k), evidence.num_rel(rel))


@measure(
    symbol="Rcap",
    title="capped recall",
    formula="relevant in the top k / min(k, all relevant)",
    says="recall that can reach 1 even where there are more relevant documents than places",
    source="Thakur et al. 2021, arXiv:2104.08663 (R_cap@k)",
    low=0,
    high=1,
    undefined=_NO_REL,
    cutoff="required",
    parameters=(REL,),
    equals=(
        Equal("trec_eval 9.0.8 and 10.0", "relative_P_K"),
        Equal("BEIR 2.2.0", "R_cap@K"),
    ),
    example=Example("Rcap@3", _WORKED, (1, 1), 0.6667, "A and B of 3 places (5 relevant): 2/3"),
    aliases=("R_cap", "CappedRecall", "CappedR"),
    trec_at="relative_P_{k}",
    trec_cutoffs=_TREC_CUTOFFS,
    monotone_in_swaps=True,
    expected=_expected_capped,
    bounds=_capped_bounds,
)
def capped_recall(evidence: Evidence, *, k: float, rel: float) -> Terms:
    """Relevant in the top k, divided by the maximum possible."""
    most = np.minimum(evidence.num_rel(rel), k)
    return Terms.counting(evidence.relevant(rel) & (evidence.rank <= k), most)


@measure(
    symbol="Success",
    title="success, hit rate",
    formula="1 if any of the top k is relevant, else 0",
    says="the share of queries with something relevant in the first k results",
    source="Tomlinson, trec_eval; also known as hit rate",
    low=0,
    high=1,
    undefined=NEVER,
    cutoff="required",
    parameters=(REL,),
    equals=(
        Equal("trec_eval 9.0.8 and 10.0", "success_K"),
        Equal("ir_measures 0.4.3", "Success@K"),
        Equal("ranx 0.3.21", "hit_rate@K"),
    ),
    example=Example("Success@3", (0, 0, 1, 1), (), 1.0, "the third is relevant"),
    aliases=("HitRate", "Hit"),
    trec_at="success_{k}",
    trec_cutoffs=(1, 5, 10),
    monotone_in_swaps=True,
    expected=_expected_success,
    bounds=_success_bounds,
)
def success(evidence: Evidence, *, k: float, rel: float) -> Terms:
    """1 where the top k has a relevant document."""
    relevant = evidence.relevant(rel)
    first = relevant & (evidence.so_far(relevant) == 1) & (evidence.rank <= k)
    return Terms.counting(first, np.ones(evidence.n))


@measure(
    symbol="SetP",
    title="set precision",
    formula="relevant retrieved / retrieved",
    says="the share of everything returned that is relevant",
    source=_SWETS,
    low=0,
    high=1,
    undefined=f"{NEVER}; 0 if nothing was returned",
    parameters=(REL,),
    equals=(Equal("trec_eval 9.0.8 and 10.0", "set_P"), Equal("ir_measures 0.4.3", "SetP")),
    example=Example("SetP", _WORKED, (1, 1), 0.3, "A B C of ten: 3/10"),
    trec="set_P",
    monotone_in_swaps=True,
    ordered=False,
    bounds=_set_precision_bounds,
)
def set_precision(evidence: Evidence, *, rel: float) -> Terms:
    """Relevant retrieved, divided by retrieved."""
    return Terms.counting(evidence.relevant(rel), np.maximum(evidence.returned, 1))


@measure(
    symbol="SetR",
    title="set recall",
    formula="relevant retrieved / all relevant",
    says="the share of the relevant documents that was returned at all",
    source=_SWETS,
    low=0,
    high=1,
    undefined=_NO_REL,
    parameters=(REL,),
    equals=(Equal("trec_eval 9.0.8 and 10.0", "set_recall"), Equal("ir_measures 0.4.3", "SetR")),
    example=Example("SetR", _WORKED, (1, 1), 0.6, "A B C of A B C D E: 3/5"),
    trec="set_recall",
    monotone_in_swaps=True,
    ordered=False,
    bounds=partial(relevant_bounds, k=None, value=ratio),
)
def set_recall(evidence: Evidence, *, rel: float) -> Terms:
    """Relevant retrieved, divided by all relevant."""
    return Terms.counting(evidence.relevant(rel), evidence.num_rel(rel))


@measure(
    symbol="SetF",
    title="set F",
    formula="(1 + beta²) P R / (beta² P + R) of the set retrieved",
    says="set precision and set recall in one number; beta above 1 weighs recall more",
    source="van Rijsbergen 1979, ch. 7",
    low=0,
    high=1,
    undefined=_NO_REL,
    parameters=(
        REL,
        Parameter("beta", "weight of recall", read_positive, default=1.0, show=show_number),
    ),
    equals=(
        Equal("trec_eval 9.0.8 and 10.0", "set_F", "its parameter is beta squared"),
        Equal("ir_measures 0.4.3", "SetF", "beta=1 only: it passes beta on as beta squared"),
    ),
    example=Example("SetF", _WORKED, (1, 1), 0.4, "2 x .3 x .6 / (.3 + .6)"),
    trec="set_F",
    monotone_in_swaps=True,
    ordered=False,
)
def set_f(evidence: Evidence, *, rel: float, beta: float) -> Floats:
    """Weighted harmonic mean of set precision and set recall."""
    hits = evidence.per_query(evidence.relevant(rel))
    total = evidence.num_rel(rel)
    x = beta * beta
    with np.errstate(divide="ignore", invalid="ignore"):
        p, r = hits / evidence.returned, hits / total
        value = np.where(hits > 0, (x + 1.0) * p * r / (x * p + r), 0.0)
    return np.where(total > 0, value, np.nan)


@measure(
    symbol="SetAP",
    title="set average precision",
    formula="set precision x set recall",
    says="average precision if every relevant document were at the average rank",
    source="trec_eval (set_map)",
    low=0,
    high=1,
    undefined=_NO_REL,
    parameters=(REL,),
    equals=(Equal("trec_eval 9.0.8 and 10.0", "set_map"),),
    example=Example("SetAP", _WORKED, (1, 1), 0.18, "3 x 3 / (10 x 5)"),
    trec="set_map",
    monotone_in_swaps=True,
    ordered=False,
)
def set_average_precision(evidence: Evidence, *, rel: float) -> Floats:
    """Relevant retrieved squared, divided by retrieved times relevant."""
    hits, total = evidence.per_query(evidence.relevant(rel)), evidence.num_rel(rel)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (hits * hits) / (evidence.returned * total)
    return np.where(total > 0, np.where(evidence.returned > 0, value, 0.0), np.nan)


@measure(
    symbol="SetRcap",
    title="capped set recall",
    formula="relevant retrieved / min(retrieved, all relevant)",
    says="relevant documents retrieved, as a share of the most that a list of this length can have",
    source="trec_eval (set_relative_P)",
    low=0,
    high=1,
    undefined=_NO_REL,
    parameters=(REL,),
    equals=(Equal("trec_eval 9.0.8 and 10.0", "set_relative_P"),),
    example=Example("SetRcap", _WORKED, (1, 1), 0.6, "3 / min(10, 5)"),
    trec="set_relative_P",
    monotone_in_swaps=True,
    ordered=False,
)
def capped_set_recall(evidence: Evidence, *, rel: float) -> Terms:
    """Relevant retrieved, divided by the maximum for a list of that length."""
    total = evidence.num_rel(rel)
    most = np.where(total > 0, np.maximum(np.minimum(total, evidence.returned), 1), 0)
    return Terms.counting(evidence.relevant(rel), most)
