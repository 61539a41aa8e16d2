"""Trend: what came of laying the points of a history in a row."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from karat.tables.release.history import Input, Kind


@dataclass(frozen=True, slots=True)
class Mark:
    """One point of a series.

    Attributes:
        time: When.
        commit: Of which code; None if not known.
        kind: ``evaluate`` | ``gate``.
        verdict: What the gate said, or None.
        value: The value; None where there is none: it is not 0.
        ci_low: Lower end of its 95 % interval, or None.
        ci_high: Upper end.
        n: Queries; None if not known.
        trouble: What became of its queries that should not have, in words; None if nothing is
            known.
        counts: Whether changes and drift take it in: it has a value, and that says something.
        changed: What differs from the last point before that counts.
        unknown: What may differ: a hash is kept for one of the two points and not for the other.
        breaks: Whether it counts and cannot be compared with those before.
        change: Value minus that of the last point that counts; None at the first and after a break.
        told_apart: Whether the two intervals alone tell the two values apart, taken as if the two
            points had no queries in common; None where neither has one. With ``by_query``,
            whether a t test of the differences query by query does, at 5 % for this step alone.
        by_query: Whether the history has its values by query, comparable with those before it.
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
    """From the best value of a stretch to its last.

    Attributes:
        time: Time of the best value that is not one odd night (``karat.stats.drift.since_best``).
        commit: Its commit; None if not known.
        change: Last value minus that.
        worse: Steps for the worse since.
        better: Steps for the better since.
    """

    time: str
    commit: str | None
    change: float
    worse: int
    better: int


@dataclass(frozen=True, slots=True)
class Drop:
    """One step for the worse that the intervals tell apart.

    Attributes:
        time: Time of the point it leads to.
        commit: Its commit; None if not known.
        change: The step.
    """

    time: str
    commit: str | None
    change: float


@dataclass(frozen=True, slots=True)
class Loss:
    """A fall that values query by query show, by more than chance makes over a year of looks.

    Attributes:
        time: Time of the point at which it was found.
        commit: Its commit; None if not known.
        since: Time of the earlier point that it is compared with.
        since_commit: Its commit; None if not known.
        change: Mean difference of these two.
        p: Two-sided p-value of these two.
        needed: The p-value that was asked for.
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
    """The newest point and the first of its stretch, compared query by query.

    Attributes:
        looks: How often the values of any query changed in this stretch: so often was a
            comparison made.
        since: Time of the first point of the stretch that has values by query.
        since_commit: Its commit; None if not known.
        change: Mean difference.
        ci_low: Lower end of its 95 % interval (Student's t) for these two points alone; None
            where there is none.
        ci_high: Upper end.
        p: Two-sided p-value of these two points alone, as ``karat compare --test t`` has it; None
            where there is none.
        n: Queries.
        needed: The p-value that a fall is asked for at the newest look, so that all looks of a
            year together raise a false alarm in at most 4 of 100 histories; None without a look.
        loss: The fall that reached it and still stands; None without one.
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
        """Whether these two points alone would be worse, though over all looks they are not."""
        return self.loss is None and self.p is not None and self.p < 0.05


@dataclass(frozen=True, slots=True)
class Lean:
    """What the newest stretch of a series does: whether it drifts, or is worse than it was.

    Attributes:
        points: Points that count since the last break.
        worse: Steps for the worse.
        better: Steps for the better.
        change: Last value minus first; None without two.
        evidence: Evidence that steps lean to the worse; 1 is none. If they do not lean, it ever
            reaches x in at most one stretch of x.
        evidence_better: The same for the better.
        needed: Evidence from which ``leans`` says so; it grows with the series and the breaks, so
            that 5 % is the most chance that anything in a history without drift ever leans.
        leans: Steps lean to the worse more than chance makes them.
        fall: From the best value to the last; None without two.
        drifts: ``leans``, and now: the steps since the best value do too, and the fall stands.
        below_start: The last value is worse than the first of the stretch by more than both
            intervals allow. That is read off the two, each night anew, and is no test of a drift.
        drop: The newest step for the worse that the intervals tell apart, if they tell all values
            since apart from that before it too; else None.
        worsened: ``below_start``, or there is such a ``drop``, or a ``loss`` query by query.
        rises: Steps lean to the better.
        since: Time of the first point of the stretch; None without points.
        since_commit: Its commit; None if not known.
        paired: The comparison query by query, where the history has two points with such values;
            ``below_start`` and ``drop`` then say nothing of these points.
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
        run: Name of the run, or of the series that its points were given.
        measure: Canonical name.
        attribute: The attribute sliced by, or None.
        slice: Its value, or None.
        direction: ``higher`` or ``lower``: which is better.
        marks: The points, oldest first.
        lean: What the newest stretch does.
        without: So many newer points of this run and kind lack the measure.
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
        """Whether its newest point tells how the search is now."""
        return self.marks[-1].counts and not self.without

    @property
    def alarms(self) -> bool:
        """Whether it drifts, or is worse than it was by more than the intervals allow."""
        return self.lean.drifts or self.lean.worsened

    @property
    def name(self) -> str:
        """Measure and slice, as printed."""
        return (
            self.measure if self.slice is None else f"{self.measure}, {self.attribute}={self.slice}"
        )


@dataclass(frozen=True, slots=True)
class Trend:
    """Everything a history says.

    Attributes:
        source: Where it came from.
        series: The worst problem first.
        last: How many of the newest points are to be shown; None for all. All are tested.
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
        """The series that are worse than they were by more than the intervals allow."""
        return [series for series in self.series if series.lean.worsened]

    @property
    def compared(self) -> bool:
        """Whether the newest point of any series was compared with an earlier one."""
        return any(series.lean.change is not None for series in self.series)

    @property
    def cannot_tell(self) -> bool:
        """Whether it says too little: nothing was compared, or a newest point does not count."""
        return bool(self.untold) or not self.compared

    @property
    def untold(self) -> list[Series]:
        """The series of which nobody can tell: their newest point does not count, or lacks them."""
        return [series for series in self.series if not series.told]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat trend --format json``; all points, or the last asked for."""
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
