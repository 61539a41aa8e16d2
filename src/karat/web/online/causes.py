"""Causes on pages: what changed, since when, for whom, by which queries, and a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from karat.reports.phrases.numbers import percent
from karat.reports.phrases.online import (
    cause_text,
    difference,
    explained_text,
    onset_text,
    usual_values,
    value,
)
from karat.tables.days import day_number
from karat.tables.online.watch import Cause, Change, Explained
from karat.web.framework.call import Call
from karat.web.online import figures
from karat.web.online.charts import (
    Annotation,
    Axis,
    Chart,
    annotations_within,
    chart_of_cause,
    stored_charts,
)
from karat.workflows.online.alerts import releases_before
from karat.workflows.online.log_requests import Days


@dataclass(frozen=True)
class CauseShown:
    """A cause in words, with links to the rows behind it."""

    sentence: str
    usual: str
    onset: str
    share: str  # of the change over all searches; empty if unknown
    where: str
    explains: Sequence[tuple[str, str]]  # what it explains, each with its rows
    queries: Sequence[Mapping[str, Any]]
    others: str
    chart: Chart | None = field(repr=False)
    undrawn: str = field(repr=False)
    marks: Sequence[Annotation]
    releases: Sequence[str]  # of the week before, the latest first
    alert: int | None = None


def shown(
    call: Call,
    cause: Cause,
    days: tuple[int, int],
    names: Mapping[str, str],
    timezone: str,
    annotations: pl.DataFrame,
    alert: int | None = None,
) -> CauseShown:
    """A cause on a page.

    ``days`` are those of its rows; ``names`` are what addresses call the dimensions of slices.
    """
    lead, onset = cause.lead, cause.onset
    chart, undrawn, marks = None, "", list[Annotation]()
    if onset is not None and onset.hours:
        chart, undrawn, marks = _chart(call, cause, names, timezone, annotations)
    return CauseShown(
        sentence=cause_text(cause),
        usual=usual_values(lead),
        onset=onset_text(onset),
        share="" if cause.share is None else percent(min(1.0, cause.share)),
        where=rows_of(lead, days, names, counts=bool(lead.value)),
        explains=[
            (explained_text(each), rows_of(each, days, names, counts=True))
            for each in cause.explains
        ],
        queries=query_rows(lead, days, names),
        others=difference(lead.metric, lead.others) if lead.queries and lead.others else "",
        chart=chart,
        undrawn=undrawn,
        marks=marks,
        releases=releases_before(annotations, onset, days[0], timezone),
        alert=alert,
    )


def rows_of(
    change: Change | Explained,
    days: tuple[int, int],
    names: Mapping[str, str],
    more: Sequence[tuple[str, str]] = (),
    *,
    counts: bool,
) -> str:
    """Link to the rows that a metric counts in its slice; without ``counts`` all it could."""
    parts = [(names.get(key, key), text) for key, text in change.slice.items()]
    return figures.rows_address(change.metric, days, [*parts, *more], "yes" if counts else "")


def query_rows(
    change: Change, days: tuple[int, int], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The queries that contribute most to a change."""
    counts = bool(change.value)
    return [
        {
            "text": one.text,
            "adds": difference(change.metric, one.adds),
            "now": value(change.metric, one.value),
            "n": one.n,
            "before": value(change.metric, one.before),
            "n_before": one.n_before,
            "where": rows_of(change, days, names, [("query", one.query)], counts=counts),
        }
        for one in change.queries
    ]


def _chart(
    call: Call,
    cause: Cause,
    names: Mapping[str, str],
    timezone: str,
    annotations: pl.DataFrame,
) -> tuple[Chart | None, str, list[Annotation]]:
    """The chart of a cause, or why it cannot be drawn; and its annotations."""
    assert cause.onset is not None
    hours = cause.onset.hours
    first, last = (day_number(hours[at].start[:10]) for at in (0, -1))
    axis = Axis(Days(first, last), hourly=True)
    marks, uprights = annotations_within(annotations, axis, timezone)
    parts = [(names.get(key, key), text) for key, text in cause.lead.slice.items()]
    about = asdict(cause.onset), cause.lead.metric, parts, uprights, marks
    charts, undrawn = stored_charts(
        call.site, about, lambda: [chart_of_cause(cause, axis, parts, marks, uprights)]
    )
    return next(iter(charts), None), undrawn, marks
