"""Trend: each measure over time, what changed between points, and drift that no step shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import metadata
from pathlib import Path
from typing import Any

from karat.errors import UsageError, nearest
from karat.formats.own import history as histories
from karat.formats.own.query_values import packed
from karat.measures import parse
from karat.reports.phrases.trend import (
    BY_QUERY,
    TOLD_APART,
    TOLD_BY_QUERY,
    place,
    sentence,
    uncompared,
)
from karat.tables import Qrels, Queries
from karat.tables.about import name_in
from karat.tables.release.gate import Gate
from karat.tables.release.history import BREAKING, Point, Value, point_of, point_of_gate
from karat.tables.release.trend import Series, Trend
from karat.tables.results import Results
from karat.workflows.release._trend_series import Key, marks_of, series_of
from karat.workflows.release.trend_by_query import query_values
from karat.workflows.workspace.fingerprints import fingerprint


def trend(
    history: str | Path | Sequence[Point],
    measures: Sequence[str] | None = None,
    *,
    slice: str | None = None,  # noqa: A002 - as it is typed
    run: str | None = None,
    series: str | None = None,
    last: int | None = None,
) -> Trend:
    """Lay the points of a history in a row; look for drift, and for what is worse than it was.

    Args:
        history: A file that ``--history`` wrote, or its points.
        measures: Names of measures; all of the history if None. The fewer, the sooner a drift
            shows: the evidence asked for grows with the number of series.
        slice: One slice, as ``class=name``; all queries if None.
        run: One run; all if None.
        series: One series: the name its points were given, or a pattern of names of runs
            (``night*``), whose points are then taken for one series; all if None.
        last: Show so many points of each series; the test looks at all of them.

    Raises:
        InputError: the history cannot be read.
        UsageError: it has no such measure, slice, run or series.
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
        names = list(dict.fromkeys(name for p in points for name in (p.run, p.followed_as)))
        points = [point for point in points if run in {point.run, point.followed_as}]
        if not points:
            raise UsageError(
                f"the history has no run {run!r}", nearest=nearest(run, names) or names
            )
    if series is not None:
        points = _of_series(points, series)
    keys = _chosen(_keys(points), measures, slice)
    lines: dict[Key, list[tuple[Point, Value]]] = {key: [] for key in keys}
    for point in points:
        for value in point.values:
            line = lines.get((point.followed_as, value.measure, value.attribute, value.slice))
            if line is not None:
                line.append((point, value))
    values = {key: query_values(line) for key, line in lines.items()}
    marks = {key: marks_of(line, values[key]) for key, line in lines.items()}
    moving = sum(any(mark.change is not None for mark in found) for found in marks.values())
    found_series = [
        series_of(key, line_marks, values[key], max(moving, 1), _without(lines[key][-1][0], points))
        for key, line_marks in marks.items()
    ]
    found_series.sort(key=_urgency)  # stable: else in the order of the history
    found = Trend(source, found_series, last)
    said = uncompared(found)
    notes = [*([said] if said else []), *cut, *_vanished(points), *_notes(found_series)]
    return replace(found, notes=notes)


def _of_series(points: list[Point], name: str) -> list[Point]:
    """The points of one series, by its name or by a pattern of names of runs."""
    found = [point for point in points if point.followed_as == name]
    if found:
        return found
    found = [
        replace(point, series=name) for point in points if fnmatchcase(point.followed_as, name)
    ]
    if not found:
        names = list(dict.fromkeys(point.followed_as for point in points))
        raise UsageError(
            f"the history has no series {name!r}",
            nearest=nearest(name, names) or names[:5],
            fix="a name, or a pattern of names as 'night*'",
        )
    together = Counter((point.time, point.kind) for point in found)
    several = [point for point in found if together[point.time, point.kind] > 1]
    if 2 * len(several) > len(found):
        names = list(dict.fromkeys(point.run for point in several))
        raise UsageError(
            f"{' and '.join(names[:2])} were measured at the same time, so {name!r} is more than "
            "one series",
            fix="a narrower pattern",
        )
    return found


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
    series: str | None = None,
    renamed: bool = False,
) -> None:
    """Add an evaluation to a history: one point for each run.

    A run whose ``about`` has a name belongs to the series of that name, whatever its file is
    called; unless two of the runs have it.

    Args:
        path: The history; made if there is none.
        results: What came out.
        time: When, in UTC, as ``2026-03-01T02:00:00Z``.
        qrels: The judgments it is of.
        queries: The queries it is of, if they were given.
        commit: Of which code.
        corpus: A hash, or any name, of the documents searched.
        rules: How it was evaluated where that was not by default, as ``rules_text`` says it.
        series: Name of the series that the run belongs to over time; that of its ``about``, or
            its own name, if None.
        renamed: Whether the runs were given their names here, which count more than ``about``.

    Raises:
        InputError: the file is something else, or cannot be written.
        UsageError: several runs in one series.
    """
    names = list(dict.fromkeys(row.run for row in results.results))
    check_series(series, len(names))
    own = {} if renamed else _named(results, names)
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
            series=series or own.get(run),
            by_query=packed(results.scores[run]) if run in results.scores else None,
        )
        for run in names
    ]
    histories.append(path, *points)


def _named(results: Results, names: Sequence[str]) -> dict[str, str]:
    """The name in the ``about`` of each run, where no other run has it."""
    found = {run: name_in(results.about.get(run, {})) or run for run in names}
    several = Counter(found.values())
    return {run: name for run, name in found.items() if name != run and several[name] == 1}


def keep_gate(
    path: str | Path,
    gate: Gate,
    *,
    time: str,
    commit: str | None = None,
    corpus: str | None = None,
    rules: str = "",
    series: str | None = None,
) -> None:
    """Add a gate to a history: its verdict and the candidate's values.

    Args:
        path: The history; made if there is none.
        gate: What the policy said.
        time: When, in UTC, as ``2026-03-01T02:00:00Z``.
        commit: Of which code.
        corpus: A hash, or any name, of the documents searched.
        rules: As ``keep`` takes them.
        series: As ``keep`` takes it.

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
        series=series,
        by_query=packed(gate.scores) if gate.scores else None,
    )
    histories.append(path, point)


def check_series(series: str | None, runs: int) -> None:
    """Refuse to put several runs into one series: at each time it has one value.

    Raises:
        UsageError: so.
    """
    if series is not None and runs > 1:
        raise UsageError(
            f"--series is the name of one run's series, and there are {runs:,} runs",
            fix="evaluate them one by one, or give each its name: --name A --name B",
        )
    if series is not None and not series.strip():
        raise UsageError("a series needs a name", fix="--series nightly")


def rules_text(settings: Mapping[str, Any]) -> str:
    """What of the options of an evaluation is not by default and changes what a value means."""
    names = ["rel", "scale", "complete", "depth", "judged_only", "collapse", "compat", "threshold"]
    names += ["part"]
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
        if not told and not content.compared:
            told = content.series
        if not told:
            return None
        kind = "trend.cannot_tell"
        if any(series.alarms for series in told):
            kind = "trend.drift" if content.drifting else "trend.worse"
        text = "; ".join(f"{one.run}, {one.name}: {sentence(one)}" for one in told)
        if not content.compared:
            text = f"{uncompared(content)}; {text}"
        commit = commit or told[0].marks[-1].commit
    return {
        "event": kind,
        "time": time,
        "commit": commit,
        "karat": metadata.version("karat"),
        "text": text,
        "content": content.to_dict(),
    }


def _keys(points: Sequence[Point]) -> list[Key]:
    return list(
        dict.fromkeys(
            (point.followed_as, value.measure, value.attribute, value.slice)
            for point in points
            for value in point.values
        )
    )


def _chosen(keys: list[Key], measures: Sequence[str] | None, sliced: str | None) -> list[Key]:
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


def _without(last: Point, points: Sequence[Point]) -> int:
    """How many newer points of the same run and kind there are, if this is a series' last."""
    own = last.followed_as, last.kind
    alike = [p for p in reversed(points) if (p.followed_as, p.kind) == own]
    return next(newer for newer, point in enumerate(alike) if point is last)


def _vanished(points: Sequence[Point]) -> list[str]:
    """A note on each run that was not measured on the newest day."""
    newest = {point.followed_as: point for point in points}
    day = points[-1].time[:10]
    return [
        f"{run} was last measured on {place(point.time, point.commit)}; others, until {day}"
        for run, point in newest.items()
        if point.time[:10] < day
    ]


def _urgency(series: Series) -> tuple[bool, bool, bool, float]:
    """The worst problem first: a drop or loss, drift, below the start, cannot tell, evidence."""
    lean = series.lean
    lost = lean.paired is not None and lean.paired.loss is not None
    worst = lost or lean.drop is not None or lean.drifts
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
    told = [mark for mark in marks if mark.told_apart is not None]
    if any(not mark.by_query for mark in told):
        notes.append(TOLD_APART)
    if any(mark.by_query for mark in told):
        notes.append(TOLD_BY_QUERY)
    if any(one.lean.paired is not None for one in series):
        notes.append(BY_QUERY)
    if any(one.lean.below_start or one.lean.drop is not None for one in series):
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
