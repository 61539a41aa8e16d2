"""Golden sets: status, content, disagreements, editions, queue, import and export."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from karat.errors import UsageError, nearest
from karat.reports.golden.golden import to_json
from karat.store.sql import documents as stored
from karat.web.api.bodies import Body, RequestBody, Uploaded
from karat.web.api.responses import OF_LISTS, Paged, json_response
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import NotFound
from karat.web.framework.jobs import in_turn
from karat.web.framework.state import TheState
from karat.web.golden.exchange import Wanted, exported
from karat.web.golden.golden_sets import opened
from karat.workflows.golden.agreement import agreement_in, disagreements_in
from karat.workflows.golden.audited import freeze_audited, import_upload, put_before_adjudicator
from karat.workflows.golden.editions import (
    NOW,
    compare_editions,
    content_of,
    list_editions,
    stale_judgments,
    weighed,
)
from karat.workflows.golden.judgment_sources import sources_of
from karat.workflows.golden.queries import judgments_in, pair_in, pairs_in, queries_in, query_in
from karat.workflows.golden.sampling import ON_SERVER, choose_queries, read_bands, read_quota
from karat.workflows.golden.status import STATUSES
from karat.workflows.workspace.evaluate_stored import (
    coverage_stored,
    enqueue_upload,
    find_runs,
    pool_stored,
)

SETS = APIRouter(prefix="/api", tags=["golden sets"])


@SETS.get(
    "/golden",
    response_description="List of `name`, `scale` (lowest and highest grade), `raters` (of each "
    "pair), `guideline` (version), `created_us`.",
)
def list_golden_sets(site: TheState, _asking: AReader, page: Paged) -> Response:
    """List the golden sets."""
    names = ("name", "scale", "raters", "guideline", "created_us")
    return page.items([{n: getattr(row, n) for n in names} for row in site.golden_sets()])


@SETS.get(
    "/golden/{golden}/status",
    response_description="As `karat golden status --format json`.",
)
def golden_status(site: TheState, _asking: AReader, golden: str) -> Response:
    """Status of a golden set, and what to do next."""
    return json_response(STATUSES.get(opened(site, golden), now=site.clock()))


@SETS.get(
    "/golden/{golden}/agreement",
    response_description="As `karat golden agreement --format json`.",
)
def agreement(
    site: TheState,
    _asking: AReader,
    golden: str,
    by: Annotated[str | None, Query(description="Also by the values of this attribute.")] = None,
) -> Response:
    """Agreement of raters, with confidence intervals."""
    return json_response(agreement_in(opened(site, golden), by))


@SETS.get(
    "/golden/{golden}/stale",
    response_description="As `karat golden stale --format json`.",
)
def stale(site: TheState, _asking: AReader, golden: str) -> Response:
    """List judgments of documents whose text has changed since they were judged."""
    return json_response(stale_judgments(opened(site, golden)))


@SETS.get(
    "/golden/{golden}/coverage",
    response_description="As `karat golden coverage --format json`.",
)
async def coverage(
    request: Request,
    site: TheState,
    _asking: AReader,
    golden: str,
    run: Annotated[list[str], Query(description="A stored run, by name or number; repeatable.")],
    edition: Annotated[str, Query(description="An edition.")] = NOW,
    k: Annotated[int, Query(ge=1, lt=2**31, description="Documents per query.")] = 10,
) -> Response:
    """How much of the top k of runs is judged, and which documents are not."""
    return json_response(
        await in_turn(
            request, lambda: coverage_stored(opened(site, golden), run, edition=edition, k=k)
        )
    )


CONTENT = APIRouter(prefix="/api", tags=["what a golden set holds"])
Edition = Annotated[str, Query(description="An edition; `now` is the current golden set.")]


@CONTENT.get(
    "/golden/{golden}/queries",
    response_description="List of queries with their attributes; for the current golden set also "
    "`documents`, `graded`, `judgments`, `waiting`, `editions` (counts) and `words`. An attribute "
    "whose name is reserved here is called `attribute NAME`. `weight` is the weight used in means: "
    "0 for a query without one if others have one; absent if no query has one.",
)
def queries(
    site: TheState, _asking: AReader, page: Paged, golden: str, edition: Edition = NOW
) -> Response:
    """List the queries."""
    workspace = opened(site, golden)
    if edition != NOW:
        return page.table(weighed(content_of(workspace, edition).queries)[0])
    return page.table(weighed(queries_in(workspace, OF_LISTS)[0])[0])


@CONTENT.get(
    "/golden/{golden}/queries/{query_id:path}",
    response_description="`query`, `documents` (rows as in pairs, with `begins`), `editions` "
    "(names).",
)
def query(site: TheState, _asking: AReader, golden: str, query_id: str) -> Response:
    """One query with its documents."""
    try:
        return json_response(query_in(opened(site, golden), query_id))
    except UsageError as error:
        raise NotFound(error.what, nearest=error.nearest, fix=error.fix) from None


@CONTENT.get(
    "/golden/{golden}/documents",
    response_description="List of `doc_id`, `title`, `text`, `url`, `sha256` (of what raters "
    "see), and attributes.",
)
def documents(site: TheState, _asking: AReader, page: Paged, golden: str) -> Response:
    """List the documents."""
    workspace = opened(site, golden)
    with workspace.store.read() as connection:
        return page.table(stored.frame(connection, workspace.golden.id))


@CONTENT.get(
    "/golden/{golden}/pairs",
    response_description="List of queued or judged pairs: `query_id`, `text`, `doc_id`, "
    "`title`, `state`, `grade` (aggregated), `rule` (aggregation method), `votes`, `raters` and "
    "`grades` (in the same order), `adjudicated`, `imported`, `gold_grade`, `waiting`, `priority`, "
    "`chosen_by`.",
)
def pairs(site: TheState, _asking: AReader, page: Paged, golden: str) -> Response:
    """List the pairs."""
    return page.table(pairs_in(opened(site, golden)))


@CONTENT.get(
    "/golden/{golden}/pair",
    response_description="`query_id`, `text`, `need`, `doc_id`, `document`, `pair` (as in pairs), "
    "`history`: every judgment ever recorded.",
)
def pair(site: TheState, _asking: AReader, golden: str, query: str, document: str) -> Response:
    """One pair with the history of its judgments."""
    try:
        return json_response(pair_in(opened(site, golden), query, document))
    except UsageError as error:
        raise NotFound(error.what, nearest=error.nearest, fix=error.fix) from None


@CONTENT.get(
    "/golden/{golden}/judgments",
    response_description="List of current judgments, newest first: the columns of the "
    "table judgments, `text` of the query, `title` of the document, `stale`.",
)
def judgments(site: TheState, _asking: AReader, page: Paged, golden: str) -> Response:
    """List the judgments."""
    return page.table(judgments_in(opened(site, golden)))


@CONTENT.get(
    "/golden/{golden}/grades",
    response_description="List of `query_id`, `doc_id`, `grade`, `votes`, `rule`, `raters`: one "
    "row for each judged pair.",
)
def grades(
    site: TheState, _asking: AReader, page: Paged, golden: str, edition: Edition = NOW
) -> Response:
    """List the aggregated grades, with which runs are evaluated."""
    frame: pl.DataFrame = content_of(opened(site, golden), edition).grades
    return page.table(frame.select("query_id", "doc_id", "grade", "votes", "rule", "raters"))


Between = Literal["raters", "import"]


class AdjudicationRequest(RequestBody):
    """Which disagreements to send to adjudication.

    Attributes:
        pairs: Query and document of each; null for all.
        between: `raters`, or `import` for raters against an imported grade.
    """

    pairs: list[tuple[str, str]] | None = None
    between: Between = "raters"


@CONTENT.get(
    "/golden/{golden}/disagreements",
    response_description="List of the rows of `frame` of `karat golden disagreements --format "
    "json`.",
)
def disagreements(
    site: TheState,
    _asking: AReader,
    page: Paged,
    golden: str,
    between: Annotated[
        Between | None, Query(description="Between raters, or raters against an import.")
    ] = None,
) -> Response:
    """List pairs with conflicting grades that are not adjudicated yet."""
    frame = disagreements_in(opened(site, golden), now=site.clock()).frame
    return page.table(frame if between is None else frame.filter(pl.col("between") == between))


@CONTENT.post(
    "/golden/{golden}/disagreements/queue",
    response_description="`queued`: number of pairs newly sent to adjudication.",
)
def queue_disagreements(
    site: TheState,
    principal: AnEngineer,
    golden: str,
    body: Annotated[AdjudicationRequest, Depends(Body(AdjudicationRequest))],
) -> Response:
    """Send disagreements to adjudication."""
    count = put_before_adjudicator(
        opened(site, golden),
        body.pairs,
        person=principal.person.name,
        now=site.clock(),
        between=body.between,
    )
    return json_response({"queued": count})


EDITIONS = APIRouter(prefix="/api", tags=["editions"])


class EditionRequest(RequestBody):
    """A new edition.

    Attributes:
        name: Its name, which no other edition has.
    """

    name: str


@EDITIONS.get(
    "/golden/{golden}/editions",
    response_description="List of the rows of `karat golden editions --format json`.",
)
def editions(site: TheState, _asking: AReader, page: Paged, golden: str) -> Response:
    """List the editions, oldest first."""
    return page.items(list_editions(opened(site, golden)))


@EDITIONS.post(
    "/golden/{golden}/editions",
    status_code=201,
    response_description="As `karat golden freeze --format json`.",
)
def freeze(
    site: TheState,
    principal: AnEngineer,
    golden: str,
    body: Annotated[EditionRequest, Depends(Body(EditionRequest))],
) -> Response:
    """Freeze the golden set as an edition, which never changes."""
    workspace = opened(site, golden)
    return json_response(
        freeze_audited(workspace, body.name, person=principal.person.name, now=site.clock()), 201
    )


@EDITIONS.get(
    "/golden/{golden}/editions/{edition:path}",
    response_description="One row of `karat golden editions --format json`. For its content, list "
    "queries and grades with `?edition=`.",
)
def edition(site: TheState, _asking: AReader, golden: str, edition: str) -> Response:
    """One edition."""
    rows = {row.name: row for row in list_editions(opened(site, golden))}
    if edition not in rows:
        raise NotFound(f"there is no edition {edition!r}", nearest=nearest(edition, rows, 1))
    return json_response(rows[edition])


@EDITIONS.get(
    "/golden/{golden}/diff",
    response_description="As `karat golden diff --format json`.",
)
def diff(
    site: TheState,
    _asking: AReader,
    golden: str,
    old: str,
    new: Annotated[str, Query(description="`now` is the current golden set.")] = NOW,
    by: Annotated[str | None, Query(description="Count by this attribute of the queries.")] = None,
) -> Response:
    """What changed from one edition to another, or to the current golden set."""
    return json_response(compare_editions(opened(site, golden), old, new, by=by))


QUEUE = APIRouter(prefix="/api", tags=["judging"])
Count = Annotated[int, Field(ge=1, lt=2**31)]


class PoolRequest(RequestBody):
    """Pooling of stored runs.

    Attributes:
        runs: Stored runs, by name or number.
        method: As `karat golden pool --method`.
        k: Depth, or documents per query.
        p: Persistence of RBP.
        budget: Maximum number of pairs in all.
        per_query: Maximum number of pairs per query.
        bands: Number of parts of each pool, judged one after the other.
    """

    runs: list[int | str] = Field(min_length=1, max_length=1000)
    method: Literal["depth", "rr", "rbp", "mtf"] = "depth"
    k: Count = 10
    p: float = 0.8
    budget: Count | None = None
    per_query: Count | None = None
    bands: Count = 1


@QUEUE.post(
    "/golden/{golden}/pool",
    response_description="As `karat golden pool --format json`.",
)
async def pool(
    request: Request,
    site: TheState,
    principal: AnEngineer,
    golden: str,
    body: Annotated[PoolRequest, Depends(Body(PoolRequest))],
) -> Response:
    """Put the unjudged results of stored runs into the queue."""
    settings: dict[str, Any] = body.model_dump(exclude={"runs"})
    settings |= {"person": principal.person.name, "now": site.clock()}
    return json_response(
        await in_turn(request, lambda: pool_stored(opened(site, golden), body.runs, **settings))
    )


@QUEUE.post(
    "/golden/{golden}/queue",
    response_description="As `karat golden queue --format json`.",
)
def queue(site: TheState, principal: AnEngineer, golden: str, file: Uploaded) -> Response:
    """Put the pairs of a file into the queue, in its order; `karat compare` writes such files."""
    workspace = opened(site, golden)
    with file.named():
        result = enqueue_upload(
            workspace, file.path, file.called, person=principal.person.name, now=site.clock()
        )
    return json_response(result)


@QUEUE.post(
    "/golden/{golden}/choose",
    response_description="As `karat golden choose --format json`.",
)
async def choose(
    request: Request,
    site: TheState,
    principal: AnEngineer,
    golden: str,
    file: Uploaded,
    size: Annotated[int, Query(ge=1, lt=2**31, description="Number of queries to sample.")] = 100,
    band: Annotated[
        list[str] | None, Query(description="As `karat golden choose --band`; repeatable.")
    ] = None,
    quota: Annotated[
        list[str] | None, Query(description="As `karat golden choose --quota`; repeatable.")
    ] = None,
    hard: Annotated[
        list[str] | None, Query(description="A query known to be hard; repeatable.")
    ] = None,
    mask: Annotated[bool, Query(description="Mask personal data.")] = False,
    text: Annotated[str | None, Query(description="The column with the query text.")] = None,
    count: Annotated[str | None, Query(description="The column with the count.")] = None,
    replace: Annotated[
        bool,
        Query(
            description="Sample anew even if most of the earlier sample is dropped, or judged "
            "queries no longer count."
        ),
    ] = False,
) -> Response:
    """Sample queries from a query log into the golden set."""
    workspace = opened(site, golden)

    def work() -> Response:
        with file.named():
            sample = choose_queries(
                workspace,
                file.path,
                size,
                now=site.clock(),
                replace=replace,
                person=principal.person.name,
                bands=read_bands(band or ()),
                quotas=[read_quota(text) for text in quota or ()],
                hard=hard or (),
                mask=mask,
                text=text,
                count=count,
                most=ON_SERVER,
            )
        # Without the log itself, which may be long and personal.
        return Response(to_json(sample, ("log.frame",)), media_type="application/json")

    return await in_turn(request, work)


EXCHANGE = APIRouter(prefix="/api", tags=["exchange"])
_COUNTS = ("queries", "documents", "judgments", "corrected", "changed", "runs")


@EXCHANGE.post(
    "/golden/{golden}/import",
    response_description="The object of one file of `karat golden import --json`.",
)
async def import_from(
    request: Request,
    site: TheState,
    principal: AnEngineer,
    golden: str,
    file: Uploaded,
    format: Annotated[  # noqa: A002 - as the command line has it
        str, Query(max_length=100, description="Its format; detected from the content if omitted.")
    ] = "",
    rater: Annotated[
        str, Query(max_length=200, description="Rater of judgments for which the file names none.")
    ] = "",
    source: Annotated[
        list[str] | None,
        Query(
            max_length=100,
            description="Where the grades come from: human, llm, clicks or import; for one rater "
            "as RATER=SOURCE; repeatable. Required if a rater has the name of a model.",
        ),
    ] = None,
) -> Response:
    """Import a file, in full or not at all."""
    workspace, sources = opened(site, golden), sources_of(source or ())
    who, now = principal.person.name, site.clock()

    def work() -> Response:
        done = import_upload(
            workspace,
            file.path,
            file.called,
            person=who,
            now=now,
            format=format,
            rater=rater,
            sources=sources,
        )
        exchange = done.exchange
        return json_response(
            {"file": file.called, "format": exchange.format}
            | {name: getattr(done, name) for name in _COUNTS}
            | {"kept": exchange.kept, "assumed": exchange.assumed, "lost": exchange.lost}
        )

    return await in_turn(request, work)


@EXCHANGE.get(
    "/golden/{golden}/export",
    response_description="The file; for a BEIR folder a ZIP file. The header `X-Karat-Notes` lists "
    "what was assumed and lost, as the JSON of `karat golden export --json`; `{}` if that is "
    "longer than 4,000 characters.",
    response_class=FileResponse,
)
async def export_golden_set(
    request: Request,
    site: TheState,
    _asking: AReader,
    golden: str,
    format: Annotated[  # noqa: A002 - as the command line has it
        str, Query(max_length=100, description="Its format.")
    ] = "beir",
    edition: Annotated[str, Query(description="An edition; the current golden set if empty.")] = "",
    each_rater: Annotated[
        bool, Query(description="Every rater's judgment, not one grade.")
    ] = False,
    run: Annotated[
        list[str] | None, Query(description="A stored run, for formats with runs; repeatable.")
    ] = None,
) -> Response:
    """Export the golden set or an edition, to evaluate with or for another tool."""
    workspace = opened(site, golden)

    def work() -> Response:
        runs = [row.name for row in find_runs(workspace, run or [])]
        folder = tempfile.mkdtemp(prefix="karat-")
        try:
            wanted = Wanted(format, edition, each_rater, runs)
            with exported(workspace, wanted) as (path, exchange):
                file = Path(folder) / path.name
                shutil.move(path, file)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        notes = json_response(
            {
                "file": file.name,
                "format": exchange.format,
                "kept": exchange.kept,
                "assumed": exchange.assumed,
                "lost": exchange.lost,
            }
        )
        return FileResponse(
            file,
            media_type="application/octet-stream",
            filename=file.name,
            headers={"x-karat-notes": _one_line(bytes(notes.body))},
            background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
        )

    return await in_turn(request, work)


def _one_line(text: bytes) -> str:
    """JSON for a header: ASCII, on one line, of limited length."""
    line = " ".join(text.decode().split())
    header = line.encode("ascii", "backslashreplace").decode()
    return header if len(header) <= 4000 else "{}"
