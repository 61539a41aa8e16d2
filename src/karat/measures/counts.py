"""Counts, summed over queries instead of averaged."""

from __future__ import annotations

import numpy as np

from karat.measures.entry import NEVER, Equal, Example
from karat.measures.evidence import Evidence, Floats
from karat.measures.parameters import REL
from karat.measures.registry import measure

_WORKED = (1, 0, None, 1)


@measure(
    symbol="NumQ",
    title="queries",
    formula="1 for each query",
    says="the number of queries behind the other results",
    source="trec_eval",
    low=0,
    high=None,
    direction="none",
    undefined=NEVER,
    aggregate="sum",
    equals=(Equal("trec_eval 9.0.8 and 10.0", "num_q"), Equal("ir_measures 0.4.3", "NumQ")),
    example=Example("NumQ", _WORKED, (1,), 1, "one query"),
    trec="num_q",
    integer=True,
    summary_only=True,
    ordered=False,
)
def num_q(evidence: Evidence) -> Floats:
    """One for each query."""
    return np.ones(evidence.n)


@measure(
    symbol="NumRet",
    title="documents retrieved",
    formula="number of documents returned",
    says="how much the system returned",
    source="trec_eval",
    low=0,
    high=None,
    direction="none",
    undefined=NEVER,
    aggregate="sum",
    equals=(Equal("trec_eval 9.0.8 and 10.0", "num_ret"), Equal("ir_measures 0.4.3", "NumRet")),
    example=Example("NumRet", _WORKED, (1,), 4, "four returned"),
    trec="num_ret",
    integer=True,
    ordered=False,
)
def num_ret(evidence: Evidence) -> Floats:
    """Documents returned."""
    return evidence.returned.astype(np.float64)


@measure(
    symbol="NumRel",
    title="relevant documents",
    formula="number of documents judged relevant",
    says="how much there is to find",
    source="trec_eval",
    low=0,
    high=None,
    direction="none",
    undefined=NEVER,
    parameters=(REL,),
    aggregate="sum",
    equals=(Equal("trec_eval 9.0.8 and 10.0", "num_rel"), Equal("ir_measures 0.4.3", "NumRel")),
    example=Example("NumRel", _WORKED, (1,), 3, "two retrieved and one missed"),
    trec="num_rel",
    integer=True,
    ordered=False,
)
def num_rel(evidence: Evidence, *, rel: float) -> Floats:
    """Documents judged relevant."""
    return evidence.num_rel(rel)


@measure(
    symbol="NumRelRet",
    title="relevant documents retrieved",
    formula="number of documents returned and judged relevant",
    says="how much of it was found",
    source="trec_eval",
    low=0,
    high=None,
    undefined=NEVER,
    parameters=(REL,),
    aggregate="sum",
    equals=(
        Equal("trec_eval 9.0.8 and 10.0", "num_rel_ret"),
        Equal("ir_measures 0.4.3", "NumRelRet"),
    ),
    example=Example("NumRelRet", _WORKED, (1,), 2, "the first and the fourth"),
    trec="num_rel_ret",
    integer=True,
    monotone_in_swaps=True,
    ordered=False,
)
def num_rel_ret(evidence: Evidence, *, rel: float) -> Floats:
    """Documents returned and judged relevant."""
    return evidence.per_query(evidence.relevant(rel))


@measure(
    symbol="NumNonrelRet",
    title="judged non-relevant documents retrieved",
    formula="number of documents returned and judged, but not relevant",
    says="how many known bad documents were returned",
    source="trec_eval (num_nonrel_judged_ret)",
    low=0,
    high=None,
    direction="lower",
    undefined=NEVER,
    parameters=(REL,),
    aggregate="sum",
    equals=(Equal("trec_eval 9.0.8 and 10.0", "num_nonrel_judged_ret"),),
    example=Example("NumNonrelRet", _WORKED, (1,), 1, "the second"),
    trec="num_nonrel_judged_ret",
    integer=True,
    ordered=False,
)
def num_nonrel_ret(evidence: Evidence, *, rel: float) -> Floats:
    """Documents returned and judged, but not relevant."""
    return evidence.per_query(evidence.judged & ~evidence.relevant(rel))
