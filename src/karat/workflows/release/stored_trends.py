"""Trends of a workspace: its histories read once, and again when their files change."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path

from karat.errors import InputError, KaratError
from karat.formats.own import history as histories
from karat.reports.phrases.trend import uncompared
from karat.reports.release.trend import last_of
from karat.reports.release.trend_page import Remark, section
from karat.store.sql import editions, runs
from karat.tables import Qrels
from karat.tables.release.history import Point
from karat.tables.release.trend import Mark, Series, Trend
from karat.workflows.golden.editions import list_editions, standing_in
from karat.workflows.release.trend import trend
from karat.workflows.workspace.fingerprints import fingerprint
from karat.workflows.workspace.stored_inputs import qrels_of
from karat.workflows.workspace.workspace import Workspace

_FILES, _CHARTS = 32, 128  # kept at hand by a process
_WIDE = (1080, 260)  # pixels across and down of a chart
_CURRENT = timedelta(days=30)  # so long after its last gate a run is still one that is gated
_GRADES: dict[tuple[str, int, str], tuple[str | None, ...]] = {}
"""By store, golden set and edition the fingerprints of its grades; editions never change."""


@dataclass(frozen=True)
class History:
    """A history of the workspace.

    Attributes:
        name: Its file, relative to the workspace's folder, where it lies in it.
        path: Where it is.
        series: Its series, all slices included, the worst problem first.
        points: How many points it holds.
        notes: What is to be known of them, in sentences.
        lacking: Why it has no series, in a sentence; None if it has.
        fix: What to do about it, or about what is damaged.
        damaged: Lines that are left out, or why it cannot be read at all; each in a sentence.
        stamp: Changes when the file does.
    """

    name: str
    path: Path
    series: Sequence[Series] = ()
    points: Sequence[Point] = ()
    notes: Sequence[str] = ()
    lacking: str | None = None
    fix: str | None = None
    damaged: Sequence[str] = ()
    stamp: str = ""

    def find(self, run: str, measure: str, part: str) -> Series | None:
        """A series by its run, measure and slice (``lang=de``; empty for all queries).

        An empty run or measure stands for any: the first, of the worst problem, is found.
        """
        for each in self.series:
            if run in {"", each.run} and measure in {"", each.measure} and part == slice_of(each):
                return each
        return None


@dataclass(frozen=True)
class From:
    """What a point was computed from, as far as the workspace keeps it.

    Attributes:
        run: Number of the run; None if it is not kept.
        edition: Name of the edition whose grades they are; None if of none that is known.
    """

    run: int | None
    edition: str | None


def slice_of(series: Series) -> str:
    """The slice of a series as an address has it; empty for all queries."""
    return "" if series.slice is None else f"{series.attribute}={series.slice}"


def histories_of(opened: Workspace) -> list[History]:
    """The histories that ``karat.toml`` names, each read; what is wrong with one is said in it."""
    root = opened.workspace.root
    found, names = [], set()
    for path in dict.fromkeys(opened.workspace.histories):
        inside = path.is_relative_to(root)
        name = path.relative_to(root).as_posix() if inside else path.name
        name = name if name not in names else path.as_posix()
        names.add(name)
        found.append(_history(name, path))
    return found


def find_history(opened: Workspace, said: str) -> History | None:
    """A history by its name, or by its place among them from 1; None if there is none."""
    found = histories_of(opened)
    named = next((each for each in found if each.name == said), None)
    if named is None and said.isascii() and said.isdecimal() and 1 <= int(said) <= len(found):
        return found[int(said) - 1]
    return named


def newest_gates(history: History) -> dict[str, Point]:
    """By run the newest point that a gate made, within the 30 days (UTC) before the newest of all.

    What no gate was held of for longer is taken to be gone, or to have another name by now.
    """
    gates = [point for point in history.points if point.kind == "gate"]
    if not gates:
        return {}
    first = (date.fromisoformat(gates[-1].time[:10]) - _CURRENT).isoformat()
    return {point.followed_as: point for point in gates if point.time[:10] >= first}


def points_of(history: History, series: Series) -> list[tuple[Point, Mark]]:
    """Each point of a series with what is said of it, oldest first."""
    key = (series.measure, series.attribute, series.slice)
    line = [
        point
        for point in history.points
        if point.followed_as == series.run
        and any((each.measure, each.attribute, each.slice) == key for each in point.values)
    ]
    return list(zip(line, series.marks, strict=True))


def chart_of(
    history: History, series: Series, last: int, remarks: Sequence[Remark]
) -> dict[str, object]:
    """Charts of the newest points, and words beside them, as ``trend_page.section`` gives them.

    Raises:
        MissingExtra: what draws them is not installed.
    """
    place = history.series.index(series)
    return _section(str(history.path), history.stamp, place, last, tuple(remarks))


def kept_from(opened: Workspace, points: Sequence[Point]) -> list[From]:
    """What each point was computed from: runs by their content, editions by their grades.

    Only editions are known that ``know_editions`` looked at in this process.
    """
    with opened.store.read() as connection:
        held = {row.sha256: row.id for row in runs.runs(connection, opened.golden.id)}
        frozen = editions.editions(connection, opened.golden.id)
    named = {
        each: row.name
        for row in reversed(frozen)  # of editions with the same grades, the first
        for each in _GRADES.get(_key_of(opened, row), ())
    }
    return [
        From(held.get(point.hashes.get("run") or ""), named.get(point.hashes.get("qrels") or ""))
        for point in points
    ]


def editions_are_known(opened: Workspace) -> bool:
    """Whether ``know_editions`` has nothing left to do."""
    return all(_key_of(opened, row) in _GRADES for row in list_editions(opened))


def know_editions(opened: Workspace) -> None:
    """Take the fingerprint of every edition's grades: of large ones that takes seconds, once."""
    for row in list_editions(opened):
        key = _key_of(opened, row)
        if key not in _GRADES:
            found: tuple[str | None, ...] = ()
            with suppress(KaratError), opened.store.read() as connection:  # one that is damaged
                content = standing_in(connection, opened, row.name)
                on_scale = qrels_of(content, opened)
                # Many a file says no scale: then it is that of the grades in it.
                bare = Qrels(content.grades.select("query_id", "doc_id", "grade"))
                found = (fingerprint(on_scale), fingerprint(bare))
            _GRADES[key] = found


def _key_of(opened: Workspace, row: editions.EditionRow) -> tuple[str, int, str]:
    return opened.store.url, opened.golden.id, f"{row.name}\n{row.sha256}"


def _history(name: str, path: Path) -> History:
    try:
        stat = path.stat()
    except (OSError, ValueError):
        return History(
            name,
            path,
            lacking="there is no such file yet",
            fix=f"karat evaluate … --history {name} begins it",
        )
    if path.is_file() and not stat.st_size:
        fix = f"karat evaluate … --history {name} adds the first"
        return History(name, path, lacking="it holds no points yet", fix=fix)
    stamp = f"{stat.st_mtime_ns}-{stat.st_size}-{stat.st_ino}"
    try:
        points, found, notes, wrong = _read(str(path), stamp)
    except InputError as error:
        what = _told(error)
        return History(name, path, lacking=what, fix=error.fix, damaged=[what])
    except KaratError as error:
        return History(name, path, lacking=str(error), damaged=[str(error)])
    mend = wrong[0].fix if wrong else None
    damaged = [_told(error) for error in wrong]
    return History(name, path, found, points, notes, fix=mend, damaged=damaged, stamp=stamp)


def _told(error: InputError) -> str:
    return f"line {error.line}: {error.what}" if error.line else error.what


@lru_cache(_FILES)
def _read(path: str, _stamp: str) -> tuple[list[Point], list[Series], list[str], list[InputError]]:
    """Points by time, all series, notes, and what is wrong with lines that are left out."""
    cut: list[str] = []
    wrong: list[InputError] = []
    points = histories.read(path, cut.append, wrong.append)
    points.sort(key=lambda point: point.time.removesuffix("Z"))
    parts = dict.fromkeys(
        (value.attribute, value.slice) for point in points for value in point.values
    )
    # One slice after the other, as ``karat trend`` does, so that both say the same.
    trends = [_trend(points, attribute, name) for attribute, name in parts]
    series = [each for found in trends for each in found.series]
    series.sort(key=lambda each: (not each.alarms, each.told))  # stable: as each trend had it
    nothing = uncompared(Trend(Path(path).name, series))  # of all slices, not of each
    notes = dict.fromkeys(
        [
            *([nothing] if nothing else []),
            *cut,
            *(note for found in trends for note in found.notes if note != uncompared(found)),
        ]
    )
    return points, series, list(notes), wrong


def _trend(points: list[Point], attribute: str | None, name: str | None) -> Trend:
    """The trend of one slice; of all queries if it is None."""
    if attribute is None or "=" not in attribute:
        return trend(points, slice=None if attribute is None else f"{attribute}={name}")
    # The words for a slice end its attribute's name at the first =, so it goes without them.
    alone = [
        replace(
            point,
            values=tuple(
                replace(value, attribute=None, slice=None)
                for value in point.values
                if (value.attribute, value.slice) == (attribute, name)
            ),
        )
        for point in points
    ]
    found = trend(alone)
    named = [replace(each, attribute=attribute, slice=name) for each in found.series]
    return replace(found, series=named)


@lru_cache(_CHARTS)
def _section(
    path: str, stamp: str, place: int, last: int, remarks: tuple[Remark, ...]
) -> dict[str, object]:
    series = _read(path, stamp)[1][place]
    drawn: dict[str, object] = section(series, last_of(series, last), remarks, _WIDE)
    return drawn
