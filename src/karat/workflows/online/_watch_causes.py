"""What is behind the changes of a watch: queries, causes, and the hours in which these began."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import polars as pl

from karat.online.causes import Grouped, grouped
from karat.online.evidence import Cut
from karat.online.metrics.entry import Metric, Ratio
from karat.online.onset import Counted, onset
from karat.online.watch import Series, Window, contributions, unit_variances
from karat.tables.days import day_text
from karat.tables.online.watch import Cause, Change, Explained, Onset
from karat.workflows.online.worst_queries import query_spellings

if TYPE_CHECKING:
    from karat.workflows.online.watch import WindowReader, WindowReadings

_SHOWN = 5  # queries listed for a change
_NAMED = 20  # queries listed for a cause
_JOINED = 6  # slicings, the most significant, that are combined with each other
_ONSETS = 5  # causes, the largest, whose hours are read
_BEFORE = 2  # days before the window in which a change may have begun
_LONGEST = 7  # days of hours: those of earlier weeks may not overlap them


def explained(
    changes: Sequence[Change],
    mine: WindowReadings,
    before: Sequence[WindowReadings],
    reader: WindowReader,
    metrics: Sequence[Metric],
) -> tuple[list[Change], list[Cause]]:
    """Changes with the queries that contribute most, and causes; reads the log if there are any."""
    by_name = {metric.name: metric for metric in metrics}
    moved = [change for change in changes if change.verdict in ("worse", "better")]
    adding = [change for change in moved if _by_query(by_name[change.metric])]
    frames: dict[Cut, list[pl.DataFrame]] = {}
    if adding:
        ratios = [by_name[name] for name in sorted({change.metric for change in adding})]
        windows = [read.window for read in (mine, *before)]
        frames = reader.counts(windows, ratios, _cuts(adding))
    with_queries = [
        _with_queries(change, frames[tuple(change.slice)]) if change in adding else change
        for change in changes
    ]
    found = grouped(with_queries, {frozenset(cut): _numbered(each) for cut, each in frames.items()})
    keys = {row.query for change in with_queries for row in change.queries}
    keys |= {query for cause in found for query in cause.queries[:_NAMED]}
    spelling = query_spellings(reader.within(mine.window), keys - {""}) if keys - {""} else None

    def text(query: str) -> str:
        return spelling.text(query) if spelling and query else ""

    named = [
        replace(change, queries=tuple(replace(row, text=text(row.query)) for row in change.queries))
        for change in with_queries
    ]
    causes = [_cause(each, named, [text(query) for query in each.queries[:_NAMED]])
              for each in found]  # fmt: skip
    return named, _with_onsets(causes, mine, before, reader, by_name)


def _by_query(metric: Metric) -> bool:
    """Whether queries add up to the metric: not a quantile, and not over users."""
    return isinstance(metric.compute, Ratio) and metric.compute.denominator is not None


def _cuts(changes: Sequence[Change]) -> list[Cut]:
    """The slicings of changes, and pairs of those of changes for the worse."""
    cuts = dict.fromkeys(tuple(change.slice) for change in changes)
    worse = dict.fromkeys(tuple(each.slice) for each in changes if each.verdict == "worse")
    several = [cut for cut in worse if cut][:_JOINED]
    for one, other in combinations(several, 2):
        both = tuple(dict.fromkeys((*one, *other)))
        if frozenset(both) not in map(frozenset, cuts):
            cuts[both] = None
    return list(cuts)


def _numbered(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(frame.with_columns(window=pl.lit(at)) for at, frame in enumerate(frames))


def _with_queries(change: Change, frames: Sequence[pl.DataFrame]) -> Change:
    here = [pl.col(name) == value for name, value in change.slice.items()]
    mine, *before = (frame.filter(*here, pl.col("metric") == change.metric) for frame in frames)
    rows, total = contributions(mine, [each for each in before if each["denominator"].sum()])
    shown = [row for row in rows[:_SHOWN] if row.adds * total > 0]
    return replace(change, queries=tuple(shown), others=total - sum(one.adds for one in shown))


def _cause(found: Grouped, changes: Sequence[Change], queries: Sequence[str]) -> Cause:
    return Cause(
        lead=changes[found.lead],
        explains=[
            Explained(changes[at].metric, changes[at].slice, share)
            for at, share in sorted(found.explains.items())
        ],
        queries=queries,
        share=found.share,
    )


def _with_onsets(
    causes: Sequence[Cause],
    mine: WindowReadings,
    before: Sequence[WindowReadings],
    reader: WindowReader,
    metrics: Mapping[str, Metric],
) -> list[Cause]:
    """Causes, the first of them with the hour in which they began."""
    timed = [each for each in causes[:_ONSETS] if _by_query(metrics[each.lead.metric])]
    if not timed:
        return list(causes)
    window = mine.window
    begin = max(window.first_day - _BEFORE, window.last_day - _LONGEST + 1)
    back = [0, *(window.first_day - each.window.first_day for each in before)]
    stretches = [Window(begin - days, window.last_day - days) for days in back]
    cuts = list(dict.fromkeys(tuple(each.lead.slice) for each in timed))
    ratios = [metrics[name] for name in sorted({each.lead.metric for each in timed})]
    frames = reader.counts(stretches, ratios, cuts, ("day", "hour"))

    def dated(cause: Cause) -> Onset:
        lead = cause.lead
        here = [pl.col(name) == value for name, value in lead.slice.items()]
        here.append(pl.col("metric") == lead.metric)
        counted = [
            {(day, hour): (over, of) for day, hour, over, of in frame.filter(*here)
             .select("day", "hour", "numerator", "denominator").iter_rows()}
            for frame in frames[tuple(lead.slice)]
        ]  # fmt: skip
        hours = list(_hours(counted, stretches, window))
        begin = f"{day_text(window.first_day)} {window.first_hour:02}:00"
        key = (lead.metric, tuple(lead.slice.items()))
        past = [read.readings[key] for read in before if key in read.readings]
        series = Series(metrics[lead.metric], lead.slice, mine.readings[key], past)
        usual, now = unit_variances(series)
        return onset(
            hours,
            next(at for at, hour in enumerate(hours) if hour.start >= begin),
            sign=1 if lead.direction == "lower" else -1,
            usual=usual,
            now=now,
            share=lead.unit == "share",
        )

    return [replace(each, onset=dated(each)) if each in timed else each for each in causes]


def _hours(
    counted: Sequence[Mapping[tuple[str, str], tuple[float, float]]],
    stretches: Sequence[Window],
    window: Window,
) -> Iterator[Counted]:
    for day in range(stretches[0].last_day - stretches[0].first_day + 1):
        last = stretches[0].first_day + day == window.last_day
        for hour in range(window.end_hour if last else 24):
            over, of = zip(
                *(
                    each.get((day_text(stretch.first_day + day), f"{hour:02}"), (0.0, 0.0))
                    for each, stretch in zip(counted, stretches, strict=True)
                ),
                strict=True,
            )
            start = f"{day_text(stretches[0].first_day + day)} {hour:02}:00"
            yield Counted(start, over[0], of[0], sum(over[1:]), sum(of[1:]))
