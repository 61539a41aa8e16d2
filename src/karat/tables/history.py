"""History: what was measured when, and what came of laying the points in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, Literal

from karat.tables.gate import Gate
from karat.tables.results import Result, Results

VERSION = 1
Kind = Literal["evaluate", "gate"]
HASHES = ("queries", "qrels", "run", "corpus")
"""What a point keeps the SHA-256 of."""
Input = Literal["code", "corpus", "queries", "judgments", "rules", "n", "answers", "karat"]
"""What can differ between two points.

``code``: the commit · ``corpus``, ``queries``, ``judgments``: by their hashes · ``rules``: how it
was evaluated, and which queries a gate counts · ``n``: over how many queries, though none of these
three says why · ``answers``: the run itself · ``karat``: its version.
"""
BREAKING: tuple[Input, ...] = ("judgments", "queries", "rules", "n")
"""After a change of these, two numbers are not of the same thing."""
WORTHLESS = ("unhealthy", "error")
"""Verdicts after which a number says nothing about the search."""


@dataclass(frozen=True, slots=True)
class Value:
    """The value of one measure at one point.

    Attributes:
        measure: Canonical name of the measure.
        value: The aggregate; None where there is none.
        ci_low: Lower end of its 95 % interval, or None.
        ci_high: Upper end.
        n: Queries it is over; None if not known.
        attribute: The attribute sliced by, or None for all queries.
        slice: Its value, or None.
    """

    measure: str
    value: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    n: int | None = None
    attribute: str | None = None
    slice: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of the queries of a run: a nightly evaluation has no other health check.

    Attributes:
        queries: Queries that count.
        failed: Of these, without an answer: no value is over them.
        missing: Of these, not in the run; they score 0, as what was answered with nothing does.
        empty: Of these, answered with nothing.
    """

    queries: int
    failed: int
    missing: int
    empty: int

    @property
    def worthless(self) -> bool:
        """Whether values are over other queries than asked, or of a search that found nothing."""
        return self.failed > 0 or 0 < self.queries <= self.missing + self.empty

    @property
    def trouble(self) -> str | None:
        """What went wrong, in words; None if nothing did. An empty answer alone can be right."""
        if 0 < self.queries <= self.failed + self.missing + self.empty and self.failed == 0:
            return f"no document for any of {_queries(self.queries)}"
        said = [f"{self.failed:,} of {_queries(self.queries)} got no answer"] * (self.failed > 0)
        if self.missing:
            of = "" if said else f" of {_queries(self.queries)}"
            be = "is" if self.missing == 1 else "are"
            said.append(f"{self.missing:,}{of} {be} not in the run")
        return ", ".join(said) or None


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count:,} queries"


@dataclass(frozen=True, slots=True)
class Point:
    """One line of a history.

    Attributes:
        time: When, in UTC, as ``2026-03-01T02:00:00Z``.
        kind: What made it: ``evaluate`` | ``gate``.
        run: Name of the run.
        commit: The code it is of, or any label; None if not known.
        verdict: What the gate said; None for an evaluation.
        rules: How it was evaluated where that was not by default, as in ``rel=2 depth=100``; of a
            gate also ``without=`` and a hash of the known failures, which do not count.
        karat: Version of karat.
        values: One for each measure, and for each slice of it.
        hashes: SHA-256 of ``queries``, ``qrels``, ``run`` and ``corpus``; None where not known.
        answered: What became of the queries; None where not known.
    """

    time: str
    kind: Kind
    run: str
    commit: str | None
    verdict: str | None
    rules: str
    karat: str
    values: tuple[Value, ...]
    hashes: Mapping[str, str | None]
    answered: Answered | None = None

    @property
    def worthless(self) -> bool:
        """Whether its values say nothing about the search."""
        return self.verdict in WORTHLESS or (self.answered is not None and self.answered.worthless)

    @property
    def trouble(self) -> str | None:
        """What became of its queries that should not have, in words; None if nothing is known."""
        return self.answered.trouble if self.answered else None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of its line; slices apart."""
        rows = [asdict(value) for value in self.values]
        bare = {"attribute", "slice"}
        held = asdict(self)
        held["values"] = [
            {key: value for key, value in row.items() if key not in bare}
            for row in rows
            if row["attribute"] is None
        ]
        held["slices"] = [row for row in rows if row["attribute"] is not None]
        held["hashes"] = {name: self.hashes.get(name) for name in HASHES}
        return {"karat_history": VERSION} | held


def point_of(
    results: Results,
    *,
    run: str,
    time: str,
    hashes: Mapping[str, str | None],
    karat: str,
    commit: str | None = None,
    rules: str = "",
) -> Point:
    """The point of one run of an evaluation.

    Args:
        results: What came out, slices included.
        run: Name of the run; a history holds a point for each.
        time: When, in UTC, as ``2026-03-01T02:00:00Z``.
        hashes: SHA-256 of ``queries``, ``qrels``, ``run`` and ``corpus``; those not known may lack.
        karat: Version of karat.
        commit: The code it is of.
        rules: How it was evaluated where that was not by default.
    """
    rows = [row for row in (*results.results, *results.slices) if row.run == run]
    values = tuple(_value(row) for row in rows)
    return Point(
        time, "evaluate", run, commit, None, rules, karat, values, _known(hashes),
        _answered(rows, apart="compat=" in rules and "complete=" not in rules),
    )  # fmt: skip


def point_of_gate(
    gate: Gate,
    *,
    time: str,
    karat: str,
    corpus: str | None = None,
    commit: str | None = None,
    rules: str = "",
) -> Point:
    """The point of a gate: its verdict, and the candidate's values.

    Args:
        gate: What the policy said.
        time: When, in UTC, as ``2026-03-01T02:00:00Z``.
        karat: Version of karat.
        corpus: SHA-256 of the documents, or any name of their version.
        commit: The code it is of.
        rules: How it was evaluated where that was not by default.
    """
    values = tuple(map(_value, gate.results))
    hashes = _known({**gate.hashes, "run": gate.hashes.get("candidate"), "corpus": corpus})
    if out := sorted({known.query_id for known in gate.known_failures}):
        # As many others left out would be the same n, over other queries.
        ids = "".join(f"{len(query)}:{query}" for query in out).encode("utf-8", "replace")
        rules = f"{rules} without={sha256(ids).hexdigest()[:16]}".lstrip()
    return Point(
        time, "gate", gate.candidate, commit, gate.verdict, rules, karat, values, hashes,
        _answered(gate.results),
    )  # fmt: skip


def _value(row: Result) -> Value:
    return Value(
        row.measure, row.value, row.ci_low, row.ci_high, row.n, row.attribute, row.slice
    )  # fmt: skip


def _answered(rows: Sequence[Result], *, apart: bool = False) -> Answered | None:
    """What became of the queries, by the measure that has most of them.

    ``apart``: queries that are not in the run are not in n either, as in trec_eval without -c.
    """
    whole = [row for row in rows if row.attribute is None]
    if not whole:
        return None
    row = max(whole, key=lambda row: (row.n, row.missing))
    failed = max(row.failed for row in whole)
    queries = row.n + row.undefined + failed + (row.missing if apart else 0)
    return Answered(queries, failed, row.missing, row.empty)


def _known(hashes: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: hashes.get(name) for name in HASHES}


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
            points had no queries in common; None where neither has one.
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
        worsened: ``below_start``, or there is such a ``drop``.
        rises: Steps lean to the better.
        since: Time of the first point of the stretch; None without points.
        since_commit: Its commit; None if not known.
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


@dataclass(frozen=True, slots=True)
class Series:
    """One measure of one run over time.

    Attributes:
        run: Name of the run.
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
            "cannot_tell": bool(self.untold),
            "series": rows,
            "notes": list(self.notes),
        }
