"""Trend: each measure over time, what changed between points, and gradual drift."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

from karat.errors import UsageError, nearest
from karat.formats.own import history as histories
from karat.formats.own.query_values import packed
from karat.measures import parse
from karat.reports.phrases.trend import (
    BY_QUERY,
    SIGNIFICANT,
    SIGNIFICANT_BY_QUERY,
    place,
    sentence,
    uncompared,
)
from karat.tables import Qrels, Queries
from karat.tables.about import name_in
from karat.tables.release.gate import Gate
from karat.tables.release.history import BREAKING, Point, Value, answered_by, values_of
from karat.tables.release.trend import Series, Trend
from karat.tables.results import Results
from karat.workflows.release._trend_series import Key, annotations_of, query_values, series_of
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
    """Measures over time from a history, tested for drift and for drops."""
    if last is not None and last < 1:
        raise UsageError(f"last must be ≥ 1, got {last}", fix="--last 20")
    points: list[Point]
    cut_notes: list[str] = []
    if isinstance(history, str | Path):
        source, points = str(history), histories.read(history, cut_notes.append)
    else:
        source, points = "history", list(history)
    points = in_order(points)
    if run is not None:
        names = list(dict.fromkeys(name for p in points for name in (p.run, p.series_name)))
        points = [point for point in points if run in {point.run, point.series_name}]
        if not points:
            raise UsageError(
                f"the history has no run {run!r}", nearest=nearest(run, names) or names
            )
    if series is not None:
        points = _of_series(points, series)
    keys = _chosen(keys_of(points), measures, slice)
    return trend_of(points, keys, source, last, cut_notes)


def in_order(points: Sequence[Point]) -> list[Point]:
    return sorted(points, key=lambda point: point.time.removesuffix("Z"))


def trend_of(
    points: Sequence[Point],
    keys: Sequence[Key],
    source: str = "history",
    last: int | None = None,
    cut_notes: Sequence[str] = (),
) -> Trend:
    """Some series of points in order of time, tested together; the worst problem first."""
    lines: dict[Key, list[tuple[Point, Value]]] = {key: [] for key in keys}
    for point in points:
        for value in point.values:
            line = lines.get((point.series_name, value.measure, value.attribute, value.slice))
            if line is not None:
                line.append((point, value))
    values = {key: query_values(line) for key, line in lines.items()}
    marks = {key: annotations_of(line, values[key]) for key, line in lines.items()}
    moving = sum(any(mark.change is not None for mark in found) for found in marks.values())
    found_series = [
        series_of(key, line_marks, values[key], max(moving, 1), _without(lines[key][-1][0], points))
        for key, line_marks in marks.items()
    ]
    found_series.sort(key=_urgency)  # stable: else in the order of the history
    found = Trend(source, found_series, last)
    nothing = [] if (what := uncompared(found)) is None else [what]
    notes = [*nothing, *cut_notes, *_vanished(points), *_notes(found_series)]
    return replace(found, notes=notes)


def _of_series(points: list[Point], name: str) -> list[Point]:
    """The points of one series, by its name or a pattern of run names."""
    chosen = [point for point in points if point.series_name == name]
    if chosen:
        return chosen
    chosen = [
        replace(point, series=name) for point in points if fnmatchcase(point.series_name, name)
    ]
    if not chosen:
        names = list(dict.fromkeys(point.series_name for point in points))
        raise UsageError(
            f"the history has no series {name!r}",
            nearest=nearest(name, names) or names[:5],
            fix="a name, or a pattern such as 'night*'",
        )
    together = Counter((point.time, point.kind) for point in chosen)
    several = [point for point in chosen if together[point.time, point.kind] > 1]
    if 2 * len(several) > len(chosen):
        names = list(dict.fromkeys(point.run for point in several))
        raise UsageError(
            f"{' and '.join(names[:2])} were measured at the same time, so {name!r} is more than "
            "one series",
            fix="a narrower pattern",
        )
    return chosen


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

    A run whose ``about`` has a name belongs to the series of that name, unless two of the runs
    have the same.
    """
    names = list(dict.fromkeys(row.run for row in results.results))
    check_series(series, len(names))
    own = {} if renamed else _named(results, names)
    shared = {"qrels": fingerprint(qrels), "queries": fingerprint(queries), "corpus": corpus}
    points = []
    for run in names:
        rows = [row for row in (*results.results, *results.slices) if row.run == run]
        leaves_out = "compat=" in rules and "complete=" not in rules
        points.append(
            Point(
                time=time,
                kind="evaluate",
                run=run,
                commit=commit,
                verdict=None,
                rules=rules,
                karat=metadata.version("karat"),
                values=values_of(rows),
                hashes=shared | {"run": fingerprint(results.runs.get(run))},
                answered=answered_by(rows, missing_not_in_n=leaves_out),
                series=series or own.get(run),
                by_query=packed(results.scores[run]) if run in results.scores else None,
            )
        )
    histories.append(path, *points)


def _named(results: Results, names: Sequence[str]) -> dict[str, str]:
    """The name in the ``about`` of each run, where no other run has it."""
    names_by_run = {run: name_in(results.about.get(run, {})) or run for run in names}
    counts = Counter(names_by_run.values())
    return {run: name for run, name in names_by_run.items() if name != run and counts[name] == 1}


def keep_gate(
    path: str | Path,  # the history file; created if absent
    gate: Gate,  # the outcome of the gate
    *,
    time: str,  # when, in UTC, as `2026-03-01T02:00:00Z`
    commit: str | None = None,  # commit of the code
    corpus: str | None = None,  # a hash, or any name, of the documents searched
    rules: str = "",  # as `keep` takes them
    series: str | None = None,  # as `keep` takes it
) -> None:
    """Add a gate to a history: its verdict and the candidate's values."""
    if excluded := sorted({known.query_id for known in gate.known_failures}):
        # n does not show which queries are excluded.
        ids = "".join(f"{len(query)}:{query}" for query in excluded).encode("utf-8", "replace")
        rules = f"{rules} without={sha256(ids).hexdigest()[:16]}".lstrip()
    point = Point(
        time=time,
        kind="gate",
        run=gate.candidate,
        commit=commit,
        verdict=gate.verdict,
        rules=rules,
        karat=metadata.version("karat"),
        values=values_of(gate.results),
        hashes=gate.hashes | {"run": gate.hashes.get("candidate"), "corpus": corpus},
        answered=answered_by(gate.results),
        series=series,
        by_query=packed(gate.scores) if gate.scores else None,
    )
    histories.append(path, point)


def check_series(series: str | None, runs: int) -> None:
    """Refuse several runs in one series, which has one value at a time."""
    if series is not None and runs > 1:
        raise UsageError(
            f"--series names the series of one run, got {runs:,} runs",
            fix="evaluate them one by one, or name each run: --name A --name B",
        )
    if series is not None and not series.strip():
        raise UsageError("the name of the series is empty", fix="--series nightly")


def rules_text(settings: Mapping[str, Any]) -> str:
    """The options that differ from the defaults and change what a value means."""
    names = ["rel", "scale", "complete", "depth", "judged_only", "collapse", "compat", "threshold"]
    names += ["part"]
    return " ".join(f"{name}={settings[name]}" for name in names if settings.get(name))


def event(
    content: Trend | Gate, *, time: str, commit: str | None = None, page: str | None = None
) -> dict[str, Any] | None:
    """The payload that ``--notify`` posts for a trend or a gate; None if there is no problem.

    Problems are a trend that drifts, got worse or has no result at its newest point, and a gate
    that does not pass.

    Returns:
        ``event`` (``trend.drift``, else ``trend.worse``, else ``trend.cannot_tell``; or
        ``gate.fail`` and so on), ``time``, ``commit``, ``karat``, ``text`` (a sentence),
        ``content`` (the command's JSON object); with ``page``, that too: the address of the result
        in the app, without the server.
    """
    if isinstance(content, Gate):
        if content.verdict == "pass":
            return None
        kind = f"gate.{content.verdict}"
        text = f"{content.candidate}: {content.verdict.replace('_', ' ')}"
        if content.checks:
            text += f": {content.checks[0].rule}: {content.checks[0].reason}"
    else:
        problems = [series for series in content.series if series.alarms] or content.untold
        if not problems and not content.compared:
            problems = content.series
        if not problems:
            return None
        kind = "trend.cannot_tell"
        if any(series.alarms for series in problems):
            kind = "trend.drift" if content.drifting else "trend.worse"
        text = "; ".join(f"{series.run}, {series.name}: {sentence(series)}" for series in problems)
        if not content.compared:
            text = f"{uncompared(content)}; {text}"
        commit = commit or problems[0].marks[-1].commit
    known = {} if page is None else {"page": page}
    return payload(kind, text, content.to_dict(), time=time, commit=commit) | known


def payload(
    kind: str, text: str, content: Mapping[str, Any], *, time: str, commit: str | None
) -> dict[str, Any]:
    """What is posted about a result, or about one that could not be computed."""
    return {
        "event": kind,
        "time": time,
        "commit": commit,
        "karat": metadata.version("karat"),
        "text": text,
        "content": content,
    }


def keys_of(points: Sequence[Point]) -> list[Key]:
    """The series of a history, in its order."""
    return list(
        dict.fromkeys(
            (point.series_name, value.measure, value.attribute, value.slice)
            for point in points
            for value in point.values
        )
    )


def _chosen(keys: list[Key], measures: Sequence[str] | None, sliced: str | None) -> list[Key]:
    attribute: str | None = None
    name: str | None = None
    if sliced is not None:
        attribute, equals, name = sliced.partition("=")
        if not equals:
            raise UsageError(f"the slice {sliced} has no value", fix=f"{sliced}=VALUE")
    of_slice = [key for key in keys if key[2:] == (attribute, name)]
    if not of_slice:
        available = list(dict.fromkeys(f"{key[2]}={key[3]}" for key in keys if key[2] is not None))
        if sliced is not None:
            near = nearest(sliced, available) or available[:5]
            raise UsageError(f"the history has no slice {sliced}", nearest=near)
        raise UsageError("the history has no value over all queries", nearest=available[:5])
    if not measures:
        return of_slice
    available = list(dict.fromkeys(key[1] for key in of_slice))
    selected: list[str] = []
    for measure in measures:
        canonical = measure if measure in available else str(parse(measure))
        if canonical not in available:
            near = nearest(canonical, available) or available
            raise UsageError(f"the history has no {canonical}", nearest=near)
        selected.append(canonical)
    return [key for measure in dict.fromkeys(selected) for key in of_slice if key[1] == measure]


def _without(last: Point, points: Sequence[Point]) -> int:
    """Number of newer points of the same run and kind than a series' last point."""
    own = last.series_name, last.kind
    alike = [p for p in reversed(points) if (p.series_name, p.kind) == own]
    return next(newer for newer, point in enumerate(alike) if point is last)


def _vanished(points: Sequence[Point]) -> list[str]:
    """Notes on runs that were not measured on the newest day."""
    newest = {point.series_name: point for point in points}
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
            "comparable: no change is shown, and drift is tested after the last break only"
        )
    if any(mark.breaks and "n" in mark.changed for mark in marks):
        notes.append(
            "where only n changed, values are over other queries than before, for an unknown "
            "reason: this is not a change of the search"
        )
    maybe = sorted({name for mark in marks for name in mark.unknown if name in BREAKING})
    if maybe:
        notes.append(
            f"the hash of {' and '.join(maybe)} is missing at some points: assumed changed"
        )
    compared = [mark for mark in marks if mark.told_apart is not None]
    if any(not mark.by_query for mark in compared):
        notes.append(SIGNIFICANT)
    if any(mark.by_query for mark in compared):
        notes.append(SIGNIFICANT_BY_QUERY)
    if any(one.lean.paired is not None for one in series):
        notes.append(BY_QUERY)
    if any(one.lean.below_start or one.lean.drop is not None for one in series):
        notes.append("WORSE compares the intervals of two points: it is not drift, and not a test")
    left_out = [mark for mark in marks if not mark.counts]
    if left_out:
        notes.append(
            "a point whose search did not answer, or whose gate was unhealthy or an error, is "
            "shown as ○ off the line and left out of changes and drift"
        )
    if any(mark.value is None for mark in left_out):
        notes.append(
            "a point without a value does not count as 0: it is left out of changes and drift"
        )
    return notes
