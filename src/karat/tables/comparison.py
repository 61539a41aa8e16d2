"""Comparison: what came out when runs were compared query by query."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import polars as pl

from karat.tables.pairs import Pairs

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
        ci_low: Lower end of the 95 % interval of the difference (paired; Student's t or BCa);
            None where there is none.
        ci_high: Upper end.
        n: Queries for which both have a value.
        p: Two-sided p-value of the test asked for; None where all differences are 0.
        p_corrected: The same, corrected over all measures and candidates (Holm), or over all
            slices (Benjamini and Hochberg).
        not_worse_p: One-sided p-value that the candidate is worse by the margin or more
            (non-inferiority); None without a margin or spread. Not corrected.
        standardised: Mean difference over its standard deviation (Cohen's d_z); None without
            spread.
        superiority: Share of the queries the candidate wins, ties counting half; 0 to 1.
        wins: Queries where the candidate is better.
        ties: Queries where both are the same.
        losses: Queries where the candidate is worse.
        smallest: The smallest difference that so many queries would show four times in five.
        needed: Queries needed to show the observed difference four times in five; None if it is 0.
        unjudged_low: Lowest difference over all grades that documents unjudged in either run could
            have, the same in both; None if not known (a note says why).
        unjudged_high: Highest; None likewise.
        unjudged_exact: Whether these ends are reached; else the true ones lie between them.
        verdict: better | worse | equivalent | cannot tell | identical.
        reason: Why, in a sentence.
        attribute: The query attribute sliced by, or None for all queries.
        slice: Its value, or None.
        shrunk: In slices: the difference drawn towards that of all queries, the more so the less
            the slice says by itself; None elsewhere.
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
    n: int
    p: float | None
    p_corrected: float | None
    not_worse_p: float | None
    standardised: float | None
    superiority: float | None
    wins: int
    ties: int
    losses: int
    smallest: float | None
    needed: int | None
    unjudged_low: float | None
    unjudged_high: float | None
    unjudged_exact: bool | None
    verdict: Verdict
    reason: str
    attribute: str | None = None
    slice: str | None = None
    shrunk: float | None = None


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
    """

    candidate: str
    measure: str
    query_id: str
    baseline_value: float
    candidate_value: float
    difference: float
    share: float
    text: str | None = None


@dataclass(frozen=True, slots=True)
class NextJudgment:
    """A pair nobody judged, whose grade would say much about the sign of a difference.

    Attributes:
        query_id: The query.
        doc_id: The document.
        baseline_rank: Its rank in the baseline; None below the cutoff.
        candidate_rank: Its rank in the candidate; None below the cutoff.
        effect: What its highest grade would change in the mean difference.
    """

    query_id: str
    doc_id: str
    baseline_rank: int | None
    candidate_rank: int | None
    effect: float


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
        only: Those of them that no other of the runs has in its top k.
    """

    run: str
    k: int
    relevant: int
    found: int
    only: int


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
            both answered. One less it is the churn.
        rbo: Mean rank-biased overlap (p = 0.9, extrapolated, ties corrected), 0 to 1; None
            likewise.
        both: Relevant documents in the top k of both.
        only_left: Relevant documents in the left one's top k and not in the right one's.
        only_right: The reverse.
    """

    left: str
    right: str
    k: int
    overlap: float | None
    rbo: float | None
    both: int
    only_left: int
    only_right: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A run's place among several, under one measure.

    Attributes:
        measure: Canonical name of the measure.
        run: Name of the run.
        value: Its mean over the queries for which every run has a value.
        n: These queries.
        groups: Letters of its tie groups: runs that share one are not told apart (Tukey's test
            by randomisation, family-wise level .05).
        honest_difference: Means farther apart than this are told apart; None if nothing is.
    """

    measure: str
    run: str
    value: float
    n: int
    groups: str
    honest_difference: float | None


@dataclass(frozen=True, slots=True)
class Order:
    """Whether two measures put the runs in one order.

    Attributes:
        measure: One measure.
        other: Another.
        runs: Number of runs.
        kendall: Tau-b, -1 to 1; None if all runs are equal under one of them.
        tau_ap: Tau_AP, which weighs the top of the second measure's order; None likewise.
        spearman: Spearman's correlation; None likewise.
    """

    measure: str
    other: str
    runs: int
    kendall: float | None
    tau_ap: float | None
    spearman: float | None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two measures that point in opposite directions, over all queries or in a slice.

    Attributes:
        candidate: Name of the candidate.
        attribute: The attribute sliced by, or None for all queries.
        slice: Its value, or None.
        better: Measure by which the candidate is better.
        worse: Measure by which it is worse.
        gain: Mean difference by the one; its sign is the measure's.
        loss: Mean difference by the other.
        n: Queries with a value under both.
        opposed: Of these, queries where one gains and the other loses.
        sure: Whether neither is explained by chance (each p at most .05, not corrected).
    """

    candidate: str
    attribute: str | None
    slice: str | None
    better: str
    worse: str
    gain: float
    loss: float
    n: int
    opposed: int
    sure: bool


@dataclass(frozen=True, repr=False)
class Comparison:
    """Everything one comparison found.

    Attributes:
        baseline: Name of the baseline.
        test: The test of the p-values.
        differences: One for each candidate and measure, candidates in the order given.
        slices: The same for each value of each attribute asked for.
        standings: With two candidates or more: all runs under each measure, best first.
        orders: With two candidates or more: whether each two measures order the runs alike.
        disagreements: Where two measures point in opposite directions; the first is the one to
            look at.
        queries: Every shared query under every measure, the largest difference first.
        moves: What moved in the queries that gain and lose most.
        finds: What each run has in its top k.
        only_found: The relevant documents that one run has in its top k and no other.
        overlaps: How alike each two runs are.
        review: Bad documents shown and relevant ones missed; empty unless asked for.
        judge_next: Pairs to judge next for the first candidate and measure, the most telling
            first; empty unless asked for.
        notes: Sentences a reader must know.
    """

    baseline: str
    test: str
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

    def to_judge(self) -> Pairs:
        """The pairs to judge next, as a table that can be written and judged."""
        schema = ("query_id", "doc_id", "baseline_rank", "candidate_rank", "effect")
        kinds = (pl.String, pl.String, pl.Int64, pl.Int64, pl.Float64)
        rows = [asdict(row) for row in self.judge_next]
        return Pairs(pl.DataFrame(rows, dict(zip(schema, kinds, strict=True))), "judge next")

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat compare --format json`` (docs/reference/json.md)."""
        sliced = {"attribute", "slice", "shrunk"}
        out: dict[str, Any] = {"baseline": self.baseline, "test": self.test}
        out["differences"] = [
            {key: value for key, value in asdict(row).items() if key not in sliced}
            for row in self.differences
        ]
        for name in (
            "slices",
            "standings",
            "orders",
            "disagreements",
            "queries",
            "moves",
            "finds",
            "only_found",
            "overlaps",
            "review",
            "judge_next",
        ):
            rows = getattr(self, name)
            if rows or name in {"disagreements", "queries", "finds", "only_found", "overlaps"}:
                out[name] = [asdict(row) for row in rows]
        out["notes"] = list(self.notes)
        return out

    def __repr__(self) -> str:
        """The verdicts and the notes, as text."""
        rows = [
            f"{row.candidate} against {row.baseline}, {row.measure}: {row.verdict} ({row.reason})"
            for row in self.differences
        ]
        return "\n".join([*rows, *(f"· {note}" for note in self.notes)])
