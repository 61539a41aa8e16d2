"""Offline against online: a stored run's judgments against users' behaviour, by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Response

from karat.errors import MissingExtra
from karat.golden.traffic import folded
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.reports.charts import online as drawing
from karat.reports.charts.online import Spot
from karat.reports.online.evaluation import figure, span
from karat.reports.online.offline_correlation import FEW, OF_FEW, any_of_few
from karat.reports.phrases.report import number
from karat.reports.table import Column
from karat.tables.online import offline_correlation as tables
from karat.tables.online.events import EventLog
from karat.tables.records import record_of
from karat.web.framework.auth import AReader
from karat.web.framework.call import Call
from karat.web.framework.lists import Listed, frame_of, listed
from karat.web.framework.pages import show
from karat.web.framework.state import AppState
from karat.web.online.charts import linked
from karat.web.online.figures import rows_address
from karat.web.online.log import Lenient, LogPage, TheDays, log_page
from karat.workflows.offline.catalogue import default_measures
from karat.workflows.online.log_requests import Against, measure_name
from karat.workflows.online.offline_correlation import METRICS
from karat.workflows.online.slices import GOLDEN, LONGEST
from karat.workflows.workspace.evaluate_stored import find_runs
from karat.workflows.workspace.stored_inputs import classes_in
from karat.workflows.workspace.stored_runs import stored_by_name

ROUTER = APIRouter()
_MOST_SPOTS = 500
_WIDE, _NARROW = (1060, 360), (290, 300)
_INKS = {"judges": "down", "users": "up"}


@dataclass(frozen=True, kw_only=True)
class AgainstPage(LogPage):
    template: ClassVar[str] = "online_against.html.j2"
    run: str = ""
    run_id: int | None = None
    measure: str = ""
    metric: str = ""
    by: str = ""
    lead: Sequence[str] = ()
    concord: Sequence[tables.Concord] = ()
    of_few: str = ""
    discord: Sequence[tuple[tables.Discord, str, str]] = ()
    discord_slices: Sequence[tables.Discord] = ()
    slices: Sequence[Mapping[str, Any]] = ()
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
    call: AReader,
    days: TheDays,
    run: Annotated[str, Query(max_length=500)] = "",
    measure: Annotated[str, Query(max_length=200)] = "",
    metric: Annotated[str, Query(max_length=100)] = "",
    by: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """Compare the judgments of a run with users' behaviour."""
    workspace = call.site.workspace

    def prepare(log: EventLog, lenient: Lenient) -> Any:
        period = lenient.period(days, log)
        names = list(stored_by_name(workspace))[::-1]
        if not names:
            return {"period": period.period, "computed": True}, None, dict
        asked = Against.of(
            workspace,
            period,
            lenient.take(lambda: find_runs(workspace, [run or names[0]])[0].name, names[0]),
            lenient.take(lambda: measure_name(measure), measure_name("")),
            lenient.take(lambda: registry.find(metric or METRICS[0]).name, METRICS[0]),
            by,
        )
        fields = {"period": lenient.typed(days, period), **_choices(call.site, asked, names)}
        return fields, asked, lambda answer: _shown(call, asked, answer)

    return show(call, *log_page(call, AgainstPage, "Offline vs online", prepare))


def _choices(site: AppState, asked: Against, names: Sequence[str]) -> dict[str, Any]:
    measures = list(dict.fromkeys([*default_measures(), asked.measure]))
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
    """Whether a metric has a value per query, and a direction."""
    per_query = getattr(metric.compute, "denominator", None) is not None
    return (
        per_query
        and metric.point
        and metric.direction != "none"
        and metric.compute.facts != "sessions"
    )


def _shown(call: Call, asked: Against, answer: Mapping[str, Any]) -> dict[str, Any]:
    correlation = record_of(tables.OfflineCorrelation, answer)
    ids = (row.query_id for row in correlation.queries)
    keys = dict(zip(ids, folded(row.text for row in correlation.queries), strict=True))
    scatter, undrawn = None, ""
    try:
        scatter = scatter_of(call.site.settings.base, asked, correlation, keys)
    except MissingExtra as error:
        undrawn = str(error)
    return {
        "notes": correlation.notes,
        "lead": _lead(asked, correlation),
        "concord": correlation.concord,
        "of_few": OF_FEW if any_of_few(correlation.concord) else "",
        "discord": [
            (
                row,
                searches_of(asked, asked.metric.name, keys.get(row.query_id or "", ""), ""),
                ranking_of(asked, row.query_id or ""),
            )
            for row in correlation.discord
        ],
        "discord_slices": correlation.discord_slices,
        "slices": [slice_row(asked, row) for row in correlation.slices],
        "queries": list_of_queries(call, asked, correlation, keys),
        "scatter": scatter,
        "undrawn": undrawn,
        "counts": _counts(correlation),
    }


def _lead(asked: Against, correlation: tables.OfflineCorrelation) -> list[str]:
    """The correlation of measure and metric, in sentences."""
    row = next(
        (
            each
            for each in correlation.concord
            if (each.metric, each.slice, each.weighting) == (asked.metric.name, None, "queries")
        ),
        None,
    )
    least = f"with at least {correlation.min_searches} searches"
    if row is None or row.spearman is None:
        why = f": {row.reason}" if row is not None and row.reason else ""
        return [f"The correlation of {asked.measure} with {asked.metric.name} is unknown{why}."]
    interval = ""
    if row.spearman_low is not None and row.spearman_high is not None:
        low, high = number(row.spearman_low, 2), number(row.spearman_high, 2)
        interval = f" (95 %: {low} to {high})"
    sentence = (
        f"{asked.measure} and {asked.metric.name} have a rank correlation of "
        f"{number(row.spearman, 2)}{interval}, over {row.n:,} queries {least}."
    )
    remarks = []
    if row.n < FEW:
        remarks.append(f"These are too few for a conclusion: at least {FEW} are needed.")
    if row.direction == "lower":
        remarks.append(
            f"Lower {asked.metric.name} is better, so agreement means a negative correlation."
        )
    return [sentence, *remarks]


def _counts(correlation: tables.OfflineCorrelation) -> list[str]:
    least, many = correlation.min_searches, correlation.searched_only_searches
    both = f"{correlation.enough:,} of {len(correlation.queries):,} judged queries with searches"
    return [
        f"{both} have at least {least}",
        f"{correlation.judged_only:,} judged queries have no searches in these days",
        f"{correlation.searched_only:,} queries with {many:,} searches are not judged",
    ]


@dataclass(frozen=True)
class Scatter:
    """Queries by both measurements."""

    wide: str = field(repr=False)
    narrow: str = field(repr=False)
    left_out: int


def scatter_of(
    base: str, asked: Against, correlation: tables.OfflineCorrelation, keys: Mapping[str, str]
) -> Scatter | None:
    """A chart of the queries with enough searches; coloured where judges and users disagree."""
    kinds = {row.query_id: row.kind for row in correlation.discord}
    name, metric = asked.measure, asked.metric
    eligible = [
        row
        for row in correlation.queries
        if row.searches >= correlation.min_searches
        and row.offline[name] is not None
        and row.online[metric.name].value is not None
    ]
    if not eligible:
        return None
    shown = eligible[:_MOST_SPOTS]
    links = {
        f"q-{at}": searches_of(asked, metric.name, keys[row.query_id], "")
        for at, row in enumerate(shown)
    }
    spots = [
        Spot(
            row.offline[name] or 0.0,
            row.online[metric.name].value or 0.0,
            _INKS.get(kinds.get(row.query_id, ""), "quiet"),
            f"{_short(row.text)}: {name} {number(row.offline[name])}, {metric.name} "
            f"{_online(metric, row.online[metric.name])}, {row.searches:,} searches",
            f"q-{at}",
        )
        for at, row in enumerate(shown)
    ]
    title = f"{metric.name} by {name} of {len(shown):,} queries"
    wide, narrow = (
        drawing.scatter(
            spots, f"{name} (judges)", f"{metric.name} (users)", title=title,
            shares=(False, metric.unit == "share"), size=size,
        )
        for size in (_WIDE, _NARROW)
    )  # fmt: skip

    left_out = len(eligible) - len(shown)
    return Scatter(linked(wide, links, base), linked(narrow, links, base), left_out)


def slice_row(asked: Against, row: tables.WorldSlice) -> dict[str, Any]:
    """A slice as a row of the page, with links to its rows."""
    online = {}
    for name, each in row.online.items():
        metric = registry.find(name)
        where = ""
        if row.slice is not None:
            part = [(f"{GOLDEN}{asked.by}", row.slice)]
            where = rows_address(name, asked.days, part, "yes")
        online[name] = (figure(metric, each.value), span(metric, each.low, each.high), where)
    return {
        "name": row.slice,
        "queries": row.queries,
        "searches": row.searches,
        "offline": row.offline[asked.measure],
        "weighted": row.weighted[asked.measure],
        "online": online,
        "latency": row.p95_ms,
    }


def list_of_queries(
    call: Call, asked: Against, correlation: tables.OfflineCorrelation, keys: Mapping[str, str]
) -> Listed:
    """A row per query, most searched first."""
    kinds = {row.query_id: row.kind for row in correlation.discord}
    preference = {"judges": "better for judges", "users": "better for users"}
    metrics = {name: registry.find(name) for name in correlation.metrics}

    def more(row: tables.JudgedAndSearched) -> dict[str, Any]:
        shown = row.online[asked.metric.name]
        return {
            "offline": row.offline[asked.measure],
            **{name: row.online[name].value for name in metrics},
            "interval": span(asked.metric, shown.low, shown.high) or None,
            "latency": None if row.p95_ms is None else round(row.p95_ms),
            "apart": preference.get(kinds.get(row.query_id, "")),
        }

    def online_column(name: str, metric: Metric) -> Column:
        return Column(
            name,
            name,
            "share" if metric.unit == "share" else "number",
            link=lambda row: searches_of(asked, name, keys[row["query_id"]], "yes"),
        )

    def searches(row: Mapping[str, Any]) -> str:
        return searches_of(asked, "", keys[row["query_id"]], "")

    columns = [
        Column("text", "Query", link=searches, longest=LONGEST),
        Column("slice", asked.by or "slice", choices=True, shown=bool(asked.by), longest=LONGEST),
        Column("searches", "Searches", "count"),
        Column(
            "offline", asked.measure, "number", link=lambda row: ranking_of(asked, row["query_id"])
        ),
        *(online_column(name, metric) for name, metric in metrics.items()),
        Column("interval", f"{asked.metric.name}, 95 %", optional=True),
        Column("position", "Click position", "count", optional=True),
        Column("latency", "p95, ms", "count", optional=True),
        Column("apart", "Disagreement", choices=True, optional=True),
        Column("users", "Users", "count", shown=False),
        Column("query_id", "Id", shown=False),
    ]
    frame = frame_of(((row, more(row)) for row in correlation.queries), columns)
    return listed(frame, columns, call.ask, search=["text", "query_id"], per_page=25)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _online(metric: Metric, each: tables.MetricValue) -> str:
    ends = span(metric, each.low, each.high)
    return f"{figure(metric, each.value)}{f' ({ends})' if ends else ''}"


def searches_of(asked: Against, metric: str, key: str, counts: str) -> str:
    return rows_address(metric, asked.days, [("query", key)], counts)


def ranking_of(asked: Against, query_id: str) -> str:
    """Link to the run's ranking for a query."""
    where = f"/runs/{asked.run.id}/queries/{quote(query_id, safe='')}"
    return f"{where}?{urlencode({'measure': asked.measure})}"
