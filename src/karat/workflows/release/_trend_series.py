"""One series of a history: what changed from point to point, drops, and drift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from karat.measures import lower_is_better
from karat.stats import drift
from karat.tables.release.history import BREAKING, Input, Point, Value
from karat.tables.release.trend import Drop, Fall, Lean, Mark, Series
from karat.workflows.release.trend_by_query import QueryValues, differ, paired_of

Key = tuple[str, str, str | None, str | None]
"""Name of the series, measure, attribute and value of a slice."""
_HASHED: tuple[tuple[Input, str], ...] = (
    ("judgments", "qrels"),
    ("queries", "queries"),
    ("corpus", "corpus"),
    ("answers", "run"),
)


def marks_of(
    line: Sequence[tuple[Point, Value]], values: Sequence[QueryValues | None]
) -> tuple[Mark, ...]:
    """The points of one series, and their values by query. Points without the measure are none."""
    marks: list[Mark] = []
    held: tuple[Point, Value] | None = None  # the last that counts
    before: QueryValues | None = None  # its values by query
    for (point, value), kept in zip(line, values, strict=True):
        counts = value.value is not None and not point.worthless
        changed, unknown = _between(held, (point, value)) if held else ((), ())
        breaks = counts and any(name in BREAKING for name in (*changed, *unknown))
        change = told = None
        # Of other queries, though nothing else says so, they cannot be paired.
        alike = before is None or breaks or kept is None or kept.queries == before.queries
        own = kept if alike else None
        if held and counts and not breaks and held[1].value is not None and value.value is not None:
            change = value.value - held[1].value
            told = (
                differ(before, own)
                if before and own
                else drift.told_apart(held[1].value, value.value, (_error(held[1]), _error(value)))
            )
        marks.append(
            Mark(
                time=point.time,
                commit=point.commit,
                kind=point.kind,
                verdict=point.verdict,
                value=value.value,
                ci_low=value.ci_low,
                ci_high=value.ci_high,
                n=value.n,
                trouble=point.trouble,
                counts=counts,
                changed=changed,
                unknown=unknown,
                breaks=breaks,
                change=change,
                told_apart=told,
                by_query=own is not None,
            )
        )
        if counts:
            held, before = (point, value), own
    return tuple(marks)


def _between(
    old: tuple[Point, Value], new: tuple[Point, Value]
) -> tuple[tuple[Input, ...], tuple[Input, ...]]:
    """What differs between two points of a series, and what may."""
    (before, value), (after, value_after) = old, new
    changed: list[Input] = ["code"] if before.commit != after.commit else []
    unknown: list[Input] = []
    for name, key in _HASHED:
        left, right = before.hashes.get(key), after.hashes.get(key)
        if left is not None and right is not None and left != right:
            changed.append(name)
        elif (left is None) != (right is None):
            unknown.append(name)
    if before.rules != after.rules:
        changed.append("rules")
    if not any(name in BREAKING for name in (*changed, *unknown)):
        counted = value.n, value_after.n
        if None not in counted and counted[0] != counted[1]:
            changed.append("n")
    if before.karat != after.karat:
        changed.append("karat")
    return tuple(changed), tuple(unknown)


def _error(value: Value | Mark) -> float | None:
    if value.ci_low is None and value.value in {0.0, 1.0} and (value.n or 0) > 1:
        return 0.0  # several queries without an interval: all have this value
    return drift.standard_error(value.value, value.ci_low, value.ci_high)


def _newest(marks: Sequence[Mark]) -> list[Mark]:
    """The points that count since the last break."""
    start = max((place for place, mark in enumerate(marks) if mark.breaks), default=0)
    return [mark for mark in marks[start:] if mark.counts]


def series_of(
    key: Key,
    marks: tuple[Mark, ...],
    values: Sequence[QueryValues | None],
    compared: int,
    without: int,
) -> Series:
    """One series, tested.

    Args:
        key: Which.
        marks: Its points.
        values: Their values by query.
        compared: So many series are tested together.
        without: So many newer points lack it.
    """
    run, measure, attribute, name = key
    way: Literal["higher", "lower"] = "lower" if lower_is_better(measure) else "higher"
    up = -1.0 if way == "lower" else 1.0
    stretch = 1 + sum(mark.breaks for mark in marks)
    paired = paired_of(marks, values, up, compared)
    level = drift.LEVEL if paired is None else drift.BESIDE_LOOKS
    lean = _lean(_newest(marks), up, drift.needed(compared, stretch, level))
    if paired is not None:
        lean = replace(lean, paired=paired, worsened=lean.worsened or paired.loss is not None)
    return Series(run, measure, attribute, name, way, marks, lean, without)


def _lean(marks: Sequence[Mark], up: float, needed: float) -> Lean:
    values = [up * mark.value for mark in marks if mark.value is not None]
    steps = [after - before for before, after in pairwise(values)]
    falling, rising = drift.evidence(steps)
    leans, drifts, below, fall, drop = falling >= needed, False, False, None, None
    if steps:
        best, stands = drift.since_best(values)
        after = steps[best:]
        drifts = leans and stands and drift.evidence(after)[0] >= needed
        fall = Fall(
            time=marks[best].time,
            commit=marks[best].commit,
            change=up * (values[-1] - values[best]),
            worse=sum(step < 0 for step in after),
            better=sum(step > 0 for step in after),
        )
        below = _below(marks[0], marks[-1], up)
        drop = _drop(marks, up)
    return Lean(
        points=len(values),
        worse=sum(step < 0 for step in steps),
        better=sum(step > 0 for step in steps),
        change=up * (values[-1] - values[0]) if steps else None,
        evidence=falling,
        evidence_better=rising,
        needed=needed,
        leans=leans,
        fall=fall,
        drifts=drifts,
        below_start=below,
        drop=drop,
        worsened=below or drop is not None,
        rises=rising >= needed,
        since=marks[0].time if marks else None,
        since_commit=marks[0].commit if marks else None,
    )


def _below(before: Mark, after: Mark, up: float) -> bool:
    """Whether the later one is worse by more than both intervals allow."""
    if before.value is None or after.value is None or up * (after.value - before.value) >= 0:
        return False
    if before.by_query and after.by_query:
        return False  # there is a test of that
    return drift.told_apart(before.value, after.value, (_error(before), _error(after))) is True


def _drop(marks: Sequence[Mark], up: float) -> Drop | None:
    """The newest step for the worse that shows, and from which no point since has recovered."""
    for at in range(len(marks) - 1, 0, -1):
        before, mark = marks[at - 1], marks[at]
        stands = all(_below(before, later, up) for later in marks[at:])
        if stands and mark.change is not None:
            return Drop(mark.time, mark.commit, mark.change)
    return None
