"""A measure of the condensed list: what is left when unjudged documents are dropped."""

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
    says="what the measure is if unjudged documents count for nothing at all, rather than as not "
    "relevant; kinder to systems whose documents nobody has judged, often too kind",
    source="Sakai 2007, doi:10.1145/1277741.1277756",
    low=0,
    high=None,
    undefined="where the measure inside is, of the condensed list",
    parameters=(Parameter("of", "the measure to take of the condensed list", parse),),
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
    """The measure of the judged documents alone; a grade below 0 is no judgment."""
    left = evidence.only_judged()
    terms = of.terms(left)
    if terms is None:
        return of(left)

    def spread(value: Floats) -> Floats:
        """Of every hit, 0 for those dropped."""
        out = np.zeros(len(evidence.rank))
        out[evidence.judged] = value
        return out

    return Terms(spread(terms.gain), spread(terms.discount), spread(terms.term), terms.norm)
