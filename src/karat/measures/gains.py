"""Measures that add up discounted gain: DCG, nDCG, and the ceiling of a perfect reranker."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from karat.errors import UsageError
from karat.measures.entry import NEVER, Equal, Example, Measure, Parameter, Terms
from karat.measures.evidence import Evidence, Floats, Ints, or_nan
from karat.measures.names import parse
from karat.measures.parameters import (
    BASE,
    DISCOUNT,
    GAIN,
    Gain,
    divisor_of,
    gain_of,
    read_whole,
)
from karat.measures.registry import measure
from karat.measures.ties import Discount, expected_sum, perfectly_reranked, worth_of
from karat.measures.unjudged import Bounds, normalised_bounds, sum_bounds

_JK = "Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418"
_BURGES = "Burges et al. 2005, doi:10.1145/1102351.1102363 (gain=exp)"


def _check_base(settings: Mapping[str, Any]) -> None:
    discount, base = settings["discount"], settings["base"]
    if discount == "jk" and base is None:
        raise UsageError(
            "discount=jk needs base: papers use 2 and 10, and the result depends on it",
            fix="nDCG(discount=jk, base=2)@10",
        )
    if discount != "jk" and base is not None:
        raise UsageError(
            "base is only for discount=jk; log2(rank+1) has no base to choose",
            fix=f"nDCG(discount=jk, base={base:g})@10",
        )


def discount_of(discount: str, base: float | None) -> Discount:
    """The discount as a function of ranks."""

    def discounts(rank: Ints) -> Floats:
        return 1.0 / divisor_of(rank, discount, base)

    return discounts


def possible_gains(evidence: Evidence, gain: Gain) -> Floats:
    """The gains of the grades that an unjudged document could get."""
    low, high = evidence.scale
    grades = {low, high}
    if not isinstance(gain, str):
        # A custom gain may rise and fall: try every grade that it lists, and all whole ones.
        grades |= {grade for grade in gain if low <= grade <= high}
        grades |= {float(grade) for grade in range(math.ceil(low), math.floor(high) + 1)}
    return np.unique(gain_of(np.array(sorted(grades)), gain))


def _expected_dcg(
    evidence: Evidence, *, k: float | None, gain: Gain, discount: str, base: float | None
) -> Floats:
    terms = dcg(evidence, k=k, gain=gain, discount=discount, base=base)
    return expected_sum(evidence, terms.gain, discount_of(discount, base), k) / terms.norm


def _expected_ndcg(
    evidence: Evidence, *, k: float | None, gain: Gain, discount: str, base: float | None
) -> Floats:
    terms = ndcg(evidence, k=k, gain=gain, discount=discount, base=base)
    return expected_sum(evidence, terms.gain, discount_of(discount, base), k) / terms.norm


def _dcg_bounds(
    evidence: Evidence, *, k: float | None, gain: Gain, discount: str, base: float | None
) -> Bounds:
    terms = dcg(evidence, k=k, gain=gain, discount=discount, base=base)
    possible = possible_gains(evidence, gain)
    ends = float(possible.min()), float(possible.max())
    value = evidence.per_query(terms.term)
    return sum_bounds(evidence, value, ends, discount_of(discount, base), k)


def _ndcg_bounds(
    evidence: Evidence, *, k: float | None, gain: Gain, discount: str, base: float | None
) -> Bounds:
    return normalised_bounds(
        evidence,
        gain_of(evidence.grade, gain),
        gain_of(evidence.ideal_grade, gain),
        possible_gains(evidence, gain),
        discount_of(discount, base),
        k,
    )


@measure(
    symbol="nDCG",
    title="normalised discounted cumulative gain",
    formula="DCG / ideal DCG;  DCG = sum over ranks i of gain(i) / log2(i + 1)",
    says="how close the ranking is to the best one the judgments allow; documents count by grade, "
    "and early ranks more than late ones",
    source=f"{_JK}; {_BURGES}",
    low=0,
    high=1,
    undefined="no document with a gain above 0",
    cutoff="optional",
    parameters=(GAIN, DISCOUNT, BASE),
    check=_check_base,
    equals=(
        Equal("trec_eval 9.0.8 and 10.0", "ndcg, ndcg_cut_K", "gain=linear, discount=log2"),
        Equal("ir_measures 0.4.3", "nDCG, nDCG@K", "dcg='exp-log2' is gain=exp"),
        Equal("ranx 0.3.21", "ndcg@K, ndcg_burges@K", "ndcg_burges is gain=exp"),
    ),
    example=Example(
        "nDCG@5",
        (3, 2, 0, 1, 0),
        (),
        0.9854,
        "(3/1 + 2/1.585 + 1/2.3219) / (3/1 + 2/1.585 + 1/2) = 4.6925 / 4.7619",
    ),
    monotone_in_swaps=True,
    expected=_expected_ndcg,
    bounds=_ndcg_bounds,
    trec="ndcg",
    trec_at="ndcg_cut_{k}",
    trec_cutoffs=(5, 10, 15, 20, 30, 100, 200, 500, 1000),
)
def ndcg(
    evidence: Evidence, *, k: float | None, gain: Gain, discount: str, base: float | None
) -> Terms:
    """Discounted cumulative gain over the best possible; the ideal is from all judgments."""
    terms = dcg(evidence, k=k, gain=gain, discount=discount, base=base)
    ideal = ideal_dcg(evidence, k=k, gain=gain, discount=discount, base=base)
    return Terms(terms.gain, terms.discount, terms.term, or_nan(ideal))


@measure(
    symbol="DCG",
    title="discounted cumulative gain",
    formula="sum over ranks i of gain(i) / log2(i + 1)",
    says="the gain a user collects going down the list, discounted by rank; not comparable "
    "between queries with different judgments",
    source=_JK,
    low=0,
    high=None,
    undefined="no document with a gain above 0",
    cutoff="optional",
    parameters=(GAIN, DISCOUNT, BASE),
    check=_check_base,
    equals=(Equal("trec_eval 10.0", "dcg", "no cutoff"), Equal("ranx 0.3.21", "dcg@K")),
    example=Example("DCG@5", (3, 2, 0, 1, 0), (), 4.6925, "3/1 + 2/1.585 + 1/2.3219"),
    monotone_in_swaps=True,
    expected=_expected_dcg,
    bounds=_dcg_bounds,
    trec="dcg",
)
def dcg(
    evidence: Evidence, *, k: float | None, gain: Gain, discount: str, base: float | None
) -> Terms:
    """Discounted cumulative gain of the hits down to rank k."""
    gained = gain_of(evidence.grade, gain)
    divisor = divisor_of(evidence.rank, discount, base)
    counted = evidence.rank <= (k or np.inf)
    defined = evidence.of_ideals(gain_of(evidence.ideal_grade, gain) > 0) > 0
    return Terms(
        gain=gained,
        discount=1.0 / divisor,
        term=np.where(counted, gained / divisor, 0.0),
        norm=np.where(defined, 1.0, np.nan),
    )


@measure(
    symbol="IDCG",
    title="ideal discounted cumulative gain",
    formula="DCG of the judged documents, best grade first",
    says="the highest DCG that the judgments allow; the divisor of nDCG",
    source=_JK,
    low=0,
    high=None,
    direction="none",
    undefined=f"{NEVER}; 0 without a document of gain above 0",
    cutoff="optional",
    parameters=(GAIN, DISCOUNT, BASE),
    check=_check_base,
    equals=(Equal("trec_eval 10.0", "ideal_dcg", "no cutoff"),),
    example=Example("IDCG@5", (0, 3), (2, 1), 4.7619, "3/1 + 2/1.585 + 1/2"),
    ordered=False,
    trec="ideal_dcg",
)
def ideal_dcg(
    evidence: Evidence, *, k: float | None, gain: Gain, discount: str, base: float | None
) -> Floats:
    """DCG of the ideal ranking down to rank k."""
    gained = gain_of(evidence.ideal_grade, gain)
    rank = evidence.ideal_rank
    if not isinstance(gain, str):
        # A mapping may give a lower grade the higher gain; the ideal is sorted by gain.
        order = np.lexsort((-gained, evidence.ideal_query))
        gained = gained[order]
    counted = (rank <= (k or np.inf)) & (gained > 0)
    return evidence.of_ideals(np.where(counted, gained / divisor_of(rank, discount, base), 0.0))


def _check_order(settings: Mapping[str, Any]) -> None:
    of = settings["of"]
    # A user's own measure is not checked.
    if of.ordered and not of.monotone_in_swaps and of.entry.ours:
        raise UsageError(
            f"{of} has no ceiling: moving a better document up can lower it",
            fix="Ceiling(nDCG@10, depth=100), for example",
        )


@measure(
    symbol="Ceiling",
    title="score of a perfect reranker",
    formula="the measure after the top `depth` documents are put in the best order",
    says="what a perfect reranker of the same candidates would reach: retrieval limits "
    "every later stage, and the gap to the measure itself is what reranking can gain",
    source="karat; the oracle reranker of e.g. Nogueira & Cho 2019, arXiv:1901.04085",
    low=0,
    high=None,
    undefined="where the inner measure is",
    parameters=(
        Parameter("of", "the measure to optimise", parse),
        Parameter("depth", "candidates passed to the reranker", read_whole),
    ),
    example=Example(
        "Ceiling(nDCG@3, depth=5)",
        (0, 1, None, 0, 3),
        (2,),
        0.7625,
        "reranked 3 1 0: (3/1 + 1/1.585) / (3/1 + 2/1.585 + 1/2) = 3.6309 / 4.7619",
    ),
    monotone_in_swaps=True,
    check=_check_order,
)
def ceiling(evidence: Evidence, *, of: Measure, depth: int) -> Floats:
    """The measure after the top ``depth`` are put in the best order for it."""
    return of(perfectly_reranked(evidence, worth_of(of, evidence), depth))
