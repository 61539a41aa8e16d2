"""Verdicts on the difference between two runs, over all queries or a slice."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from karat.errors import UsageError, nearest
from karat.measures import Measure
from karat.measures.difference import DifferenceBounds
from karat.measures.evidence import Mask
from karat.measures.scores import Scores
from karat.stats.averages import Floats, mean
from karat.stats.effects import TIED, standardised, superiority, win_tie_loss
from karat.stats.imputation import combined
from karat.stats.intervals import (
    LEAST,
    Interval,
    bca_intervals,
    difference_range,
    estimate,
    shown,
    t_interval,
)
from karat.stats.leaderboard import PairTest
from karat.stats.paired import (
    MarginTest,
    bootstrap,
    equivalence,
    non_inferiority,
    randomisation,
    sign_test,
    t_test,
    wilcoxon,
)
from karat.stats.power import queries_needed, smallest_difference
from karat.stats.weighing import Weighing
from karat.tables.comparison import Difference, Verdict

LEVEL = 0.05
LEAST_RESAMPLES = 100
MOST_RESAMPLES = 10_000_000
UNWEIGHTED = ("wilcoxon", "sign")
TESTS = ("randomisation", "bootstrap", "t", "wilcoxon", "sign")
Correction = Callable[[Sequence[float | None]], list[float | None]]


@dataclass(frozen=True)
class Contrast:
    """Baseline and candidate under one measure."""

    baseline: Scores
    candidate: Scores  # scores of the candidate, for the same queries
    measure: Measure
    # Bounds of the difference over grades of the unjudged; None if not requested
    bounds: DifferenceBounds | None = None

    @property
    def both(self) -> tuple[Floats, Floats]:
        """Their values; shape (n,) each."""
        return self.baseline.values[self.measure], self.candidate.values[self.measure]

    @property
    def difference(self) -> Floats:
        """Candidate minus baseline, NaN where one has no value; shape (n,)."""
        baseline, candidate = self.both
        return candidate - baseline

    @property
    def draws(self) -> Floats | None:
        """Differences in each draw of uncertain grades; shape (draws, n); None if certain."""
        if not self.candidate.draws:
            return None
        return self.candidate.draws[self.measure] - self.baseline.draws[self.measure]

    @property
    def sign(self) -> float:
        """1 if higher is better, -1 if lower is."""
        return -1.0 if self.measure.entry.direction == "lower" else 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """A difference before its p-values are corrected."""

    contrast: Contrast  # the runs and the measure
    row: Difference  # the difference; its verdict is `identical` or still open (`cannot tell`)
    # Whether the test contradicts the direction of the mean, as tests of ranks or signs may
    contrary: bool


@dataclass(frozen=True)
class Testing:
    """How differences are tested and judged."""

    test: str  # one of `TESTS`
    drawn: Floats | None  # resamples for BCa intervals, from `resample`; None for Student's t
    margin: float | None  # differences smaller than this do not matter; None if not set
    resamples: int  # of the randomisation and bootstrap tests
    seed: int  # their random seed
    weighing: Weighing  # weights of the queries

    def __post_init__(self) -> None:
        """Validate the settings.

        Raises:
            UsageError: an unknown test, a test that does not support weights with weighted
                queries, or a margin, seed or number of resamples out of range.
        """
        if self.test not in TESTS:
            near = nearest(str(self.test), TESTS) or TESTS
            raise UsageError(f"unknown test {self.test!r}", nearest=near)
        if self.test in UNWEIGHTED and self.weighing.weights is not None:
            raise UsageError(
                f"the {self.test} test does not support weights, and the queries have some",
                fix="--test randomisation, bootstrap or t",
            )
        if self.margin is not None and not 0 < self.margin < math.inf:
            raise UsageError(
                f"a margin of {self.margin:g} is not above 0", fix="--margin 0.01, for example"
            )
        if self.seed < 0 or not LEAST_RESAMPLES <= self.resamples <= MOST_RESAMPLES:
            raise UsageError(
                f"seed {self.seed} or {self.resamples:,} resamples out of range",
                fix=f"a seed from 0, and {LEAST_RESAMPLES} to {MOST_RESAMPLES:,} resamples",
            )

    def measured(
        self,
        contrasts: Sequence[Contrast],
        chosen: Mask,
        attribute: str | None = None,
        value: str | None = None,
    ) -> list[Measured]:
        """Differences over the chosen queries; of a slice, if an attribute and value are given."""
        measured: dict[int, Measured] = {}
        # Contrasts over the same queries share their arrangements and resamples.
        alike: dict[bytes, list[int]] = {}
        for place, contrast in enumerate(contrasts):
            used = chosen & ~np.isnan(contrast.difference)
            alike.setdefault(used.tobytes(), []).append(place)
        for key, places in alike.items():
            used = np.frombuffer(key, np.bool_)
            columns = np.stack([contrasts[place].difference[used] for place in places], axis=1)
            spans, tests = self._spans(columns, used), self._tests(columns, used)
            spans = [
                self._with_draws(contrasts[place], span, chosen, used)
                for place, span in zip(places, spans, strict=True)
            ]
            for place, span, test in zip(places, spans, tests, strict=True):
                p, direction = test
                row = self._row(contrasts[place], used, span, p)
                contrary = _size(row) > TIED and (row.difference or 0.0) * direction < 0
                row = replace(row, attribute=attribute, slice=value)
                measured[place] = Measured(contrasts[place], row, contrary)
        return [measured[place] for place in range(len(contrasts))]

    def decided(
        self,
        family: Sequence[Measured],
        correct: Correction,
        level: float | None = None,
        pairs: Sequence[PairTest | None] | None = None,
    ) -> list[Difference]:
        """The rows with p-values corrected over all of them, and with verdicts.

        Args:
            family: From ``measured``.
            correct: Holm, or Benjamini and Hochberg.
            level: Level for power; if None, that of each test in a family of this size.
            pairs: P-values from the family of all pairs of runs, one for each of ``family``,
                instead of those of the test; None to use the test's.
        """
        rows = [measured.row for measured in family]
        corrected = correct([row.p for row in rows])
        tests = sum(row.p is not None for row in rows)
        if pairs is not None:
            rows = [
                replace(row, p=None if pair is None else pair.p)
                for row, pair in zip(rows, pairs, strict=True)
            ]
            corrected = [None if pair is None else pair.p_corrected for pair in pairs]
            tests = max((pair.family for pair in pairs if pair is not None), default=0)
        alone = LEVEL / max(tests, 1) if level is None else level
        completed = [
            replace(
                _powered(row, alone), p_corrected=p, family=tests, equivalence_p=e, not_worse_p=w
            )
            for row, p, e, w in zip(
                rows,
                corrected,
                correct([row.equivalence_p for row in rows]),
                correct([row.not_worse_p for row in rows]),
                strict=True,
            )
        ]
        pairs_of = zip(family, completed, strict=True)
        return [self._decided(measured, row) for measured, row in pairs_of]

    def _spans(self, columns: Floats, used: Mask) -> list[Interval]:
        weights, strata = self.weighing.at(used)
        if self.drawn is None:
            return [t_interval(column, weights, strata) for column in columns.T]
        return bca_intervals(columns, self.drawn[:, used], weights, strata)

    def _with_draws(self, contrast: Contrast, span: Interval, chosen: Mask, used: Mask) -> Interval:
        """The interval with the uncertainty of the grades, if they have one."""
        draws = contrast.draws
        if draws is None or self.drawn is not None:
            return span
        known = estimate(contrast.difference[used], *self.weighing.at(used))
        if isinstance(known, str):
            return span
        return combined(known, self.weighing.means(draws, chosen)).interval(known.centre)

    def _tests(self, columns: Floats, used: Mask) -> list[tuple[float | None, int]]:
        """P-value, None without differences, and direction of each column."""
        differing = [place for place, column in enumerate(columns.T) if not _same(column)]
        tests: list[tuple[float | None, int]] = [(None, 0)] * columns.shape[1]
        if differing:
            tested = self._tested(columns[:, differing], *self.weighing.at(used))
            for place, (p, direction) in zip(differing, tested, strict=True):
                tests[place] = (None if p is None or math.isnan(p) else p, direction)
        return tests

    def _tested(
        self, columns: Floats, weights: Floats | None, strata: NDArray[np.int64] | None
    ) -> Sequence[tuple[float | None, int]]:
        resamples, seed = self.resamples, self.seed
        by_mean = [int(np.sign(mean(column, weights))) for column in columns.T]
        if self.test == "randomisation":
            drawn = randomisation(columns, resamples=resamples, seed=seed, weights=weights)
            return list(zip(drawn.tolist(), by_mean, strict=True))
        if self.test == "bootstrap":
            drawn = bootstrap(
                columns, resamples=resamples, seed=seed, weights=weights, strata=strata
            )
            return list(zip(drawn.tolist(), by_mean, strict=True))
        if self.test == "t":
            tests = [t_test(column, weights, strata) for column in columns.T]
        else:
            exact = wilcoxon if self.test == "wilcoxon" else sign_test
            tests = [exact(column) for column in columns.T]
        return [(test.p, test.direction) for test in tests]

    def _row(self, contrast: Contrast, used: Mask, span: Interval, p: float | None) -> Difference:
        difference = contrast.difference[used]
        weights, strata = self.weighing.at(used)
        n = len(difference)
        before, after = (values[used] for values in contrast.both)
        wins, ties, losses = win_tie_loss(contrast.sign * difference)
        known = estimate(difference, weights, strata)
        if n and float(np.ptp(difference)) <= TIED:  # but for rounding, all are equal
            known, span = "no spread", Interval(None, None, "all differences are equal")
        span = shown(span, difference, *difference_range(contrast.measure))
        centre = mean(difference, weights) if n else None
        low, high, exact = _unjudged_ends(contrast, used, self.weighing.over(used), centre)
        return Difference(
            baseline=contrast.baseline.run.name,
            candidate=contrast.candidate.run.name,
            measure=str(contrast.measure),
            baseline_value=mean(before, weights) if n else None,
            candidate_value=mean(after, weights) if n else None,
            difference=centre,
            standard_error=None if isinstance(known, str) else known.error,
            ci_low=span.low,
            ci_high=span.high,
            ci_method=None if span.low is None else "t" if self.drawn is None else "bca",
            ci_reason=span.reason or span.cut,
            n=n,
            p=p,
            p_corrected=None,
            family=0,
            equivalence_p=self._margin_p(equivalence, difference, weights, strata),
            not_worse_p=self._margin_p(
                non_inferiority, contrast.sign * difference, weights, strata
            ),
            standardised=standardised(difference, weights),
            superiority=superiority(contrast.sign * difference, weights),
            wins=wins,
            ties=ties,
            losses=losses,
            smallest_detected=None,
            queries_needed=None,
            unjudged_low=low,
            unjudged_high=high,
            unjudged_exact=exact,
            verdict="identical" if n and _same(difference) else "cannot tell",
            reason="",
        )

    def _margin_p(
        self,
        against: Callable[..., MarginTest],
        difference: Floats,
        weights: Floats | None,
        strata: NDArray[np.int64] | None,
    ) -> float | None:
        if self.margin is None or len(difference) < 2:
            return None
        return against(difference, self.margin, weights, strata).p

    def _decided(self, measured: Measured, row: Difference) -> Difference:
        if row.verdict == "identical":
            return replace(row, reason="every query has the same value in both")
        equal = row.equivalence_p is not None and row.equivalence_p <= LEVEL
        found = row.p_corrected is not None and row.p_corrected <= LEVEL and _size(row) > TIED
        if found and measured.contrary:
            reason = f"the {self.test} test contradicts the direction of the mean ({_p(row)})"
            return replace(row, reason=reason)
        if measured.contrast.draws is not None and self.drawn is None:
            equal = equal and self.margin is not None and _within(row, self.margin)
            if found and _spans_zero(row):
                reason = "the interval with the uncertainty of the grades includes 0"
                return replace(row, reason=f"{reason} ({_p(row)})")
        if found and row.difference:
            up = measured.contrast.sign * row.difference > 0
            verdict: Verdict = "better" if up else "worse"
            ahead = row.wins > row.losses if row.wins != row.losses else None
            against = "" if ahead in (None, up) else ", though on fewer queries than it is not"
            small = f"; yet smaller than {self.margin:g}, so it may not matter" if equal else ""
            return replace(row, verdict=verdict, reason=f"{_p(row)}{against}{small}{_turned(row)}")
        if equal and self.margin is not None:
            reason = f"smaller than {self.margin:g} (p {_p_text(row.equivalence_p)})"
            low, high = row.unjudged_low, row.unjudged_high
            if low is not None and high is not None and max(-low, high) >= self.margin:
                reason += f"; the unjudged could make it {_span(low, high)}"
            return replace(row, verdict="equivalent", reason=reason)
        not_worse = ""
        if row.not_worse_p is not None and row.not_worse_p <= LEVEL:
            not_worse = f"; not more than {self.margin:g} worse (p {_p_text(row.not_worse_p)})"
        return replace(row, reason=_why_not(row) + not_worse)


def _powered(row: Difference, level: float) -> Difference:
    """The row with the smallest difference that its queries detect, and the queries needed."""
    if row.standard_error is None or row.difference is None or row.n < 2:
        return row
    spread = row.standard_error * math.sqrt(row.n)  # includes the effect of weights
    if spread <= TIED:
        return row
    size = _size(row)
    return replace(
        row,
        smallest_detected=smallest_difference(spread, row.n, alpha=level),
        queries_needed=queries_needed(spread, size, alpha=level) if size > TIED else None,
    )


def _spans_zero(row: Difference) -> bool:
    return row.ci_low is not None and row.ci_high is not None and row.ci_low <= 0 <= row.ci_high


def _within(row: Difference, margin: float) -> bool:
    low, high = row.ci_low, row.ci_high
    return low is not None and high is not None and max(-low, high) < margin


def _size(row: Difference) -> float:
    return abs(row.difference or 0.0)


def _unjudged_ends(
    contrast: Contrast, used: Mask, weights: Floats | None, centre: float | None
) -> tuple[float | None, float | None, bool | None]:
    bounds = contrast.bounds
    ends = bounds.mean(used, weights) if bounds is not None and centre is not None else None
    if bounds is None or ends is None or centre is None:
        return None, None, None
    if contrast.baseline.evidence.scale[0] > 0:
        return *ends, bounds.exact  # the difference counts the unjudged as 0, outside the scale
    return min(ends[0], centre), max(ends[1], centre), bounds.exact


def _turned(row: Difference) -> str:
    """Whether unjudged documents could flip the sign."""
    low, high = row.unjudged_low, row.unjudged_high
    if low is None or high is None:
        return ""
    if not row.sign_could_flip:
        return "; no grades of the unjudged flip the sign"
    sure = "could" if row.unjudged_exact else "might"
    return f"; but the unjudged {sure} flip it ({_span(low, high)})"


def _same(difference: Floats) -> bool:
    """Whether nothing differs, but for the last bits of a sum."""
    return bool((np.abs(difference) <= TIED).all())


def _why_not(row: Difference) -> str:
    if not row.n:
        return "no query has a value in both"
    if row.n < 2:
        return "one query is not enough for a test"
    if row.smallest_detected is None:
        return "the difference has no spread for a test"
    before = f"{_p(row)}; " if row.p is not None and row.p <= LEVEL else ""
    if row.n < LEAST:
        return f"{before}{row.n} queries are too few to detect anything"
    detects = f"{before}{row.n} queries detect {row.smallest_detected:.3f} or more (power 80 %)"
    if row.queries_needed is None or row.difference is None or row.queries_needed <= row.n:
        return detects
    more = row.queries_needed - row.n
    return f"{detects}; to detect {abs(row.difference):.3f} takes {more:,} more"


def _p(row: Difference) -> str:
    if row.family > 1:
        alone, corrected = _p_text(row.p), _p_text(row.p_corrected)
        return f"p {corrected} corrected over {row.family} comparisons ({alone} alone)"
    return f"p {_p_text(row.p)}"


def _p_text(p: float | None) -> str:
    if p is None:
        return "unknown"
    return f"{p:.4f}" if p >= 0.0001 else "below 0.0001"


def _span(low: float, high: float) -> str:
    return f"{low:+.3f} to {high:+.3f}".replace("-", "−")


def shrunken(estimates: Floats, errors: Floats, centre: float) -> Floats:
    """Estimates shrunk towards the centre according to their precision; shape (s,).

    The variance between slices beyond that of their errors is estimated by moments; if it is 0,
    all estimates become the centre.

    Args:
        estimates: One for each slice; shape (s,).
        errors: Their standard errors, 0 or more; NaN where a slice has none, which shrinks it to
            the centre; shape (s,).
        centre: The overall estimate.

    Source: DerSimonian & Laird 1986, doi:10.1016/0197-2456(86)90046-2, for the spread; Efron &
    Morris 1975 for the estimate.
    """
    known = np.isfinite(errors) & (errors > 0)
    between = 0.0
    if known.sum() > 1:
        weight = 1.0 / errors[known] ** 2
        pooled = (weight * estimates[known]).sum() / weight.sum()
        excess = (weight * (estimates[known] - pooled) ** 2).sum() - (known.sum() - 1)
        room = weight.sum() - (weight**2).sum() / weight.sum()
        between = max(0.0, excess / room) if room > 0 else 0.0  # 0: one weight is all
    trust = np.zeros(len(estimates))
    trust[known] = between / (between + errors[known] ** 2)
    trust[errors == 0] = 1.0 if between > 0 else 0.0
    out: Floats = centre + trust * (estimates - centre)
    return out


def shrink_slices(
    wholes: Sequence[Difference],
    rows: Sequence[Difference],
    apart: Collection[tuple[str, str | None, str | None]] = (),
) -> list[Difference]:
    """Differences in slices shrunk towards the overall one of the same measure and candidate.

    The error of a slice is the overall one, scaled to its number of queries, so a few queries that
    happen to agree do not look certain. Slices are assumed to share no query; if they do, this is
    an approximation. A slice in which both runs are identical stays at 0.

    Args:
        wholes: Over all queries.
        rows: In slices.
        apart: Candidate, attribute and value of slices whose queries have zero weight: they are
            neither shrunk nor used to estimate the variance between slices.
    """
    out: dict[int, float] = {}
    for whole in wholes:
        if whole.difference is None or whole.standard_error is None:
            continue
        members = [
            i
            for i, row in enumerate(rows)
            if (row.candidate, row.measure) == (whole.candidate, whole.measure)
            and (row.candidate, row.attribute, row.slice) not in apart
            and row.n > 1
            and row.verdict != "identical"
        ]
        estimates = np.array([rows[i].difference for i in members], np.float64)
        errors = np.array([whole.standard_error * math.sqrt(whole.n / rows[i].n) for i in members])
        out |= zip(members, shrunken(estimates, errors, whole.difference).tolist(), strict=True)
    return [
        replace(row, shrunk=row.difference if row.verdict == "identical" else out.get(i))
        for i, row in enumerate(rows)
    ]
