"""Verdicts: what may be said of a difference between two runs, over all queries or a slice."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from karat.measures import Measure
from karat.measures.difference import DifferenceBounds
from karat.measures.evidence import Floats, Mask
from karat.measures.scores import Scores
from karat.stats.averages import mean
from karat.stats.effects import TIED, standardised, superiority, win_tie_loss
from karat.stats.intervals import Interval, bca_intervals, estimate, t_interval
from karat.stats.paired import (
    bootstrap,
    equivalence,
    non_inferiority,
    randomisation,
    sign_test,
    t_test,
    wilcoxon,
)
from karat.stats.power import queries_needed, smallest_difference
from karat.stats.shrinkage import shrunken
from karat.stats.weighing import Weighing
from karat.tables.comparison import Difference, Verdict

LEVEL = 0.05
TESTS = ("randomisation", "bootstrap", "t", "wilcoxon", "sign")
Correction = Callable[[Sequence[float | None]], list[float | None]]


@dataclass(frozen=True)
class Contrast:
    """Baseline and candidate under one measure.

    Attributes:
        baseline: Scores of the run compared with.
        candidate: Scores of the run in question, for the same queries.
        measure: The measure.
        bounds: What the unjudged could make of the difference; None if that is not asked.
    """

    baseline: Scores
    candidate: Scores
    measure: Measure
    bounds: DifferenceBounds | None = None

    @property
    def both(self) -> tuple[Floats, Floats]:
        """Their values; shape (n,) each."""
        return self.baseline.values[self.measure], self.candidate.values[self.measure]

    @property
    def difference(self) -> Floats:
        """Candidate minus baseline, NaN where one has no value; shape (n,)."""
        ours, theirs = self.both
        return theirs - ours

    @property
    def sign(self) -> float:
        """1 where more is better, -1 where less is."""
        return -1.0 if self.measure.entry.direction == "lower" else 1.0


@dataclass(frozen=True)
class Manner:
    """How differences are tested and what is said of them.

    Attributes:
        test: One of ``TESTS``.
        drawn: Resamples for BCa intervals, as ``resample`` gives them; None for Student's t.
        margin: Differences smaller than this do not matter; None if nobody said.
        resamples: Of the randomisation and bootstrap tests.
        seed: Of these.
        weighing: What each query counts for.
    """

    test: str
    drawn: Floats | None
    margin: float | None
    resamples: int
    seed: int
    weighing: Weighing

    def rows(self, contrasts: Sequence[Contrast], chosen: Mask) -> list[Difference]:
        """Differences over the chosen queries, p-values not corrected yet."""
        found: dict[int, Difference] = {}
        # Those over the same queries share their arrangements and resamples.
        alike: dict[bytes, list[int]] = {}
        for place, contrast in enumerate(contrasts):
            used = chosen & ~np.isnan(contrast.difference)
            alike.setdefault(used.tobytes(), []).append(place)
        for key, places in alike.items():
            used = np.frombuffer(key, np.bool_)
            columns = np.stack([contrasts[place].difference[used] for place in places], axis=1)
            tested = zip(places, self._spans(columns, used), self._p(columns, used), strict=True)
            found |= {i: self._row(contrasts[i], used, span, p) for i, span, p in tested}
        return [found[place] for place in range(len(contrasts))]

    def decided(
        self, contrasts: Sequence[Contrast], rows: Sequence[Difference], correct: Correction
    ) -> list[Difference]:
        """The rows of these contrasts with corrected p-values, and with what may be said."""
        family = sum(row.p is not None for row in rows)
        return [
            self._decided(replace(row, p_corrected=p), contrast.sign, family)
            for contrast, row, p in zip(
                contrasts, rows, correct([row.p for row in rows]), strict=True
            )
        ]

    def _spans(self, columns: Floats, used: Mask) -> list[Interval]:
        weights, strata = self.weighing.at(used)
        if self.drawn is None:
            return [t_interval(column, weights, strata) for column in columns.T]
        return bca_intervals(columns, self.drawn[:, used], weights, strata)

    def _p(self, columns: Floats, used: Mask) -> list[float | None]:
        """P-values, one for each column; None where nothing differs."""
        differing = [place for place, column in enumerate(columns.T) if not _same(column)]
        found: list[float | None] = [None] * columns.shape[1]
        if differing:
            tested = self._tested(columns[:, differing], *self.weighing.at(used))
            for place, p in zip(differing, tested, strict=True):
                found[place] = None if p is None or math.isnan(p) else p
        return found

    def _tested(
        self, columns: Floats, weights: Floats | None, strata: NDArray[np.int64] | None
    ) -> Sequence[float | None]:
        resamples, seed = self.resamples, self.seed
        if self.test == "randomisation":
            drawn = randomisation(columns, resamples=resamples, seed=seed, weights=weights)
            return [float(p) for p in drawn]
        if self.test == "bootstrap":
            drawn = bootstrap(
                columns, resamples=resamples, seed=seed, weights=weights, strata=strata
            )
            return [float(p) for p in drawn]
        if self.test == "t":
            return [t_test(column, weights, strata).p for column in columns.T]
        exact = wilcoxon if self.test == "wilcoxon" else sign_test
        return [exact(column).p for column in columns.T]

    def _row(self, contrast: Contrast, used: Mask, span: Interval, p: float | None) -> Difference:
        difference = contrast.difference[used]
        weights, strata = self.weighing.at(used)
        n = len(difference)
        ours, theirs = (values[used] for values in contrast.both)
        wins, ties, losses = win_tie_loss(contrast.sign * difference)
        centre = mean(difference, weights) if n else None
        known = estimate(difference, weights, strata)
        error = None if isinstance(known, str) else known.error
        spread = (error or 0.0) * math.sqrt(n)  # with weights and strata, what the design makes it
        found = spread > TIED and centre is not None and abs(centre) > TIED
        low, high, exact = _ends(contrast, used, weights, centre)
        return Difference(
            baseline=contrast.baseline.run.name,
            candidate=contrast.candidate.run.name,
            measure=str(contrast.measure),
            baseline_value=mean(ours, weights) if n else None,
            candidate_value=mean(theirs, weights) if n else None,
            difference=centre,
            standard_error=error,
            ci_low=span.low,
            ci_high=span.high,
            n=n,
            p=p,
            p_corrected=None,
            not_worse_p=self._not_worse(contrast.sign * difference, weights, strata),
            standardised=standardised(difference, weights),
            superiority=superiority(contrast.sign * difference, weights),
            wins=wins,
            ties=ties,
            losses=losses,
            smallest=smallest_difference(spread, n) if n > 1 and spread > 0 else None,
            needed=queries_needed(spread, abs(centre)) if found and centre else None,
            unjudged_low=low,
            unjudged_high=high,
            unjudged_exact=exact,
            verdict=self._undecided(difference, weights, strata),
            reason="",
        )

    def _not_worse(
        self, gain: Floats, weights: Floats | None, strata: NDArray[np.int64] | None
    ) -> float | None:
        if self.margin is None or len(gain) < 2:
            return None
        return non_inferiority(gain, self.margin, weights, strata).p

    def _undecided(
        self, difference: Floats, weights: Floats | None, strata: NDArray[np.int64] | None
    ) -> Verdict:
        """What is known before p-values are corrected."""
        if len(difference) and _same(difference):
            return "identical"
        if self.margin is not None and len(difference) > 1:
            found = equivalence(difference, self.margin, weights, strata)
            if found.p is not None and found.p <= LEVEL:
                return "equivalent"
        return "cannot tell"

    def _decided(self, row: Difference, sign: float, family: int) -> Difference:
        p = row.p_corrected
        over = f" after correction over {family} comparisons" if family > 1 else ""
        if row.verdict == "identical":
            return replace(row, reason="every query has the same value in both")
        if p is not None and p <= LEVEL and row.difference:
            ahead = row.wins > row.losses if row.wins != row.losses else None
            up = sign * row.difference > 0
            against = "" if ahead in (None, up) else ", though on fewer queries than it is not"
            verdict: Verdict = "better" if up else "worse"
            small = ""
            if row.verdict == "equivalent":
                small = f"; yet smaller than {self.margin:g}, so it may not matter"
            reason = f"p {_p_text(p)}{over}{against}{small}{_reversible(row)}"
            return replace(row, verdict=verdict, reason=reason)
        if row.verdict == "equivalent":
            return replace(row, reason=f"the difference is smaller than {self.margin:g}")
        held = ""
        if row.not_worse_p is not None and row.not_worse_p <= LEVEL:
            held = f"; not more than {self.margin:g} worse (p {_p_text(row.not_worse_p)})"
        return replace(row, reason=_why_not(row) + held)


def drawn_to_wholes(wholes: Sequence[Difference], rows: Sequence[Difference]) -> list[Difference]:
    """Slices drawn towards the whole, each under its own measure and candidate."""
    out: dict[int, float] = {}
    for whole in wholes:
        if whole.difference is None:
            continue
        held = [
            i
            for i, row in enumerate(rows)
            if (row.candidate, row.measure) == (whole.candidate, whole.measure)
            and row.difference is not None
        ]
        estimates = np.array([rows[i].difference for i in held], np.float64)
        errors = np.array([rows[i].standard_error for i in held], np.float64)  # None is NaN
        for i, value in zip(held, shrunken(estimates, errors, whole.difference), strict=True):
            out[i] = float(value)
    return [replace(row, shrunk=out.get(i)) for i, row in enumerate(rows)]


def _ends(
    contrast: Contrast, used: Mask, weights: Floats | None, centre: float | None
) -> tuple[float | None, float | None, bool | None]:
    found = contrast.bounds
    ends = found.mean(used, weights) if found is not None and centre is not None else None
    if found is None or ends is None or centre is None:
        return None, None, None
    if contrast.baseline.evidence.scale[0] > 0:
        return *ends, found.exact  # the difference takes the unjudged as 0, which is off the scale
    return min(ends[0], centre), max(ends[1], centre), found.exact


def _reversible(row: Difference) -> str:
    """Whether documents that nobody judged could turn the sign."""
    low, high = row.unjudged_low, row.unjudged_high
    if low is None or high is None:
        return ""
    if low > TIED or high < -TIED:
        return "; no grade of the unjudged turns the sign"
    sure = "could" if row.unjudged_exact else "might"
    return f"; but the unjudged {sure} turn it ({low:+.3f} to {high:+.3f})".replace("-", "−")


def _same(difference: Floats) -> bool:
    """Whether nothing differs, but for the last bits of a sum."""
    return bool((np.abs(difference) <= TIED).all())


def _why_not(row: Difference) -> str:
    if row.n < 2 or row.smallest is None:
        return "too few queries" if row.n else "no query has a value in both"
    seen = f"these {row.n} queries show {row.smallest:.3f} or more (four times in five)"
    if row.needed is None or row.difference is None or row.needed <= row.n:
        return seen
    return (
        f"{seen}; to show {abs(row.difference):.3f} would take {row.needed:,}, "
        f"{row.needed - row.n:,} more than there are"
    )


def _p_text(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "below 0.0001"
