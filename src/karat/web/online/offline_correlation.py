"""Offline against online: what judges say of a kept run beside what users did, query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Query, Request, Response

from karat.engines.frames.opening import open_engine
from karat.errors import InputError, MissingExtra
from karat.golden.traffic import folded
from karat.measures import DEFAULTS, parse
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.reports.online.offline_correlation import FEW, OF_FEW, any_of_few
from karat.reports.phrases.report import number
from karat.store.sql import runs as stored
from karat.tables.online.events import EventLog
from karat.tables.online.offline_correlation import (
    Against,
    BothWorlds,
    Concord,
    Discord,
    Figure,
    WorldSlice,
)
from karat.web.framework.auth import AReader
from karat.web.framework.lists import Listed
from karat.web.framework.pages import show
from karat.web.framework.state import AppState, TheState
from karat.web.online._correlation_points import (
    LEAST,
    Scatter,
    Sides,
    SliceRow,
    list_of_queries,
    ranking_of,
    scatter_of,
    searches_of,
    slice_row,
)
from karat.web.online.dashboard import LogPage, tabs, told
from karat.web.online.log import ANY_DAYS, Days, Lacking, Lenient, TheDays, log_of, looked, trouble
from karat.workflows.golden.editions import NOW
from karat.workflows.golden.queries import classes_in
from karat.workflows.online.offline_correlation import METRICS, against
from karat.workflows.workspace.evaluate_stored import find_runs
from karat.workflows.workspace.stored_inputs import clock_of, judged, read_kept

ROUTER = APIRouter()


@dataclass(frozen=True, kw_only=True)
class AgainstPage(LogPage):
    """Judges and users side by side.

    Attributes:
        run: Name of the run; empty where none is kept.
        run_id: Its number; None likewise.
        measure: The measure offline.
        metric: The metric online.
        by: The attribute of queries that it is sliced by; empty for none.
        lead: What is to be said of them together, in sentences.
        concord: Rank correlations.
        of_few: What to know of those of few queries, in a sentence; empty if there are none.
        discord: Queries on which they disagree, the furthest apart first, with two addresses:
            the searches, and the ranking.
        discord_slices: Slices on which they do.
        slices: All queries, then each slice.
        queries: A row for each query in both worlds.
        scatter: The queries drawn; None if there are none.
        undrawn: Why they cannot be drawn; empty if they can.
        counts: Queries only in one world, in sentences.
        runs: Runs to choose from, and whether it is this.
        measures: Measures, likewise.
        metrics: Metrics, likewise.
        attributes: Attributes, likewise.
    """

    template: ClassVar[str] = "online_against.html.j2"
    run: str = ""
    run_id: int | None = None
    measure: str = ""
    metric: str = ""
    by: str = ""
    lead: Sequence[str] = ()
    concord: Sequence[Concord] = ()
    of_few: str = ""
    discord: Sequence[tuple[Discord, str, str]] = ()
    discord_slices: Sequence[Discord] = ()
    slices: Sequence[SliceRow] = ()
    queries: Listed | None = None
    scatter: Scatter | None = None
    undrawn: str = field(default="", repr=False)
    counts: Sequence[str] = ()
    runs: Sequence[tuple[str, bool]] = field(default=(), repr=False)
    measures: Sequence[tuple[str, bool]] = field(default=(), repr=False)
    metrics: Sequence[tuple[str, bool]] = field(default=(), repr=False)
    attributes: Sequence[tuple[str, bool]] = field(default=(), repr=False)


@ROUTER.get("/online/against")
def side_by_side(
    request: Request,
    site: TheState,
    _asking: AReader,
    days: TheDays,
    run: Annotated[str, Query(max_length=500)] = "",
    measure: Annotated[str, Query(max_length=200)] = "",
    metric: Annotated[str, Query(max_length=100)] = "",
    by: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """What judges say of a run beside what users did."""
    log = log_of(site)
    common: dict[str, Any] = {"title": "Against judgments", "crumbs": [("Online", "/online")]}
    common |= {"tabs": tabs("against")}
    if isinstance(log, Lacking):
        return show(request, AgainstPage(**common, lacking=log))
    lenient = Lenient(request)
    over = lenient.take(lambda: days.within(log), ANY_DAYS.within(log))
    common |= {"log": told(log), "period": over.period}
    with site.workspace.store.read() as connection:
        names = list(stored.by_name(stored.runs(connection, site.workspace.golden.id)))[::-1]
    if not names:
        return show(request, AgainstPage(**common, computed=True))
    run = lenient.take(lambda: find_runs(site.workspace, [run or names[0]])[0].name, names[0])
    measure = lenient.take(lambda: str(parse(measure or DEFAULTS[0])), DEFAULTS[0])
    metric = lenient.take(lambda: registry.find(metric or METRICS[0]).name, METRICS[0])
    asked = sides(site, over, run, measure, metric, by)
    common |= _choices(site, asked, names)
    if lenient.errors:
        common["period"] = days.typed if any(days.typed) else over.period
        return show(request, AgainstPage(**common, wrong=lenient.wrong), 400)
    try:
        held = lenient.take(
            lambda: looked(request, log, asked.question, lambda: made(site, log, asked)), None
        )
    except InputError as error:
        return show(request, AgainstPage(**common, wrong=trouble(error)))
    if lenient.errors:
        return show(request, AgainstPage(**common, wrong=lenient.wrong), 400)
    if held is None:
        return show(request, AgainstPage(**common))
    return show(request, AgainstPage(**common, **_shown(request, site, asked, against_of(held))))


def sides(site: AppState, days: Days, run: str, measure: str, metric: str, by: str | None) -> Sides:
    """What an address asks for.

    Raises:
        UsageError: there is no such run, measure or metric.
    """
    [row] = find_runs(site.workspace, [run])
    attributes = classes_in(site.workspace)
    usual = "class" if "class" in attributes else ""
    return Sides(
        row,
        str(parse(measure or DEFAULTS[0])),
        registry.find(metric or METRICS[0]),
        usual if by is None else by,
        days,
        clock_of(site.workspace, NOW),
    )


def made(site: AppState, log: EventLog, asked: Sides) -> dict[str, Any]:
    """Both worlds, as JSON can hold them."""
    given = judged(site.workspace, NOW)
    others = [name for name in METRICS if name != asked.metric.name]
    with open_engine() as engine:
        found = against(
            log,
            engine,
            given.qrels,
            read_kept(site.workspace, asked.run),
            measures=[asked.measure],
            metrics=[asked.metric.name, *others],
            queries=given.queries,
            by=asked.by or None,
            min_searches=LEAST,
            first_day=asked.days.first,
            last_day=asked.days.last,
        )
    return found.to_dict()


def against_of(held: Mapping[str, Any]) -> Against:
    """Both worlds, of what ``to_dict`` made."""

    def online(row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "online": {name: Figure(**each) for name, each in row["online"].items()}}

    lists: dict[str, Any] = {
        "queries": [BothWorlds(**online(row)) for row in held["queries"]],
        "slices": [WorldSlice(**online(row)) for row in held["slices"]],
        "concord": [Concord(**row) for row in held["concord"]],
        "discord": [Discord(**row) for row in held["discord"]],
        "discord_slices": [Discord(**row) for row in held["discord_slices"]],
        "measures": tuple(held["measures"]),
        "metrics": tuple(held["metrics"]),
        "period": None if held["period"] is None else tuple(held["period"]),
    }
    return Against(**{**held, **lists})


def _choices(site: AppState, asked: Sides, names: Sequence[str]) -> dict[str, Any]:
    measures = list(dict.fromkeys([*DEFAULTS, asked.measure]))
    metrics = [each.name for each in registry.all_metrics() if _fits(each)]
    chosen = list(dict.fromkeys([*metrics, asked.metric.name]))
    return {
        "run": asked.run.name,
        "run_id": asked.run.id,
        "measure": asked.measure,
        "metric": asked.metric.name,
        "by": asked.by,
        "runs": [(name, name == asked.run.name) for name in names],
        "measures": [(name, name == asked.measure) for name in measures],
        "metrics": [(name, name == asked.metric.name) for name in chosen],
        "attributes": [(name, name == asked.by) for name in classes_in(site.workspace)],
    }


def _fits(metric: Metric) -> bool:
    """Whether a metric is of each query by itself, and of two values one is better."""
    over = getattr(metric.compute, "denominator", None) is not None
    return (
        over and metric.point and metric.direction != "none" and metric.compute.facts != "sessions"
    )


def _shown(request: Request, site: AppState, asked: Sides, found: Against) -> dict[str, Any]:
    """The fields of the page, of what was computed."""
    keys = dict(
        zip(
            (row.query_id for row in found.queries),
            folded(row.text for row in found.queries),
            strict=True,
        )
    )
    scatter, undrawn = None, ""
    try:
        scatter = scatter_of(site.settings.base, asked, found, keys)
    except MissingExtra as error:
        undrawn = str(error)
    return {
        "computed": True,
        "notes": found.notes,
        "lead": _lead(asked, found),
        "concord": found.concord,
        "of_few": OF_FEW if any_of_few(found.concord) else "",
        "discord": [
            (
                row,
                searches_of(asked, asked.metric.name, keys.get(row.query_id or "", ""), ""),
                ranking_of(asked, row.query_id or ""),
            )
            for row in found.discord
        ],
        "discord_slices": found.discord_slices,
        "slices": [slice_row(asked, row) for row in found.slices],
        "queries": list_of_queries(request, asked, found, keys),
        "scatter": scatter,
        "undrawn": undrawn,
        "counts": _counts(found),
    }


def _lead(asked: Sides, found: Against) -> list[str]:
    """How the measure goes with the metric."""
    row = next(
        (
            each
            for each in found.concord
            if (each.metric, each.slice, each.weighting) == (asked.metric.name, None, "queries")
        ),
        None,
    )
    least = f"with {found.min_searches} searches or more"
    if row is None or row.spearman is None:
        why = f": {row.reason}" if row is not None and row.reason else ""
        return [f"Nobody can tell how {asked.measure} goes with {asked.metric.name}{why}."]
    ends = ""
    if row.spearman_low is not None and row.spearman_high is not None:
        low, high = number(row.spearman_low, 2), number(row.spearman_high, 2)
        ends = f" (95 %: {low} to {high})"
    said = (
        f"{asked.measure} and {asked.metric.name} have a rank correlation of "
        f"{number(row.spearman, 2)}{ends}, over {row.n:,} queries {least}."
    )
    told_too = []
    if row.n < FEW:
        told_too.append(f"That is too few to mean much: it takes {FEW} queries at least.")
    if row.direction == "lower":
        told_too.append(f"{asked.metric.name} is better lower, so that agreement is below 0.")
    return [said, *told_too]


def _counts(found: Against) -> list[str]:
    least, many = found.min_searches, found.searched_only_searches
    both = f"{found.enough:,} of {len(found.queries):,} queries in both worlds"
    return [
        f"{both} have {least} searches or more",
        f"{found.judged_only:,} judged queries were searched for by nobody in these days",
        f"{found.searched_only:,} queries with {many:,} searches are not judged",
    ]
