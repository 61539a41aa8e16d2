"""Trend: each measure of a history over time, and whether it drifts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from karat.tables.release.history import Input, Kind


@dataclass(frozen=True, slots=True)
class Mark:
    """One point of a series.

    Attributes:
        time: Time in UTC.
        commit: Commit of the code; None if unknown.
        kind: ``evaluate`` | ``gate``.
        verdict: Verdict of the gate, or None.
        value: The value; None (not 0) if there is none.
        ci_low: Lower end of its 95 % interval; None without an interval.
        ci_high: Upper end.
        n: Number of queries; None if unknown.
        trouble: What went wrong with its queries, in words; None if nothing did, or it is unknown.
        counts: Whether changes and drift use it: it has a value that says something about the
            search.
        changed: What differs from the previous point that counts.
        unknown: What may differ: only one of the two points has a hash.
        breaks: Whether it counts but is not comparable with the points before.
        change: Value minus that of the previous point that counts; None for the first and after a
            break.
        told_apart: Whether the value is significantly different from the previous one, judged by
            the two intervals as if the points had no queries in common; None if neither has one.
            With ``by_query``, by a paired t test over queries, at 5 % for this step alone.
        by_query: Whether it has per-query values that are comparable with those before.
    """

    time: str
    commit: str | None
    kind: Kind
    verdict: str | None
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int | None
    trouble: str | None
    counts: bool
    changed: tuple[Input, ...]
    unknown: tuple[Input, ...]
    breaks: bool
    change: float | None
    told_apart: bool | None
    by_query: bool = False


@dataclass(frozen=True, slots=True)
class Fall:
    """The change from the best value since the last break to the newest.

    Attributes:
        time: Time of the best value, outliers excluded (``karat.stats.drift.since_best``).
        commit: Its commit; None if unknown.
        change: Newest value minus the best.
        worse: Number of steps for the worse since.
        better: Number of steps for the better since.
    """

    time: str
    commit: str | None
    change: float
    worse: int
    better: int


@dataclass(frozen=True, slots=True)
class Drop:
    """A significant step for the worse.

    Attributes:
        time: Time of the point after the step.
        commit: Its commit; None if unknown.
        change: Change of the value.
    """

    time: str
    commit: str | None
    change: float


@dataclass(frozen=True, slots=True)
class Loss:
    """A significant decline of the per-query values, corrected for a year of repeated tests.

    Attributes:
        time: Time of the point at which it was detected.
        commit: Its commit; None if unknown.
        since: Time of the earlier point that it is compared with.
        since_commit: Its commit; None if unknown.
        change: Mean difference of the two points.
        p: Two-sided p-value of the two points.
        needed: Threshold of the p-value.
    """

    time: str
    commit: str | None
    since: str
    since_commit: str | None
    change: float
    p: float
    needed: float


@dataclass(frozen=True, slots=True)
class Paired:
    """The newest point and the first since the last break, compared query by query.

    Attributes:
        looks: Number of tests since the break: how often any per-query value changed.
        since: Time of the first point since the break with per-query values.
        since_commit: Its commit; None if unknown.
        change: Mean difference.
        ci_low: Lower end of its 95 % interval (Student's t) for these two points alone; None
            without an interval.
        ci_high: Upper end.
        p: Two-sided p-value of these two points alone, as of ``karat compare --test t``; None if
            undefined.
        n: Number of queries.
        needed: Threshold of the p-value at the newest look. With it, all looks of a year raise a
            false alarm in at most 4 of 100 histories. None without a look.
        loss: The significant decline that persists; None without one.
    """

    looks: int
    since: str
    since_commit: str | None
    change: float
    ci_low: float | None
    ci_high: float | None
    p: float | None
    n: int
    needed: float | None
    loss: Loss | None

    @property
    def suspect(self) -> bool:
        """Whether the two points differ at 5 %, but not after correction for all looks."""
        return self.loss is None and self.p is not None and self.p < 0.05


@dataclass(frozen=True, slots=True)
class Lean:
    """Drift of a series since its last break.

    Attributes:
        points: Points that count since the last break.
        worse: Number of steps for the worse.
        better: Number of steps for the better.
        change: Newest value minus the first; None with fewer than two points.
        evidence: Evidence that steps lean to the worse; 1 is none. Without a lean, it ever reaches
            x with a probability of at most 1/x.
        evidence_better: The same for the better.
        needed: Threshold of the evidence for ``leans``. It grows with the number of series and
            breaks: a history without drift has any lean with a probability of at most 5 %.
        leans: Whether steps lean significantly to the worse.
        fall: From the best value to the newest; None with fewer than two points.
        drifts: Whether ``leans`` still holds: also for the steps since the best value, from which
            the newest is down.
        below_start: Whether the newest value is worse than the first by more than both intervals
            allow. It compares the two points anew each time, and does not test for drift.
        drop: The newest significant step for the worse, if all values since differ significantly
            from the one before it; otherwise None.
        worsened: Whether there is ``below_start``, a ``drop``, or a ``loss`` in ``paired``.
        rises: Whether steps lean significantly to the better.
        since: Time of the first point since the break; None without points.
        since_commit: Its commit; None if unknown.
        paired: The comparison query by query, if two points have per-query values; ``below_start``
            and ``drop`` then ignore these points.
    """

    points: int
    worse: int
    better: int
    change: float | None
    evidence: float
    evidence_better: float
    needed: float
    leans: bool
    fall: Fall | None
    drifts: bool
    below_start: bool
    drop: Drop | None
    worsened: bool
    rises: bool
    since: str | None
    since_commit: str | None
    paired: Paired | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One measure of one run over time.

    Attributes:
        run: Name of the run, or of the series given to its points.
        measure: Canonical name of the measure.
        attribute: The attribute sliced by, or None.
        slice: Its value, or None.
        direction: ``higher`` or ``lower``: which is better.
        marks: The points, oldest first.
        lean: Drift since the last break.
        without: Number of newer points of this run and kind that lack the measure.
    """

    run: str
    measure: str
    attribute: str | None
    slice: str | None
    direction: Literal["higher", "lower"]
    marks: tuple[Mark, ...]
    lean: Lean
    without: int = 0

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
    """The trends of a history.

    Attributes:
        source: Name of the history.
        series: The series, the worst problem first.
        last: Number of newest points to show; None for all. All points are tested.
        notes: Sentences a reader must know.
    """

    source: str
    series: list[Series]
    last: int | None = None
    notes: list[str] = field(default_factory=list)

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
