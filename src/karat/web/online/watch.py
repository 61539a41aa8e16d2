"""Watch: a day beside the same weekdays before it, what moved, and which queries moved it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar
from urllib.parse import urlencode

import polars as pl
from fastapi import APIRouter, Query, Request, Response

from karat.errors import InputError, UsageError
from karat.reports.online.watch import compared_text, verdict_text
from karat.reports.phrases.online import difference, moved_text, usual_text, value, where
from karat.tables.days import day_text
from karat.tables.online.watch import Change, Contribution, Watched
from karat.web.framework.auth import AReader
from karat.web.framework.lists import Ask, Column, Listed, listed
from karat.web.framework.pages import show
from karat.web.framework.state import TheState
from karat.web.online import figures
from karat.web.online.dashboard import LogPage, tabs, told
from karat.web.online.log import Lacking, Lenient, Wanted, log_of, looked, trouble
from karat.web.online.slices import NOTHING, Dimension, dimensions
from karat.web.online.watch_results import Watching, watched_of, watching_of
from karat.workflows.online.watch import last_whole_day

ROUTER = APIRouter()
_SCHEMA: dict[str, Any] = {
    "metric": pl.String,
    "slice": pl.String,
    "verdict": pl.String,
    "said": pl.String,
    "expected_said": pl.String,
    "usual": pl.String,
    "n": pl.Int64,
    "users": pl.Int64,
    "windows": pl.Int64,
    "reason": pl.String,
    "value": pl.Float64,
    "expected": pl.Float64,
    "usual_low": pl.Float64,
    "usual_high": pl.Float64,
    "p": pl.Float64,
    "p_adjusted": pl.Float64,
}
_SAID = {"usual": "as usual", "cannot_tell": "cannot tell"}


@dataclass(frozen=True)
class Mover:
    """A query that adds to a change.

    Attributes:
        text: As it was typed most often.
        adds: To the change, with its sign.
        now: What it is.
        n: How often it counts.
        before: What it was.
        n_before: How often it counted in an earlier window.
        where: Address of its searches.
    """

    text: str
    adds: str
    now: str
    n: float
    before: str
    n_before: float
    where: str


@dataclass(frozen=True)
class Movement:
    """A metric in a slice that got worse or better.

    Attributes:
        metric: Its name.
        verdict: ``worse`` or ``better``.
        sentence: What it is and what it was.
        queries: Those that add most to it.
        others: What all others add; empty if nothing, or if queries do not add up to it.
        where: Address of the rows that it counts.
    """

    metric: str
    verdict: str
    sentence: str
    queries: Sequence[Mover]
    others: str
    where: str


@dataclass(frozen=True, kw_only=True)
class WatchPage(LogPage):
    """A day beside its own history.

    Attributes:
        day: The day.
        by: What it is sliced by, as the address says it; empty for everything that the log has.
        slices: What can be sliced by: name, label, whether it is this.
        verdict: ``unhealthy`` | ``worse`` | ``cannot_tell`` | ``fine``.
        said: The verdict in words.
        compared: What it was compared with, in words.
        doubts: What is wrong with the evidence, in sentences.
        moved: What got worse, then what got better.
        changes: A row for each metric and slice.
        worst: Address of the queries that lost most on that day.
    """

    template: ClassVar[str] = "online_watch.html.j2"
    day: str = ""
    by: str = ""
    slices: Sequence[tuple[str, str, bool]] = field(default=(), repr=False)
    verdict: str = ""
    said: str = ""
    compared: str = ""
    doubts: Sequence[str] = ()
    moved: Sequence[Movement] = ()
    changes: Listed | None = None
    worst: str = ""

    @property
    def unlisted(self) -> str:
        """Why nothing was compared."""
        return self.doubts[0] if self.doubts else super().unlisted


@ROUTER.get("/online/watch")
def watched(
    request: Request,
    site: TheState,
    _asking: AReader,
    day: Annotated[str, Query(max_length=40, description="As 2026-11-20.")] = "",
    by: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """A day beside the same weekdays before it: the last whole one, unless another is named."""
    log = log_of(site)
    common: dict[str, Any] = {"title": "Watch", "crumbs": [("Online", "/online")]}
    common |= {"tabs": tabs("watch")}
    if isinstance(log, Lacking):
        return show(request, WatchPage(**common, lacking=log))
    said = day.strip()
    lenient, usual = Lenient(request), last_whole_day(log)
    at = lenient.take(lambda: Wanted(said, said).within(log).last, usual) if said else usual
    asked, aside = lenient.take(
        lambda: watching_of(site, log, at, by), watching_of(site, log, at, "")
    )
    common |= {
        "log": told(log),
        "period": (day_text(at),) * 2,
        "day": day_text(at),
        "by": by,
        "slices": [(each.name, each.label, each.name == by) for each in dimensions(site, log)],
    }
    if lenient.errors:
        common["day"] = said or common["day"]
        return show(request, WatchPage(**common, wrong=lenient.wrong), 400)
    try:
        held = looked(request, log, asked.question(log), lambda: asked.made(log))
    except (InputError, UsageError) as error:
        return show(request, WatchPage(**common, wrong=trouble(error)))
    if held is None:
        return show(request, WatchPage(**common))
    return show(request, WatchPage(**common, **_shown(request, held, at, asked, aside)))


def _shown(
    request: Request, held: Mapping[str, Any], day: int, asked: Watching, aside: Sequence[str]
) -> dict[str, Any]:
    """The fields of the page, of what was computed."""
    found, whole = watched_of(held), held.get("compared_in_all", 0)
    by_key = {each.key: each for cut in asked.cuts for each in cut}
    moved = [_moved(each, day, by_key) for each in (*found.found("worse"), *found.found("better"))]
    days = {"from": day_text(day), "to": day_text(day)}
    return {
        "computed": True,
        "verdict": found.verdict,
        "said": verdict_text(found),
        "compared": compared_text(found) if found.searches and found.compared else "",
        "doubts": found.health,
        "moved": moved,
        "changes": _changes(request, found, day, by_key).cut_from("first", whole)
        if found.changes
        else None,
        "notes": [*found.notes, *aside],
        "worst": f"/online/queries?{urlencode(days)}",
    }


def _moved(change: Change, day: int, by_key: Mapping[str, Dimension]) -> Movement:
    others = change.others
    return Movement(
        change.metric,
        change.verdict,
        moved_text(change),
        [_mover(each, change, day, by_key) for each in change.queries],
        difference(change.metric, others) if change.queries and others else "",
        _rows(change, day, by_key),
    )


def _mover(one: Contribution, change: Change, day: int, by_key: Mapping[str, Dimension]) -> Mover:
    return Mover(
        one.text,
        difference(change.metric, one.adds),
        value(change.metric, one.value),
        one.n,
        value(change.metric, one.before),
        one.n_before,
        _rows(change, day, by_key, [("query", one.query)]),
    )


def _rows(
    change: Change,
    day: int,
    by_key: Mapping[str, Dimension],
    more: Sequence[tuple[str, str]] = (),
) -> str:
    """Address of the rows that a metric counts in its slice, of that day."""
    parts = [(by_key.get(key, NOTHING).name or key, said) for key, said in change.slice.items()]
    # Of what fell to 0 none is counted: then all that could be.
    return figures.rows_address(
        change.metric, (day, day), [*parts, *more], "yes" if change.value else ""
    )


def _changes(request: Request, found: Watched, day: int, by_key: Mapping[str, Dimension]) -> Listed:
    """Every metric and slice, in the order of the watch."""
    rows = [
        {
            "metric": each.metric,
            "slice": where(each.slice) or None,
            "verdict": _SAID.get(each.verdict, each.verdict),
            "said": None if each.value is None else value(each.metric, each.value),
            "expected_said": None if each.expected is None else value(each.metric, each.expected),
            "usual": usual_text(each) or None,
            "n": each.n,
            "users": each.users,
            "windows": each.windows,
            "reason": each.reason or None,
            "value": each.value,
            "expected": each.expected,
            "usual_low": each.usual_low,
            "usual_high": each.usual_high,
            "p": each.p,
            "p_adjusted": each.p_adjusted,
        }
        for each in found.changes
    ]
    frame = pl.DataFrame(rows, schema=_SCHEMA).with_row_index("at")

    def link(row: Mapping[str, Any]) -> str:
        return _rows(found.changes[row["at"]], day, by_key)

    def any_of(name: str) -> bool:
        return frame[name].drop_nulls().len() > 0

    columns = [
        Column("metric", "metric", link=link, choices=True),
        Column("slice", "slice", choices=True, shown=any_of("slice")),
        Column("verdict", "verdict", choices=True),
        Column("said", "value", by="value"),
        Column("expected_said", "expected", by="expected"),
        Column("usual", "usual", by="usual_low"),
        Column("n", "n", "count"),
        Column("users", "users", "count"),
        Column("windows", "earlier windows", "count", shown=False),
        Column("reason", "why", shown=any_of("reason")),
        Column("value", "the value itself", "number", shown=False),
        Column("expected", "the mean before", "number", shown=False),
        Column("usual_low", "usual from", "number", shown=False),
        Column("usual_high", "usual to", "number", shown=False),
        Column("p", "p", "number", shown=False),
        Column("p_adjusted", "p adjusted", "number", shown=False),
    ]
    return listed(frame, columns, Ask.of(request), search=["metric", "slice"], per_page=25)
