"""Measures for incomplete judgments: bpref, infAP, and how much of a ranking was judged."""

from __future__ import annotations

import numpy as np

from karat.measures.entry import Equal, Example, Terms
from karat.measures.evidence import Evidence, Floats, or_nan
from karat.measures.parameters import REL
from karat.measures.registry import measure
from karat.measures.ties import expected_bpref

_NO_REL = "no relevant document"
_INFAP_EPSILON = 0.00001  # trec_eval's smoothing, as in the paper


def _expected_bpref(evidence: Evidence, *, rel: float) -> Floats:
    relevant = evidence.relevant(rel)
    total, others = evidence.num_rel(rel), _num_nonrel(evidence, rel)
    expected = expected_bpref(evidence, relevant, evidence.judged & ~relevant, total, others)
    return expected / or_nan(total)


@measure(
    symbol="Bpref",
    title="binary preference",
    formula="mean over relevant documents of 1 - min(n, R) / min(N, R); n = judged non-relevant "
    "above it, N = judged non-relevant in all; 0 for those not retrieved",
    says="whether relevant documents rank above judged non-relevant ones; unjudged documents are "
    "ignored",
    source="Buckley & Voorhees 2004, doi:10.1145/1008992.1009000; trec_eval's correction of 2006",
    low=0,
    high=1,
    undefined=_NO_REL,
    parameters=(REL,),
    equals=(Equal("trec_eval 9.0.8 and 10.0", "bpref"), Equal("ir_measures 0.4.3", "Bpref")),
    example=Example(
        "Bpref",
        (1, 0, None, 1),
        (1, 0),
        0.5,
        "R = 3, N = 2: (1 + (1 - 1/2) + 0) / 3",
    ),
    trec="bpref",
    monotone_in_swaps=True,
    expected=_expected_bpref,
)
def bpref(evidence: Evidence, *, rel: float) -> Terms:
    """Share of judged preferences that the ranking respects."""
    relevant = evidence.relevant(rel)
    above = evidence.so_far(evidence.judged & ~relevant)
    total = evidence.num_rel(rel)
    r, n = total[evidence.query], _num_nonrel(evidence, rel)[evidence.query]
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.minimum(above, r) / np.minimum(n, r)
    return Terms.counting(relevant, total, np.where(above > 0, 1.0 - lost, 1.0))


@measure(
    symbol="GMBpref",
    title="geometric mean binary preference",
    formula="exp of the mean of ln max(Bpref, 0.00001) over queries",
    says="Bpref with emphasis on the worst queries",
    source="trec_eval (gm_bpref)",
    low=0,
    high=1,
    undefined=_NO_REL,
    parameters=(REL,),
    aggregate="geometric",
    equals=(Equal("trec_eval 9.0.8 and 10.0", "gm_bpref"),),
    example=Example("GMBpref", (1, 0, None, 1), (1, 0), 0.5, "of one query: its Bpref"),
    trec="gm_bpref",
    summary_only=True,
    monotone_in_swaps=True,
)
def geometric_bpref(evidence: Evidence, *, rel: float) -> Terms:
    """Bpref; the geometric mean is taken over queries."""
    return bpref(evidence, rel=rel)


@measure(
    symbol="infAP",
    title="inferred average precision",
    formula="mean over relevant documents at rank i of 1/i + (i-1)/i x (pooled above / (i-1)) x "
    "(relevant above + e) / (judged above + 2e), e = 0.00001",
    says="an estimate of AP where only a sample of the pool was judged; a grade below 0 means "
    "pooled but not judged",
    source="Yilmaz & Aslam 2006, doi:10.1145/1183614.1183633",
    low=0,
    high=1,
    undefined=_NO_REL,
    parameters=(REL,),
    equals=(Equal("trec_eval 9.0.8 and 10.0", "infAP"), Equal("ir_measures 0.4.3", "infAP")),
    example=Example(
        "infAP",
        (1, None, 0, 1),
        (),
        0.75,
        "rank 4: 1/4 + 3/4 x 2/3 pooled x (1 + e)/(2 + 2e) = 1/2; (1 + 1/2) / 2",
    ),
    trec="infAP",
)
def inferred_average_precision(evidence: Evidence, *, rel: float) -> Terms:
    """AP estimated from a sampled pool."""
    relevant = evidence.relevant(rel)
    everything = np.ones(len(relevant), np.bool_)
    above = (evidence.rank - 1).astype(np.float64)
    relevant_above = evidence.so_far(relevant) - relevant
    judged_above = evidence.so_far(evidence.judged) - evidence.judged
    pooled_above = evidence.so_far(everything) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = 1.0 / (above + 1.0) + (above / (above + 1.0)) * (pooled_above / above) * (
            (relevant_above + _INFAP_EPSILON) / (judged_above + 2 * _INFAP_EPSILON)
        )
    at = np.where(evidence.rank == 1, 1.0, estimate)
    return Terms.counting(relevant, evidence.num_rel(rel), at)


@measure(
    symbol="Judged",
    title="judged share",
    formula="judged in the top k / min(k, returned)",
    says="the share of documents shown that were judged; below 1, every other result partly "
    "assumes that unjudged means not relevant",
    source="ir_measures; BEIR's Hole@k is 1 - Judged@k",
    low=0,
    high=1,
    direction="none",
    undefined="nothing was returned",
    cutoff="required",
    equals=(
        Equal(
            "ir_measures 0.4.3",
            "Judged@K",
            "where no grade is negative: it counts those as judged",
        ),
    ),
    example=Example("Judged@3", (2, None, 0, None), (), 0.6667, "the first and third: 2/3"),
)
def judged_share(evidence: Evidence, *, k: float) -> Terms:
    """Judged in the top k, divided by the documents returned there."""
    counted = evidence.judged & (evidence.rank <= k)
    shown = np.minimum(evidence.returned, k).astype(np.float64)
    return Terms.counting(counted, shown)


def _num_nonrel(evidence: Evidence, rel: float) -> Floats:
    ideal = evidence.ideal_grade
    return evidence.of_ideals((ideal >= 0) & (ideal < rel))
