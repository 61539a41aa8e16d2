"""The few numbers that say how search is doing: a metric's last week next to the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karat.online.metrics.registry import find
from karat.tables.days import day_number, day_text
from karat.tables.online.evaluation import OnlineResult, OnlineResults
from karat.tables.workspace import Headline

SHOWN = {"SAT": "Satisfied clicks", "ZeroResults": "Zero results"}
"""Metrics on the home page: how often users find something, and how often there is nothing."""
_WEEK = 7


def headlines(results: OnlineResults, last: int) -> list[Headline]:
    """The metrics of ``SHOWN`` in the week to a day (since 1970-01-01), with their days.

    Args:
        results: An evaluation by day.
        last: The last complete day.

    Returns:
        Those that have a value in that week. The value of a week is its numerator over its
        denominator: the mean of its days, each weighted by its number of searches.
    """
    found = []
    for name, title in SHOWN.items():
        days = {
            day_number(row.slice["day"]): row
            for row in results.results
            if row.metric == name and set(row.slice) == {"day"} and row.value is not None
        }
        now = _week(days, last)
        if now is None:
            continue
        before = _week(days, last - _WEEK)
        change = None if before is None else now - before
        found.append(
            Headline(
                title=title,
                what=name,
                unit="share",
                value=now,
                change=change,
                better=_better(name, change),
                since=f"week to {day_text(last)}",
                against="the week before",
                points=[row.value for day, row in sorted(days.items()) if day <= last],
            )
        )
    return found


def _week(days: Mapping[int, OnlineResult], last: int) -> float | None:
    week: Sequence[OnlineResult] = [
        days[day] for day in range(last - _WEEK + 1, last + 1) if day in days
    ]
    searches = sum(row.n for row in week)
    if not searches:
        return None
    return sum((row.value or 0.0) * row.n for row in week) / searches


def _better(name: str, change: float | None) -> bool | None:
    if not change:
        return None
    return (change > 0) == (find(name).direction == "higher")
