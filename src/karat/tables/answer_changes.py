"""Answer changes: latency and failed or empty answers of a candidate against the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """Latency, or the share of failed or empty answers, of a candidate against the baseline."""

    baseline: str
    candidate: str
    # `latency p50` | `latency p95` (milliseconds, over the queries timed in both) | `zero results`
    # (an empty answer, or not in the run) | `no answer` | `documents twice` (shares of the queries
    # that count, 0 to 1)
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
