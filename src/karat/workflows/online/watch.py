"""Watch: the latest window of a log compared with its history."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import Any

import polars as pl

from karat.engines.frames.engine import Engine
from karat.errors import UsageError
from karat.online import watch as pure
from karat.online.estimates import NOT_SAID, estimate, needed
from karat.online.evidence import Cut, Evidence
from karat.online.health import unknown_results
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.expressions import EVERY_SEARCH, why_unknown
from karat.online.rules import Rules
from karat.online.watch import (
    LEAST_WINDOWS,
    Margins,
    Reading,
    Series,
    Window,
    hours_of,
    read_margins,
)
from karat.reports.phrases.online import cause_line, cause_text, where
from karat.stats.intervals import UserMoments, ratio_variance
from karat.stats.student import t_quantile
from karat.tables.days import day_text
from karat.tables.notes import Concern, Note
from karat.tables.online.alerts import Alert
from karat.tables.online.evaluation import OnlineResult
from karat.tables.online.events import EventLog
from karat.tables.online.watch import Change, Verdict, Watched
from karat.workflows.online._watch_causes import explained
from karat.workflows.online.evaluate import classes_of, cut_of
from karat.workflows.online.evidence import Selection, gather_windows
from karat.workflows.online.filters import Only, only_note
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

HISTORY = "56d"  # eight weeks: with fewer, only large changes are significant
_NAMED = 3  # untested slices listed in a note
_FEW = 0.5  # share of the fewest searches of an earlier window

Slice = tuple[tuple[str, str], ...]  # dimension and value, in the order of the cut


@dataclass(frozen=True)
class WindowReadings:
    window: Window
    searches: int
    # By metric and slice; those without a value are absent
    readings: Mapping[tuple[str, Slice], Reading]
    doubts: Sequence[str] = ()  # notes on what the log lacks, for all searches


@dataclass(frozen=True)
class WindowReader:
    whole: Selection  # of the log, over all times
    # Called with the work done and the total
    progress: Callable[[int, int], None] | None = field(default=None, compare=False)

    def read(
        self, windows: Sequence[Window], metrics: Sequence[Metric], cuts: Sequence[Cut]
    ) -> list[WindowReadings]:
        found = self._evidence(windows, [*needed(metrics), EVERY_SEARCH], cuts)
        return [self._readings(window, found[window], metrics, cuts) for window in windows]

    def _readings(
        self, window: Window, evidence: Evidence, metrics: Sequence[Metric], cuts: Sequence[Cut]
    ) -> WindowReadings:
        readings: dict[tuple[str, Slice], Reading] = {}
        by_name = {metric.name: metric for metric in metrics}
        for cut in cuts:
            errors = _errors(evidence.moments[cut], cut)
            for row in estimate(evidence, metrics, cut, self.whole.log, self.whole.rules):
                if row.value is None or not row.n:
                    continue
                part = tuple(row.slice.items())
                ratio = isinstance(by_name[row.metric].compute, Ratio)
                error = errors[row.metric, part] if ratio else _half(row)
                readings[row.metric, part] = Reading(row.value, error, row.n, row.users)
        counted = evidence.moments[()].filter(pl.col("metric") == EVERY_SEARCH.name)
        searches = round(float(counted["denominator"].sum()))
        doubts = list(unknown_results(evidence.counts, self.whole.log))
        return WindowReadings(window, searches, readings, doubts)

    def counts(
        self,
        windows: Sequence[Window],
        metrics: Sequence[Metric],
        cuts: Sequence[Cut],
        steps: Sequence[str] = ("query",),
    ) -> dict[Cut, list[pl.DataFrame]]:
        """Numerators and denominators of ratios in windows, by slice and ``steps``.

        Returns:
            For each cut and window the columns of the cut and the steps, ``metric``,
            ``numerator`` and ``denominator``.
        """
        found = self._evidence(windows, metrics, [(*cut, *steps) for cut in cuts])

        def rows(window: Window, cut: Cut) -> pl.DataFrame:
            frame = found[window].moments[*cut, *steps].filter(pl.col("term") == "value")
            names = (pl.col(name).fill_null(NOT_SAID) for name in cut)
            return frame.select(*names, *steps, "metric", "numerator", "denominator")

        return {cut: [rows(window, cut) for window in windows] for cut in cuts}

    def _evidence(
        self, windows: Sequence[Window], metrics: Sequence[Metric], cuts: Sequence[Cut]
    ) -> dict[Window, Evidence]:
        """The evidence of each window; one reading of the log for all that are apart in time."""
        found: dict[Window, Evidence] = {}
        readings = self._apart(windows)
        for at, apart in enumerate(readings):
            part = replace(
                self.within(apart[0]), starts=tuple(window.first_day for window in apart)
            )
            progress = _part(self.progress, at, len(readings))
            by_start = gather_windows(part, metrics, cuts, progress)
            found |= {window: by_start[window.first_day] for window in apart}
        return found

    def _apart(self, windows: Sequence[Window]) -> list[list[Window]]:
        """The windows, in groups that need no event twice."""
        groups: list[list[Window]] = []
        needed = {window: self.within(window).scope() for window in windows}
        for window in sorted(windows, key=lambda each: each.first_day):
            since = needed[window].since or 0
            fits = (group for group in groups if (needed[group[-1]].until or 0) <= since)
            if (group := next(fits, None)) is None:
                groups.append(group := [])
            group.append(window)
        return groups

    def within(self, window: Window) -> Selection:
        return replace(
            self.whole,
            first_day=window.first_day,
            last_day=window.last_day,
            first_hour=window.first_hour,
            end_hour=window.end_hour,
        )


def _errors(moments: pl.DataFrame, cut: Cut) -> dict[tuple[str, Slice], float]:
    errors = {}
    for row in moments.filter(pl.col("term") == "value").iter_rows(named=True):
        part = tuple((name, NOT_SAID if row[name] is None else str(row[name])) for name in cut)
        errors[row["metric"], part] = _error(row)
    return errors


def _error(row: Mapping[str, Any]) -> float:
    if row["users"] < 2 or not row["denominator"]:
        return 0.0
    return math.sqrt(ratio_variance(UserMoments.of(row)))


def _half(row: OnlineResult) -> float:
    """Standard error of a quantile, from the wider known half of its interval."""
    assert row.value is not None
    halves = [abs(end - row.value) for end in (row.low, row.high) if end is not None]
    return max(halves, default=0.0) / t_quantile(0.975, max(row.users - 1, 1))


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
    """Compare the latest window of a log with its own history; see ``karat.online.watch``."""
    rules = rules or Rules()
    days = _days(history)
    only = only or {}
    chosen, notes = _metrics(metrics, log)
    allowed = read_margins(margins, registry.find)
    cuts: list[Cut] = [(), *dict.fromkeys(cut_of_watch(text, log) for text in by)]
    _refuse_times(only)
    classes, class_notes = classes_of([*cuts, tuple(only)], queries)
    latest_window, window_notes = window_of(window, until, log, now)
    chosen, open_metric_notes = _over(chosen, latest_window, log, rules)
    notes += [*class_notes, *only_note(only), *window_notes, *open_metric_notes]
    blank = _blank(log, engine, latest_window, hours_of(window), cuts, rules, notes)
    if broken := unhealthy(latest_window, log):
        return replace(blank, verdict="unhealthy", health=[broken])
    if until is None and (partial := incomplete(latest_window, log)):
        fix = f"--until {day_text(latest_window.last_day)} compares it as it is"
        return replace(blank, health=[f"{partial}: {fix}"])
    if not chosen:
        return replace(blank, health=["there is no metric to watch: see the notes"])
    past, absent = earlier_in(latest_window, days, log)
    if len(past) < LEAST_WINDOWS:
        return replace(
            blank,
            compared=[each.label for each in past],
            absent=[each.label for each in absent],
            health=[too_few(latest_window, past, days, log)],
        )
    reader = WindowReader(Selection(log, rules, engine=engine, only=only, classes=classes))
    windows = [latest_window, *past]
    return _compared(blank, reader, windows, absent, chosen, cuts, allowed, progress)


def _blank(
    log: EventLog,
    engine: Engine,
    window: Window,
    hours: int,
    cuts: Sequence[Cut],
    rules: Rules,
    notes: Sequence[str],
) -> Watched:
    """The result before anything is compared."""
    return Watched(
        verdict="cannot_tell",
        window=window.label,
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
        ends_us=ends_us(window, log),
        hours=hours,
    )


def _days(history: str) -> int:
    hours = hours_of(history, what="--history")
    if not hours >= 24:
        raise UsageError(f"--history {history} is less than a day", fix=f"--history {HISTORY}")
    return hours // 24


def _compared(
    blank: Watched,
    reader: WindowReader,
    windows: Sequence[Window],  # the latest first
    absent: Sequence[Window],
    chosen: Sequence[Metric],
    cuts: Sequence[Cut],
    allowed: Margins,
    progress: Callable[[int, int], None] | None,
) -> Watched:
    latest, *before = replace(reader, progress=progress).read(windows, chosen, cuts)
    if not latest.searches:
        gap = f"no searches in {windows[0].label}, though the log goes on: is logging complete?"
        return replace(blank, verdict="unhealthy", health=[gap])
    empty = [each.window for each in before if not each.searches]
    before = [each for each in before if each.searches]
    changes = pure.ordered(pure.compare(_series(latest, before, chosen, allowed)))
    changes, causes = explained(changes, latest, before, reader, chosen)
    return replace(
        blank,
        verdict=_verdict(changes),
        compared=[each.window.label for each in before],
        absent=[each.label for each in (*empty, *absent)],
        searches=latest.searches,
        searches_before=sum(each.searches for each in before) / len(before) if before else None,
        health=_doubts(latest, before, changes),
        changes=changes,
        causes=causes,
        tests=sum(change.p is not None for change in changes),
        notes=[*blank.notes, *open_notes(windows[0], reader.whole.log), *_untested(changes)],
    )


def _part(
    progress: Callable[[int, int], None] | None, at: int, of: int
) -> Callable[[int, int], None] | None:
    """Progress of one of several readings, as progress of all."""
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


def last_whole_window(length: str, log: EventLog) -> Window:
    """The last window of a length that a log covers."""
    hours = hours_of(length)
    if hours >= 24:
        return pure.latest(length, last_whole_day(log), 24)
    assert log.last_us is not None
    day, hour = local_hour(log.last_us, log)
    end = min(24, hour - hour % hours + hours)
    window = pure.latest(length, day, end)
    return pure.latest(length, day, hour) if incomplete(window, log) else window


def window_end(window: Window) -> str:
    """The end of a window as ``until`` is typed: a day, or ``2026-11-20 12:00``."""
    if window.end_hour == 24:
        return day_text(window.last_day)
    return f"{day_text(window.last_day)} {window.end_hour:02}:00"


def event(
    watched: Watched, *, time: str, news: Sequence[Alert] | None = None
) -> dict[str, Any] | None:
    """The payload that ``--notify`` posts unless the verdict is fine; else None.

    Args:
        watched: The result.
        time: When it was made, as ISO 8601.
        news: Alerts that are new or came back; None if alerts are not recorded.

    Returns:
        ``event`` (``online.worse`` | ``online.unhealthy`` | ``online.cannot_tell``), ``time``,
        ``karat``, ``text`` (a sentence), ``lines`` (a sentence for each problem and cause),
        ``alerts`` (ids), ``content`` (the command's JSON object).
    """
    if watched.verdict == "fine":
        return None
    causes = watched.causes if news is None else [each.cause for each in news]
    lines = [*watched.health, *map(cause_line, causes)]
    return {
        "event": f"online.{watched.verdict}",
        "time": time,
        "karat": metadata.version("karat"),
        "text": f"{watched.window}: " + "; ".join([*watched.health, *map(cause_text, causes)]),
        "lines": lines,
        "alerts": [each.id for each in news or ()],
        "content": watched.to_dict(),
    }


def _metrics(names: Sequence[str] | None, log: EventLog) -> tuple[list[Metric], list[str]]:
    """The metrics to watch, and notes on the others."""
    selected = registry.find_all(registry.DEFAULT if names is None else list(names))
    aimless = [metric.name for metric in selected if metric.direction == "none"]
    if aimless and names is not None:
        raise UsageError(
            f"{aimless[0]} has no direction: neither more nor less of it is better",
            fix="karat online metrics lists the directions",
        )
    bounded = [metric.name for metric in selected if not metric.point]
    if bounded and names is not None:
        raise UsageError(f"{bounded[0]} has bounds but no value, and cannot be compared")
    selected = [metric for metric in selected if metric.direction != "none" and metric.point]
    reasons = {metric.name: why_unknown(metric, log) for metric in selected}
    lacking: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        if reason:
            lacking.setdefault(reason, []).append(name)
    notes: list[str] = [
        Note(f"not watched: {', '.join(missing)}: {reason}", Concern.QUERIES)
        for reason, missing in lacking.items()
    ]
    return [metric for metric in selected if not reasons[metric.name]], notes


def _over(
    metrics: Sequence[Metric], window: Window, log: EventLog, rules: Rules
) -> tuple[list[Metric], list[str]]:
    """Metrics that are complete for a window, and notes on the others.

    Purchases may follow a search for a day, so they are incomplete for a window that just ended.
    """
    waiting = [metric.name for metric in metrics if "purchase" in metric.needs]
    closed_us = (log.last_us or 0) - rules.purchase
    if not waiting or closed_us >= ends_us(window, log):
        return list(metrics), []
    day, _ = local_hour(closed_us, log)
    note = (
        f"not watched: {', '.join(waiting)}: purchases after searches of {window.label} are "
        f"not complete yet; --until {day_text(day - 1)} has them"
    )
    return [metric for metric in metrics if metric.name not in waiting], [note]


def _refuse_times(only: Only) -> None:
    odd = sorted({"day", "hour"}.intersection(only))
    if odd:
        raise UsageError(
            f"--only {odd[0]}: watch cannot filter by {odd[0]}",
            fix="--window and --until select days or hours",
        )


def cut_of_watch(dimensions: str, log: EventLog) -> Cut:
    cut = cut_of(dimensions, log)
    odd = {"day", "hour", "query"} & set(cut)
    if odd:
        raise UsageError(
            f"--by {dimensions}: watch cannot slice by {min(odd)}",
            fix="--window selects days or hours; queries that changed are listed anyway",
        )
    return cut


def _series(
    mine: WindowReadings,
    before: Sequence[WindowReadings],
    metrics: Sequence[Metric],
    margins: Margins,
) -> list[Series]:
    """Each metric in each slice of any window, those over all searches first."""
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


def _doubts(
    mine: WindowReadings, before: Sequence[WindowReadings], changes: Sequence[Change]
) -> list[str]:
    doubts = []
    fewest = min((each.searches for each in before), default=0)
    if mine.searches < _FEW * fewest:
        most = max(each.searches for each in before)
        doubts.append(
            f"{mine.searches:,} searches in {mine.window.label}, and {fewest:,} to {most:,} in "
            "earlier windows: is logging complete?"
        )
    doubts += [f"{each.metric}: {each.reason}" for each in _silent(changes)]
    return [*doubts, *mine.doubts]


def _silent(changes: Sequence[Change]) -> list[Change]:
    """Metrics over all searches that had values in earlier windows, but have none now."""
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
    """A note on slices that could not be tested, with the reason of the first."""
    untested: dict[tuple[tuple[str, str], ...], Change] = {}
    for change in changes:
        if change.verdict == "cannot_tell" and change.slice:
            untested.setdefault(tuple(change.slice.items()), change)
    if not untested:
        return []
    first = next(iter(untested.values()))
    names = [where(each.slice) for each in untested.values()]
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    listed = "; ".join(names[:_NAMED]) + more
    return [f"some metrics cannot be tested for {listed} ({first.metric}: {first.reason})"]
