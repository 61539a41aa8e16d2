"""Answer changes: how a candidate answered, against the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """How a candidate answered, against the baseline: how quickly, or how many queries not well.

    Attributes:
        baseline: Name of the baseline.
        candidate: Name of the candidate.
        what: ``latency p50`` | ``latency p95`` (milliseconds, of the queries timed in both) |
            ``zero results`` (answered with nothing, or not in the run) | ``no answer`` |
            ``documents twice`` (shares of the queries that count, 0 to 1).
        baseline_value: The baseline's.
        candidate_value: The candidate's.
        difference: Candidate minus baseline; less is better.
        ci_low: Lower end of its 95 % interval; None of times of fewer than 100 queries.
        ci_high: Upper end.
        n: Queries it is over.
        verdict: better | worse | cannot tell | identical: whether the interval leaves out 0; not
            corrected for other rows.
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
