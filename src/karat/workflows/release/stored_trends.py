"""Trends of a workspace's histories, read again only when their files change."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from karat.errors import InputError, KaratError
from karat.formats.own import history as histories
from karat.measures import DEFAULTS
from karat.reports.phrases.trend import uncompared
from karat.reports.release.trend import last_of
from karat.reports.release.trend_page import Remark, section
from karat.store.sql import editions, runs
from karat.tables import Qrels
from karat.tables.golden.golden_sets import Edition
from karat.tables.release.history import Point
from karat.tables.release.trend import Mark, Series, Trend
from karat.tables.workspace import Headline
from karat.workflows.golden.editions import list_editions, standing_in
from karat.workflows.release.trend import in_order, keys_of, trend_of
from karat.workflows.workspace.artifacts import key_of
from karat.workflows.workspace.fingerprints import fingerprint
from karat.workflows.workspace.stored_inputs import qrels_of
from karat.workflows.workspace.workspace import Workspace

_FILES, _CHARTS = 32, 128  # cached by a process
_KIND = "edition-hashes"
_WIDE = (1080, 260)  # width and height of a chart in pixels
_HEADLINE = 30  # points of a headline
_CURRENT = timedelta(days=30)  # a run without a gate for longer is no longer gated


@dataclass(frozen=True)
class History:
    name: str  # its file, relative to the workspace's folder if it is inside
    path: Path
    series: Sequence[Series] = ()  # its series, including all slices, the worst problem first
    points: Sequence[Point] = ()
    notes: Sequence[str] = ()
    lacking: str | None = None  # why it has no series; None if it has any
    fix: str | None = None  # how to fix that, or the damage
    damaged: Sequence[str] = ()  # lines that are left out, or why it cannot be read at all
    stamp: str = ""  # changes when the file does

    def find(self, run: str, measure: str, part: str) -> Series | None:
        """A series by its run, measure and slice (``lang=de``; empty for all queries).

        An empty run or measure matches any: the first is returned, with the worst problem.
        """
        for each in self.series:
            if run in {"", each.run} and measure in {"", each.measure} and part == slice_of(each):
                return each
        return None


@dataclass(frozen=True)
class From:
    """What a point was computed from, as far as the workspace has it."""

    run: int | None  # id of the stored run, or None
    edition: str | None  # name of the edition with its grades, or None


def slice_of(series: Series) -> str:
    """The slice of a series as in a URL; empty for all queries."""
    return "" if series.slice is None else f"{series.attribute}={series.slice}"


def histories_of(opened: Workspace) -> list[History]:
    """The histories that ``karat.toml`` names, each read; errors are in their fields."""
    root = opened.workspace.root
    histories, names = [], set()
    for path in dict.fromkeys(opened.workspace.histories):
        inside = path.is_relative_to(root)
        name = path.relative_to(root).as_posix() if inside else path.name
        name = name if name not in names else path.as_posix()
        names.add(name)
        histories.append(_history(name, path))
    return histories


def find_history(opened: Workspace, name: str) -> History | None:
    """A history by its name, or by its number from 1; None if there is none."""
    histories = histories_of(opened)
    by_name = next((each for each in histories if each.name == name), None)
    if by_name is None and name.isascii() and name.isdecimal() and 1 <= int(name) <= len(histories):
        return histories[int(name) - 1]
    return by_name


def newest_gates(history: History) -> dict[str, Point]:
    """The newest gate of each run, within the 30 days (UTC) before the newest of all.

    Runs without a gate for longer are considered gone or renamed.
    """
    gates = [point for point in history.points if point.kind == "gate"]
    if not gates:
        return {}
    first = (date.fromisoformat(gates[-1].time[:10]) - _CURRENT).isoformat()
    return {point.series_name: point for point in gates if point.time[:10] >= first}


def headline(histories: Sequence[History]) -> tuple[Headline, str, Series] | None:
    """The newest value of the first usual measure, of the run that was measured most often.

    Returns:
        The headline, the name of its history, and its series; None if no history has any.
    """
    every = [
        (history, series)
        for history in histories
        for series in history.series
        if series.slice is None and series.told and series.marks[-1].value is not None
    ]
    if not every:
        return None
    usual = [str(measure) for measure in DEFAULTS]

    def rank(one: tuple[History, Series]) -> tuple[int, int, str]:
        series = one[1]
        place = usual.index(series.measure) if series.measure in usual else len(usual)
        return -place, len(series.marks), series.marks[-1].time

    history, series = max(every, key=rank)
    newest = series.marks[-1]
    better = None if not newest.change else (newest.change > 0) == (series.direction == "higher")
    found = Headline(
        title=f"{series.measure} of {series.run}",
        what=series.measure,
        unit="number",
        value=newest.value or 0.0,
        change=newest.change,
        better=better,
        since=newest.time[:10],
        against="the point before",
        points=[mark.value for mark in series.marks[-_HEADLINE:]],
        apart="" if newest.told_apart is None else "yes" if newest.told_apart else "no",
    )
    return found, history.name, series


def points_of(history: History, series: Series) -> list[tuple[Point, Mark]]:
    """Each point of a series with its mark, oldest first."""
    key = (series.measure, series.attribute, series.slice)
    line = [
        point
        for point in history.points
        if point.series_name == series.run
        and any((each.measure, each.attribute, each.slice) == key for each in point.values)
    ]
    return list(zip(line, series.marks, strict=True))


def chart_of(
    history: History, series: Series, last: int, remarks: Sequence[Remark]
) -> dict[str, Any]:
    """Charts of the newest points with their texts, as ``trend_page.section`` returns them."""
    place = history.series.index(series)
    return _section(str(history.path), history.stamp, place, last, tuple(remarks))


def kept_from(opened: Workspace, points: Sequence[Point]) -> list[From]:
    """What each point was computed from: runs by their content, editions by their grades.

    Only editions that ``load_edition_hashes`` has read are known.
    """
    with opened.store.read() as connection:
        stored = {row.sha256: row.id for row in runs.runs(connection, opened.golden.id)}
        edition_rows = editions.editions(connection, opened.golden.id)
    edition_names = {
        digest: row.name
        for row in reversed(edition_rows)  # of editions with the same grades, the oldest
        for digest in _hashes(opened, row) or ()
    }
    return [
        From(
            stored.get(point.hashes.get("run") or ""),
            edition_names.get(point.hashes.get("qrels") or ""),
        )
        for point in points
    ]


def editions_are_known(opened: Workspace) -> bool:
    """Whether ``load_edition_hashes`` has read all editions."""
    return all(_hashes(opened, row) is not None for row in list_editions(opened))


def load_edition_hashes(opened: Workspace) -> None:
    """Compute the fingerprints of every edition's grades; large ones take seconds, once."""
    for row in list_editions(opened):
        opened.artifacts.answer(_KIND, _key_of(opened, row), partial(_fingerprints, opened, row))


def _fingerprints(opened: Workspace, row: Edition) -> list[str | None]:
    with suppress(KaratError), opened.store.read() as connection:  # damaged
        content = standing_in(connection, opened, row.name)
        # A file without a scale has that of its grades.
        unscaled = Qrels(content.grades.select("query_id", "doc_id", "grade"))
        return [fingerprint(qrels_of(content, opened)), fingerprint(unscaled)]
    return []


def _hashes(opened: Workspace, row: Edition) -> list[str] | None:
    hashes: list[str] | None = opened.artifacts.found(_KIND, _key_of(opened, row))
    return hashes


def _key_of(opened: Workspace, row: Edition) -> str:
    return key_of(1, opened.golden.salt, opened.golden.scale, row.name, row.sha256)


def _history(name: str, path: Path) -> History:
    try:
        stat = path.stat()
    except (OSError, ValueError):
        return History(
            name,
            path,
            lacking="the file does not exist yet",
            fix=f"karat evaluate … --history {name} creates it",
        )
    if path.is_file() and not stat.st_size:
        fix = f"karat evaluate … --history {name} adds the first"
        return History(name, path, lacking="it has no points yet", fix=fix)
    stamp = f"{stat.st_mtime_ns}-{stat.st_size}-{stat.st_ino}"
    try:
        points, series, notes, wrong = _read(str(path), stamp)
    except InputError as error:
        problem = _located(error)
        return History(name, path, lacking=problem, fix=error.fix, damaged=[problem])
    except KaratError as error:
        return History(name, path, lacking=str(error), damaged=[str(error)])
    first_fix = wrong[0].fix if wrong else None
    damaged = [_located(error) for error in wrong]
    return History(name, path, series, points, notes, fix=first_fix, damaged=damaged, stamp=stamp)


def _located(error: InputError) -> str:
    return f"line {error.line}: {error.what}" if error.line else error.what


@lru_cache(_FILES)
def _read(path: str, _stamp: str) -> tuple[list[Point], list[Series], list[str], list[InputError]]:
    """Points by time, all series, notes, and the errors of lines that are left out."""
    cut_notes: list[str] = []
    errors: list[InputError] = []
    points = in_order(histories.read(path, cut_notes.append, errors.append))
    keys = keys_of(points)
    # Slice by slice, as ``karat trend`` does, so both give the same results.
    parts = dict.fromkeys(key[2:] for key in keys)
    trends = [trend_of(points, [key for key in keys if key[2:] == part]) for part in parts]
    series = [each for found in trends for each in found.series]
    # Stable: keeps the order of each trend.
    series.sort(key=lambda each: (not each.alarms, each.told))
    nothing = uncompared(Trend(Path(path).name, series))  # of all slices, not of each
    of_parts = [note for found in trends for note in found.notes if note != uncompared(found)]
    notes = dict.fromkeys([*([nothing] if nothing else []), *cut_notes, *of_parts])
    return points, series, list(notes), errors


@lru_cache(_CHARTS)
def _section(
    path: str, stamp: str, place: int, last: int, remarks: tuple[Remark, ...]
) -> dict[str, Any]:
    series = _read(path, stamp)[1][place]
    return section(series, last_of(series, last), remarks, _WIDE, linked=True)
