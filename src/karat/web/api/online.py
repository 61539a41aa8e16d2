"""Online metrics, worst queries, watch, offline against online, and event rows by the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Query, Response

from karat.errors import UsageError, check_known
from karat.online.metrics import registry
from karat.online.metrics.expressions import why_unknown
from karat.reports.online.catalogue import MetricEntry, as_json
from karat.tables.online.evaluation import OnlineResults
from karat.tables.online.events import EventLog, LogStatus
from karat.tables.online.offline_correlation import OfflineCorrelation
from karat.tables.online.watch import Watched
from karat.tables.online.worst_queries import LostQuery, WorstQueries
from karat.tables.records import record_of
from karat.web.api.models import many, one
from karat.web.api.responses import Paged, Several, json_response
from karat.web.framework.auth import AReader
from karat.web.framework.call import Call
from karat.web.framework.errors import or_not_found
from karat.web.framework.state import AppState
from karat.web.online.log import TheDays, awaited
from karat.web.online.watch import remembering
from karat.workflows.online import log_requests
from karat.workflows.online.facts import Table
from karat.workflows.online.import_events import held
from karat.workflows.online.slices import GOLDEN, STEPS, Dimension, dimension
from karat.workflows.online.watch import HISTORY

ROUTER = APIRouter(prefix="/api/online", tags=["what users did"])
By = Annotated[
    str,
    Query(
        max_length=200,
        description="`arm`, an attribute of the log, or `golden:NAME`: an attribute of the golden "
        "set’s queries.",
    ),
]


@dataclass(frozen=True)
class WorstQuery(LostQuery):
    """A query with failed searches, in one slice if sliced."""

    # Its slice; None without slices, or if it is not logged
    slice: str | None  # type: ignore[assignment]
    # Failed searches by the kind of failure: `failure` and `count`
    by_failure: Sequence[Mapping[str, Any]]  # type: ignore[assignment]
    # The next queries after a reformulation or zero results: `text` and `count`
    next_queries: Sequence[Mapping[str, Any]]  # type: ignore[assignment]


@dataclass(frozen=True)
class EventRow:
    """A search, click or session; what is not in the log is None."""

    user: str | None = None  # a pseudonym
    when: str | None = None  # in the time zone of the log; likewise `session_began`
    session_began: str | None = None
    became: str | None = None  # the outcome, in words


@ROUTER.get("/status", response_model=one(LogStatus))
def online_status(call: AReader) -> Response:
    """Content of the event log."""
    return json_response(held(log_requests.log_of(call.site.workspace).folder), without=("folder",))


@ROUTER.get("/metrics", response_model=many(MetricEntry))
def online_metrics(_call: AReader, page: Paged) -> Response:
    """List the online metrics."""
    return page.items(registry.all_metrics(), as_json)


@ROUTER.get("/metrics/{name:path}", response_model=one(MetricEntry))
def online_metric(_call: AReader, name: str) -> Response:
    """One online metric, by any of its names."""
    with or_not_found():
        return json_response(as_json(registry.find(name)))


@ROUTER.get("/evaluate", response_model=one(OnlineResults))
async def online_evaluate(
    call: AReader,
    days: TheDays,
    metric: Several = None,  # A metric; repeatable.
    # `day`, `hour`, `arm`, an attribute of the log, `golden:NAME` (an attribute of the golden set’s
    # queries, called `class` in the response), or several at once, as `day,arm`; repeatable.
    by: Annotated[list[str] | None, Query(max_length=20)] = None,
) -> Response:
    """Online metrics over some days, by default the last four weeks."""
    _check_parameters(call)
    log = log_requests.log_of(call.site.workspace)
    over, slicings = days.within(log), [_slicing(call.site, log, name) for name in by or []]
    metrics = registry.find_all(metric or registry.DEFAULT)
    return json_response(
        await awaited(call.site, log, log_requests.EvaluationBy(metrics, over, slicings))
    )


@ROUTER.get("/queries", response_model=many(WorstQuery))
async def online_queries(call: AReader, page: Paged, days: TheDays, by: By = "") -> Response:
    """The queries with the most failed searches, worst first; at most 1,000."""
    log = log_requests.log_of(call.site.workspace)
    over, sliced = days.within(log), dimension(call.site.workspace, log, by)
    result = record_of(
        WorstQueries, await awaited(call.site, log, log_requests.Worst(over, sliced))
    )
    rows = [
        {
            **asdict(row),
            "slice": row.slice.get(result.by or ""),
            "next_queries": [{"text": text, "count": n} for text, n in row.next_queries],
            "by_failure": [{"failure": k, "count": n} for k, n in row.by_failure.items()],
        }
        for row in result.queries
    ]
    empty = pl.DataFrame({each.name: [] for each in fields(WorstQuery)})
    return page.table(pl.DataFrame(rows, infer_schema_length=None) if rows else empty)


@ROUTER.get("/watch", response_model=one(Watched))
async def online_watch(
    call: AReader,
    # The window ends with this day (`2026-11-20`) or at this hour (`2026-11-20 12:00`); by default
    # the latest complete window.
    until: Annotated[str, Query(max_length=40)] = "",
    # `1d`, `7d`, or hours that divide a day, as `6h`.
    window: Annotated[str, Query(max_length=20)] = "1d",
    history: Annotated[str, Query(max_length=20)] = HISTORY,  # How far back to compare.
    metric: Several = None,  # A metric; repeatable.
    # What to slice by, as in `evaluate`; repeatable.
    by: Annotated[list[str] | None, Query(max_length=20)] = None,
    # Smaller changes do not matter: `5%`, `CTR=0.01`.
    margin: Annotated[list[str] | None, Query(max_length=50)] = None,
) -> Response:
    """Compare the latest window with its history: what changed, in which slices and queries."""
    _check_parameters(call)
    log = log_requests.log_of(call.site.workspace)
    slicings = [_slicing(call.site, log, name) for name in by or []]
    watching = log_requests.Watching(
        slicings, until or None, call.now, window, history, metric or [], margin or []
    )
    asked = watching if metric or margin else remembering(call.site, watching)
    return json_response(await awaited(call.site, log, asked))


@ROUTER.get("/against", response_model=one(OfflineCorrelation))
async def online_against(
    call: AReader,
    days: TheDays,
    run: Annotated[str, Query(max_length=500)],  # A stored run, by name or number.
    measure: Annotated[str, Query(max_length=200)] = "",
    metric: Annotated[str, Query(max_length=100)] = "",
    by: Annotated[str | None, Query(max_length=200)] = None,  # An attribute of the queries.
) -> Response:
    """Offline measures of a stored run against online metrics."""
    _check_parameters(call)
    log = log_requests.log_of(call.site.workspace)
    query = log_requests.Against.of(call.site.workspace, days.within(log), run, measure, metric, by)
    return json_response(await awaited(call.site, log, query))


@ROUTER.get("/rows", response_model=many(EventRow))
async def online_rows(
    call: AReader,
    page: Paged,
    days: TheDays,
    metric: Annotated[str, Query(max_length=100)] = "",  # The metric whose rows to list.
    table: Table | None = None,  # Which rows, if no metric is given.
    # `yes`: rows that the metric’s numerator counts; `no`: rows that it could count and does not.
    counts: log_requests.Counts = "",
    # A slice, as `arm=b`; repeatable.
    slices: Annotated[list[str] | None, Query(alias="slice", max_length=20)] = None,
) -> Response:
    """The rows behind a metric, newest first, with their columns and attributes.

    Searches, clicks or sessions; their columns are in [tables](tables.md).
    """
    _check_parameters(call)
    log = log_requests.log_of(call.site.workspace)
    query = log_requests.Rows.of(
        call.site.workspace, log, days.within(log), metric, table, counts, slices or [],
        limit=page.per, offset=(page.page - 1) * page.per,
    )  # fmt: skip
    if query.metric and counts and (reason := why_unknown(query.metric, log)):
        raise UsageError(f"{query.metric.name} is not available: {reason}")
    result = await awaited(call.site, log, query)
    frame = pl.DataFrame(result["rows"])
    return page.slice(frame, result["total"])


def _slicing(site: AppState, log: EventLog, by: str) -> list[Dimension]:
    names = map(str.strip, by.split(","))
    dimensions = [dimension(site.workspace, log, name, STEPS) for name in names]
    if not all(d.key for d in dimensions):
        raise UsageError(f"invalid slice {by!r}", fix=f"day, arm, {GOLDEN}NAME, or day,arm")
    return dimensions


def _check_parameters(call: Call) -> None:
    """Raise UsageError for a query parameter that the route does not have."""
    known = sorted(call.ask.others or ())
    for name in call.request.query_params:
        check_known(name, known, f"unknown parameter {name[:60]!r}", "one of: {}", count=2)
