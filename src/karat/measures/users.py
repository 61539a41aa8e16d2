"""Measures that follow a user down the list: ERR, RBP and its residual, Compat; and Accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from karat.errors import InputError, UsageError
from karat.measures.entry import NEVER, Equal, Example, Parameter, Terms, show_number
from karat.measures.evidence import Evidence, Floats, Ints
from karat.measures.parameters import REL, read_number, read_positive
from karat.measures.registry import measure
from karat.measures.ties import expected_cascade, expected_sum
from karat.measures.unjudged import Bounds, can_be, cascade_bounds, sum_bounds

_MOFFAT = "Moffat & Zobel 2008, doi:10.1145/1416950.1416952"


def _read_share(text: str) -> float:
    value = read_number(text)
    if not 0 < value < 1:
        raise ValueError("a number above 0 and below 1")
    return value


_PATIENCE = Parameter(
    "p", "probability that the user goes on to the next document", _read_share, show=show_number
)


def _expected_err(evidence: Evidence, *, k: float | None, max: float | None) -> Floats:
    return expected_cascade(evidence, stops(evidence, max), lambda rank: 1.0 / rank, k)


def _err_bounds(evidence: Evidence, *, k: float | None, max: float | None) -> Bounds:
    top = evidence.scale[1] if max is None else max
    low, high = (float(_stop(min(grade, top), top)) for grade in evidence.scale)
    return cascade_bounds(evidence, stops(evidence, max), (low, high), k)


@measure(
    symbol="ERR",
    title="expected reciprocal rank",
    formula="sum over ranks i of R(i)/i x product over ranks j above of (1 - R(j));  "
    "R = (2^grade - 1) / 2^max",
    says="1 / the rank at which a user is satisfied and stops, which is likelier the better the "
    "document; a second good document adds little",
    source="Chapelle et al. 2009, doi:10.1145/1645953.1646033",
    low=0,
    high=1,
    undefined=NEVER,
    cutoff="optional",
    parameters=(
        Parameter(
            "max",
            "the highest grade of the scale; default: the highest of the judgments' scale",
            read_positive,
            default=None,
            show=show_number,
        ),
    ),
    equals=(Equal("gdeval 1.2a, ir_measures 0.4.3", "ERR@K", "max=4; five decimals"),),
    example=Example(
        "ERR(max=3)@10",
        (2, 0, 3),
        (),
        0.5573,
        "R = 3/8 and 7/8: 3/8 / 1 + (1 - 3/8) x 7/8 / 3 = 0.375 + 0.1823",
    ),
    monotone_in_swaps=True,
    expected=_expected_err,
    bounds=_err_bounds,
)
def expected_reciprocal_rank(
    evidence: Evidence,
    *,
    k: float | None,
    max: float | None,
) -> Terms:
    """Expected reciprocal rank of the document at which the user stops."""
    stop = stops(evidence, max)
    reached = _product_above(evidence, 1.0 - stop)
    discount = reached / evidence.rank
    counted = evidence.rank <= (k or np.inf)
    return Terms(stop, discount, np.where(counted, stop * discount, 0.0), np.ones(evidence.n))


def stops(evidence: Evidence, highest: float | None) -> Floats:
    """Probability that each hit satisfies the user, (2^grade - 1) / 2^max; shape (h,).

    Args:
        evidence: Hits and ideals.
        highest: ERR's parameter ``max``; the top of the scale if None.

    Raises:
        InputError: a judgment is above it.
    """
    top = evidence.scale[1] if highest is None else highest
    above = evidence.ideal_grade > top
    if above.any():
        first = int(above.argmax())
        grade = float(evidence.ideal_grade[first])
        raise InputError(
            f"grade {grade:g} is above {top:g}, the highest grade set for ERR",
            query=evidence.query_ids[int(evidence.ideal_query[first])],
            fix=f"ERR(max={show_number(grade)}), or a scale that includes this grade",
        )
    return np.asarray(_stop(np.maximum(evidence.grade, 0.0), top))


def _stop(grade: Floats | float, top: float) -> Floats | float:
    found: Floats | float = np.exp2(grade - top) - np.exp2(-top)  # 2^grade alone could overflow
    return found


def _product_above(evidence: Evidence, factor: Floats) -> Floats:
    """For each hit, the product of a factor over the hits above it; shape (h,)."""
    out = np.ones(len(factor))
    if not len(factor):
        return out
    place = evidence.so_far(np.ones(len(factor), np.bool_))
    # All first hits, then all second ones: each takes the product of the hit before it.
    order = np.argsort(place, kind="stable")
    for hits in np.split(order, np.cumsum(np.bincount(place)[1:-1]))[1:]:
        out[hits] = out[hits - 1] * factor[hits - 1]
    return out


def _check_graded(settings: Mapping[str, Any]) -> None:
    if settings["max"] is not None and settings["rel"] != REL.default:
        p, top = show_number(settings["p"]), show_number(settings["max"])
        raise UsageError(
            "RBP with max counts every grade in proportion and does not support rel",
            fix=f"RBP(p={p}, max={top}) or RBP(p={p}, rel={show_number(settings['rel'])}); set rel "
            "for each measure that supports it, as in AP(rel=2)",
        )


def _expected_rbp(
    evidence: Evidence, *, k: float | None, p: float, rel: float, max: float | None
) -> Floats:
    return expected_sum(evidence, _gain(evidence, rel, max), lambda rank: _weight(rank, p), k)


def _rbp_bounds(
    evidence: Evidence, *, k: float | None, p: float, rel: float, max: float | None
) -> Bounds:
    if max is None:
        can, must = can_be(evidence, rel)
        ends = float(must), float(can)
    else:
        low, high = np.clip(evidence.scale, 0.0, max) / max
        ends = float(low), float(high)
    known = evidence.per_query(rank_biased_precision(evidence, k=k, p=p, rel=rel, max=max).term)
    return sum_bounds(evidence, known, ends, lambda rank: _weight(rank, p), k)


@measure(
    symbol="RBP",
    title="rank-biased precision",
    formula="(1 - p) x sum over ranks i of gain(i) x p^(i - 1);  gain = 1 if relevant, or "
    "min(grade, max) / max",
    says="the gain per document viewed, for a user who goes on to the next one with probability "
    "p: .5 views 2 documents on average, .8 views 5, .95 views 20",
    source=_MOFFAT,
    low=0,
    high=1,
    undefined=NEVER,
    cutoff="optional",
    parameters=(
        _PATIENCE,
        REL,
        Parameter(
            "max",
            "the grade with full gain, for graded judgments; default: binary relevance",
            read_positive,
            default=None,
            show=show_number,
        ),
    ),
    check=_check_graded,
    equals=(
        Equal(
            "ir_measures 0.4.3, cwl-eval 1.0.12",
            "RBP(p=P, rel=REL)",
            "where no scores tie: it keeps tied documents in file order",
        ),
    ),
    example=Example(
        "RBP(p=0.8)", (1, 0, None, 1, None), (), 0.3024, ".2 x (1 + .8^3) = .2 x 1.512"
    ),
    monotone_in_swaps=True,
    expected=_expected_rbp,
    bounds=_rbp_bounds,
)
def rank_biased_precision(
    evidence: Evidence,
    *,
    k: float | None,
    p: float,
    rel: float,
    max: float | None,
) -> Terms:
    """Gain per document viewed."""
    gain, weight = _gain(evidence, rel, max), _weight(evidence.rank, p)
    counted = evidence.rank <= (k or np.inf)
    return Terms(gain, weight, np.where(counted, gain * weight, 0.0), np.ones(evidence.n))


@measure(
    symbol="RBPresid",
    title="residual of rank-biased precision",
    formula="(1 - p) x sum over unjudged ranks i of p^(i - 1), + p^n, where n is the number of "
    "documents returned (or k, with a cutoff)",
    says="how much RBP would rise if every unjudged document, and every document after "
    "the last one, were relevant",
    source=_MOFFAT,
    low=0,
    high=1,
    direction="none",
    undefined=f"{NEVER}; 1 if nothing was returned",
    cutoff="optional",
    parameters=(_PATIENCE,),
    example=Example(
        "RBPresid(p=0.8)",
        (1, 0, None, 1, None),
        (),
        0.5376,
        ".2 x (.8^2 + .8^4) + .8^5 = .2 x 1.0496 + .3277",
    ),
)
def rank_biased_residual(evidence: Evidence, *, k: float | None, p: float) -> Floats:
    """What judging the rest could add to RBP; a grade below 0 does not count as a judgment."""
    # The weights of all ranks add up to 1.
    judged = evidence.judged & (evidence.rank <= (k or np.inf))
    return 1.0 - evidence.per_query(_weight(evidence.rank, p), judged)


def _weight(rank: Ints, p: float) -> Floats:
    weight: Floats = (1.0 - p) * np.power(p, (rank - 1).astype(np.float64))
    return weight


def _gain(evidence: Evidence, rel: float, max: float | None) -> Floats:
    if max is None:
        return evidence.relevant(rel).astype(np.float64)
    return np.clip(evidence.grade, 0.0, max) / max


@measure(
    symbol="Compat",
    title="compatibility with the ideal ranking",
    formula="RBO(ranking, ideal) / RBO(ideal, ideal);  RBO = sum over depths d of p^(d - 1) x "
    "shared in the top d / d, down to the longer of the two lists",
    says="how far the top of the ranking and the top of the ideal ranking share documents, at "
    "every depth; works where only a few best documents are known",
    source="Clarke, Vtyurina & Smucker 2021, doi:10.1145/3451161",
    low=0,
    high=1,
    undefined="no document of a grade above 0",
    parameters=(
        Parameter(
            "p", "weight of each depth relative to the one above", _read_share, 0.95, show_number
        ),
    ),
    equals=(
        Equal(
            "ir_measures 0.4.3",
            "Compat(p=P)",
            "where no scores tie and none is negative: it orders tied documents by id ascending, "
            "and ranks missing documents in the ideal as if their score were 0",
        ),
        Equal(
            "compatibility.py of the source",
            "compatibility",
            "where the longer of run and ideal has 1,000 documents, and no scores tie: it always "
            "goes to depth 1,000, which for runs of 100 differs by .001 on average and .0019 at "
            "most; it orders tied documents by id ascending",
        ),
    ),
    example=Example(
        "Compat(p=0.5)",
        (1, 0, 2),
        (),
        0.25,
        "ideal third, first: (1/1 x 0 + .5/2 x 1 + .25/3 x 2) / (1 + .5 + .25 x 2/3) "
        "= .4167 / 1.6667",
    ),
    monotone_in_swaps=True,
)
def compatibility(evidence: Evidence, *, p: float) -> Terms:
    """Rank-biased overlap with the ideal ranking.

    The ideal has every document with a grade above 0, best first; documents of the same grade in
    the order of the run, followed by those that the run lacks.
    """
    ideal = evidence.of_ideals(evidence.ideal_grade > 0).astype(np.int64)
    depth = np.maximum(evidence.returned, ideal)
    places = np.arange(1, int(depth.max(initial=0)) + 1)
    weight = np.power(p, (places - 1).astype(np.float64)) / places
    down_to = np.concatenate([[0.0], np.cumsum(weight)])
    # A document is shared from the depth on at which both lists have it.
    in_ideal = evidence.grade > 0
    shared = np.maximum(evidence.rank, np.where(in_ideal, _ideal_place(evidence), 1))
    share = down_to[depth[evidence.query]] - down_to[shared - 1]
    best = (1.0 - np.power(p, ideal)) / (1.0 - p) + ideal * (down_to[depth] - down_to[ideal])
    return Terms.counting(in_ideal, np.where(ideal > 0, best, 0.0), share)


def _ideal_place(evidence: Evidence) -> Ints:
    """Rank of each hit in the ideal ranking, ties in the order of the run; shape (h,)."""
    levels, level = np.unique(-evidence.ideal_grade, return_inverse=True)
    key = evidence.ideal_query * len(levels) + level
    of_hit = evidence.query * len(levels) + np.searchsorted(levels, -evidence.grade)
    if not len(of_hit):
        return of_hit
    better = evidence.ideal_rank[np.searchsorted(key, of_hit)] - 1
    order = np.argsort(of_hit, kind="stable")
    first = np.searchsorted(of_hit[order], of_hit[order])
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - first + 1
    out: Ints = better + place
    return out


@measure(
    symbol="Accuracy",
    title="pairwise accuracy",
    formula="pairs in which the relevant document ranks higher / pairs of a relevant and a "
    "non-relevant document, both retrieved (in the top k)",
    says="how likely a retrieved relevant document ranks above a retrieved non-relevant one; "
    "unjudged documents count as not relevant, and Condensed(Accuracy) leaves them out",
    source="ir_measures; the area under the ROC curve of what was retrieved",
    low=0,
    high=1,
    undefined="no relevant document is retrieved, or no other document",
    cutoff="optional",
    parameters=(REL,),
    equals=(
        Equal(
            "ir_measures 0.4.3",
            "Accuracy, Accuracy@K",
            "where no scores tie: it keeps tied documents in file order; and it "
            "divides by 0 where only relevant documents are retrieved",
        ),
    ),
    example=Example(
        "Accuracy", (1, 0, None, 2), (1,), 0.5, "the first above 2, the fourth above none: 2 / 4"
    ),
)
def accuracy(evidence: Evidence, *, k: float | None, rel: float) -> Terms:
    """Share of retrieved pairs in the right order."""
    depth = np.minimum(evidence.returned, np.inf if k is None else k)
    counted = evidence.relevant(rel) & (evidence.rank <= (k or np.inf))
    found = evidence.per_query(counted)
    below = (depth - found)[evidence.query] - (evidence.rank - evidence.so_far(counted))
    pairs = found * (depth - found)
    return Terms.counting(counted, pairs, np.where(counted, below, 0.0))
