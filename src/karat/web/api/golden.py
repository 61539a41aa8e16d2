"""Golden sets: status, content, disagreements, editions, queue, import and export."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field
from starlette.responses import FileResponse

from karat.errors import nearest
from karat.golden.editions import EditionDifference
from karat.golden.freshness import Stale
from karat.reports.golden.golden import to_json
from karat.tables.golden.agreement import Agreement
from karat.tables.golden.golden_sets import Edition
from karat.tables.lists import LISTS
from karat.web.api.bodies import Body, RequestBody, Uploaded
from karat.web.api.models import many, one, picked, rows
from karat.web.api.responses import OF_LISTS, Paged, Several, TheGolden, json_response
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import NotFound, or_not_found
from karat.web.framework.jobs import InTurn
from karat.web.framework.uploads import file_response
from karat.web.golden.exchange import Wanted, exported
from karat.workflows.golden import queries as workflow
from karat.workflows.golden import sampling
from karat.workflows.golden.agreement import agreement_in, disagreements_in, put_before_adjudicator
from karat.workflows.golden.editions import (
    NOW,
    Covered,
    Frozen,
    compare_editions,
    content_of,
    list_editions,
    stale_judgments,
    weighed,
)
from karat.workflows.golden.editions import freeze as freeze_edition
from karat.workflows.golden.import_ import import_upload
from karat.workflows.golden.judgment_sources import sources_of
from karat.workflows.golden.pooling import Pooled
from karat.workflows.golden.status import Status
from karat.workflows.golden.status import status as status_of
from karat.workflows.workspace import evaluate_stored

SETS = APIRouter(prefix="/api", tags=["golden sets"])


@dataclass(frozen=True)
class GoldenSet:
    """A golden set."""

    name: str
    scale: tuple[float, float]  # lowest and highest grade
    raters: int  # raters of each pair
    guideline: str  # version of the guideline
    created_us: int


@SETS.get("/golden", response_model=many(GoldenSet))
def list_golden_sets(call: AReader, page: Paged) -> Response:
    """List the golden sets."""
    return page.items(call.site.golden_sets(), lambda row: picked(GoldenSet, row))


@SETS.get("/golden/{golden}/status", response_model=one(Status))
def golden_status(call: AReader, workspace: TheGolden) -> Response:
    """Status of a golden set, and what to do next."""
    return json_response(status_of(workspace, now=call.now))


@SETS.get("/golden/{golden}/agreement", response_model=one(Agreement))
def agreement(
    _call: AReader,
    workspace: TheGolden,
    by: str | None = None,  # Also by the values of this attribute.
) -> Response:
    """Agreement of raters, with confidence intervals."""
    return json_response(agreement_in(workspace, by))


@SETS.get("/golden/{golden}/stale", response_model=one(Stale))
def stale(_call: AReader, workspace: TheGolden) -> Response:
    """List judgments of documents whose text has changed since they were judged."""
    return json_response(stale_judgments(workspace))


@SETS.get("/golden/{golden}/coverage", response_model=one(Covered))
def coverage(
    _call: AReader,
    workspace: TheGolden,
    _turn: InTurn,
    run: Annotated[list[str], Query()],  # A stored run, by name or number; repeatable.
    edition: str = NOW,  # An edition.
    k: Annotated[int, Query(ge=1, lt=2**31)] = 10,  # Documents per query.
) -> Response:
    """How much of the top k of runs is judged, and which documents are not."""
    return json_response(evaluate_stored.coverage_stored(workspace, run, edition=edition, k=k))


CONTENT = APIRouter(prefix="/api", tags=["what a golden set holds"])
EditionName = Annotated[str, Query(description="An edition; `now` is the current golden set.")]


@CONTENT.get("/golden/{golden}/queries", response_model=rows("Query", LISTS["queries"]))
def queries(
    _call: AReader, page: Paged, workspace: TheGolden, edition: EditionName = NOW
) -> Response:
    """List the queries with their attributes.

    An attribute whose name is reserved here is called `attribute NAME`.
    """
    if edition != NOW:
        return page.table(weighed(content_of(workspace, edition).queries)[0])
    return page.table(weighed(workflow.queries_in(workspace, OF_LISTS)[0])[0])


@CONTENT.get("/golden/{golden}/queries/{query_id:path}", response_model=one(workflow.OneQuery))
def query(_call: AReader, workspace: TheGolden, query_id: str) -> Response:
    """One query with its documents."""
    with or_not_found():
        return json_response(workflow.query_in(workspace, query_id))


@CONTENT.get("/golden/{golden}/documents", response_model=rows("Document", LISTS["documents"]))
def documents(_call: AReader, page: Paged, workspace: TheGolden) -> Response:
    """List the documents with their attributes."""
    return page.table(workflow.documents_in(workspace))


@CONTENT.get("/golden/{golden}/pairs", response_model=rows("Pair", LISTS["pairs"]))
def pairs(_call: AReader, page: Paged, workspace: TheGolden) -> Response:
    """List the pairs that are queued or judged."""
    return page.table(workflow.pairs_in(workspace))


@CONTENT.get("/golden/{golden}/pair", response_model=one(workflow.OnePair))
def pair(_call: AReader, workspace: TheGolden, query: str, document: str) -> Response:
    """One pair with the history of its judgments."""
    with or_not_found():
        return json_response(workflow.pair_in(workspace, query, document))


@CONTENT.get("/golden/{golden}/judgments", response_model=rows("Judgment", LISTS["judgments"]))
def judgments(_call: AReader, page: Paged, workspace: TheGolden) -> Response:
    """List the current judgments, newest first."""
    return page.table(workflow.judgments_in(workspace))


@CONTENT.get("/golden/{golden}/grades", response_model=rows("AggregatedGrade", LISTS["grades"]))
def grades(
    _call: AReader, page: Paged, workspace: TheGolden, edition: EditionName = NOW
) -> Response:
    """List the aggregated grades, with which runs are evaluated: one for each judged pair."""
    frame: pl.DataFrame = content_of(workspace, edition).grades
    return page.table(frame.select("query_id", "doc_id", "grade", "votes", "rule", "raters"))


Between = Literal["raters", "import"]


class AdjudicationRequest(RequestBody):
    """Which disagreements to send to adjudication."""

    pairs: list[tuple[str, str]] | None = None  # query and document of each; null for all
    between: Between = "raters"  # `raters`, or `import` for raters against an imported grade


@dataclass(frozen=True)
class Queued:
    """The outcome of sending disagreements to adjudication."""

    queued: int  # number of pairs newly sent


@CONTENT.get(
    "/golden/{golden}/disagreements",
    response_model=rows("OpenDisagreement", LISTS["disagreements"]),
)
def disagreements(
    call: AReader,
    page: Paged,
    workspace: TheGolden,
    between: Between | None = None,  # Between raters, or raters against an import.
) -> Response:
    """List pairs with conflicting grades that are not adjudicated yet."""
    frame = disagreements_in(workspace, now=call.now).frame
    return page.table(frame if between is None else frame.filter(pl.col("between") == between))


@CONTENT.post("/golden/{golden}/disagreements/queue", response_model=one(Queued))
def queue_disagreements(
    call: AnEngineer,
    workspace: TheGolden,
    body: Annotated[AdjudicationRequest, Depends(Body(AdjudicationRequest))],
) -> Response:
    """Send disagreements to adjudication."""
    count = put_before_adjudicator(workspace, body.pairs, **call.by, between=body.between)
    return json_response(Queued(count))


EDITIONS = APIRouter(prefix="/api", tags=["editions"])


class EditionRequest(RequestBody):
    """A new edition."""

    name: str  # its name, which no other edition has


@EDITIONS.get("/golden/{golden}/editions", response_model=many(Edition))
def editions(_call: AReader, page: Paged, workspace: TheGolden) -> Response:
    """List the editions, oldest first."""
    return page.items(list_editions(workspace))


@EDITIONS.post("/golden/{golden}/editions", status_code=201, response_model=one(Frozen))
def freeze(
    call: AnEngineer,
    workspace: TheGolden,
    body: Annotated[EditionRequest, Depends(Body(EditionRequest))],
) -> Response:
    """Freeze the golden set as an edition, which never changes."""
    return json_response(freeze_edition(workspace, body.name.strip(), **call.by), 201)


@EDITIONS.get("/golden/{golden}/editions/{edition:path}", response_model=one(Edition))
def edition(_call: AReader, workspace: TheGolden, edition: str) -> Response:
    """One edition; list queries and grades with `?edition=` for its content."""
    by_name = {row.name: row for row in list_editions(workspace)}
    if edition not in by_name:
        raise NotFound(f"there is no edition {edition!r}", nearest=nearest(edition, by_name, 1))
    return json_response(by_name[edition])


@EDITIONS.get("/golden/{golden}/diff", response_model=one(EditionDifference))
def diff(
    _call: AReader,
    workspace: TheGolden,
    old: str,
    new: str = NOW,  # `now` is the current golden set.
    by: str | None = None,  # Count by this attribute of the queries.
) -> Response:
    """What changed from one edition to another, or to the current golden set."""
    return json_response(compare_editions(workspace, old, new, by=by))


QUEUE = APIRouter(prefix="/api", tags=["judging"])
Count = Annotated[int, Field(ge=1, lt=2**31)]


class PoolRequest(RequestBody):
    """Pooling of stored runs."""

    runs: list[int | str] = Field(min_length=1, max_length=1000)  # stored runs, by name or number
    method: Literal["depth", "rr", "rbp", "mtf"] = "depth"  # as `karat golden pool --method`
    k: Count = 10  # depth, or documents per query
    p: float = 0.8  # persistence of RBP
    budget: Count | None = None  # maximum number of pairs in all
    per_query: Count | None = None  # maximum number of pairs per query
    bands: Count = 1  # number of parts of each pool, judged one after the other


@QUEUE.post("/golden/{golden}/pool", response_model=one(Pooled))
def pool(
    call: AnEngineer,
    workspace: TheGolden,
    body: Annotated[PoolRequest, Depends(Body(PoolRequest))],
    _turn: InTurn,
) -> Response:
    """Put the unjudged results of stored runs into the queue."""
    settings: dict[str, Any] = body.model_dump(exclude={"runs"})
    settings |= {"person": call.who, "now": call.now}
    return json_response(evaluate_stored.pool_stored(workspace, body.runs, **settings))


@QUEUE.post("/golden/{golden}/queue", response_model=one(Pooled))
def queue(call: AnEngineer, workspace: TheGolden, file: Uploaded) -> Response:
    """Put the pairs of a file into the queue, in its order; `karat compare` writes such files."""
    with file.named():
        result = evaluate_stored.enqueue_upload(workspace, file.path, file.called, **call.by)
    return json_response(result)


@QUEUE.post("/golden/{golden}/choose", response_model=one(sampling.Chosen))
def choose(
    call: AnEngineer,
    workspace: TheGolden,
    file: Uploaded,
    _turn: InTurn,
    size: Annotated[int, Query(ge=1, lt=2**31)] = 100,  # Number of queries to sample.
    band: Several = None,  # As `karat golden choose --band`; repeatable.
    quota: Several = None,  # As `karat golden choose --quota`; repeatable.
    hard: Several = None,  # A query known to be hard; repeatable.
    mask: bool = False,  # Mask personal data.
    text: str | None = None,  # The column with the query text.
    count: str | None = None,  # The column with the count.
    # Sample anew even if most of the earlier sample is dropped, or judged queries no longer count.
    replace: bool = False,
) -> Response:
    """Sample queries from a query log into the golden set."""
    with file.named():
        sample = sampling.choose_queries(
            workspace,
            file.path,
            size,
            now=call.now,
            replace=replace,
            person=call.who,
            bands=sampling.read_bands(band or ()),
            quotas=[sampling.read_quota(text) for text in quota or ()],
            hard=hard or (),
            mask=mask,
            text=text,
            count=count,
            most=sampling.ON_SERVER,
        )
    # Without the log itself, which may be long and personal.
    return json_response(sample, without=("log.frame",))


EXCHANGE = APIRouter(prefix="/api", tags=["exchange"])
_SAID = ("format", "kept", "assumed", "lost")


@dataclass(frozen=True)
class ImportedFile:
    """An imported file."""

    file: str
    format: str  # the detected format
    queries: int  # new queries; likewise `documents` and `judgments`
    documents: int
    judgments: int
    corrected: int  # judgments that replaced an earlier one of the same rater
    changed: int  # existing queries and documents that changed
    runs: list[str]  # names of the runs in it, now stored
    kept: list[str]  # what was kept, in sentences; likewise `assumed` and `lost`
    assumed: list[str]
    lost: list[str]


@EXCHANGE.post("/golden/{golden}/import", response_model=one(ImportedFile))
def import_from(
    call: AnEngineer,
    workspace: TheGolden,
    file: Uploaded,
    _turn: InTurn,
    # Its format; detected from the content if omitted.
    format: Annotated[str, Query(max_length=100)] = "",  # noqa: A002 - as the command line has it
    # Rater of judgments for which the file names none.
    rater: Annotated[str, Query(max_length=200)] = "",
    # Where the grades come from: human, llm, clicks or import; for one rater as RATER=SOURCE;
    # repeatable. Required if a rater has the name of a model.
    source: Annotated[list[str] | None, Query(max_length=100)] = None,
) -> Response:
    """Import a file, in full or not at all."""
    sources = sources_of(source or ())

    done = import_upload(
        workspace, file.path, file.called, **call.by, format=format, rater=rater, sources=sources
    )
    said = {name: getattr(done.exchange, name) for name in _SAID}
    return json_response(picked(ImportedFile, done, file=file.called, **said))


@EXCHANGE.get("/golden/{golden}/export", response_class=FileResponse, response_model=None)
def export_golden_set(
    _call: AReader,
    workspace: TheGolden,
    _turn: InTurn,
    # Its format.
    format: Annotated[str, Query(max_length=100)] = "beir",  # noqa: A002 - as the command line has it
    edition: str = "",  # An edition; the current golden set if empty.
    each_rater: bool = False,  # Every rater's judgment, not one grade.
    run: Several = None,  # A stored run, for formats with runs; repeatable.
) -> Response:
    """Export the golden set or an edition, to evaluate with or for another tool.

    A BEIR folder is sent as a ZIP file. The header `X-Karat-Notes` lists what was assumed and lost,
    as the JSON of `karat golden export --json`; `{}` if that is longer than 4,000 characters.
    """

    def write(folder: Path) -> tuple[Path, dict[str, str]]:
        runs = [row.name for row in evaluate_stored.find_runs(workspace, run or [])]
        wanted = Wanted(format, edition, each_rater, runs)
        file, exchange = exported(workspace, wanted, folder)
        said = {name: getattr(exchange, name) for name in _SAID}
        return file, {"x-karat-notes": _one_line(to_json({"file": file.name, **said}))}

    return file_response(write)


def _one_line(text: str) -> str:
    """JSON for a header: ASCII, on one line, of limited length."""
    line = " ".join(text.split())
    header = line.encode("ascii", "backslashreplace").decode()
    return header if len(header) <= 4000 else "{}"
