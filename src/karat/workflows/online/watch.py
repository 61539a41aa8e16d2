"""Watching: the latest window of a log beside its own history, and what moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import polars as pl

from karat.engines.frames.engine import Engine
from karat.errors import UsageError
from karat.online import watch as pure
from karat.online.evidence import Cut
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.lacking import why_unknown
from karat.online.rules import Rules
from karat.online.watch import LEAST_WINDOWS, Margins, Series, read_margins
from karat.online.windows import Window, hours_of
from karat.reports.phrases.online import change_text, where
from karat.tables.days import day_text
from karat.tables.notes import Concern, Note
from karat.tables.online.events import EventLog
from karat.tables.online.watch import Change, Verdict, Watched
from karat.workflows.online._window_values import WindowReader, WindowReadings
from karat.workflows.online.evaluate import classes_of, cut_of
from karat.workflows.online.filters import Only, only_note
from karat.workflows.online.query_spelling import as_typed
from karat.workflows.online.watch_windows import (
    earlier_in,
    ends_us,
    incomplete,
    local_hour,
    open_notes,
    too_few,
    unhealthy,
    window_of,
)

HISTORY = "56d"
"""Eight weeks: fewer make only great changes sure."""
_SHOWN = 5  # queries of a change
_NAMED = 3  # slices of which something cannot be told
_FEW = 0.5  # of the fewest searches of an earlier window


def watch(
    log: EventLog,
    engine: Engine,
    *,
    now: int,
    window: str = "1d",
    history: str = HISTORY,
    until: str | None = None,
    metrics: Sequence[str] | None = None,
    by: Sequence[str] = (),
    margins: Sequence[str] = (),
    queries: Any = None,
    only: Only | None = None,
    rules: Rules | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Watched:
    """Compare the latest window of a log with its own history; see ``karat.online.watch``.

    Args:
        log: What an event store holds.
        engine: What computes it, open.
        now: Microseconds UTC: the latest window that was over by then is compared.
        window: Its length: ``1d``, ``7d``, or hours that divide a day, as ``6h``.
        history: How far back earlier windows may lie.
        until: Not now, but the end of this day (``2026-11-20``) or this hour
            (``2026-11-20 12:00``), local; and then although the log may end before.
        metrics: Names; those of ``registry.DEFAULT`` that have a direction if None.
        by: What to slice by: ``arm``, ``class``, attributes of the log, or several at once
            (``arm,class``).
        margins: Changes that matter to nobody: ``5%``, ``ZeroResults=0.01``.
        queries: For ``class``: queries with ``text`` and ``class``; a path, a frame, or Queries.
        only: Watch only searches with these values, as ``{"arm": "b"}``.
        rules: By which events become searches and sessions; ``Rules()`` if None.
        progress: Told how much is done, and of how much.

    Raises:
        UsageError: no such window, metric, slice or margin; a metric that has no direction.
        InputError: the queries have no texts.
    """
    rules = rules or Rules()
    if not hours_of(history, what="--history") >= 24:
        raise UsageError(f"--history {history} is less than a day", fix=f"--history {HISTORY}")
    only = only or {}
    chosen, notes = _metrics(metrics, log)
    allowed = read_margins(margins, registry.find)
    cuts: list[Cut] = [(), *dict.fromkeys(cut_of_watch(said, log) for said in by)]
    _refuse_times(only)
    classes, said = classes_of([*cuts, tuple(only)], queries)
    notes += [*said, *only_note(only)]
    latest_window, aside = window_of(window, until, log, now)
    chosen, open_ = _over(chosen, latest_window, log, rules)
    notes += [*aside, *open_]
    days = hours_of(history, what="--history") // 24
    reader = WindowReader(log, engine, rules, classes, only)
    blank = Watched(
        verdict="cannot_tell",
        window=latest_window.label,
        compared=[],
        absent=[],
        searches=0,
        searches_before=None,
        health=[],
        changes=[],
        tests=0,
        by=tuple(",".join(cut) for cut in cuts[1:]),
        rules=rules.id,
        timezone=log.timezone,
        notes=notes,
        simulated=log.simulated,
        engine=engine.name,
    )
    broken = unhealthy(latest_window, log)
    if broken:
        return replace(blank, verdict="unhealthy", health=[broken])
    if until is None and (partial := incomplete(latest_window, log)):
        fix = f"--until {day_text(latest_window.last_day)} compares it as it is"
        return replace(blank, health=[f"{partial}: {fix}"])
    if not chosen:
        return replace(blank, health=["there is no metric to watch: the notes say why"])
    there, absent = earlier_in(latest_window, days, log)
    if len(there) < LEAST_WINDOWS:
        return replace(
            blank,
            compared=[each.label for each in there],
            absent=[each.label for each in absent],
            health=[too_few(latest_window, there, days, log)],
        )
    windows = [latest_window, *there]
    told = [
        replace(reader, progress=_part(progress, at, len(windows))) for at in range(len(windows))
    ]
    mine = told[0].read(latest_window, chosen, cuts)
    if not mine.searches:
        health = f"no searches in {latest_window.label}, though the log goes on: is it all logged?"
        return replace(blank, verdict="unhealthy", health=[health])
    before = [one.read(each, chosen, cuts) for one, each in zip(told[1:], there, strict=True)]
    empty = [each.window for each in before if not each.searches]
    before = [each for each in before if each.searches]
    changes = pure.ordered(pure.compare(_series(mine, before, chosen, allowed)))
    changes = _explained(changes, mine, before, reader, chosen)
    return replace(
        blank,
        verdict=_verdict(changes),
        compared=[each.window.label for each in before],
        absent=[each.label for each in (*empty, *absent)],
        searches=mine.searches,
        searches_before=sum(each.searches for each in before) / len(before) if before else None,
        health=_doubts(mine, before, changes),
        changes=changes,
        tests=sum(change.p is not None for change in changes),
        notes=[*notes, *open_notes(latest_window, log), *_untested(changes)],
    )


def _part(
    progress: Callable[[int, int], None] | None, at: int, of: int
) -> Callable[[int, int], None] | None:
    """Progress of one of several readings, told as progress of all."""
    if progress is None:
        return None
    return lambda done, total: progress(at * total + done, of * total)


def last_whole_day(log: EventLog) -> int:
    """The last day of a log, in days since 1970-01-01.

    The one before if the log ends within it, and has another.
    """
    assert log.last_day is not None
    assert log.first_day is not None
    window, _ = window_of("1d", day_text(log.last_day), log, 0)
    return max(log.first_day, log.last_day - bool(incomplete(window, log)))


def event(found: Watched, *, time: str) -> dict[str, Any] | None:
    """What ``--notify`` posts, if somebody has to know; else None.

    That is whatever is not fine: something got worse, nobody can tell, or the log is broken.

    Args:
        found: What was seen.
        time: When, in UTC, as ``2026-03-01T02:00:00Z``.

    Returns:
        ``event`` (``online.worse`` | ``online.unhealthy`` | ``online.cannot_tell``), ``time``,
        ``karat``, ``text`` (a sentence), ``content`` (the command's JSON object).
    """
    if found.verdict == "fine":
        return None
    told = [*found.health, *(change_text(change) for change in found.found("worse"))]
    return {
        "event": f"online.{found.verdict}",
        "time": time,
        "karat": metadata.version("karat"),
        "text": f"{found.window}: " + "; ".join(told),
        "content": found.to_dict(),
    }


def _metrics(names: Sequence[str] | None, log: EventLog) -> tuple[list[Metric], list[str]]:
    """The metrics to watch, and what is to be said of those that are not."""
    found = registry.find_all(registry.DEFAULT if names is None else list(names))
    aimless = [metric.name for metric in found if metric.direction == "none"]
    if aimless and names is not None:
        raise UsageError(
            f"{aimless[0]} has no direction: nobody can say whether more of it is better",
            fix="karat online metrics lists which way is better",
        )
    bounded = [metric.name for metric in found if not metric.point]
    if bounded and names is not None:
        raise UsageError(f"{bounded[0]} has bounds and no value, which cannot be compared")
    found = [metric for metric in found if metric.direction != "none" and metric.point]
    reasons = {metric.name: why_unknown(metric, log) for metric in found}
    lacking: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        if reason:
            lacking.setdefault(reason, []).append(name)
    notes: list[str] = [
        Note(f"not watched: {', '.join(lost)}: {reason}", Concern.QUERIES)
        for reason, lost in lacking.items()
    ]
    return [metric for metric in found if not reasons[metric.name]], notes


def _over(
    metrics: Sequence[Metric], window: Window, log: EventLog, rules: Rules
) -> tuple[list[Metric], list[str]]:
    """Metrics whose time to come true is over, and what is to be said of the others.

    Of a search less than a day old nobody knows whether something will be bought: a window that has
    just ended has a value of none of its searches, or of its first ones alone.
    """
    waiting = [metric.name for metric in metrics if "purchase" in metric.needs]
    closed_us = (log.last_us or 0) - rules.purchase
    if not waiting or closed_us >= ends_us(window, log):
        return list(metrics), []
    day, _ = local_hour(closed_us, log)
    note = (
        f"not watched: {', '.join(waiting)}: what is bought after searches of {window.label} is "
        f"not all in the log yet; --until {day_text(day - 1)} has it"
    )
    return [metric for metric in metrics if metric.name not in waiting], [note]


def _refuse_times(only: Only) -> None:
    odd = sorted({"day", "hour"}.intersection(only))
    if odd:
        raise UsageError(
            f"--only {odd[0]}: a watch has no part by {odd[0]}",
            fix="--window and --until say which days or hours",
        )


def cut_of_watch(said: str, log: EventLog) -> Cut:
    """The dimensions of a slice, each known.

    Raises:
        UsageError: there is no such dimension, or a watch has no slices by it.
    """
    cut = cut_of(said, log)
    odd = {"day", "hour", "query"} & set(cut)
    if odd:
        raise UsageError(
            f"--by {said}: a watch has no slices by {min(odd)}",
            fix="--window says which days or hours; queries that moved are shown by themselves",
        )
    return cut


def _series(
    mine: WindowReadings,
    before: Sequence[WindowReadings],
    metrics: Sequence[Metric],
    margins: Margins,
) -> list[Series]:
    """Each metric in each slice that any window has, those of all first."""
    keys = dict.fromkeys(key for read in (mine, *before) for key in read.readings)
    by_name = {metric.name: metric for metric in metrics}
    order = list(by_name)
    series = []
    for name, part in sorted(keys, key=lambda key: (len(key[1]), key[1], order.index(key[0]))):
        past = [read.readings[name, part] for read in before if (name, part) in read.readings]
        expected = sum(each.value for each in past) / len(past) if past else None
        metric = by_name[name]
        series.append(
            Series(
                metric,
                dict(part),
                mine.readings.get((name, part)),
                past,
                margins(metric, expected),
            )
        )
    return series


def _explained(
    changes: Sequence[Change],
    mine: WindowReadings,
    before: Sequence[WindowReadings],
    reader: WindowReader,
    metrics: Sequence[Metric],
) -> list[Change]:
    """What moved, with the queries that add most to it; for each slicing the log is read again."""
    by_name = {metric.name: metric for metric in metrics}
    frames: dict[Cut, list[pl.DataFrame]] = {}
    wanted: dict[Cut, set[str]] = {}
    for change in changes:
        if change.verdict in ("worse", "better") and _by_query(by_name[change.metric]):
            wanted.setdefault(tuple(change.slice), set()).add(change.metric)
    for cut, names in wanted.items():
        asked = [by_name[name] for name in sorted(names)]
        frames[cut] = [reader.by_query(read.window, asked, cut) for read in (mine, *before)]
    found = [_with_queries(change, frames, wanted) for change in changes]
    keys = {one.query for change in found for one in change.queries if one.query}
    window = mine.window
    said = as_typed(
        reader.log,
        reader.engine,
        keys,
        rules=reader.rules,
        first_day=window.first_day,
        last_day=window.last_day,
        first_hour=window.first_hour,
        end_hour=window.end_hour,
        only=reader.only,
        classes=reader.classes,
    )
    return [
        replace(
            change,
            queries=tuple(replace(one, text=said.text(one.query)) for one in change.queries),
        )
        for change in found
    ]


def _by_query(metric: Metric) -> bool:
    """Whether queries add up to it: neither a quantile, nor over users, who ask several."""
    return isinstance(metric.compute, Ratio) and metric.compute.denominator is not None


def _with_queries(
    change: Change, frames: dict[Cut, list[pl.DataFrame]], wanted: dict[Cut, set[str]]
) -> Change:
    cut: Cut = tuple(change.slice)
    if change.verdict not in ("worse", "better") or change.metric not in wanted.get(cut, ()):
        return change
    here = pl.lit(value=True)
    for name, value in change.slice.items():
        here = here & (pl.col(name) == value)
    mine, *before = (frame.filter(here, pl.col("metric") == change.metric) for frame in frames[cut])
    rows, total = pure.contributions(mine, [each for each in before if each["denominator"].sum()])
    shown = [row for row in rows[:_SHOWN] if row.adds * total > 0]
    return replace(change, queries=tuple(shown), others=total - sum(one.adds for one in shown))


def _doubts(
    mine: WindowReadings, before: Sequence[WindowReadings], changes: Sequence[Change]
) -> list[str]:
    """What is wrong with the evidence of a window, though there is some."""
    found = []
    fewest = min((each.searches for each in before), default=0)
    if mine.searches < _FEW * fewest:
        most = max(each.searches for each in before)
        found.append(
            f"{mine.searches:,} searches in {mine.window.label}, and {fewest:,} to {most:,} in "
            "earlier windows: is all of it logged?"
        )
    found += [f"{each.metric}: {each.reason}" for each in _silent(changes)]
    return [*found, *mine.doubts]


def _silent(changes: Sequence[Change]) -> list[Change]:
    """Metrics of the whole that had values in earlier windows, and have none now."""
    return [
        change
        for change in changes
        if not change.slice and change.value is None and change.windows >= LEAST_WINDOWS
    ]


def _verdict(changes: Sequence[Change]) -> Verdict:
    if any(change.verdict == "worse" for change in changes):
        return "worse"
    if _silent(changes) or not any(change.p is not None for change in changes):
        return "cannot_tell"
    return "fine"


def _untested(changes: Sequence[Change]) -> list[str]:
    """Slices nobody can tell of, by name, and why of the first."""
    untold: dict[tuple[tuple[str, str], ...], Change] = {}
    for change in changes:
        if change.verdict == "cannot_tell" and change.slice:
            untold.setdefault(tuple(change.slice.items()), change)
    if not untold:
        return []
    first = next(iter(untold.values()))
    names = [where(each.slice) for each in untold.values()]
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    said = "; ".join(names[:_NAMED]) + more
    return [f"some metric cannot be told of {said} ({first.metric}: {first.reason})"]
