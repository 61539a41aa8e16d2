"""Compare: is a difference real, how large could it be, and on which queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from karat.errors import UsageError, nearest
from karat.measures import Measure
from karat.measures.difference import DifferenceBounds, difference_bounds
from karat.measures.evidence import Floats, Mask
from karat.measures.next_judgments import next_judgments
from karat.measures.pair import Pair
from karat.measures.scores import Scores
from karat.reports.figures import counted, percent
from karat.stats import mean, t_interval
from karat.stats.effects import TIED, standardised, win_tie_loss
from karat.stats.intervals import TRUSTED_FROM
from karat.stats.multiplicity import benjamini_hochberg, holm
from karat.stats.paired import equivalence, randomisation, sign_test, t_test, wilcoxon
from karat.stats.power import queries_needed, smallest_difference
from karat.stats.shrinkage import shrunken
from karat.stats.weighing import Weighing
from karat.tables.comparison import Comparison, Difference, NextJudgment, QueryDifference, Verdict
from karat.workflows.settle import check_types, names, settle
from karat.workflows.slices import slices_of

TESTS = ("randomisation", "t", "wilcoxon", "sign")
LEVEL = 0.05


def compare(
    qrels: Any,
    baseline: Any,
    candidates: Any,
    measures: str | Iterable[str] | None = None,
    *,
    queries: Any = None,
    documents: Any = None,
    by: str | Sequence[str] = (),
    test: str = "randomisation",
    margin: float | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    judge_next: int = 0,
    rel: float | None = None,
    complete: bool = False,
    depth: int | None = None,
    judged_only: bool = False,
    collapse: str | None = None,
    scale: str | tuple[float, float] | None = None,
) -> Comparison:
    """Compare runs with a baseline, query by query.

    Args:
        qrels: As ``evaluate`` takes them.
        baseline: The run to be compared with.
        candidates: One run or a list of them.
        measures: As ``evaluate`` takes them.
        queries: As ``evaluate`` takes them.
        documents: As ``evaluate`` takes them.
        by: Query attribute or attributes to slice by.
        test: randomisation | t | wilcoxon | sign: where the p-values come from.
        margin: Differences smaller than this do not matter; needed for ``equivalent``.
        resamples: Of the randomisation test, where it is not exact.
        seed: Of the randomisation test.
        judge_next: So many pairs to judge next: those whose grades say most about the sign, for
            the first candidate and measure.
        rel: As in ``evaluate``; so the following.
        complete: Every query of the qrels counts.
        depth: Cut rankings after so many documents.
        judged_only: Drop unjudged documents.
        collapse: Fold chunks into the document named in this column of ``documents``.
        scale: Lowest and highest grade that a judgment can give.

    Raises:
        UsageError: an unknown measure, attribute or test, or a margin not above 0.
        InputError: runs and judgments that do not belong together.
    """
    check_types(seed=seed, margin=margin, resamples=resamples, judge_next=judge_next)
    if test not in TESTS:
        raise UsageError(f"there is no test called {test!r}", nearest=nearest(test, TESTS) or TESTS)
    if margin is not None and not 0 < margin < math.inf:
        raise UsageError(f"a margin of {margin:g} is not above 0", fix="--margin 0.01, for example")
    if seed < 0 or resamples < 100:
        raise UsageError(
            f"seed {seed} and {resamples:,} resamples cannot be",
            fix="a seed from 0, and 100 resamples at least",
        )
    several = candidates if isinstance(candidates, list | tuple) else [candidates]
    asked = settle(
        qrels,
        [baseline, *several],
        measures,
        queries=queries,
        documents=documents,
        rel=rel,
        complete=complete,
        depth=depth,
        judged_only=judged_only,
        collapse=collapse,
        scale=scale,
    )
    if len(asked.runs) < 2:
        raise UsageError("nothing to compare with the baseline", fix="name a second run")
    for measure in asked.measures:
        if measure.aggregate != "mean":
            raise UsageError(
                f"{measure} is a {measure.aggregate} and no mean over queries, so there are no "
                "differences to test",
                fix="compare AP, for example",
            )
    first, *others = asked.scored()
    weighing = Weighing.of(asked.about, first.evidence.query_ids)
    manner = _Manner(test, margin, resamples, seed, weighing)
    everything = np.ones(first.evidence.n, np.bool_)
    depth = asked.rules.depth
    tops = [
        Pair(first.run, other.run, asked.qrels, first.evidence, other.evidence, depth)
        for other in others
    ]
    pairs = [
        _Pair(first, other, measure, None if judged_only else difference_bounds(measure, top))
        for other, top in zip(others, tops, strict=True)
        for measure in asked.measures
    ]
    rows = manner.corrected([(pair, manner.row(pair, everything)) for pair in pairs], holm)
    slices: list[Difference] = []
    for attribute in names(by, "by") or ():
        parts = slices_of(asked.about, attribute, first)
        found = [
            (pair, replace(manner.row(pair, chosen), attribute=attribute, slice=value))
            for pair in pairs
            for value, chosen in parts
        ]
        slices += _shrunk(rows, manner.corrected(found, benjamini_hochberg))
    listed = [row for pair in pairs for row in _queries(pair)]
    said = _notes(rows, slices, others, first)
    if any(row.unjudged_high is not None for row in rows):
        low, high = asked.qrels.scale
        said.append(
            f"what the unjudged could do is over all grades from {low:g} to {high:g} of documents "
            "in either run down to the cutoff, the same in both runs; others count as not relevant"
        )
    telling = _judge_next(pairs[0], tops[0], judge_next, weighing) if judge_next else []
    return Comparison(first.run.name, test, rows, slices, listed, said, telling)


@dataclass(frozen=True)
class _Pair:
    """Baseline and candidate under one measure."""

    baseline: Scores
    candidate: Scores
    measure: Measure
    bounds: DifferenceBounds | None

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
class _Manner:
    """How differences are tested."""

    test: str
    margin: float | None
    resamples: int
    seed: int
    weighing: Weighing

    def row(self, pair: _Pair, chosen: Mask) -> Difference:
        """One difference over the chosen queries; p is not corrected yet."""
        used = chosen & ~np.isnan(pair.difference)
        difference = pair.difference[used]
        weights, strata = self.weighing.at(used)
        n = len(difference)
        span = t_interval(difference, weights, strata)
        ours, theirs = (values[used] for values in pair.both)
        wins, ties, losses = win_tie_loss(pair.sign * difference)
        spread = float(difference.std(ddof=1)) if n > 1 else 0.0
        centre = mean(difference, weights) if n else None
        found = spread > TIED and centre is not None and abs(centre) > TIED
        low, high, exact = _ends(pair, used, weights, centre)
        return Difference(
            baseline=pair.baseline.run.name,
            candidate=pair.candidate.run.name,
            measure=str(pair.measure),
            baseline_value=mean(ours, weights) if n else None,
            candidate_value=mean(theirs, weights) if n else None,
            difference=centre,
            ci_low=span.low,
            ci_high=span.high,
            n=n,
            p=self._p(difference, weights, strata),
            p_corrected=None,
            standardised=standardised(difference, weights),
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

    def corrected(
        self, tested: Sequence[tuple[_Pair, Difference]], correct: Any
    ) -> list[Difference]:
        """The rows with corrected p-values, and with what may be said."""
        adjusted = correct([row.p for _, row in tested])
        family = sum(row.p is not None for _, row in tested)
        return [
            self._decided(replace(row, p_corrected=p), pair.sign, family)
            for (pair, row), p in zip(tested, adjusted, strict=True)
        ]

    def _p(self, difference: Floats, weights: Floats | None, strata: Any) -> float | None:
        if _same(difference):
            return None
        if self.test == "randomisation":
            found = randomisation(
                difference, resamples=self.resamples, seed=self.seed, weights=weights
            )
            return float(found.item())
        if self.test == "t":
            return t_test(difference, weights, strata).p
        return (wilcoxon if self.test == "wilcoxon" else sign_test)(difference).p

    def _undecided(self, difference: Floats, weights: Floats | None, strata: Any) -> Verdict:
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
        return replace(row, reason=_why_not(row))


def _judge_next(pair: _Pair, top: Pair, count: int, weighing: Weighing) -> list[NextJudgment]:
    used = ~np.isnan(pair.difference)
    found = next_judgments(pair.measure, top, count, used=used, weights=weighing.weights)
    return [NextJudgment(**row) for row in found.iter_rows(named=True)]


def _ends(
    pair: _Pair, used: Mask, weights: Floats | None, centre: float | None
) -> tuple[float | None, float | None, bool | None]:
    found = pair.bounds
    ends = found.mean(used, weights) if found is not None and centre is not None else None
    if found is None or ends is None or centre is None:
        return None, None, None
    if pair.baseline.evidence.scale[0] > 0:
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
    return f"{seen}; to show {abs(row.difference):.3f} would take {row.needed:,}"


def _p_text(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "below 0.0001"


def _shrunk(rows: Sequence[Difference], slices: Sequence[Difference]) -> list[Difference]:
    """Slices drawn towards the whole, each under its own measure and candidate."""
    out = {}
    for whole in rows:
        if whole.difference is None:
            continue
        held = [
            i
            for i, row in enumerate(slices)
            if (row.candidate, row.measure) == (whole.candidate, whole.measure)
            and row.difference is not None
        ]
        estimates = np.array([slices[i].difference for i in held], np.float64)
        errors = np.array([_error(slices[i]) for i in held])
        for i, value in zip(held, shrunken(estimates, errors, whole.difference), strict=True):
            out[i] = float(value)
    return [replace(row, shrunk=out.get(i)) for i, row in enumerate(slices)]


def _error(row: Difference) -> float:
    if row.standardised is None or row.difference is None or row.n < 2 or row.standardised == 0:
        return math.nan
    return abs(row.difference / row.standardised) / math.sqrt(row.n)


def _queries(pair: _Pair) -> list[QueryDifference]:
    difference = pair.difference
    used = np.flatnonzero(~np.isnan(difference))
    order = used[np.argsort(-np.abs(difference[used]), kind="stable")]
    ours, theirs = pair.both
    return [
        QueryDifference(
            candidate=pair.candidate.run.name,
            measure=str(pair.measure),
            query_id=pair.baseline.evidence.query_ids[index],
            baseline_value=float(ours[index]),
            candidate_value=float(theirs[index]),
            difference=float(difference[index]),
            share=float(difference[index]) / len(used),
        )
        for index in order.tolist()
    ]


def _notes(
    rows: Sequence[Difference],
    slices: Sequence[Difference],
    others: Sequence[Scores],
    first: Scores,
) -> list[str]:
    said = []
    for scores in (first, *others):
        for state, what in (
            ("failed", "got no answer: left out"),
            ("missing", "not in the run: scored 0"),
        ):
            count = int(((scores.answered == state) & scores.topics).sum())
            if count:
                said.append(f"{scores.run.name}: {counted(count, 'query', 'queries')} {what}")
        returned, tied = int(scores.evidence.returned.sum()), int(scores.evidence.tied.sum())
        if tied > 0.01 * returned:
            said.append(
                f"{scores.run.name}: {percent(tied / returned)} of the documents are tied in "
                "score; another order of them gives other numbers (karat evaluate says how far)"
            )
    few = min((row.n for row in rows), default=0)
    if few < TRUSTED_FROM:
        said.append(f"fewer than {TRUSTED_FROM} queries ({few}): intervals are not to be trusted")
    tested = sum(row.p is not None for row in rows)
    if tested > 1:
        said.append(f"p-values corrected by Holm over {tested} comparisons")
    if slices:
        said.append(
            "p-values of slices corrected by Benjamini and Hochberg within each attribute; "
            "“shrunk” draws a slice towards all queries, the more so the less it knows"
        )
    return said
