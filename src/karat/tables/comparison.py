"""Comparison: the result of comparing runs query by query."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import polars as pl

from karat.tables.about import AboutChange
from karat.tables.asked import Meant, of_measure, of_name, of_slice
from karat.tables.documents import Pairs
from karat.tables.notes import as_lines
from karat.tables.results import MachineMean


@dataclass(frozen=True, slots=True)
class Standing:
    """A run's place among several, under one measure."""

    measure: str  # canonical name of the measure
    run: str
    value: float  # its mean over the queries for which every run has a value
    n: int  # number of these queries
    # With `all_pairs`: letters of its tie groups; runs that share none are significantly different.
    # Otherwise None: only pairs with the baseline are tested.
    groups: str | None
    # Always None: each pair has its own spread, so no single difference is significant for all
    # pairs. Kept for readers of older versions.
    honest_difference: float | None


@dataclass(frozen=True, slots=True)
class Order:
    """Whether two measures order the runs alike."""

    left: str  # one measure
    right: str  # the other measure
    runs: int
    # Kendall's tau-b, -1 to 1; None if all runs are equal under one of the measures
    kendall: float | None
    # Tau_AP, which weighs the top of the order by `right`, -1 to 1; None as above
    tau_ap: float | None
    spearman: float | None  # Spearman's rank correlation, -1 to 1; None as above


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """Latency, or the share of failed or empty answers, of a candidate against the baseline."""

    baseline: str
    candidate: str
    # `latency p50` | `latency p95` | `latency p99` (milliseconds, over the queries timed in both) |
    # `zero results` (an empty answer, or not in the run) | `no answer` | `documents twice` (shares
    # of the queries that count, 0 to 1)
    what: str
    baseline_value: float
    candidate_value: float
    difference: float  # candidate minus baseline; lower is better
    ci_low: float | None  # lower end of its 95 % interval; None for times of fewer than 100 queries
    ci_high: float | None  # upper end
    n: int  # number of queries
    # better | worse | cannot tell | identical: whether the interval excludes 0; not corrected for
    # the other rows
    verdict: Literal["better", "worse", "cannot tell", "identical"]


@dataclass(frozen=True, slots=True)
class CostChange:
    """A cost of a candidate against the baseline; lower is better."""

    # `latency p50` | `latency p95` | `latency p99` | `index` | `memory` | `price` (of 1,000
    # queries) | `judgments` (by people, of documents that only the candidate has in its top k) |
    # `judging` (the time that these took)
    what: str
    unit: str  # `ms` | `bytes` | `judgments` | `s`; of `price` the currency, or empty
    baseline_value: float | None  # None for judgments and their time
    candidate_value: float | None  # likewise
    difference: float  # candidate minus baseline
    ci_low: float | None  # lower end of its 95 % interval; None except for latency
    ci_high: float | None  # upper end
    n: int | None  # queries timed in both, or judgments whose time is known; None for the rest
    attribute: str | None = None  # the attribute sliced by, or None for all queries
    slice: str | None = None  # its value, or None
    # The stage of the traces whose latency it is, or None for the whole search. A stage that only
    # one of the runs has takes no time in the other, whose value is None.
    stage: str | None = None


@dataclass(frozen=True, slots=True)
class Costs:
    """What a candidate costs against the baseline, as far as both say it."""

    baseline: str
    candidate: str
    changes: list[CostChange]  # over all queries, then `latency p95` in each slice, then stages

    def find(
        self,
        what: str,
        attribute: str | None = None,
        slice: str | None = None,  # noqa: A002
    ) -> CostChange | None:
        wanted = what, attribute, slice
        rows = (row for row in self.changes if (row.what, row.attribute, row.slice) == wanted)
        return next((row for row in rows if row.stage is None), None)

    @property
    def stages(self) -> list[CostChange]:
        """The latency of each stage."""
        return [row for row in self.changes if row.stage is not None]


ROUNDING = 1e-12  # differences up to this size are rounding errors of sums
Verdict = Literal["better", "worse", "equivalent", "cannot tell", "identical"]
"""What a difference shows.

``better`` and ``worse``: statistically significant after correction · ``equivalent``: significantly
smaller than the margin · ``cannot tell``: neither · ``identical``: every query has the same value.
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """A candidate against the baseline under one measure, over all queries or a slice."""

    baseline: str
    candidate: str
    measure: str  # canonical name of the measure
    baseline_value: float | None  # its mean over the shared queries; None if there are none
    candidate_value: float | None  # the mean of the candidate
    difference: float | None  # candidate minus baseline
    # Standard error of the difference, from the spread of the per-query differences; None without
    # spread
    standard_error: float | None
    # Lower end of the 95 % interval of this difference (not corrected for others); None without an
    # interval
    ci_low: float | None
    ci_high: float | None  # upper end
    ci_method: str | None  # t | bca; None without an interval
    n: int  # queries for which both have a value
    p: float | None  # two-sided p-value of the test; None where all differences are 0
    # The p-value corrected over the family: Holm over all measures and candidates; with `all_pairs`
    # over all pairs of runs and measures, by resampling; in slices Benjamini and Hochberg over all
    # measures, candidates and slices of one attribute
    p_corrected: float | None
    family: int  # number of tests in the correction
    # p-value of the equivalence test (a difference smaller than the margin in either direction),
    # corrected in the same way; None without a margin or spread
    equivalence_p: float | None
    # p-value of the non-inferiority test (not worse by the margin or more), corrected in the same
    # way; None without a margin or spread
    not_worse_p: float | None
    # Mean difference over its standard deviation (Cohen's d_z); None without spread
    standardised: float | None
    superiority: float | None  # share of the queries the candidate wins, ties counting half; 0 to 1
    wins: int  # queries where the candidate is better
    ties: int  # queries where both are the same
    losses: int  # queries where the candidate is worse
    # The smallest difference that this number of queries detects with a power of 80 %, after the
    # correction; None without spread
    smallest_detected: float | None
    # Number of queries that detects the observed difference with that power; None if the difference
    # is 0
    queries_needed: int | None
    # Lowest difference over all grades that documents unjudged in either run could have, the same
    # in both; None if unknown (a note says why)
    unjudged_low: float | None
    unjudged_high: float | None  # highest difference; None in the same cases
    # Whether both bounds can be reached; otherwise the true ones lie between
    unjudged_exact: bool | None
    verdict: Verdict  # better | worse | equivalent | cannot tell | identical
    reason: str  # the reason for the verdict, in one sentence
    attribute: str | None = None  # the query attribute sliced by, or None for all queries
    slice: str | None = None  # its value, or None
    # In slices: the difference shrunk towards that of all queries, more so the fewer queries the
    # slice has; 0 if both runs are identical; None for a slice of one query, if the differences
    # over all queries have no spread, and outside slices
    shrunk: float | None = None
    # Why there is no interval, or why it was cut to the range that a difference of the measure can
    # have; empty if neither
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
    """One query under one measure."""

    candidate: str
    measure: str  # canonical name of the measure
    query_id: str
    baseline_value: float
    candidate_value: float
    difference: float  # candidate minus baseline
    share: float  # what the query contributes to the mean difference
    text: str | None = None  # text of the query; None if unknown
    # The slices it is in: for each attribute sliced by, its values
    slices: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NextJudgment:
    """An unjudged pair whose grade would say much about the sign of a difference."""

    query_id: str
    doc_id: str  # the document
    baseline_rank: int | None  # its rank in the baseline; None below the cutoff
    candidate_rank: int | None  # its rank in the candidate; None below the cutoff
    # What the highest grade instead of the lowest adds to the mean difference. A measure with an
    # ideal is divided by the ideal of the judgments so far.
    effect: float
    text: str | None = None  # text of the query; None if unknown


@dataclass(frozen=True, slots=True)
class RankChange:
    """A document whose rank changes, or that only one of the two runs returns."""

    candidate: str
    measure: str  # canonical name of the measure
    query_id: str
    doc_id: str  # the document
    grade: float
    # Its rank in the baseline, from 1, as measured (cut by `depth`, condensed by `judged_only`);
    # None if it was not returned
    baseline_rank: int | None
    candidate_rank: int | None  # its rank in the candidate; None if it was not returned
    # What it adds to the query's difference; None if the measure is not a sum over documents
    effect: float | None


@dataclass(frozen=True, slots=True)
class Review:
    """A judged document worth reviewing: a bad one that is shown, or a relevant one that is not."""

    # `bad`: judged not relevant, but in the candidate's top k · `missed`: relevant, but not in it
    kind: Literal["bad", "missed"]
    candidate: str
    attribute: str | None  # the attribute sliced by, or None for all queries
    slice: str | None  # its value, or None
    query_id: str
    doc_id: str  # the document
    grade: float
    baseline_rank: int | None  # its rank in the baseline, from 1; None if it was not returned
    candidate_rank: int | None  # its rank in the candidate; None if it was not returned


@dataclass(frozen=True, slots=True)
class Finds:
    """How many relevant documents a run has in its top k."""

    run: str
    k: int  # depth
    relevant: int  # relevant documents of all shared queries, found or not
    found: int  # relevant documents in its top k
    found_only: int  # relevant documents in its top k and in no other run's
    n: int  # queries that count and that every run answered


@dataclass(frozen=True, slots=True)
class OnlyFound:
    """A relevant document that exactly one of several runs has in its top k."""

    run: str
    query_id: str
    doc_id: str  # the document
    grade: float
    rank: int  # its rank in that run, from 1


@dataclass(frozen=True, slots=True)
class Overlap:
    """How similar two runs are."""

    left: str  # name of one run
    right: str  # name of the other
    k: int  # depth of all figures but `rbo`
    # Mean share of the top k they have in common, 0 to 1; None without queries that both answered
    overlap: float | None
    # Mean rank-biased overlap (p = 0.9, extrapolated, ties corrected), 0 to 1; None without queries
    # that both answered
    rbo: float | None
    relevant_both: int  # relevant documents in the top k of both
    relevant_left: int  # relevant documents in the top k of `left` only
    relevant_right: int  # relevant documents in the top k of `right` only


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two measures that point in opposite directions, over all queries or in a slice."""

    candidate: str
    attribute: str | None  # the attribute sliced by, or None for all queries
    slice: str | None  # its value, or None
    better: str  # measure by which the candidate is better
    worse: str  # measure by which it is worse
    better_difference: float  # mean difference by `better`
    worse_difference: float  # mean difference by `worse`
    n: int  # queries with a value under both
    opposed: int  # of these, queries that are better by the one and worse by the other
    p: float  # the larger of the two p-values (paired t); the null hypothesis: they do not disagree
    # The p-value corrected (Benjamini and Hochberg) over all pairs of measures and all slices
    # tested
    p_corrected: float


@dataclass(frozen=True, slots=True)
class Settings:
    """How a comparison was made."""

    test: str  # the significance test
    interval: str  # t | bca
    margin: float | None  # differences smaller than this do not matter; None if not set
    resamples: int  # number of resamples of randomised tests
    seed: int  # random seed
    k: int  # depth of finds, overlaps and review: that of the first measure, or 10
    rel: float  # lowest grade that counts as relevant in them
    # Whether the family of the verdicts is every pair of runs under every measure; otherwise it is
    # every candidate against the baseline under every measure
    all_pairs: bool = False
    fully_judged: bool = False  # whether documents without a judgment are declared not relevant
    # Whose judgments: `human`, `llm`, `clicks` or `import`, several joined by +; None if unknown
    judgments: str | None = None


@dataclass(frozen=True, repr=False)
class Comparison:
    """The result of a comparison."""

    baseline: str
    settings: Settings  # how it was made
    # One row for each candidate and measure, candidates in the order given
    differences: list[Difference]
    # The same for each value of each attribute sliced by
    slices: list[Difference] = field(default_factory=list)
    # With two or more candidates: all runs under each measure, best first
    standings: list[Standing] = field(default_factory=list)
    # With two or more candidates: whether pairs of measures order the runs alike
    orders: list[Order] = field(default_factory=list)
    # Where two measures point in opposite directions, the most important first
    disagreements: list[Disagreement] = field(default_factory=list)
    # Every shared query under every measure, the largest difference first
    queries: list[QueryDifference] = field(default_factory=list)
    # Rank changes in the queries that gain and lose most
    moves: list[RankChange] = field(default_factory=list)
    # Relevant documents that each run has in its top k
    finds: list[Finds] = field(default_factory=list)
    # Relevant documents that exactly one run has in its top k
    only_found: list[OnlyFound] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)  # similarity of each pair of runs
    # Bad documents shown and relevant ones missed; empty unless requested
    review: list[Review] = field(default_factory=list)
    # Pairs to judge next for the first candidate and measure, the most informative first; empty
    # unless requested
    judge_next: list[NextJudgment] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # sentences a reader must know
    # Latency and failed or empty answers of each candidate against the baseline, where runs differ
    # or have times
    answers: list[AnswerChange] = field(default_factory=list)
    # Latency, sizes, price and judgments of each candidate against the baseline, where both say it
    costs: list[Costs] = field(default_factory=list)
    # Differences from people's grades and a machine's, if grades of a machine were given
    machine_grades: list[MachineMean] = field(default_factory=list)
    # How the metadata (engine, index, commit, …) of each candidate differs from the baseline's
    changes: list[AboutChange] = field(default_factory=list)
    # Resolves other spellings of measures, for `value`; not in the JSON
    meant: Meant | None = field(default=None, compare=False, repr=False)
    # What was measured, with the scores: a `workflows.offline.evaluation_plan.EvaluationPlan`; for
    # reports, not in the JSON
    plan: Any = field(default=None, compare=False, repr=False)

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
        several = "candidates have a difference in"
        return of_name(rows, candidate, lambda row: row.candidate, measure, several).difference

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
        rows = asdict(replace(self, meant=None, plan=None))
        del rows["meant"], rows["plan"]
        if self.settings.judgments is None:
            del rows["settings"]["judgments"]
        return rows

    def __repr__(self) -> str:
        rows = [
            f"{row.candidate} against {row.baseline}, {row.measure}: {row.verdict} ({row.reason})"
            for row in self.differences
        ]
        return "\n".join([*rows, *as_lines(self.notes)])
