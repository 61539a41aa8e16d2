"""Measures of a ranking: their registry, and the evidence they are computed from."""

from karat.measures._one_ranking import (
    average_precision,
    dcg_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
)
from karat.measures.entry import Entry, Equal, Example, Measure, Parameter, Terms
from karat.measures.evidence import Evidence
from karat.measures.judged_join import reduce
from karat.measures.names import DEFAULTS, lower_is_better, parse, parse_all
from karat.measures.registry import entries, measure

__all__ = [
    "DEFAULTS",
    "Entry",
    "Equal",
    "Evidence",
    "Example",
    "Measure",
    "Parameter",
    "Terms",
    "average_precision",
    "dcg_at_k",
    "entries",
    "lower_is_better",
    "measure",
    "ndcg_at_k",
    "parse",
    "parse_all",
    "precision_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "reduce",
]
