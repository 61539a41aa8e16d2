"""The quality of search in one number: the newest point of the longest trend."""

from __future__ import annotations

from collections.abc import Sequence

from karat.measures import DEFAULTS
from karat.tables.release.trend import Series
from karat.tables.workspace import Headline
from karat.workflows.release.stored_trends import History

_POINTS = 30


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
        points=[mark.value for mark in series.marks[-_POINTS:]],
        apart="" if newest.told_apart is None else "yes" if newest.told_apart else "no",
    )
    return found, history.name, series
