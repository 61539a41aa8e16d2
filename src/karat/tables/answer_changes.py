"""Answer changes: latency and failed or empty answers of a candidate against the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """Latency, or the share of failed or empty answers, of a candidate against the baseline.

    Attributes:
        baseline: Name of the baseline.
        candidate: Name of the candidate.
        what: ``latency p50`` | ``latency p95`` (milliseconds, over the queries timed in both) |
            ``zero results`` (an empty answer, or not in the run) | ``no answer`` |
            ``documents twice`` (shares of the queries that count, 0 to 1).
        baseline_value: Value of the baseline.
        candidate_value: Value of the candidate.
        difference: Candidate minus baseline; lower is better.
        ci_low: Lower end of its 95 % interval; None for times of fewer than 100 queries.
        ci_high: Upper end.
        n: Number of queries.
        verdict: better | worse | cannot tell | identical: whether the interval excludes 0; not
            corrected for the other rows.
    """

    baseline: str
    candidate: str
    what: str
    baseline_value: float
    candidate_value: float
    difference: float
    ci_low: float | None
    ci_high: float | None
    n: int
    verdict: Literal["better", "worse", "cannot tell", "identical"]
