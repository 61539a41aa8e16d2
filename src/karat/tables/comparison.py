"""Comparison: the result of comparing runs query by query."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import polars as pl

from karat.errors import UsageError, nearest
from karat.tables.about import AboutChange
from karat.tables.answer_changes import AnswerChange
from karat.tables.asked import Meant, of_measure, of_slice
from karat.tables.leaderboard import Order, Standing
from karat.tables.notes import as_lines
from karat.tables.pairs import Pairs

ROUNDING = 1e-12
"""Differences up to this size are rounding errors of sums."""
Verdict = Literal["better", "worse", "equivalent", "cannot tell", "identical"]
"""What a difference shows.

``better`` and ``worse``: statistically significant after correction · ``equivalent``: significantly
smaller than the margin · ``cannot tell``: neither · ``identical``: every query has the same value.
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """A candidate against the baseline under one measure, over all queries or a slice.

    Attributes:
        baseline: Name of the baseline.
        candidate: Name of the candidate.
        measure: Canonical name of the measure.
        baseline_value: Its mean over the shared queries; None if there are none.
        candidate_value: The mean of the candidate.
        difference: Candidate minus baseline.
        standard_error: Standard error of the difference, from the spread of the per-query
            differences; None without spread.
        ci_low: Lower end of the 95 % interval of this difference (not corrected for others); None
            without an interval.
        ci_high: Upper end.
        ci_method: t | bca; None without an interval.
        n: Queries for which both have a value.
        p: Two-sided p-value of the test; None where all differences are 0.
        p_corrected: The p-value corrected over the family: Holm over all measures and candidates;
            with ``all_pairs`` over all pairs of runs and measures, by resampling; in slices
            Benjamini and Hochberg over all measures, candidates and slices of one attribute.
        family: Number of tests in the correction.
        equivalence_p: P-value of the equivalence test (a difference smaller than the margin in
            either direction), corrected in the same way; None without a margin or spread.
        not_worse_p: P-value of the non-inferiority test (not worse by the margin or more),
            corrected in the same way; None without a margin or spread.
        standardised: Mean difference over its standard deviation (Cohen's d_z); None without
            spread.
        superiority: Share of the queries the candidate wins, ties counting half; 0 to 1.
        wins: Queries where the candidate is better.
        ties: Queries where both are the same.
        losses: Queries where the candidate is worse.
        smallest_detected: The smallest difference that this number of queries detects with a power
            of 80 %, after the correction; None without spread.
        queries_needed: Number of queries that detects the observed difference with that power;
            None if the difference is 0.
        unjudged_low: Lowest difference over all grades that documents unjudged in either run could
            have, the same in both; None if unknown (a note says why).
        unjudged_high: Highest difference; None in the same cases.
        unjudged_exact: Whether both bounds can be reached; otherwise the true ones lie between.
        verdict: better | worse | equivalent | cannot tell | identical.
        reason: The reason for the verdict, in one sentence.
        attribute: The query attribute sliced by, or None for all queries.
        slice: Its value, or None.
        shrunk: In slices: the difference shrunk towards that of all queries, more so the fewer
            queries the slice has; 0 if both runs are identical; None for a slice of one query, if
            the differences over all queries have no spread, and outside slices.
        ci_reason: Why there is no interval, or why it was cut to the range that a difference of
            the measure can have; empty if neither.
    """

    baseline: str
    candidate: str
    measure: str
    baseline_value: float | None
    candidate_value: float | None
    difference: float | None
    standard_error: float | None
    ci_low: float | None
    ci_high: float | None
    ci_method: str | None
    n: int
    p: float | None
    p_corrected: float | None
    family: int
    equivalence_p: float | None
    not_worse_p: float | None
    standardised: float | None
    superiority: float | None
    wins: int
    ties: int
    losses: int
    smallest_detected: float | None
    queries_needed: int | None
    unjudged_low: float | None
    unjudged_high: float | None
    unjudged_exact: bool | None
    verdict: Verdict
    reason: str
    attribute: str | None = None
    slice: str | None = None
    shrunk: float | None = None
    ci_reason: str = ""

    @property
    def sign_could_flip(self) -> bool | None:
        """Whether grades of unjudged documents could flip the sign; None if unknown."""
        low, high = self.unjudged_low, self.unjudged_high
        if low is None or high is None:
            return None
        if self.verdict == "identical" and high - low <= ROUNDING:
            return False
        return low <= ROUNDING and high >= -ROUNDING


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """One query under one measure.

    Attributes:
        candidate: Name of the candidate.
        measure: Canonical name of the measure.
        query_id: The query.
        baseline_value: Value of the baseline.
        candidate_value: Value of the candidate.
        difference: Candidate minus baseline.
        share: What the query contributes to the mean difference.
        text: Text of the query; None if unknown.
        slices: The slices it is in: for each attribute sliced by, its values.
    """

    candidate: str
    measure: str
    query_id: str
    baseline_value: float
    candidate_value: float
    difference: float
    share: float
    text: str | None = None
    slices: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NextJudgment:
    """An unjudged pair whose grade would say much about the sign of a difference.

    Attributes:
        query_id: The query.
        doc_id: The document.
        baseline_rank: Its rank in the baseline; None below the cutoff.
        candidate_rank: Its rank in the candidate; None below the cutoff.
        effect: What the highest grade instead of the lowest adds to the mean difference. A measure
            with an ideal is divided by the ideal of the judgments so far.
        text: Text of the query; None if unknown.
    """

    query_id: str
    doc_id: str
    baseline_rank: int | None
    candidate_rank: int | None
    effect: float
    text: str | None = None


@dataclass(frozen=True, slots=True)
class RankChange:
    """A document whose rank changes, or that only one of the two runs returns.

    Attributes:
        candidate: Name of the candidate.
        measure: Canonical name of the measure.
        query_id: The query.
        doc_id: The document.
        grade: Its grade.
        baseline_rank: Its rank in the baseline, from 1, as measured (cut by ``depth``, condensed
            by ``judged_only``); None if it was not returned.
        candidate_rank: Its rank in the candidate; None if it was not returned.
        effect: What it adds to the query's difference; None if the measure is not a sum over
            documents.
    """

    candidate: str
    measure: str
    query_id: str
    doc_id: str
    grade: float
    baseline_rank: int | None
    candidate_rank: int | None
    effect: float | None


@dataclass(frozen=True, slots=True)
class Review:
    """A judged document worth reviewing: a bad one that is shown, or a relevant one that is not.

    Attributes:
        kind: ``bad``: judged not relevant, but in the candidate's top k · ``missed``: relevant,
            but not in it.
        candidate: Name of the candidate.
        attribute: The attribute sliced by, or None for all queries.
        slice: Its value, or None.
        query_id: The query.
        doc_id: The document.
        grade: Its grade.
        baseline_rank: Its rank in the baseline, from 1; None if it was not returned.
        candidate_rank: Its rank in the candidate; None if it was not returned.
    """

    kind: Literal["bad", "missed"]
    candidate: str
    attribute: str | None
    slice: str | None
    query_id: str
    doc_id: str
    grade: float
    baseline_rank: int | None
    candidate_rank: int | None


@dataclass(frozen=True, slots=True)
class Finds:
    """How many relevant documents a run has in its top k.

    Attributes:
        run: Name of the run.
        k: Depth.
        relevant: Relevant documents of all shared queries, found or not.
        found: Relevant documents in its top k.
        found_only: Relevant documents in its top k and in no other run's.
        n: Queries that count and that every run answered.
    """

    run: str
    k: int
    relevant: int
    found: int
    found_only: int
    n: int


@dataclass(frozen=True, slots=True)
class OnlyFound:
    """A relevant document that exactly one of several runs has in its top k.

    Attributes:
        run: Name of that run.
        query_id: The query.
        doc_id: The document.
        grade: Its grade.
        rank: Its rank in that run, from 1.
    """

    run: str
    query_id: str
    doc_id: str
    grade: float
    rank: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """How similar two runs are.

    Attributes:
        left: Name of one run.
        right: Name of the other.
        k: Depth of all figures but ``rbo``.
        overlap: Mean share of the top k they have in common, 0 to 1; None without queries that
            both answered.
        rbo: Mean rank-biased overlap (p = 0.9, extrapolated, ties corrected), 0 to 1; None without
            queries that both answered.
        relevant_both: Relevant documents in the top k of both.
        relevant_left: Relevant documents in the top k of ``left`` only.
        relevant_right: Relevant documents in the top k of ``right`` only.
    """

    left: str
    right: str
    k: int
    overlap: float | None
    rbo: float | None
    relevant_both: int
    relevant_left: int
    relevant_right: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two measures that point in opposite directions, over all queries or in a slice.

    Attributes:
        candidate: Name of the candidate.
        attribute: The attribute sliced by, or None for all queries.
        slice: Its value, or None.
        better: Measure by which the candidate is better.
        worse: Measure by which it is worse.
        better_difference: Mean difference by ``better``.
        worse_difference: Mean difference by ``worse``.
        n: Queries with a value under both.
        opposed: Of these, queries that are better by the one and worse by the other.
        p: The larger of the two p-values (paired t); the null hypothesis: they do not disagree.
        p_corrected: The p-value corrected (Benjamini and Hochberg) over all pairs of measures and
            all slices tested.
    """

    candidate: str
    attribute: str | None
    slice: str | None
    better: str
    worse: str
    better_difference: float
    worse_difference: float
    n: int
    opposed: int
    p: float
    p_corrected: float


@dataclass(frozen=True, slots=True)
class Settings:
    """How a comparison was made.

    Attributes:
        test: The significance test.
        interval: t | bca.
        margin: Differences smaller than this do not matter; None if not set.
        resamples: Number of resamples of randomised tests.
        seed: Random seed.
        k: Depth of finds, overlaps and review: that of the first measure, or 10.
        rel: Lowest grade that counts as relevant in them.
        all_pairs: Whether the family of the verdicts is every pair of runs under every measure;
            otherwise it is every candidate against the baseline under every measure.
        fully_judged: Whether documents without a judgment are declared not relevant.
    """

    test: str
    interval: str
    margin: float | None
    resamples: int
    seed: int
    k: int
    rel: float
    all_pairs: bool = False
    fully_judged: bool = False


@dataclass(frozen=True, repr=False)
class Comparison:
    """The result of a comparison.

    Attributes:
        baseline: Name of the baseline.
        settings: How it was made.
        differences: One row for each candidate and measure, candidates in the order given.
        slices: The same for each value of each attribute sliced by.
        standings: With two or more candidates: all runs under each measure, best first.
        orders: With two or more candidates: whether pairs of measures order the runs alike.
        disagreements: Where two measures point in opposite directions, the most important first.
        queries: Every shared query under every measure, the largest difference first.
        moves: Rank changes in the queries that gain and lose most.
        finds: Relevant documents that each run has in its top k.
        only_found: Relevant documents that exactly one run has in its top k.
        overlaps: Similarity of each pair of runs.
        review: Bad documents shown and relevant ones missed; empty unless requested.
        judge_next: Pairs to judge next for the first candidate and measure, the most informative
            first; empty unless requested.
        notes: Sentences a reader must know.
        answers: Latency and failed or empty answers of each candidate against the baseline, where
            runs differ or have times.
        changes: How the metadata (engine, index, commit, …) of each candidate differs from the
            baseline's.
        meant: Resolves other spellings of measures, for ``value``; not in the JSON.
    """

    baseline: str
    settings: Settings
    differences: list[Difference]
    slices: list[Difference] = field(default_factory=list)
    standings: list[Standing] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)
    queries: list[QueryDifference] = field(default_factory=list)
    moves: list[RankChange] = field(default_factory=list)
    finds: list[Finds] = field(default_factory=list)
    only_found: list[OnlyFound] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)
    review: list[Review] = field(default_factory=list)
    judge_next: list[NextJudgment] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    answers: list[AnswerChange] = field(default_factory=list)
    changes: list[AboutChange] = field(default_factory=list)
    meant: Meant | None = field(default=None, compare=False, repr=False)

    def value(
        self,
        measure: str,
        candidate: str | None = None,
        *,
        slice: str | None = None,  # noqa: A002 - as the field of a row
    ) -> float | None:
        """The difference between a candidate and the baseline, candidate minus baseline.

        Args:
            measure: Its name in any spelling: as requested (``ndcg@3``, ``MRR``) or as printed.
            candidate: Name of the candidate; None if there is only one.
            slice: ``category=howto`` for the difference in a slice; None for all queries.

        Returns:
            The difference in the unit of the measure; None if no query has a value in both.

        Raises:
            UsageError: there is no such row, or there are several candidates and none was named.
        """
        rows = of_measure(of_slice(self.differences, self.slices, slice), measure, self.meant)
        named = [row for row in rows if candidate in (None, row.candidate)]
        if len(named) == 1:
            return named[0].difference
        names = list(dict.fromkeys(row.candidate for row in rows))
        if named:
            raise UsageError(
                f"{len(named)} candidates have a difference in {measure}",
                fix=f'.value("{measure}", "{names[0]}")',
            )
        raise UsageError(
            f"unknown candidate {candidate!r}",
            nearest=nearest(str(candidate), names) or names,
        )

    def frame(self) -> pl.DataFrame:
        """The differences as a Polars frame: over all queries, then those of the slices."""
        rows = [asdict(row) for row in [*self.differences, *self.slices]]
        return pl.DataFrame(rows, infer_schema_length=None)

    def against_baseline(self, row: Standing) -> str:
        """The verdict of a run of the leaderboard against the baseline; ``baseline`` for itself."""
        verdicts = {(diff.candidate, diff.measure): diff.verdict for diff in self.differences}
        return verdicts.get((row.run, row.measure), "baseline")

    def certain(self, row: Disagreement) -> bool:
        """Whether the verdicts, too, are better for one measure and worse for the other."""
        place = (row.candidate, row.attribute, row.slice)
        verdicts = {
            diff.measure: diff.verdict
            for diff in (*self.differences, *self.slices)
            if (diff.candidate, diff.attribute, diff.slice) == place
        }
        return {verdicts.get(row.better), verdicts.get(row.worse)} == {"better", "worse"}

    def to_judge(self) -> Pairs:
        """The pairs to judge next, as a table with an empty column for the grades."""
        text, integer, real = pl.String, pl.Int64, pl.Float64
        schema = {"query_id": text, "doc_id": text, "grade": real, "text": text}
        schema |= {"baseline_rank": integer, "candidate_rank": integer, "effect": real}
        rows = [asdict(row) | {"grade": None} for row in self.judge_next]
        return Pairs(pl.DataFrame(rows, schema), "judging priorities")

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat compare --format json`` (docs/reference/json.md)."""
        rows = asdict(replace(self, meant=None))
        del rows["meant"]
        return rows

    def __repr__(self) -> str:
        """The verdicts and the notes, as text."""
        rows = [
            f"{row.candidate} against {row.baseline}, {row.measure}: {row.verdict} ({row.reason})"
            for row in self.differences
        ]
        return "\n".join([*rows, *as_lines(self.notes)])
