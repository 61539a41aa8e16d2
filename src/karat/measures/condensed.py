"""Measures of condensed lists: rankings without their unjudged documents."""

from __future__ import annotations

import numpy as np

from karat.measures.entry import Equal, Example, Measure, Parameter, Terms
from karat.measures.evidence import Evidence, Floats
from karat.measures.names import parse
from karat.measures.registry import measure


def _expected(evidence: Evidence, *, of: Measure) -> Floats | None:
    return of.expected(evidence.only_judged())


@measure(
    symbol="Condensed",
    title="a measure of the condensed list",
    formula="the measure after documents without a judgment are dropped and the rest move up",
    says="the measure if unjudged documents are ignored rather than counted as not relevant; "
    "favours systems with many unjudged documents, often too much",
    source="Sakai 2007, doi:10.1145/1277741.1277756",
    low=0,
    high=None,
    undefined="where the inner measure is undefined for the condensed list",
    parameters=(Parameter("of", "the measure to compute on the condensed list", parse),),
    equals=(
        Equal("trec_eval 9.0.8 and 10.0", "-J with the measure"),
        Equal("ir_measures 0.4.3", "nDCG(judged_only=True)@K", "and likewise for other measures"),
    ),
    example=Example(
        "Condensed(nDCG@2)",
        (None, 1, None, 2),
        (),
        0.8597,
        "condensed to 1 2: (1/1 + 2/1.585) / (2/1 + 1/1.585) = 2.2619 / 2.6309",
    ),
    monotone_in_swaps=True,
    expected=_expected,
)
def condensed(evidence: Evidence, *, of: Measure) -> Terms | Floats:
    """The measure of the judged documents alone; a grade below 0 does not count as a judgment."""
    judged_only = evidence.only_judged()
    terms = of.terms(judged_only)
    if terms is None:
        return of(judged_only)

    def spread(value: Floats) -> Floats:
        """One value for every hit, 0 for those dropped."""
        out = np.zeros(len(evidence.rank))
        out[evidence.judged] = value
        return out

    return Terms(spread(terms.gain), spread(terms.discount), spread(terms.term), terms.norm)
