"""No-answer queries: how often a run returns nothing, and what a score threshold would change.

A system that always returns something is never silent; a threshold on the score of its first
document makes it silent, but also withholds right answers. The curve shows both: the trade-off
that abstention measures (nAUC in MTEB) express in one number.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.errors import InputError, UsageError
from karat.measures.evidence import Floats, Ints
from karat.tables.results import NoAnswer, Silence
from karat.tables.run import Run

MOST_POINTS = 200  # points of a curve; one with more is thinned

_EQUAL = 1e-12  # shares are quotients: equal differences of them differ in the last bits


def no_answer(
    run: Run,
    marked: Collection[str],
    answerable: Collection[str],
    threshold: float | None = None,
) -> NoAnswer:
    """How a run treats the queries that have no right answer.

    The best score of a query is that of its first document. A threshold withholds answers whose
    best score is below it (equal scores are shown); queries without documents (empty or missing)
    are silent at every threshold. Failed queries are always left out.

    The curve has a point for every finite threshold that makes a difference, lowest first: each
    distinct best score of the queries, and one just above the highest, at which only infinite
    scores are shown. The first point withholds nothing, like the run without a threshold.
    Infinite scores are not thresholds: at every point +inf is shown and -inf is withheld (even at
    the first); if none is finite and one is -inf, the curve is a single point at 0. It is empty if
    no threshold makes a difference, or n is 0.

    A curve of more than ``MOST_POINTS`` points is thinned to the first, the last, the one with the
    best Youden's J, the lowest threshold of each share of silent no-answer queries (no other
    threshold of that share withholds fewer right answers), and evenly spaced ones of the rest. If
    there are too many such shares, evenly spaced ones of them.

    Args:
        run: The run.
        marked: Queries that have no right answer; duplicates count once.
        answerable: Queries that have a relevant document.
        threshold: Also count answers whose best score is below it as silent; finite.

    Raises:
        UsageError: the threshold is not finite.
        InputError: a query is both marked and answerable.
    """
    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(
            f"the threshold {threshold} is not a finite number",
            fix="give a number in the range of the run's scores",
        )
    both = set(marked) & set(answerable)
    if both:
        raise InputError(
            "the query is marked no_answer but has a relevant document",
            query=min(both),
            fix="remove the mark, or judge the document again",
        )
    right, wrong = _replies(run, marked), _replies(run, answerable)
    silent = right.silent
    if threshold is not None:
        silent += int(np.searchsorted(right.best, threshold))
    return NoAnswer(
        run=run.name,
        n=right.n,
        silent=silent,
        share=silent / right.n if right.n else None,
        missing=right.missing,
        failed=right.failed,
        threshold=threshold,
        curve=_curve(right, wrong) if right.n else [],
    )


def best_threshold(curve: list[Silence]) -> tuple[Silence, float] | None:
    """The point of a curve with the best Youden's J, and that J.

    J is the share of no-answer queries silenced minus the share of answerable ones, -1 to 1: 1
    separates the two perfectly, 0 is no better than chance. Of equal ones the lowest threshold is
    taken, which withholds least; if it is the first of the curve, no threshold is better than
    none. Thinning always keeps the best point.

    The threshold is chosen on the queries it is measured on, so J is optimistic: expect less on
    new queries, especially if there are few here.

    Returns:
        None if the curve is empty or there were no answerable queries.

    Source: Youden 1950, doi:10.1002/1097-0142(1950)3:1<32::AID-CNCR2820030106>3.0.CO;2-3.
    """
    shares = [
        (p.silent_no_answer, p.silent_answerable) for p in curve if p.silent_answerable is not None
    ]
    if not shares:
        return None
    youden = np.array([right - wrong for right, wrong in shares])
    best = _first_best(youden)
    return curve[best], float(youden[best])


def thinned(curve: list[Silence], most: int) -> list[Silence]:
    """At most ``most`` points of a curve, including the first, best and last."""
    silenced = np.array([point.silent_no_answer for point in curve])
    lost = np.array([point.silent_answerable or 0.0 for point in curve])
    return [curve[index] for index in _thinned(silenced, silenced - lost, most)]


@dataclass(frozen=True, slots=True)
class _Replies:
    """Replies to some queries: best scores of answered ones, ascending, and counts of the rest."""

    best: Floats
    empty: int
    missing: int
    failed: int

    @property
    def silent(self) -> int:
        return self.empty + self.missing

    @property
    def n(self) -> int:
        return len(self.best) + self.silent

    def withheld(self, threshold: Floats) -> Floats:
        """Share of the n queries without an answer at each threshold."""
        share: Floats = (self.silent + np.searchsorted(self.best, threshold)) / self.n
        return share


def _replies(run: Run, queries: Collection[str]) -> _Replies:
    asked = pl.DataFrame({"query_id": list(set(queries))}, schema={"query_id": pl.String})
    first = pl.DataFrame(
        {"query_id": run.query_ids, "best": run.rows["score"].gather(run.starts[:-1])},
        schema={"query_id": pl.String, "best": pl.Float64},
    )
    best = asked.join(first, on="query_id", how="inner")["best"].sort().to_numpy()
    states = asked.join(run.answers.select("query_id", "state"), on="query_id", how="inner")
    counts = dict(states["state"].value_counts().iter_rows())
    return _Replies(
        # No threshold is printed as -0.0.
        best=best + 0.0,
        empty=counts.get("empty", 0),
        missing=asked.height - states.height,
        failed=counts.get("failed", 0),
    )


def _curve(right: _Replies, wrong: _Replies) -> list[Silence]:
    threshold = _thresholds(np.concatenate((right.best, wrong.best)))
    if not len(threshold):
        return []
    silenced = right.withheld(threshold)
    if not wrong.n:
        chosen = _thinned(silenced, silenced, MOST_POINTS)
        points = zip(threshold[chosen].tolist(), silenced[chosen].tolist(), strict=True)
        return [Silence(at, share, None) for at, share in points]
    lost = wrong.withheld(threshold)
    chosen = _thinned(silenced, silenced - lost, MOST_POINTS)
    columns = (threshold, silenced, lost)
    return [Silence(*point) for point in zip(*(c[chosen].tolist() for c in columns), strict=True)]


def _thresholds(best: Floats) -> Floats:
    """Every finite threshold that makes a difference, ascending."""
    finite = np.unique(best[np.isfinite(best)])
    if len(finite):
        above = math.nextafter(finite[-1], math.inf)
        return np.append(finite, above) if math.isfinite(above) else finite
    return np.zeros(1) if (best == -np.inf).any() else finite


def _thinned(silenced: Floats, youden: Floats, most: int) -> Ints:
    """Indices of the points to keep, ascending."""
    count = len(silenced)
    if count <= most:
        return np.arange(count)
    always = np.array([0, _first_best(youden), count - 1])
    changes = np.flatnonzero(np.diff(silenced, prepend=-1.0))
    for indices in (changes, np.arange(count)):
        more = _spread(np.setdiff1d(indices, always), most - len(always))
        always = np.union1d(always, more)
    return always


def _spread(indices: Ints, count: int) -> Ints:
    """At most ``count`` of some indices, evenly spaced."""
    if len(indices) <= count:
        return indices
    return indices[np.linspace(0, len(indices) - 1, count).astype(np.int64)]


def _first_best(youden: Floats) -> int:
    return int(np.argmax(youden >= youden.max() - _EQUAL))
