"""Comparison: what came out when runs were compared query by query."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

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
        ci_low: Lower end of the 95 % interval of the difference (paired, Student's t); None where
            there is none.
        ci_high: Upper end.
        n: Queries for which both have a value.
        p: Two-sided p-value of the test asked for; None where all differences are 0.
        p_corrected: The same, corrected over all measures and candidates (Holm), or over all
            slices (Benjamini and Hochberg).
        standardised: Mean difference over its standard deviation (Cohen's d_z); None without
            spread.
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
    ci_low: float | None
    ci_high: float | None
    n: int
    p: float | None
    p_corrected: float | None
    standardised: float | None
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
    """

    candidate: str
    measure: str
    query_id: str
    baseline_value: float
    candidate_value: float
    difference: float
    share: float


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


@dataclass(frozen=True, repr=False)
class Comparison:
    """Everything one comparison found.

    Attributes:
        baseline: Name of the baseline.
        test: The test of the p-values.
        differences: One for each candidate and measure, candidates in the order given.
        slices: The same for each value of each attribute asked for.
        queries: Every shared query under every measure, the largest difference first.
        notes: Sentences a reader must know.
        judge_next: Pairs to judge next for the first candidate and measure, the most telling
            first; empty unless asked for.
    """

    baseline: str
    test: str
    differences: list[Difference]
    slices: list[Difference] = field(default_factory=list)
    queries: list[QueryDifference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    judge_next: list[NextJudgment] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat compare --format json`` (docs/reference/json.md)."""
        sliced = {"attribute", "slice", "shrunk"}
        rows = [
            {key: value for key, value in asdict(row).items() if key not in sliced}
            for row in self.differences
        ]
        out: dict[str, Any] = {
            "baseline": self.baseline,
            "test": self.test,
            "differences": rows,
        }
        if self.slices:
            out["slices"] = [asdict(row) for row in self.slices]
        out["queries"] = [asdict(row) for row in self.queries]
        if self.judge_next:
            out["judge_next"] = [asdict(row) for row in self.judge_next]
        out["notes"] = list(self.notes)
        return out

    def __repr__(self) -> str:
        """The verdicts and the notes, as text."""
        rows = [
            f"{row.candidate} against {row.baseline}, {row.measure}: {row.verdict} ({row.reason})"
            for row in self.differences
        ]
        return "\n".join([*rows, *(f"· {note}" for note in self.notes)])
