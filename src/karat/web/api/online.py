"""Online metrics, worst queries, watch, offline against online, and event rows by the API."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Query, Request, Response

from karat.engines.frames.opening import open_engine
from karat.errors import UsageError, nearest
from karat.online.metrics import registry
from karat.online.metrics.lacking import why_unknown
from karat.online.rules import Rules
from karat.reports.online.catalogue import as_json
from karat.tables.online.events import EventLog
from karat.web.api.responses import Paged, dict_response, json_response
from karat.web.framework.auth import AReader
from karat.web.framework.errors import NotFound
from karat.web.framework.lists import Ask
from karat.web.framework.state import AppState, TheState
from karat.web.online import queries as worst
from karat.web.online.log import Question, TheDays, awaited, the_log
from karat.web.online.offline_correlation import made as made_against
from karat.web.online.offline_correlation import sides
from karat.web.online.rows import Counts, behind, made
from karat.web.online.slices import GOLDEN, STEPS, Dimension, dimension, queries_of
from karat.web.online.watch_results import Watching
from karat.workflows.online.evaluate import evaluate
from karat.workflows.online.facts import Table
from karat.workflows.online.import_events import held
from karat.workflows.online.watch import HISTORY

ROUTER = APIRouter(prefix="/api/online", tags=["what users did"])
_NO_QUERIES = pl.DataFrame(
    schema={
        **dict.fromkeys(("query", "text", "slice", "reason", "why"), pl.String),
        **dict.fromkeys(("searches", "users", "failed", "zero", "abandoned"), pl.Int64),
        **dict.fromkeys(("terminal", "reformulated"), pl.Int64),
        **dict.fromkeys(("clicked", "satisfied", "share", "low", "high", "lost"), pl.Float64),
    }
)
"""The columns of an empty list."""
By = Annotated[
    str,
    Query(
        max_length=200,
        description="`arm`, an attribute of the log, or `golden:NAME`: an attribute of the golden "
        "set’s queries.",
    ),
]


@ROUTER.get(
    "/status",
    response_description="`rows` (events), `bots` (how many are of bots), `kinds`, `first_day`, "
    "`last_day`, `timezone`, `arms`, `attributes`, `known` and `unknown` (columns), `simulated`, "
    "`files`, `size` (bytes), `imports`.",
)
def online_status(site: TheState, _asking: AReader) -> Response:
    """Content of the event log."""
    status = asdict(held(the_log(site).folder))
    return json_response({name: value for name, value in status.items() if name != "folder"})


@ROUTER.get(
    "/metrics", response_description="List of the rows of `karat online metrics --format json`."
)
def online_metrics(_asking: AReader, page: Paged) -> Response:
    """List the online metrics."""
    return page.items([as_json(metric) for metric in registry.all_metrics()])


@ROUTER.get(
    "/metrics/{name:path}", response_description="As `karat online metrics NAME --format json`."
)
def online_metric(_asking: AReader, name: str) -> Response:
    """One online metric, by any of its names."""
    try:
        return json_response(as_json(registry.find(name)))
    except UsageError as error:
        raise NotFound(error.what, nearest=error.nearest, fix=error.fix) from None


@ROUTER.get("/evaluate", response_description="As `karat online evaluate --format json`.")
async def online_evaluate(
    request: Request,
    site: TheState,
    _asking: AReader,
    days: TheDays,
    metric: Annotated[list[str] | None, Query(description="A metric; repeatable.")] = None,
    by: Annotated[
        list[str] | None,
        Query(
            max_length=20,
            description="`day`, `hour`, `arm`, an attribute of the log, `golden:NAME` (an "
            "attribute of the golden set’s queries, called `class` in the response), or several at "
            "once, as `day,arm`; repeatable.",
        ),
    ] = None,
) -> Response:
    """Online metrics over some days, by default the last four weeks."""
    _check_parameters(request)
    log = the_log(site)
    over, slicings = days.within(log), [_slicing(site, log, name) for name in by or []]
    metrics = registry.find_all(metric or registry.DEFAULT)
    queries = queries_of(part for slicing in slicings for part in slicing)
    question: Question = {
        "what": "evaluate-by",
        "metrics": [[m.name, m.version] for m in metrics],
        "by": [[[part.name, part.digest] for part in slicing] for slicing in slicings],
        "days": [over.first, over.last],
        "rules": Rules().id,
    }

    def work() -> dict[str, Any]:
        with open_engine() as engine:
            return evaluate(
                log,
                engine,
                [m.name for m in metrics],
                [",".join(part.key for part in slicing) for slicing in slicings],
                first_day=over.first,
                last_day=over.last,
                queries=queries,
            ).to_dict()

    return dict_response(await awaited(log, question, work))


@ROUTER.get(
    "/queries",
    response_description="List of `text`, `slice`, `searches`, `users`, `failed`, `zero`, "
    "`abandoned`, `terminal`, `reformulated`, `clicked`, `satisfied`, `share` (of failures, 0 to "
    "1), `low`, `high`, `lost` (searches), `reason`, `why`, `by_failure`, `next_queries`, `query` "
    f"(normalized); worst first, at most {worst.MOST_QUERIES:,}.",
)
async def online_queries(
    site: TheState, _asking: AReader, page: Paged, days: TheDays, by: By = ""
) -> Response:
    """The queries with the most failed searches."""
    log = the_log(site)
    over, sliced = days.within(log), dimension(site, log, by)
    question = worst.question_of(over, sliced)
    result = worst.worst_of(await awaited(log, question, lambda: worst.made(log, over, sliced)))
    rows = [
        asdict(row) | {"slice": row.slice.get(result.by or ""), "by_failure": dict(row.by_failure)}
        for row in result.queries
    ]
    for row in rows:
        row["next_queries"] = [{"text": text, "count": n} for text, n in row["next_queries"]]
        row["by_failure"] = [{"failure": k, "count": n} for k, n in row["by_failure"].items()]
    return page.table(pl.DataFrame(rows, infer_schema_length=None) if rows else _NO_QUERIES)


@ROUTER.get("/watch", response_description="As `karat online watch --format json`.")
async def online_watch(
    request: Request,
    site: TheState,
    _asking: AReader,
    until: Annotated[
        str,
        Query(
            max_length=40,
            description="The window ends with this day (`2026-11-20`) or at this hour "
            "(`2026-11-20 12:00`); by default the latest complete window.",
        ),
    ] = "",
    window: Annotated[
        str, Query(max_length=20, description="`1d`, `7d`, or hours that divide a day, as `6h`.")
    ] = "1d",
    history: Annotated[str, Query(max_length=20, description="How far back to compare.")] = HISTORY,
    metric: Annotated[list[str] | None, Query(description="A metric; repeatable.")] = None,
    by: Annotated[
        list[str] | None,
        Query(max_length=20, description="What to slice by, as in `evaluate`; repeatable."),
    ] = None,
    margin: Annotated[
        list[str] | None,
        Query(max_length=50, description="Smaller changes do not matter: `5%`, `CTR=0.01`."),
    ] = None,
) -> Response:
    """Compare the latest window with its history: what changed, in which slices and queries."""
    _check_parameters(request)
    log = the_log(site)
    slicings = [_slicing(site, log, name) for name in by or []]
    watching = Watching(
        slicings, until or None, site.clock(), window, history, metric or [], margin or []
    )
    return dict_response(await awaited(log, watching.question(log), lambda: watching.made(log)))


@ROUTER.get("/against", response_description="As `karat online against --format json`.")
async def online_against(
    request: Request,
    site: TheState,
    _asking: AReader,
    days: TheDays,
    run: Annotated[str, Query(max_length=500, description="A stored run, by name or number.")],
    measure: Annotated[str, Query(max_length=200)] = "",
    metric: Annotated[str, Query(max_length=100)] = "",
    by: Annotated[
        str | None, Query(max_length=200, description="An attribute of the queries.")
    ] = None,
) -> Response:
    """Offline measures of a stored run against online metrics."""
    _check_parameters(request)
    log = the_log(site)
    query = sides(site, days.within(log), run, measure, metric, by)
    return dict_response(await awaited(log, query.question, lambda: made_against(site, log, query)))


@ROUTER.get(
    "/rows",
    response_description="List of searches, clicks or sessions, newest first: their columns, "
    "attributes, `user` (a pseudonym), `when` and `session_began` (in the log’s time zone) and "
    "`became` (the outcome in words); null if not in the log.",
)
async def online_rows(
    request: Request,
    site: TheState,
    _asking: AReader,
    page: Paged,
    days: TheDays,
    metric: Annotated[
        str, Query(max_length=100, description="The metric whose rows to list.")
    ] = "",
    table: Annotated[Table | None, Query(description="Which rows, if no metric is given.")] = None,
    counts: Annotated[
        Counts,
        Query(
            description="`yes`: rows that the metric’s numerator counts; `no`: rows that it could "
            "count and does not."
        ),
    ] = "",
    slices: Annotated[
        list[str] | None,
        Query(alias="slice", max_length=20, description="A slice, as `arm=b`; repeatable."),
    ] = None,
) -> Response:
    """The rows behind a metric."""
    _check_parameters(request)
    log = the_log(site)
    query = behind(site, log, days.within(log), metric, table, counts, slices or [])
    if query.metric and counts and (reason := why_unknown(query.metric, log)):
        raise UsageError(f"{query.metric.name} is not available: {reason}")
    begin = (page.page - 1) * page.per
    result = await awaited(
        log, query.question(page.per, begin), lambda: made(site, log, query, page.per, begin)
    )
    frame = pl.DataFrame(result["rows"])
    return page.slice(frame, result["total"])


def _slicing(site: AppState, log: EventLog, by: str) -> list[Dimension]:
    """The dimensions of one ``by``."""
    dimensions = []
    for part in by.split(","):
        name = part.strip()
        plain = name in STEPS
        dimensions.append(
            Dimension(name, name, name) if plain else dimension(site, log, name, STEPS)
        )
    if not all(d.key for d in dimensions):
        raise UsageError(f"invalid slice {by!r}", fix=f"day, arm, {GOLDEN}NAME, or day,arm")
    return dimensions


def _check_parameters(request: Request) -> None:
    """Raise UsageError for a query parameter that the route does not have."""
    known = Ask.of(request).others or frozenset()
    unknown = next((name for name in request.query_params if name not in known), None)
    if unknown is not None:
        raise UsageError(
            f"unknown parameter {unknown[:60]!r}",
            nearest=nearest(unknown, known),
            fix=f"one of: {', '.join(sorted(known))}",
        )
