"""Trend: each measure over time, what changed between points, and drift that no step shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from karat.errors import UsageError, nearest
from karat.formats import history as histories
from karat.measures import lower_is_better, parse
from karat.reports.trend_words import TOLD_APART, place, sentence
from karat.stats import drift
from karat.tables import Qrels, Queries
from karat.tables.gate import Gate
from karat.tables.history import (
    BREAKING,
    Drop,
    Fall,
    Input,
    Lean,
    Mark,
    Point,
    Series,
    Trend,
    Value,
    point_of,
    point_of_gate,
)
from karat.tables.results import Results
from karat.workflows.fingerprints import fingerprint

_Key = tuple[str, str, str | None, str | None]
_HASHED: tuple[tuple[Input, str], ...] = (
    ("judgments", "qrels"),
    ("queries", "queries"),
    ("corpus", "corpus"),
    ("answers", "run"),
)


def trend(
    history: str | Path | Sequence[Point],
    measures: Sequence[str] | None = None,
    *,
    slice: str | None = None,  # noqa: A002 - as it is typed
    run: str | None = None,
    last: int | None = None,
) -> Trend:
    """Lay the points of a history in a row; look for drift, and for what is worse than it was.

    Args:
        history: A file that ``--history`` wrote, or its points.
        measures: Names of measures; all of the history if None. The fewer, the sooner a drift
            shows: the evidence asked for grows with the number of series.
        slice: One slice, as ``class=name``; all queries if None.
        run: One run; all if None.
        last: Show so many points of each series; the test looks at all of them.

    Raises:
        InputError: the history cannot be read.
        UsageError: it has no such measure, slice or run.
    """
    if last is not None and last < 1:
        raise UsageError(f"last {last}: one point or more is shown", fix="--last 20")
    points: list[Point]
    cut: list[str] = []
    if isinstance(history, str | Path):
        source, points = str(history), histories.read(history, cut.append)
    else:
        source, points = "history", list(history)
    points.sort(key=lambda point: point.time.removesuffix("Z"))
    if run is not None:
        names = list(dict.fromkeys(point.run for point in points))
        points = [point for point in points if point.run == run]
        if not points:
            raise UsageError(
                f"the history has no run {run!r}", nearest=nearest(run, names) or names
            )
    keys = _chosen(_keys(points), measures, slice)
    lines: dict[_Key, list[tuple[Point, Value]]] = {key: [] for key in keys}
    for point in points:
        for value in point.values:
            line = lines.get((point.run, value.measure, value.attribute, value.slice))
            if line is not None:
                line.append((point, value))
    marks = {key: _marks(line) for key, line in lines.items()}
    moving = sum(any(mark.change is not None for mark in found) for found in marks.values())
    series = [
        _series(key, found, max(moving, 1), _without(lines[key][-1][0], points))
        for key, found in marks.items()
    ]
    series.sort(key=_urgency)  # stable: else in the order of the history
    return Trend(source, series, last, [*cut, *_vanished(points), *_notes(series)])


def keep(
    path: str | Path,
    results: Results,
    *,
    time: str,
    qrels: Qrels | None,
    queries: Queries | None = None,
    commit: str | None = None,
    corpus: str | None = None,
    rules: str = "",
) -> None:
    """Add an evaluation to a history: one point for each run.

    Args:
        path: The history; made if there is none.
        results: What came out.
        time: When, in UTC, as ``2026-03-01T02:00:00Z``.
        qrels: The judgments it is of.
        queries: The queries it is of, if they were given.
        commit: Of which code.
        corpus: A hash, or any name, of the documents searched.
        rules: How it was evaluated where that was not by default, as ``rules_text`` says it.

    Raises:
        InputError: the file is something else, or cannot be written.
    """
    shared = {"qrels": fingerprint(qrels), "queries": fingerprint(queries), "corpus": corpus}
    points = [
        point_of(
            results,
            run=run,
            time=time,
            hashes=shared | {"run": fingerprint(results.runs.get(run))},
            karat=metadata.version("karat"),
            commit=commit,
            rules=rules,
        )
        for run in dict.fromkeys(row.run for row in results.results)
    ]
    histories.append(path, *points)


def keep_gate(
    path: str | Path,
    gate: Gate,
    *,
    time: str,
    commit: str | None = None,
    corpus: str | None = None,
    rules: str = "",
) -> None:
    """Add a gate to a history: its verdict and the candidate's values.

    Args:
        path: The history; made if there is none.
        gate: What the policy said.
        time: When, in UTC, as ``2026-03-01T02:00:00Z``.
        commit: Of which code.
        corpus: A hash, or any name, of the documents searched.
        rules: As ``keep`` takes them.

    Raises:
        InputError: the file is something else, or cannot be written.
    """
    point = point_of_gate(
        gate,
        time=time,
        karat=metadata.version("karat"),
        corpus=corpus,
        commit=commit,
        rules=rules,
    )
    histories.append(path, point)


def rules_text(settings: Mapping[str, Any]) -> str:
    """What of the options of an evaluation is not by default and changes what a value means."""
    names = ("rel", "scale", "complete", "depth", "judged_only", "collapse", "compat", "threshold")
    return " ".join(f"{name}={settings[name]}" for name in names if settings.get(name))


def event(content: Trend | Gate, *, time: str, commit: str | None = None) -> dict[str, Any] | None:
    """What ``--notify`` posts of a trend or a gate, if somebody has to know; else None.

    That is a trend that drifts, is worse than it was, or whose newest point says nothing; and a
    gate that does not pass.

    Args:
        content: The trend or the gate.
        time: When, in UTC, as ``2026-03-01T02:00:00Z``.
        commit: Of which code.

    Returns:
        ``event`` (``trend.drift``, else ``trend.worse``, else ``trend.cannot_tell``; or
        ``gate.fail`` and so on), ``time``, ``commit``, ``karat``, ``text`` (a sentence),
        ``content`` (the command's JSON object).
    """
    if isinstance(content, Gate):
        if content.verdict == "pass":
            return None
        kind = f"gate.{content.verdict}"
        text = f"{content.candidate}: {content.verdict.replace('_', ' ')}"
        if content.checks:
            text += f": {content.checks[0].rule}: {content.checks[0].reason}"
    else:
        told = [series for series in content.series if series.alarms] or content.untold
        if not told:
            return None
        kind = "trend.cannot_tell"
        if any(series.alarms for series in told):
            kind = "trend.drift" if content.drifting else "trend.worse"
        text = "; ".join(f"{one.run}, {one.name}: {sentence(one)}" for one in told)
        commit = commit or told[0].marks[-1].commit
    return {
        "event": kind,
        "time": time,
        "commit": commit,
        "karat": metadata.version("karat"),
        "text": text,
        "content": content.to_dict(),
    }


def _keys(points: Sequence[Point]) -> list[_Key]:
    return list(
        dict.fromkeys(
            (point.run, value.measure, value.attribute, value.slice)
            for point in points
            for value in point.values
        )
    )


def _chosen(keys: list[_Key], measures: Sequence[str] | None, sliced: str | None) -> list[_Key]:
    """The series asked for."""
    attribute: str | None = None
    name: str | None = None
    if sliced is not None:
        attribute, equals, name = sliced.partition("=")
        if not equals:
            raise UsageError(f"the slice {sliced} names no value", fix=f"{sliced}=VALUE")
    found = [key for key in keys if key[2:] == (attribute, name)]
    if not found:
        there = list(dict.fromkeys(f"{key[2]}={key[3]}" for key in keys if key[2] is not None))
        if sliced is not None:
            near = nearest(sliced, there) or there[:5]
            raise UsageError(f"the history has no slice {sliced}", nearest=near)
        raise UsageError("the history has no value over all queries", nearest=there[:5])
    if not measures:
        return found
    there = list(dict.fromkeys(key[1] for key in found))
    wanted: list[str] = []
    for measure in measures:
        canonical = measure if measure in there else str(parse(measure))
        if canonical not in there:
            near = nearest(canonical, there) or there
            raise UsageError(f"the history has no {canonical}", nearest=near)
        wanted.append(canonical)
    return [key for one in dict.fromkeys(wanted) for key in found if key[1] == one]


def _marks(line: Sequence[tuple[Point, Value]]) -> tuple[Mark, ...]:
    """The points of one series. A point without the measure is no point of it."""
    marks: list[Mark] = []
    held: tuple[Point, Value] | None = None  # the last that counts
    for point, value in line:
        counts = value.value is not None and not point.worthless
        changed, unknown = _between(held, (point, value)) if held else ((), ())
        breaks = counts and any(name in BREAKING for name in (*changed, *unknown))
        change = told = None
        if held and counts and not breaks and held[1].value is not None and value.value is not None:
            change = value.value - held[1].value
            told = drift.told_apart(held[1].value, value.value, (_error(held[1]), _error(value)))
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
            )
        )
        if counts:
            held = (point, value)
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


def _without(last: Point, points: Sequence[Point]) -> int:
    """How many newer points of the same run and kind there are, if this is a series' last."""
    alike = [p for p in reversed(points) if (p.run, p.kind) == (last.run, last.kind)]
    return next(newer for newer, point in enumerate(alike) if point is last)


def _vanished(points: Sequence[Point]) -> list[str]:
    """A note on each run that was not measured on the newest day."""
    newest = {point.run: point for point in points}
    day = points[-1].time[:10]
    return [
        f"{run} was last measured on {place(point.time, point.commit)}; others, until {day}"
        for run, point in newest.items()
        if point.time[:10] < day
    ]


def _series(key: _Key, marks: tuple[Mark, ...], compared: int, without: int) -> Series:
    run, measure, attribute, name = key
    way: Literal["higher", "lower"] = "lower" if lower_is_better(measure) else "higher"
    stretch = 1 + sum(mark.breaks for mark in marks)
    lean = _lean(_newest(marks), -1.0 if way == "lower" else 1.0, drift.needed(compared, stretch))
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
    return drift.told_apart(before.value, after.value, (_error(before), _error(after))) is True


def _drop(marks: Sequence[Mark], up: float) -> Drop | None:
    """The newest step for the worse that shows, and from which no point since has recovered."""
    for at in range(len(marks) - 1, 0, -1):
        before, mark = marks[at - 1], marks[at]
        stands = all(_below(before, later, up) for later in marks[at:])
        if stands and mark.change is not None:
            return Drop(mark.time, mark.commit, mark.change)
    return None


def _urgency(series: Series) -> tuple[bool, bool, bool, float]:
    """The worst problem first: a drop, drift, below the start, nobody can tell, evidence."""
    lean = series.lean
    worst = lean.drop is not None or lean.drifts
    return not worst, not lean.worsened, series.told, -lean.evidence


def _notes(series: Sequence[Series]) -> list[str]:
    notes: list[str] = []
    marks = [mark for one in series for mark in one.marks]
    if any(mark.breaks for mark in marks):
        notes.append(
            "where queries, judgments or rules changed, values before and after are not "
            "comparable: no change is given, and drift is looked for after the last break only"
        )
    if any(mark.breaks and "n" in mark.changed for mark in marks):
        notes.append(
            "where n alone changed, values are over other queries than before, and nothing kept "
            "says why: that is no change of the search"
        )
    maybe = sorted({name for mark in marks for name in mark.unknown if name in BREAKING})
    if maybe:
        notes.append(
            f"the hash of {' and '.join(maybe)} is kept at some points only: taken for changed"
        )
    if any(mark.told_apart is not None for mark in marks):
        notes.append(TOLD_APART)
    if any(one.lean.worsened for one in series):
        notes.append("WORSE is read off the intervals of two points: it is no drift, and no test")
    left_out = [mark for mark in marks if not mark.counts]
    if left_out:
        notes.append(
            "a point whose search did not answer, or whose gate was unhealthy or an error, says "
            "nothing about the search: ○, off the line, and out of changes and of drift"
        )
    if any(mark.value is None for mark in left_out):
        notes.append("a point without a value is no 0: it is left out of changes and of drift")
    return notes
