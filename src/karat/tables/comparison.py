"""Comparison: what came out when runs were compared query by query."""

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
"""A difference no larger than this is what sums leave behind."""
Verdict = Literal["better", "worse", "equivalent", "cannot tell", "identical"]
"""What may be said of a difference.

``better`` and ``worse``: more than chance explains, after correction · ``equivalent``: smaller than
the margin, more surely than chance allows · ``cannot tell``: neither · ``identical``: every query
has the same value.
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """A candidate against the baseline under one measure, over all queries or a slice.

    Attributes:
        baseline: Name of the baseline.
        candidate: Name of the candidate.
        measure: Canonical name of the measure.
        baseline_value: Its mean over the shared queries; None if there are none.
        candidate_value: The candidate's.
        difference: Candidate minus baseline.
        standard_error: Of the difference, by the spread of the queries' differences; None without
            spread.
        ci_low: Lower end of the 95 % interval of the difference, of it alone; None where there is
            none.
        ci_high: Upper end.
        ci_method: t | bca; None where there is no interval.
        n: Queries for which both have a value.
        p: Two-sided p-value of the test asked for; None where all differences are 0.
        p_corrected: The same, corrected over the family: Holm over all measures and candidates;
            with ``all_pairs`` over all pairs of runs and measures, by resampling; in slices
            Benjamini and Hochberg over all measures, candidates and slices of one attribute.
        family: Tests that the correction is over.
        equivalence_p: P-value of the test against a difference of the margin or more, up or down,
            corrected likewise; None without a margin or spread.
        not_worse_p: P-value of the test against being worse by the margin or more
            (non-inferiority), corrected likewise; None likewise.
        standardised: Mean difference over its standard deviation (Cohen's d_z); None without
            spread.
        superiority: Share of the queries the candidate wins, ties counting half; 0 to 1.
        wins: Queries where the candidate is better.
        ties: Queries where both are the same.
        losses: Queries where the candidate is worse.
        smallest_detected: The smallest difference that so many queries detect with a power of 80 %,
            after the correction; None without spread.
        queries_needed: Queries that detect the observed difference with that power; None if it is
            0.
        unjudged_low: Lowest difference over all grades that documents unjudged in either run could
            have, the same in both; None if not known (a note says why).
        unjudged_high: Highest; None likewise.
        unjudged_exact: Whether these ends are reached; else the true ones lie between them.
        verdict: better | worse | equivalent | cannot tell | identical.
        reason: Why, in a sentence.
        attribute: The query attribute sliced by, or None for all queries.
        slice: Its value, or None.
        shrunk: In slices: the difference drawn towards that of all queries, the more so the fewer
            queries the slice has; 0 where both runs are identical; None for a slice of one query,
            where the whole has no spread, and elsewhere.
        ci_reason: Why there is no interval, or where it was cut, as it left the range that a
            difference of the measure can have; empty if neither.
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
        """Whether documents that nobody judged could turn the sign; None if nobody knows."""
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
        baseline_value: The baseline's value.
        candidate_value: The candidate's.
        difference: Candidate minus baseline.
        share: What the query contributes to the mean difference.
        text: What was typed, if it is known.
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
    """A pair nobody judged, whose grade would say much about the sign of a difference.

    Attributes:
        query_id: The query.
        doc_id: The document.
        baseline_rank: Its rank in the baseline; None below the cutoff.
        candidate_rank: Its rank in the candidate; None below the cutoff.
        effect: What its highest grade instead of the lowest adds to the mean difference; where a
            measure divides by an ideal, by that of the judgments so far.
        text: What was typed, if it is known.
    """

    query_id: str
    doc_id: str
    baseline_rank: int | None
    candidate_rank: int | None
    effect: float
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A document that stands elsewhere in the candidate, or in one of the two runs only.

    Attributes:
        candidate: Name of the candidate.
        measure: Canonical name of the measure.
        query_id: The query.
        doc_id: The document.
        grade: Its grade.
        baseline_rank: Its rank in the baseline, from 1, as measured (cut by ``depth``, condensed
            by ``judged_only``); None if it was not returned.
        candidate_rank: The same in the candidate.
        effect: What it adds to the query's difference; None where the measure is no sum over
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
    """A judged document worth looking at: a bad one that is shown, or a relevant one that is not.

    Attributes:
        kind: ``bad``: judged not relevant, and in the candidate's top k · ``missed``: relevant,
            and not there.
        candidate: Name of the candidate.
        attribute: The attribute sliced by, or None for all queries.
        slice: Its value, or None.
        query_id: The query.
        doc_id: The document.
        grade: Its grade.
        baseline_rank: Its rank in the baseline, from 1; None if it was not returned.
        candidate_rank: The same in the candidate.
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
        found: Those in its top k.
        found_only: Those of them that no other of the runs has in its top k.
        n: Queries: those that count and that every run answered.
    """

    run: str
    k: int
    relevant: int
    found: int
    found_only: int
    n: int


@dataclass(frozen=True, slots=True)
class OnlyFound:
    """A relevant document that one of several runs has in its top k, and no other.

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
    """How alike two runs are.

    Attributes:
        left: Name of one run.
        right: Name of the other.
        k: Depth of all but ``rbo``.
        overlap: Mean share of the top k they have in common, 0 to 1; None without queries that
            both answered.
        rbo: Mean rank-biased overlap (p = 0.9, extrapolated, ties corrected), 0 to 1; None
            likewise.
        relevant_both: Relevant documents in the top k of both.
        relevant_left: Relevant documents in the left one's top k and not in the right one's.
        relevant_right: The reverse.
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
        better_difference: Mean difference by the one.
        worse_difference: Mean difference by the other.
        n: Queries with a value under both.
        opposed: Of these, queries that are better by the one and worse by the other.
        p: The larger of the two p-values (paired t): of there being no such disagreement.
        p_corrected: The same, corrected (Benjamini and Hochberg) over all pairs of measures and
            all slices looked at.
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
        test: The test of the p-values.
        interval: t | bca.
        margin: Differences smaller than this do not matter; None if nobody said.
        resamples: Of the tests that draw.
        seed: Of what is drawn.
        k: Depth of finds, overlaps and review: that of the first measure, 10 if it has none.
        rel: Lowest grade that counts as relevant there.
        all_pairs: Whether the family of the verdicts is every pair of runs under every measure;
            else it is every candidate against the baseline under every measure.
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
    """Everything one comparison found.

    Attributes:
        baseline: Name of the baseline.
        settings: How it was made.
        differences: One for each candidate and measure, candidates in the order given.
        slices: The same for each value of each attribute asked for.
        standings: With two candidates or more: all runs under each measure, best first.
        orders: With two candidates or more: whether each two measures order the runs alike.
        disagreements: Where two measures point in opposite directions; the first is the one to
            look at.
        answers: How quickly each candidate answered, and how many queries not well, where runs
            differ or have times.
        queries: Every shared query under every measure, the largest difference first.
        moves: What moved in the queries that gain and lose most.
        finds: What each run has in its top k.
        only_found: The relevant documents that one run has in its top k and no other.
        overlaps: How alike each two runs are.
        review: Bad documents shown and relevant ones missed; empty unless asked for.
        judge_next: Pairs to judge next for the first candidate and measure, the most telling
            first; empty unless asked for.
        notes: Sentences a reader must know.
        answers: How each candidate answered, against the baseline: failures, latency.
        changes: What is recorded otherwise about each candidate than about the baseline: engine,
            index, commit and so on.
        meant: What other spellings of measures mean, for ``value``; in no JSON.
    """

    baseline: str
    settings: Settings
    differences: list[Difference]
    slices: list[Difference] = field(default_factory=list)
    standings: list[Standing] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)
    queries: list[QueryDifference] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
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
        """The difference of a candidate from the baseline, candidate minus baseline.

        Args:
            measure: Its name in any spelling: as asked (``ndcg@3``, ``MRR``) or as printed.
            candidate: Name of the candidate; None if there is only one.
            slice: ``category=howto`` for the difference in a slice; None for that over all queries.

        Returns:
            In the unit of the measure; None where no query has a value in both.

        Raises:
            UsageError: there is no such row, or several candidates have one and none was named.
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
            f"there is no candidate {candidate!r}",
            nearest=nearest(str(candidate), names) or names,
        )

    def frame(self) -> pl.DataFrame:
        """The differences as a Polars frame: over all queries, then those of the slices."""
        rows = [asdict(row) for row in [*self.differences, *self.slices]]
        return pl.DataFrame(rows, infer_schema_length=None)

    def against_baseline(self, row: Standing) -> str:
        """What the comparison says of a run in the leaderboard; ``baseline`` of the baseline."""
        said = {(each.candidate, each.measure): each.verdict for each in self.differences}
        return said.get((row.run, row.measure), "baseline")

    def certain(self, row: Disagreement) -> bool:
        """Whether the verdicts themselves say that one measure is better and the other worse."""
        place = (row.candidate, row.attribute, row.slice)
        said = {
            each.measure: each.verdict
            for each in (*self.differences, *self.slices)
            if (each.candidate, each.attribute, each.slice) == place
        }
        return {said.get(row.better), said.get(row.worse)} == {"better", "worse"}

    def to_judge(self) -> Pairs:
        """The pairs to judge next, as a table with an empty column for the grades."""
        text, whole, real = pl.String, pl.Int64, pl.Float64
        schema = {"query_id": text, "doc_id": text, "grade": real, "text": text}
        schema |= {"baseline_rank": whole, "candidate_rank": whole, "effect": real}
        rows = [asdict(row) | {"grade": None} for row in self.judge_next]
        return Pairs(pl.DataFrame(rows, schema), "judge next")

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
