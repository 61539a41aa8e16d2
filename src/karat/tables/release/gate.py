"""Gate: the verdict of a policy on a candidate, rule by rule."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import polars as pl

from karat.tables.about import AboutChange
from karat.tables.asked import Meant, of_measure, of_slice
from karat.tables.comparison import RankChange
from karat.tables.results import QueryScores, Result

GateVerdict = Literal["pass", "fail", "cannot_tell", "unhealthy", "stale", "error"]
"""Verdict of a rule, and of a gate.

``pass``: the rule holds · ``fail``: it does not · ``cannot_tell``: not enough evidence ·
``unhealthy``: the search failed to answer, so its values say nothing · ``stale``: the baseline was
computed from other inputs · ``error``: the rule does not apply to these inputs.
"""
WORST_FIRST: tuple[GateVerdict, ...] = (
    "error",
    "unhealthy",
    "stale",
    "fail",
    "cannot_tell",
    "pass",
)
EXIT_CODES: dict[GateVerdict, int] = {
    "pass": 0,
    "fail": 1,
    "cannot_tell": 3,
    "unhealthy": 3,
    "stale": 3,
    "error": 4,
}


@dataclass(frozen=True, slots=True)
class Check:
    """The check of one rule.

    Attributes:
        rule: The rule in a few words, such as ``nDCG@10 drops by at most 5%``.
        verdict: Its verdict.
        reason: The reason for the verdict, in a sentence.
        measure: Canonical name of the measure, or None for a rule about answers.
        attribute: The attribute sliced by, or None for all queries.
        slice: Its value, or None.
        n: Number of queries; None for a rule that is not about queries.
        baseline_value: Value of the baseline; None without one.
        candidate_value: Value of the candidate, in the unit of the rule.
        drop: How much worse the candidate is, in the unit of the measure; negative if it is better.
        ci_low: Lower end of the 95 % interval of ``drop``; None without an interval.
        ci_high: Upper end.
        limit: Maximum of ``drop``, or minimum or maximum of ``candidate_value``.
        smallest_detected: The smallest drop that these queries detect with a power of 80 %.
    """

    rule: str
    verdict: GateVerdict
    reason: str
    measure: str | None = None
    attribute: str | None = None
    slice: str | None = None
    n: int | None = None
    baseline_value: float | None = None
    candidate_value: float | None = None
    drop: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    limit: float | None = None
    smallest_detected: float | None = None


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A query in the policy's list of known failures.

    Attributes:
        query_id: The query.
        measure: The measure by which it fails.
        value: Its value in the candidate, or None.
        passes: Whether it passes now and can be removed from the list.
        reason: The reason given in the policy; empty without one.
    """

    query_id: str
    measure: str
    value: float | None
    passes: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Regression:
    """A regression: a query that got worse by the measure of a rule that did not pass.

    Attributes:
        measure: Canonical name of the measure.
        query_id: The query.
        text: Text of the query; None if unknown.
        baseline_value: Value of the baseline.
        candidate_value: Value of the candidate.
        attribute: The attribute that the check slices by; None for all queries.
        slice: Its value, or None.
        moves: The rank changes that matter most; None for a saved baseline, which has no documents.
    """

    measure: str
    query_id: str
    text: str | None
    baseline_value: float
    candidate_value: float
    attribute: str | None = None
    slice: str | None = None
    moves: list[RankChange] | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """The verdict of a policy on a candidate.

    Attributes:
        verdict: The worst verdict of all checks, by ``WORST_FIRST``; ``error`` without checks.
        baseline: Name of the baseline; None if no rule needs one.
        candidate: Name of the candidate.
        policy: Name of the policy file.
        checks: One for each rule and slice, the worst first.
        lost: The largest regressions, each query once for a measure; at most ten for each check
            that did not pass.
        known_failures: The queries known to fail.
        hashes: SHA-256 of the inputs ``queries``, ``qrels``, ``baseline``, ``candidate``,
            ``policy``; None if there is no such input.
        notes: Sentences a reader must know.
        results: Results of the candidate: each measure with its interval and counts, over all
            queries and in the slices of the rules.
        fully_judged: Whether documents without a judgment are declared not relevant.
        scores: The values behind its means over all queries, for a history; not in the JSON.
        changes: How the metadata (engine, index, commit, …) of the candidate differs from the
            baseline's; empty for a saved baseline, which has no metadata.
        meant: Resolves other spellings of measures, for ``value``; not in the JSON.
    """

    verdict: GateVerdict
    baseline: str | None
    candidate: str
    policy: str
    checks: list[Check]
    lost: list[Regression] = field(default_factory=list)
    known_failures: list[KnownFailure] = field(default_factory=list)
    hashes: dict[str, str | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    fully_judged: bool = False
    scores: QueryScores | None = field(default=None, compare=False, repr=False)
    changes: list[AboutChange] = field(default_factory=list)
    meant: Meant | None = field(default=None, compare=False, repr=False)

    def value(
        self,
        measure: str,
        *,
        slice: str | None = None,  # noqa: A002 - as the field of a row
    ) -> float | None:
        """The candidate's value of a measure of the policy.

        The drop and its limit are in ``checks`` and ``frame``.

        Args:
            measure: Its name in any spelling, such as ``ndcg@10``.
            slice: ``category=howto`` for the value in a slice of a rule; None for all queries.

        Returns:
            The aggregate over the queries that count; None if no query has a value.

        Raises:
            UsageError: no rule uses this measure or slice; the nearest is named.
        """
        overall = [row for row in self.results if row.attribute is None]
        sliced = [row for row in self.results if row.attribute is not None]
        return of_measure(of_slice(overall, sliced, slice), measure, self.meant)[0].value

    def frame(self) -> pl.DataFrame:
        """The checks as a Polars frame, the worst first."""
        rows = [asdict(check) for check in self.checks]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def exit_code(self) -> int:
        """Exit code of ``karat gate``: 0 pass, 1 fail, 3 inconclusive, 4 error."""
        return EXIT_CODES[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat gate --format json`` (docs/reference/json.md)."""
        rows = asdict(replace(self, scores=None, meant=None))
        del rows["scores"], rows["meant"]
        return rows | {"exit_code": self.exit_code}
