"""Trend: each measure of a history over time, and whether it drifts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from karat.tables.release.history import Input, Kind


@dataclass(frozen=True, slots=True)
class Mark:
    """One point of a series."""

    time: str  # time in UTC
    commit: str | None  # commit of the code; None if unknown
    kind: Kind  # `evaluate` | `gate`
    verdict: str | None  # verdict of the gate, or None
    value: float | None  # the value; None (not 0) if there is none
    ci_low: float | None  # lower end of its 95 % interval; None without an interval
    ci_high: float | None  # upper end
    n: int | None  # number of queries; None if unknown
    # What went wrong with its queries, in words; None if nothing did, or it is unknown
    trouble: str | None
    # Whether changes and drift use it: it has a value that says something about the search
    counts: bool
    changed: tuple[Input, ...]  # what differs from the previous point that counts
    unknown: tuple[Input, ...]  # what may differ: only one of the two points has a hash
    breaks: bool  # whether it counts but is not comparable with the points before
    # Value minus that of the previous point that counts; None for the first and after a break
    change: float | None
    # Whether the value is significantly different from the previous one, judged by the two
    # intervals as if the points had no queries in common; None if neither has one. With `by_query`,
    # by a paired t test over queries, at 5 % for this step alone.
    told_apart: bool | None
    by_query: bool = False  # whether it has per-query values that are comparable with those before


@dataclass(frozen=True, slots=True)
class Fall:
    """The change from the best value since the last break to the newest."""

    time: str  # time of the best value, outliers excluded (`karat.stats.drift.since_best`)
    commit: str | None  # its commit; None if unknown
    change: float  # newest value minus the best
    worse: int  # number of steps for the worse since
    better: int  # number of steps for the better since


@dataclass(frozen=True, slots=True)
class Drop:
    """A significant step for the worse."""

    time: str  # time of the point after the step
    commit: str | None  # its commit; None if unknown
    change: float


@dataclass(frozen=True, slots=True)
class Loss:
    """A significant decline of the per-query values, corrected for a year of repeated tests."""

    time: str  # time of the point at which it was detected
    commit: str | None  # its commit; None if unknown
    since: str  # time of the earlier point that it is compared with
    since_commit: str | None  # its commit; None if unknown
    change: float  # mean difference of the two points
    p: float  # two-sided p-value of the two points
    needed: float  # threshold of the p-value


@dataclass(frozen=True, slots=True)
class Paired:
    """The newest point and the first since the last break, compared query by query."""

    looks: int  # number of tests since the break: how often any per-query value changed
    since: str  # time of the first point since the break with per-query values
    since_commit: str | None  # its commit; None if unknown
    change: float  # mean difference
    # Lower end of its 95 % interval (Student's t) for these two points alone; None without an
    # interval
    ci_low: float | None
    ci_high: float | None  # upper end
    # two-sided p-value of these two points alone, as of `karat compare --test t`; None if undefined
    p: float | None
    n: int  # number of queries
    # Threshold of the p-value at the newest look. With it, all looks of a year raise a false alarm
    # in at most 4 of 100 histories. None without a look.
    needed: float | None
    loss: Loss | None  # the significant decline that persists; None without one

    @property
    def suspect(self) -> bool:
        """Whether the two points differ at 5 %, but not after correction for all looks."""
        return self.loss is None and self.p is not None and self.p < 0.05


@dataclass(frozen=True, slots=True)
class Lean:
    """Drift of a series since its last break."""

    points: int  # points that count since the last break
    worse: int  # number of steps for the worse
    better: int  # number of steps for the better
    change: float | None  # newest value minus the first; None with fewer than two points
    # Evidence that steps lean to the worse; 1 is none. Without a lean, it ever reaches x with a
    # probability of at most 1/x.
    evidence: float
    evidence_better: float  # the same for the better
    # Threshold of the evidence for `leans`. It grows with the number of series and breaks: a
    # history without drift has any lean with a probability of at most 5 %.
    needed: float
    leans: bool  # whether steps lean significantly to the worse
    fall: Fall | None  # from the best value to the newest; None with fewer than two points
    # Whether `leans` still holds: also for the steps since the best value, from which the newest is
    # down
    drifts: bool
    # Whether the newest value is worse than the first by more than both intervals allow. It
    # compares the two points anew each time, and does not test for drift.
    below_start: bool
    # The newest significant step for the worse, if all values since differ significantly from the
    # one before it; otherwise None
    drop: Drop | None
    worsened: bool  # whether there is `below_start`, a `drop`, or a `loss` in `paired`
    rises: bool  # whether steps lean significantly to the better
    since: str | None  # time of the first point since the break; None without points
    since_commit: str | None  # its commit; None if unknown
    # The comparison query by query, if two points have per-query values; `below_start` and `drop`
    # then ignore these points
    paired: Paired | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One measure of one run over time."""

    run: str  # name of the run, or of the series given to its points
    measure: str  # canonical name of the measure
    attribute: str | None  # the attribute sliced by, or None
    slice: str | None  # its value, or None
    direction: Literal["higher", "lower"]  # `higher` or `lower`: which is better
    marks: tuple[Mark, ...]  # the points, oldest first
    lean: Lean  # drift since the last break
    without: int = 0  # number of newer points of this run and kind that lack the measure

    @property
    def told(self) -> bool:
        """Whether its newest point shows the current state of the search."""
        return self.marks[-1].counts and not self.without

    @property
    def alarms(self) -> bool:
        """Whether it drifts, or is significantly worse than before."""
        return self.lean.drifts or self.lean.worsened

    @property
    def name(self) -> str:
        """Measure and slice, as printed."""
        return (
            self.measure if self.slice is None else f"{self.measure}, {self.attribute}={self.slice}"
        )


@dataclass(frozen=True, slots=True)
class Trend:
    """The trends of a history."""

    source: str  # name of the history
    series: list[Series]  # the series, the worst problem first
    last: int | None = None  # number of newest points to show; None for all. All points are tested.
    notes: list[str] = field(default_factory=list)  # sentences a reader must know

    @property
    def drifting(self) -> list[Series]:
        """The series that drift to the worse."""
        return [series for series in self.series if series.lean.drifts]

    @property
    def worsened(self) -> list[Series]:
        """The series that are significantly worse than before."""
        return [series for series in self.series if series.lean.worsened]

    @property
    def compared(self) -> bool:
        """Whether the newest point of any series was compared with an earlier one."""
        return any(series.lean.change is not None for series in self.series)

    @property
    def cannot_tell(self) -> bool:
        """Whether evidence is missing: nothing was compared, or a newest point does not count."""
        return bool(self.untold) or not self.compared

    @property
    def untold(self) -> list[Series]:
        """The series whose newest point does not count or lacks the measure."""
        return [series for series in self.series if not series.told]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat trend --format json``: all points, or the ``last`` ones."""
        rows = [asdict(series) for series in self.series]
        for row in rows:
            row["marks"] = list(row["marks"] if self.last is None else row["marks"][-self.last :])
        return {
            "drifts": bool(self.drifting),
            "worse": bool(self.worsened),
            "cannot_tell": self.cannot_tell,
            "compared": self.compared,
            "series": rows,
            "notes": list(self.notes),
        }
