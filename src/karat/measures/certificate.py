"""Certificate: proof that a difference keeps its sign, computed from its pool alone.

The claim: for any grades from 0 to the highest of the unjudged documents in the pool (the same
grade in both runs), and any grades of up to ``unseen`` documents outside the pool in each query,
the mean difference is above 0 (or, for a candidate that is worse, below).

Why it holds. Judgments of different queries are independent, so the lowest value of the mean is
the mean of their lowest values. Within the pool those are proven in
``karat.measures.difference``. Documents outside it:

- P, SetP, RBP, DCG, RR, Success and ERR depend only on the documents shown: nothing changes.
- nDCG, R, SetR and Rcap are N / D, with N of the documents shown and D, the ideal or the number of
  relevant documents, the same for both runs. D does not fall when a judgment is added or improved.
  For any grades in the pool, D with up to u documents outside lies between D with none and with u
  of the greatest gain, and N / D between its values there (where D with none is 0, so is N, and
  0 / 0 counts as 0). So the lowest is reached with none or with u, and only falls as u grows:
  the largest u that still holds is found by doubling and halving.
- The ideal of nDCG@k and Rcap@k has room for k documents, so if u = k holds, any number does.
- R, SetR and nDCG without a cutoff: if no query's lowest value is below 0 and some are above,
  the same is true of N / D for any larger D, and any number holds.
- AP has only an outer interval, which does not separate numerator and denominator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from karat.errors import UsageError
from karat.measures.difference import difference_bounds, greatest_difference
from karat.measures.entry import Measure
from karat.measures.evidence import Evidence, Floats
from karat.measures.gains import discount_of, possible_gains
from karat.measures.linear_numerators import RECALLS, capped
from karat.measures.parameters import gain_of
from karat.measures.run_pair import Pair
from karat.measures.unjudged import can_be
from karat.tables.qrels import Qrels
from karat.tables.release.certificate import CertifiedQuery
from karat.tables.run import Run

SLACK = 1e-12  # how far from 0 an end must be: smaller values are rounding errors
MOST = 100_000  # the largest number of unseen documents to try, where there is room for any number

_UNTOUCHED = "{} depends only on the documents that the runs show"
_BOUNDED = "the ideal has room for {} documents, and the sign holds with all of them unseen"
_UNBOUNDED = "no query can change its sign, so the ideal only makes the difference smaller"
_NOT_KNOWN = "the effect of unseen documents on a difference in {} is not known"


@dataclass(frozen=True)
class Proof:
    """The range of a difference, and with how many unseen documents it keeps its sign."""

    low: Floats  # lowest difference of each query; shape (n,)
    high: Floats  # highest; shape (n,)
    ends: tuple[float, float]  # lowest and highest mean difference
    exact: bool  # whether these ends can be reached
    sign: int  # 1 or -1 if no grades can flip it, else 0
    unseen: int | None  # as in `Certificate`; None without a sign
    unseen_unlimited: bool  # as in `Certificate`; False without a sign
    reason: str  # as in `Certificate`
    # Ideal DCG or relevant documents of each query; shape (n,); None if the measure divides by
    # neither
    ideal: Floats | None
    # The same with the unseen; shape (n,); None likewise, or without a limit
    allowed: Floats | None


def certified_pair(queries: Sequence[CertifiedQuery], highest: float) -> Pair:
    """The two runs and the judgments of a certificate, on a scale from 0 to the highest grade.

    Grades begin at 0 even where the declared scale does not, as unjudged documents count as 0.
    """
    baseline, candidate = (
        Run.from_dict({query.query_id: _falling(getattr(query, run)) for query in queries}, run)
        for run in ("baseline", "candidate")
    )
    # A judgment below 0 does not count but keeps the query.
    judged = {q.query_id: dict(q.judgments) or {_other_than(q): -1.0} for q in queries}
    frame = Qrels.from_dict(judged).frame
    return Pair.of(baseline, candidate, Qrels(frame, "certificate", (0.0, highest)))


def prove(measure: Measure, pair: Pair, weights: Floats | None = None) -> Proof:
    """Compute the content of a certificate, over all queries of a pair.

    Args:
        measure: One whose difference is bounded.
        pair: From ``certified_pair``.
        weights: Above 0; shape (n,); equal if None.

    Raises:
        UsageError: the measure has no bounds, or gives a gain to documents that are not relevant.
    """
    _refuse_gain_of_irrelevant(measure)
    bounds = difference_bounds(measure, pair)
    ends = bounds.mean(weights=weights)
    if bounds.low is None or bounds.high is None or ends is None:
        raise UsageError(
            bounds.reason or "no query counts, so there is no difference",
            fix="nDCG@10, RBP(p=0.8) or P@10 instead" if bounds.reason else None,
        )
    sign = int(ends[0] > SLACK) - int(ends[1] < -SLACK)
    unseen, unlimited, reason = _unseen(measure, pair, sign, weights) if sign else (None, False, "")
    ideal = ideal_with(measure, pair.of_baseline, 0)
    most = _room(measure) if unlimited else unseen
    return Proof(
        low=bounds.low,
        high=bounds.high,
        ends=ends,
        exact=bounds.exact,
        sign=sign,
        unseen=unseen,
        unseen_unlimited=unlimited,
        reason=reason,
        ideal=ideal,
        allowed=None if most is None else ideal_with(measure, pair.of_baseline, most),
    )


def most_gain(measure: Measure, evidence: Evidence) -> float:
    """The greatest gain that an unjudged document can have in DCG and nDCG."""
    return float(possible_gains(evidence, measure.settings["gain"])[-1])


def counts_unseen(measure: Measure, grade: float) -> bool:
    """Whether a document outside the pool changes anything if it has this grade."""
    symbol = measure.entry.symbol
    if symbol == "nDCG":
        return bool(gain_of(np.array([grade]), measure.settings["gain"])[0] > 0)
    return symbol in RECALLS | {"AP"} and grade >= measure.settings["rel"]


def ideal_with(measure: Measure, evidence: Evidence, unseen: int) -> Floats | None:
    """Ideal DCG, or number of relevant documents, with ``unseen`` more of the greatest gain.

    Returns:
        Shape (n,); None for a measure that divides by neither.
    """
    symbol, settings = measure.entry.symbol, measure.settings
    if symbol in RECALLS:
        can, _ = can_be(evidence, settings["rel"])
        return capped(measure, evidence.num_rel(settings["rel"]) + can * unseen)
    if symbol == "AP":
        return evidence.num_rel(settings["rel"])
    if symbol != "nDCG":
        return None
    k, most = measure.cutoff, most_gain(measure, evidence)
    unseen = unseen if k is None else int(min(unseen, k))
    gain = gain_of(evidence.ideal_grade, settings["gain"])
    order = np.lexsort((-gain, evidence.ideal_query))
    query, gain = evidence.ideal_query[order], gain[order]
    first = np.searchsorted(query, np.arange(evidence.n + 1))
    deepest = int(np.diff(first).max(initial=0)) + unseen
    left = np.zeros(deepest)
    length = deepest if k is None else int(min(k, deepest))
    left[:length] = discount_of(settings["discount"], settings["base"])(np.arange(1, length + 1))
    below = gain <= most  # the unseen rank above these
    place = np.arange(len(gain)) - first[query] + unseen * below
    above = np.bincount(query, np.where(below, 0, 1), minlength=evidence.n).astype(np.int64)
    total = np.concatenate([[0.0], np.cumsum(left)])
    judged = np.bincount(query, gain * left[place], minlength=evidence.n)
    ideal: Floats = judged + most * (total[above + unseen] - total[above])
    return ideal


def _refuse_gain_of_irrelevant(measure: Measure) -> None:
    """With such a gain, unjudged documents would not count like judged, irrelevant ones."""
    gain = measure.settings.get("gain")
    if gain is None or isinstance(gain, str):
        return
    if any(grade <= 0 and value > 0 for grade, value in gain.items()):
        raise UsageError(
            f"{measure} gives a gain to documents that are not relevant, so unjudged documents "
            "cannot count as 0",
            fix="leave the grade 0 out of gain",
        )


def _room(measure: Measure) -> int | None:
    """How many documents the ideal has room for; None for all."""
    k = measure.cutoff
    # More than MOST are never tried.
    limited = measure.entry.symbol in {"nDCG", "Rcap"} and k is not None and k <= MOST
    return int(k) if limited and k is not None else None


def _unseen(
    measure: Measure, pair: Pair, sign: int, weights: Floats | None
) -> tuple[int | None, bool, str]:
    """``unseen``, ``unseen_unlimited`` and ``reason`` of a certificate."""
    if measure.entry.symbol == "AP":
        return None, False, _NOT_KNOWN.format(measure)
    if measure.entry.symbol not in RECALLS | {"nDCG"}:
        return None, True, _UNTOUCHED.format(measure)
    greatest = greatest_difference(measure, pair)
    # Below, the difference times its sign: its lowest value must stay above 0.
    lowest = 0.0 - greatest(-sign, 0)

    def holds(unseen: int) -> bool:
        worst = np.minimum(lowest, 0.0 - greatest(-sign, unseen))
        return float(np.average(worst, weights=weights)) > SLACK

    room = _room(measure)
    if room is not None and holds(room):
        return None, True, _BOUNDED.format(room)
    if room is None and (lowest >= 0).all():
        return None, True, _UNBOUNDED
    return _largest(holds, MOST if room is None else room), False, ""


def _largest(holds: Callable[[int], bool], most: int) -> int:
    """The largest number up to ``most`` that holds, where 0 holds and none does after the first
    that does not.
    """
    good, bad = 0, 1
    while bad <= most and holds(bad):
        good, bad = bad, bad * 2
    bad = min(bad, most + 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _falling(ranking: Sequence[str]) -> dict[str, float]:
    return {doc_id: -float(place) for place, doc_id in enumerate(ranking)}


def _other_than(query: CertifiedQuery) -> str:
    """A document id that the query does not have."""
    name = "none"
    while name in query.baseline or name in query.candidate:
        name += "-"
    return name
