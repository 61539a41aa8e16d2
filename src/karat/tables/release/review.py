"""Design review: what a change gains, costs and risks, on one page."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from karat.tables.comparison import Costs, Verdict
from karat.tables.diagnosis.results import ModeId

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class ReviewGain:
    """The change of the first measure, over all queries or a slice."""

    value: float | None  # candidate minus baseline; None if no query has a value in both
    ci_low: float | None  # 95 % interval; None without one
    ci_high: float | None
    n: int  # queries
    verdict: Verdict
    reason: str  # of the verdict, in a sentence


@dataclass(frozen=True)
class ReviewSlice(ReviewGain):
    """The slice that gains most."""

    attribute: str
    slice: str


@dataclass(frozen=True)
class ModeChange:
    """A failure mode, and the queries that cross the line between bad and good."""

    mode: ModeId
    queries: list[str]  # ids, the largest change first
    of: int  # bad queries with this mode: of the baseline in `catches`, of the candidate in `worse`
    evidence: str  # of the first of these queries


@dataclass(frozen=True)
class RollbackSignal:
    """What to watch after the release, and the value beyond which to go back."""

    source: Literal["online", "offline"]  # a metric of the log, or a measure over the judgments
    metric: str
    slice: dict[str, str]  # attribute → value; empty for all
    window: str  # `1d`; of a measure `each evaluation`
    limit: float  # an end of the usual range of the metric; the baseline's value of the measure
    direction: Literal["above", "below"]  # which side of the limit is bad
    reason: str  # why this one, in a sentence


@dataclass(frozen=True)
class DesignReview:
    """The review of a change."""

    baseline: str
    candidate: str
    measure: str  # the first measure
    gain: ReviewGain
    below: float  # queries with a lower value are bad
    bad: int  # bad queries of the baseline
    catches: list[ModeChange]  # bad queries that the candidate answers well, by mode
    worse: list[ModeChange]  # good queries that the candidate answers badly, by mode
    slice: ReviewSlice | None  # that gains most; None without slices, or if none gains
    costs: Costs | None  # None if nothing is known of both
    rollback: RollbackSignal | None  # None if the baseline has no value
    not_measured: list[str]  # in sentences
    notes: list[str]  # sentences a reader must know
    schema_version: int = field(default=SCHEMA_VERSION)  # of this object; a new one may lack keys

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat review --format json`` (docs/reference/json.md)."""
        return {"schema_version": self.schema_version, **asdict(self)}
