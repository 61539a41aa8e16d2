"""Gate: what a policy says of a candidate, rule by rule."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import polars as pl

from karat.tables.about import AboutChange
from karat.tables.asked import Meant, of_measure, of_slice
from karat.tables.comparison import Move
from karat.tables.results import QueryScores, Result

GateVerdict = Literal["pass", "fail", "cannot_tell", "unhealthy", "stale", "error"]
"""What may be said of a rule, and of the whole.

``pass``: held · ``fail``: broken · ``cannot_tell``: the evidence does not suffice · ``unhealthy``:
the search did not answer as it should, so its numbers say nothing · ``stale``: the baseline was
computed from something else · ``error``: the rule itself makes no sense here.
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
    """One rule, held against one number.

    Attributes:
        rule: The rule in a few words, as in ``nDCG@10 drops by at most 5%``.
        verdict: What came of it.
        reason: Why, in a sentence.
        measure: Canonical name of the measure, or None for a rule about answers.
        attribute: The attribute sliced by, or None for all queries.
        slice: Its value, or None.
        n: Queries it is over; None for a rule about the whole.
        baseline_value: Of the baseline; None where there is none.
        candidate_value: Of the candidate, in the unit of the rule.
        drop: How much worse the candidate is, in the unit of the measure; below 0 if it is better.
        ci_low: Lower end of the 95 % interval of ``drop``.
        ci_high: Upper end.
        limit: The most ``drop`` may be, or the least or most that ``candidate_value`` may be.
        smallest_detected: The smallest drop these queries detect with a power of 80 %.
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
    """A query that the policy knows to fail.

    Attributes:
        query_id: The query.
        measure: What it fails by.
        value: Its value in the candidate, or None.
        passes: Whether it passes now, so that it can be taken off the list.
        reason: Why it is on the list, as the policy says; empty if it does not.
    """

    query_id: str
    measure: str
    value: float | None
    passes: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """A query that lost by the measure of a rule that did not pass.

    Attributes:
        measure: Canonical name of the measure.
        query_id: The query.
        text: What was typed, if it is known.
        baseline_value: The baseline's value.
        candidate_value: The candidate's.
        attribute: What the check that did not pass slices by; None for one over all queries.
        slice: Its value, or None.
        moves: The documents that moved and matter most; None if nobody knows which documents the
            baseline had, as of a saved one.
    """

    measure: str
    query_id: str
    text: str | None
    baseline_value: float
    candidate_value: float
    attribute: str | None = None
    slice: str | None = None
    moves: list[Move] | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """What a policy says of a candidate.

    Attributes:
        verdict: The worst of all checks, by ``WORST_FIRST``; ``error`` if there is no check.
        baseline: Name of the baseline; None if no rule needs one.
        candidate: Name of the candidate.
        policy: Where the policy came from.
        checks: One for each rule and slice, the worst first.
        lost: The queries that lost most, each once for a measure: ten at most for each check that
            did not pass.
        known_failures: What became of the queries known to fail.
        hashes: SHA-256 of what it was computed from: ``queries``, ``qrels``, ``baseline``,
            ``candidate``, ``policy``; None where there is none.
        notes: Sentences a reader must know.
        results: The candidate by itself: each measure with its interval and counts, over all
            queries and in the slices of the rules.
        fully_judged: Whether documents without a judgment are declared not relevant.
        scores: What its means over all queries are of; for a history, and in no JSON.
        changes: What is recorded otherwise about the candidate than about the baseline: engine,
            index, commit and so on; a saved baseline records nothing.
        meant: What other spellings of measures mean, for ``value``; in no JSON.
    """

    verdict: GateVerdict
    baseline: str | None
    candidate: str
    policy: str
    checks: list[Check]
    lost: list[Lost] = field(default_factory=list)
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
        """The candidate's value of a measure of the policy, as a rule sees it.

        How much it dropped, and what was allowed, are in ``checks`` and ``frame``.

        Args:
            measure: Its name in any spelling, as ``ndcg@10``.
            slice: ``category=howto`` for the value in a slice of a rule; None for all queries.

        Returns:
            The aggregate over the queries that count; None where there are none.

        Raises:
            UsageError: no rule is about such a measure or slice; the nearest is named.
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
        """What ``karat gate`` ends with: 0 pass, 1 fail, 3 nobody can tell, 4 error."""
        return EXIT_CODES[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat gate --format json`` (docs/reference/json.md)."""
        rows = asdict(replace(self, scores=None, meant=None))
        del rows["scores"], rows["meant"]
        return rows | {"exit_code": self.exit_code}
