"""What users did: online metrics, worst queries, offline beside online, and the rows behind."""

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
from karat.web.api.responses import Paged, printed, said
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
from karat.workflows.online.import_status import held
from karat.workflows.online.watch import HISTORY

ROUTER = APIRouter(prefix="/api/online", tags=["what users did"])
_NONE_LOST = pl.DataFrame(
    schema={
        **dict.fromkeys(("query", "text", "slice", "reason", "why"), pl.String),
        **dict.fromkeys(("searches", "users", "failed", "zero", "abandoned"), pl.Int64),
        **dict.fromkeys(("terminal", "reformulated"), pl.Int64),
        **dict.fromkeys(("clicked", "satisfied", "share", "low", "high", "lost"), pl.Float64),
    }
)
"""Where no query lost a search, the list has its columns all the same."""
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
    response_description="`rows` (events), `bots` (robots’ among them), `kinds`, `first_day`, "
    "`last_day`, `timezone`, `arms`, `attributes`, `known` and `unknown` (columns), `simulated`, "
    "`files`, `size` (bytes), `imports`.",
)
def online_status(site: TheState, _asking: AReader) -> Response:
    """What the log of events holds."""
    found = asdict(held(the_log(site).folder))
    return said({name: value for name, value in found.items() if name != "folder"})


@ROUTER.get(
    "/metrics", response_description="List of the rows of `karat online metrics --format json`."
)
def online_metrics(_asking: AReader, page: Paged) -> Response:
    """List the online metrics."""
    return page.over([as_json(metric) for metric in registry.all_metrics()])


@ROUTER.get(
    "/metrics/{name:path}", response_description="As `karat online metrics NAME --format json`."
)
def online_metric(_asking: AReader, name: str) -> Response:
    """One online metric, in any spelling."""
    try:
        return said(as_json(registry.find(name)))
    except UsageError as error:
        raise NotFound(error.what, nearest=error.nearest, fix=error.fix) from None


@ROUTER.get("/evaluate", response_description="As `karat online evaluate --format json`.")
async def online_evaluate(
    request: Request,
    site: TheState,
    _asking: AReader,
    days: TheDays,
    metric: Annotated[list[str] | None, Query(description="A metric; repeat it.")] = None,
    by: Annotated[
        list[str] | None,
        Query(
            max_length=20,
            description="`day`, `hour`, `arm`, an attribute of the log, `golden:NAME` (an "
            "attribute of the golden set’s queries, called `class` in the answer), or several at "
            "once as `day,arm`; repeat it.",
        ),
    ] = None,
) -> Response:
    """Online metrics of the days, the last four weeks unless said otherwise."""
    _understood(request)
    log = the_log(site)
    over, cuts = days.within(log), [_cut(site, log, each) for each in by or []]
    found = registry.find_all(metric or registry.DEFAULT)
    queries = queries_of(part for cut in cuts for part in cut)
    question: Question = {
        "what": "evaluate-by",
        "metrics": [[each.name, each.version] for each in found],
        "by": [[[part.name, part.digest] for part in cut] for cut in cuts],
        "days": [over.first, over.last],
        "rules": Rules().id,
    }

    def work() -> dict[str, Any]:
        with open_engine() as engine:
            return evaluate(
                log,
                engine,
                [each.name for each in found],
                [",".join(part.key for part in cut) for cut in cuts],
                first_day=over.first,
                last_day=over.last,
                queries=queries,
            ).to_dict()

    return printed(await awaited(log, question, work))


@ROUTER.get(
    "/queries",
    response_description="List of `text`, `slice`, `searches`, `users`, `failed`, `zero`, "
    "`abandoned`, `terminal`, `reformulated`, `clicked`, `satisfied`, `share` (that fails, 0 to "
    "1), `low`, `high`, `lost` (searches), `reason`, `why`, `by_failure`, `next_queries`, `query` "
    f"(folded); the worst first, {worst.MOST_QUERIES:,} at most.",
)
async def online_queries(
    site: TheState, _asking: AReader, page: Paged, days: TheDays, by: By = ""
) -> Response:
    """The queries that lose most searches."""
    log = the_log(site)
    over, sliced = days.within(log), dimension(site, log, by)
    question = worst.question_of(over, sliced)
    found = worst.worst_of(await awaited(log, question, lambda: worst.made(log, over, sliced)))
    rows = [
        asdict(row) | {"slice": row.slice.get(found.by or ""), "by_failure": dict(row.by_failure)}
        for row in found.queries
    ]
    for row in rows:
        row["next_queries"] = [{"text": text, "count": n} for text, n in row["next_queries"]]
        row["by_failure"] = [{"failure": k, "count": n} for k, n in row["by_failure"].items()]
    return page.of(pl.DataFrame(rows, infer_schema_length=None) if rows else _NONE_LOST)


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
            "(`2026-11-20 12:00`); without it, the latest that is over is compared.",
        ),
    ] = "",
    window: Annotated[
        str, Query(max_length=20, description="`1d`, `7d`, or hours that divide a day, as `6h`.")
    ] = "1d",
    history: Annotated[
        str, Query(max_length=20, description="How far back it is compared.")
    ] = HISTORY,
    metric: Annotated[list[str] | None, Query(description="A metric; repeat it.")] = None,
    by: Annotated[
        list[str] | None,
        Query(max_length=20, description="What to slice by, as in `evaluate`; repeat it."),
    ] = None,
    margin: Annotated[
        list[str] | None,
        Query(max_length=50, description="A change that matters to nobody: `5%`, `CTR=0.01`."),
    ] = None,
) -> Response:
    """The latest window beside its own history: what moved, in which slices, by which queries."""
    _understood(request)
    log = the_log(site)
    cuts = [_cut(site, log, each) for each in by or []]
    asked = Watching(cuts, until or None, site.clock(), window, history, metric or [], margin or [])
    return printed(await awaited(log, asked.question(log), lambda: asked.made(log)))


@ROUTER.get("/against", response_description="As `karat online against --format json`.")
async def online_against(
    request: Request,
    site: TheState,
    _asking: AReader,
    days: TheDays,
    run: Annotated[str, Query(max_length=500, description="A kept run, by name or number.")],
    measure: Annotated[str, Query(max_length=200)] = "",
    metric: Annotated[str, Query(max_length=100)] = "",
    by: Annotated[
        str | None, Query(max_length=200, description="An attribute of the queries.")
    ] = None,
) -> Response:
    """What judges say of a kept run beside what users did."""
    _understood(request)
    log = the_log(site)
    asked = sides(site, days.within(log), run, measure, metric, by)
    return printed(await awaited(log, asked.question, lambda: made_against(site, log, asked)))


@ROUTER.get(
    "/rows",
    response_description="List of searches, clicks or sessions, the newest first: their columns, "
    "attributes, `user` (a pseudonym), `when` and `session_began` (in the log’s time zone) and "
    "`became` (in words); null is what the log does not say.",
)
async def online_rows(
    request: Request,
    site: TheState,
    _asking: AReader,
    page: Paged,
    days: TheDays,
    metric: Annotated[str, Query(max_length=100, description="Whose rows.")] = "",
    table: Annotated[Table | None, Query(description="Which rows, without a metric.")] = None,
    counts: Annotated[
        Counts,
        Query(
            description="`yes`: those that the metric’s numerator counts; `no`: those that it "
            "could and does not."
        ),
    ] = "",
    slices: Annotated[
        list[str] | None,
        Query(alias="slice", max_length=20, description="A slice as `arm=b`; repeat it."),
    ] = None,
) -> Response:
    """The rows behind a figure."""
    _understood(request)
    log = the_log(site)
    asked = behind(site, log, days.within(log), metric, table, counts, slices or [])
    if asked.metric and counts and (reason := why_unknown(asked.metric, log)):
        raise UsageError(f"{asked.metric.name} is unknown: {reason}")
    begin = (page.page - 1) * page.per
    found = await awaited(
        log, asked.question(page.per, begin), lambda: made(site, log, asked, page.per, begin)
    )
    frame = pl.DataFrame(found["rows"])
    return page.part(frame, found["total"])


def _cut(site: AppState, log: EventLog, by: str) -> list[Dimension]:
    """What one ``by`` is of."""
    out = []
    for part in by.split(","):
        name = part.strip()
        plain = name in STEPS
        out.append(Dimension(name, name, name) if plain else dimension(site, log, name, STEPS))
    if not all(each.key for each in out):
        raise UsageError(f"{by!r} is no slice", fix=f"day, arm, {GOLDEN}NAME, or day,arm")
    return out


def _understood(request: Request) -> None:
    """Raise UsageError where an address says what its route does not know."""
    known = Ask.of(request).others or frozenset()
    other = next((name for name in request.query_params if name not in known), None)
    if other is not None:
        raise UsageError(
            f"there is nothing called {other[:60]!r} to ask for here",
            nearest=nearest(other, known),
            fix=f"one of: {', '.join(sorted(known))}",
        )
