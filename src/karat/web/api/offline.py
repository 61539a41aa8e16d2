"""Stored runs, evaluations and comparisons by the API; the catalogue of measures."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi import Path as PathOf
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from karat.errors import UsageError
from karat.formats import write_run
from karat.golden.planning import SECONDS, TYPICAL_SD, Plan
from karat.golden.planning import plan as planned
from karat.reports.offline.catalogue import MeasureEntry, as_json
from karat.tables import Results
from karat.tables.comparison import Comparison
from karat.tables.diagnosis.results import Diagnosis
from karat.tables.lists import LISTS
from karat.tables.results import Explanation
from karat.web.api.bodies import Body, RequestBody, Uploaded
from karat.web.api.models import many, one, picked, rows
from karat.web.api.responses import Number, Paged, Several, json_response
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import NotFound, opened, or_not_found
from karat.web.framework.jobs import Busy, InTurn
from karat.web.framework.state import AppState
from karat.web.framework.uploads import file_response
from karat.web.offline.stored_comparisons import ask, compute, find, look, request_again
from karat.workflows.diagnosis import stored_traces
from karat.workflows.diagnosis.stored_diagnoses import Diagnosing
from karat.workflows.golden.editions import NOW
from karat.workflows.golden.import_ import file_name
from karat.workflows.offline.catalogue import find_entry, list_entries
from karat.workflows.workspace import listed, run_import, run_stages, stored_comparisons
from karat.workflows.workspace.evaluate_stored import evaluate_stored, explain_stored, find_runs
from karat.workflows.workspace.listed import FoundRun, ListedComparison, ListedRun, find_run
from karat.workflows.workspace.stored_comparisons import Asked, StoredComparison
from karat.workflows.workspace.stored_runs import read_stored
from karat.workflows.workspace.workspace import Workspace

RUNS = APIRouter(prefix="/api", tags=["runs"])
Format = Literal["parquet", "json", "jsonl", "csv", "tsv", "trec"]
Golden = Annotated[
    str, Query(max_length=200, description="The golden set; by default that of the workspace.")
]
RunName = Annotated[
    str,
    PathOf(
        max_length=500,
        description="Its number, or its name in the golden set: the run last stored under it.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class UploadedRun(ListedRun):
    """An uploaded run; the status is 201 if it is new, else 200."""

    said: str | None  # the outcome if the same content was stored before; None if it is new


@dataclass(frozen=True)
class StoredTrace:
    """The trace of a run."""

    run: int  # its id
    stages: list[str]  # of the trace, each after those whose documents it takes


@dataclass(frozen=True)
class Removed:
    """The number of what was removed."""

    removed: int


def _of_query(request: Request, golden: Golden = "") -> Workspace:
    return of_golden(request.app.state.site, golden)


def _of_path(request: Request, run: RunName, golden: Golden = "") -> FoundRun:
    with or_not_found():
        return find_run(request.app.state.site.workspace, run, golden)


GoldenSet = Annotated[Workspace, Depends(_of_query)]
TheRun = Annotated[FoundRun, Depends(_of_path)]
"""Parameters of routes: the workspace with a golden set, a stored run; after the user."""


@RUNS.get("/runs", response_model=many(ListedRun))
def list_runs(_call: AReader, page: Paged, workspace: GoldenSet) -> Response:
    """List the stored runs, newest first."""
    return page.items(*listed.list_runs(workspace))


@RUNS.post("/runs", status_code=201, response_model=one(UploadedRun))
def bring_run(
    call: AnEngineer,
    workspace: GoldenSet,
    file: Uploaded,
    _turn: InTurn,
    # Name of the run; by default the one in the file.
    run: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Store a run; the same content is stored once, and gets this name as well."""
    imported = run_import.import_run(workspace, file.path, file.called, name=run, **call.by)
    stored = picked(UploadedRun, _listed(workspace, imported.row), said=imported.said)
    return json_response(stored, 201 if imported.new else 200)


# A name may have slashes: addresses with a suffix after it must come first.


@RUNS.get("/runs/{run:path}/file", response_class=FileResponse, response_model=None)
def run_file(
    _call: AReader,
    run: TheRun,
    _turn: InTurn,
    # All but `trec` also have failed queries and those without results.
    format: Format = "parquet",  # noqa: A002 - as the command line has it
) -> Response:
    """Download a run."""

    def write(folder: Path) -> tuple[Path, dict[str, str]]:
        [ranking] = read_stored(run.workspace, [run.row])
        path = folder / f"{file_name(run.row.name)}.{format}"
        write_run(ranking, path, sidecar=False)  # only one file is sent
        return path, {}

    return file_response(write)


@RUNS.get("/runs/{run:path}/explain", response_model=one(Explanation))
def explain(
    _call: AReader,
    run: TheRun,
    _turn: InTurn,
    query_id: str,
    measure: Annotated[str, Query(max_length=500)] = "nDCG@10",
    edition: str = NOW,  # An edition.
) -> Response:
    """Explain one value: what each document contributes."""
    explanation = explain_stored(run.workspace, run.row.id, query_id, measure, edition)
    return json_response(explanation.to_dict())


@RUNS.get("/runs/{run:path}/diagnosis", response_model=one(Diagnosis))
def diagnose(
    _call: AReader,
    run: TheRun,
    _turn: InTurn,
    stage: Several = None,  # A stored run for each stage, in order; its trace if missing.
    # Name or number of a run; queries that it has a higher value for fail too.
    baseline: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    """Diagnose a run: what its stages lose, why queries fail, and what fixes are worth."""
    stages = run_stages.chosen(run.workspace, stage) if stage else []
    before = find_runs(run.workspace, [baseline])[0] if baseline else None
    found = Diagnosing(run.workspace, run.row, stages, before).find()
    return json_response(found.diagnosis.to_dict())


@RUNS.post("/runs/{run:path}/trace", response_model=one(StoredTrace))
def upload_trace(call: AnEngineer, run: TheRun, file: Uploaded, _turn: InTurn) -> Response:
    """Store the trace of a run, in place of an earlier one."""
    stages = stored_traces.store_trace(run.workspace, run.row, file.path, file.called, **call.by)
    return json_response(StoredTrace(run.row.id, stages))


@RUNS.get("/runs/{run:path}", response_model=one(ListedRun))
def one_run(_call: AReader, run: TheRun) -> Response:
    """One run."""
    return json_response(_listed(run.workspace, run.row))


@RUNS.delete("/runs/{run:path}", response_model=one(Removed))
def remove_run(
    call: AnEngineer,
    run: TheRun,
    # SHA-256 of the run: another run with its number is not removed.
    sha256: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Remove a run with its file; an error while a comparison needs it."""
    row = run.row
    if sha256 not in {"", row.sha256}:
        called = call.request.path_params["run"]
        raise NotFound(f"the run {called} has been replaced by another", fix=listed.LIST_RUNS)
    run_import.remove_run(run.workspace, row, **call.by)
    return json_response(Removed(row.id))


def of_golden(site: AppState, golden: str) -> Workspace:
    """The workspace with a golden set, by default its own."""
    return opened(site, golden or site.workspace.golden.name)


def _listed(workspace: Workspace, row: Any) -> ListedRun:
    return listed.list_runs(workspace)[1](row)


NUMBERS = APIRouter(prefix="/api", tags=["numbers"])
Name = Annotated[str, Field(max_length=500)]


class EvaluateRequest(RequestBody):
    """Runs to evaluate; the defaults are those of the command line."""

    runs: list[int | str] = Field(min_length=1, max_length=1000)  # stored runs, by name or number
    # Names of measures; the default ones if empty
    measures: list[Name] = Field(default_factory=list, max_length=200)
    by: list[Name] = Field(default_factory=list, max_length=50)  # attributes to slice by
    golden: Name = ""  # name of the golden set; that of the workspace if empty
    edition: str = NOW  # name of an edition; `now` is the current golden set
    per_query: bool = False  # also return each query's value
    interval: Literal["t", "bca", "none"] = "t"  # `t`, `bca` or `none`
    seed: int = Field(0, ge=0, lt=2**31)  # random seed of the bootstrap
    # Lowest grade that counts as relevant, for measures that do not set it
    rel: float | None = None
    complete: bool = False  # count every query of the golden set
    depth: int | None = Field(None, ge=1, lt=2**31)  # cut rankings at this depth
    judged_only: bool = False  # drop unjudged documents
    # Fold chunks into the document named in this attribute of documents
    collapse: Name | None = None
    # A best score below it counts as no answer, for queries marked no_answer
    threshold: float | None = None
    # Attributes to correlate measures with
    outcomes: list[Name] = Field(default_factory=list, max_length=50)
    # Whose judgments count; if missing, people's, and imported ones where people gave none
    judgments: Literal["human", "llm", "clicks", "import"] | None = None
    bounds: bool | None = True  # compute bounds for what unjudged documents could change


@NUMBERS.post("/evaluate", response_model=one(Results))
def evaluate(
    call: AReader, body: Annotated[EvaluateRequest, Depends(Body(EvaluateRequest))], _turn: InTurn
) -> Response:
    """Evaluate stored runs: numbers with intervals, counts and notes. Nothing is stored."""
    workspace = of_golden(call.site, body.golden)
    settings = body.model_dump(exclude={"runs", "measures", "golden"})
    results = evaluate_stored(workspace, body.runs, body.measures, **settings)
    return json_response(results.to_dict())


COMPARISONS = APIRouter(prefix="/api", tags=["comparisons"])
_POLL_S = 0.2


class CompareRequest(RequestBody):
    """Runs to compare."""

    baseline: int | str  # a stored run, by name or number
    candidates: list[int | str] = Field(min_length=1, max_length=100)  # other stored runs
    # Names of measures; the default ones if empty
    measures: list[Name] = Field(default_factory=list, max_length=200)
    by: list[Name] = Field(default_factory=list, max_length=50)  # attributes to slice by
    margin: float | None = None  # smaller differences do not matter
    edition: str = NOW  # name of an edition; `now` is the current golden set
    # Name of the comparison; made from the names of the runs if empty
    name: str = Field("", max_length=200)
    golden: Name = ""  # name of the golden set; that of the workspace if empty


@dataclass(frozen=True)
class Raised:
    """The outcome of queueing pairs."""

    added: int  # new pairs in the queue
    raised: int  # pairs moved up in the queue
    golds: int  # pairs with a new or changed gold grade


@COMPARISONS.get("/comparisons", response_model=many(ListedComparison))
def list_comparisons(_call: AReader, page: Paged, workspace: GoldenSet) -> Response:
    """List the stored comparisons, newest first."""
    return page.items(*listed.list_comparisons(workspace))


@COMPARISONS.post("/comparisons", status_code=201, response_model=one(ListedComparison))
def make(
    call: AnEngineer, body: Annotated[CompareRequest, Depends(Body(CompareRequest))]
) -> Response:
    """Create a comparison, computed in the background; the response waits a little for it."""
    workspace = of_golden(call.site, body.golden)
    rows = find_runs(workspace, [body.baseline, *body.candidates])
    comparison = Asked(
        [row.id for row in rows], body.measures, body.by, body.margin, body.edition, body.name
    )
    comparison_id = ask(call.site, workspace, comparison, by=call.who)
    return _comparison(call.site, comparison_id, 201)


@COMPARISONS.get("/comparisons/{comparison_id}", response_model=one(ListedComparison))
async def one_comparison(
    call: AReader,
    comparison_id: Number,
    wait: Annotated[float, Query(ge=0, le=30)] = 0,  # Seconds to wait for its result.
) -> Response:
    """One comparison; starts to compute it if it waits."""

    def ended() -> bool:
        workspace, row = find(call.site, comparison_id)
        if not stored_comparisons.to_compute(row, stored_comparisons.kept(workspace, row)):
            return True
        with suppress(Busy):  # the next poll tries again
            compute(call.site, workspace, row, 0.0)
        return False

    until = time.monotonic() + wait
    # Polled, since another process may compute it; no thread is blocked.
    while not await run_in_threadpool(ended) and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_S)
    return await run_in_threadpool(_comparison, call.site, comparison_id)


@COMPARISONS.get("/comparisons/{comparison_id}/result", response_model=one(Comparison))
def result(call: AReader, comparison_id: Number) -> Response:
    """The result of a comparison; its `queries` by decreasing contribution."""
    comparison = _done(call.site, comparison_id)
    return json_response(comparison.to_dict(queries=True))


@COMPARISONS.get(
    "/comparisons/{comparison_id}/queries",
    response_model=rows("ComparedQuery", LISTS["comparison"]),
)
def comparison_queries(call: AReader, page: Paged, comparison_id: Number) -> Response:
    """The queries of a comparison, by decreasing contribution."""
    return page.table(_done(call.site, comparison_id).frame)


@COMPARISONS.post("/comparisons/{comparison_id}/again", response_model=one(ListedComparison))
def again(call: AnEngineer, comparison_id: Number) -> Response:
    """Recompute a comparison with the current judgments."""
    request_again(call.site, comparison_id, by=call.who)
    return _comparison(call.site, comparison_id)


@COMPARISONS.delete("/comparisons/{comparison_id}", response_model=one(Removed))
def remove_comparison(
    call: AnEngineer,
    comparison_id: Number,
    # Its creation time: another comparison with its number is not removed.
    created_us: int | None = None,
) -> Response:
    """Remove a comparison with its numbers; its runs stay."""
    workspace, row = find(call.site, comparison_id)
    if created_us not in {None, row.created_us}:
        raise NotFound(
            f"the comparison {comparison_id} has been replaced by another",
            fix="GET /api/comparisons lists them",
        )
    run_import.remove_comparison(workspace, row, **call.by)
    return json_response(Removed(row.id))


@COMPARISONS.post("/comparisons/{comparison_id}/queue", response_model=one(Raised))
def queue_next(call: AnEngineer, comparison_id: Number) -> Response:
    """Put the pairs whose grades could flip the sign at the front of the queue."""
    comparison = _done(call.site, comparison_id)
    workspace, row = find(call.site, comparison_id)
    queued = stored_comparisons.queue_next(workspace, row, comparison, by=call.who, now=call.now)
    return json_response(picked(Raised, queued))


def _done(site: AppState, comparison_id: int) -> StoredComparison:
    _, row, comparison = look(site, comparison_id)
    if comparison is None:
        if row.state == "failed":
            raise UsageError(row.error or "the comparison failed", fix="recompute it")
        raise UsageError("the comparison is not computed yet", fix="wait until its state is done")
    return comparison


def _comparison(site: AppState, comparison_id: int, status: int = 200) -> Response:
    return json_response(listed.listed_comparison(*find(site, comparison_id)), status)


CATALOGUE = APIRouter(prefix="/api", tags=["numbers"])
Size = Annotated[float, Query(gt=0, le=1e6, allow_inf_nan=False)]


@CATALOGUE.get("/measures", response_model=many(MeasureEntry))
def measures(_call: AReader, page: Paged) -> Response:
    """List the measures."""
    return page.items(list_entries(), as_json)


@CATALOGUE.get("/measures/{name:path}", response_model=one(MeasureEntry))
def measure(_call: AReader, name: str) -> Response:
    """One measure, by any of its names."""
    with or_not_found():
        return json_response(as_json(find_entry(name)))


@CATALOGUE.get("/plan", response_model=one(Plan))
def plan(
    _call: AReader,
    difference: Size = 0.05,
    sd: Size = TYPICAL_SD,
    depth: Size = 15,
    raters: Annotated[int, Query(ge=1, le=1000)] = 2,
    seconds: Size = SECONDS,
    per_hour: Annotated[float | None, Query(ge=0, le=1e9, allow_inf_nan=False)] = None,
) -> Response:
    """How many queries and judgments it takes to detect a difference, and their cost."""
    return json_response(
        planned(difference, sd=sd, depth=depth, raters=raters, seconds=seconds, per_hour=per_hour)
    )
