"""Stored runs, evaluations and comparisons by the API; the catalogue of measures."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi import Path as PathOf
from pydantic import Field
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from karat.errors import UsageError, nearest
from karat.formats import write_run
from karat.golden.planning import SECONDS, TYPICAL_SD
from karat.golden.planning import plan as planned
from karat.measures import entries
from karat.reports.offline.catalogue import as_json
from karat.store.sql import comparisons, golden_sets, runs
from karat.store.sql.comparisons import ComparisonRow
from karat.store.sql.runs import RunRow
from karat.web.api.bodies import Body, RequestBody, Uploaded
from karat.web.api.responses import Number, Paged, dict_response, json_response
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import NotFound
from karat.web.framework.jobs import Busy, in_turn
from karat.web.framework.state import AppState, TheState
from karat.web.golden.golden_sets import opened
from karat.web.offline.stored_comparisons import ask, compute, find, look, request_again
from karat.workflows.golden.audited import file_name
from karat.workflows.golden.editions import NOW
from karat.workflows.offline.catalogue import find_entry
from karat.workflows.workspace import run_import, stored_comparisons
from karat.workflows.workspace.comparison_changes import Since
from karat.workflows.workspace.comparison_summary import verdict_of
from karat.workflows.workspace.evaluate_stored import evaluate_stored, explain_stored, find_runs
from karat.workflows.workspace.stored_comparisons import Asked, StoredComparison
from karat.workflows.workspace.stored_runs import read_stored
from karat.workflows.workspace.workspace import Workspace

RUNS = APIRouter(prefix="/api", tags=["runs"])
RUN = (
    "`id`, `golden`, `name`, `also` (other names of it), `sha256`, `queries`, "
    "`rows`, `about`, `added_us`, `kept_by` (who stored it first; null if unknown)"
)
_LISTED = "GET /api/runs lists them"
_DIGITS = 19  # ids of the store have fewer
_ENDINGS = {
    "parquet": ".parquet",
    "json": ".json",
    "jsonl": ".jsonl",
    "csv": ".csv",
    "tsv": ".tsv",
    "trec": ".trec",
}
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


@RUNS.get("/runs", response_description=f"List of {RUN}; newest first.")
def list_runs(site: TheState, _asking: AReader, page: Paged, golden: Golden = "") -> Response:
    """List the stored runs."""
    workspace = of_golden(site, golden)
    rows, stored_by = _stored_runs(workspace)
    by_name = runs.by_name(rows)
    return page.items(rows[::-1], lambda row: _run_json(row, workspace, by_name, stored_by))


@RUNS.post(
    "/runs",
    status_code=201,
    response_description=f"The stored run: {RUN}; and `said`, a message if the same content "
    "was stored before (null if it is new; the status is then 201, else 200).",
)
async def bring_run(
    request: Request,
    site: TheState,
    principal: AnEngineer,
    file: Uploaded,
    run: Annotated[
        str, Query(max_length=200, description="Name of the run; by default the one in the file.")
    ] = "",
    golden: Golden = "",
) -> Response:
    """Store a run; the same content is stored once, and gets this name as well."""
    workspace, person, now = of_golden(site, golden), principal.person.name, site.clock()

    def work() -> Response:
        imported = run_import.import_run(
            workspace, file.path, file.called, name=run, person=person, now=now
        )
        fields = _one_run_json(imported.row, workspace) | {"said": imported.said}
        return json_response(fields, 201 if imported.new else 200)

    return await in_turn(request, work)


# A name may have slashes: addresses with a suffix after it must come first.


@RUNS.get(
    "/runs/{run:path}/file",
    response_description="The run as a file.",
    response_class=FileResponse,
)
async def run_file(
    request: Request,
    site: TheState,
    _asking: AReader,
    run: RunName,
    format: Annotated[  # noqa: A002 - as the command line has it
        Format,
        Query(description="All but `trec` also have failed queries and those without results."),
    ] = "parquet",
    golden: Golden = "",
) -> Response:
    """Download a run."""
    workspace, row = _run(site, run, golden)

    def work() -> Response:
        [ranking] = read_stored(workspace, [row])
        folder = tempfile.mkdtemp(prefix="karat-")
        try:
            path = Path(folder) / f"{file_name(row.name)}{_ENDINGS[format]}"
            write_run(ranking, path, sidecar=False)  # only one file is sent
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return FileResponse(
            path,
            media_type="application/octet-stream",
            filename=path.name,
            background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
        )

    return await in_turn(request, work)


@RUNS.get(
    "/runs/{run:path}/explain",
    response_description="As `karat explain --format json`.",
)
async def explain(
    request: Request,
    site: TheState,
    _asking: AReader,
    run: RunName,
    query_id: str,
    measure: Annotated[str, Query(max_length=500)] = "nDCG@10",
    edition: Annotated[str, Query(description="An edition.")] = NOW,
    golden: Golden = "",
) -> Response:
    """Explain one value: what each document contributes."""
    workspace, row = _run(site, run, golden)
    explanation = await in_turn(
        request, lambda: explain_stored(workspace, row.id, query_id, measure, edition)
    )
    return dict_response(explanation.to_dict())


@RUNS.get("/runs/{run:path}", response_description=RUN)
def one_run(site: TheState, _asking: AReader, run: RunName, golden: Golden = "") -> Response:
    """One run."""
    workspace, row = _run(site, run, golden)
    return json_response(_one_run_json(row, workspace))


@RUNS.delete("/runs/{run:path}", response_description="`removed`, the number of the run.")
def remove_run(
    site: TheState,
    principal: AnEngineer,
    run: RunName,
    sha256: Annotated[
        str,
        Query(
            max_length=64,
            description="SHA-256 of the run: another run with its number is not removed.",
        ),
    ] = "",
    golden: Golden = "",
) -> Response:
    """Remove a run with its file; an error while a comparison needs it."""
    workspace, row = _run(site, run, golden)
    if sha256 not in {"", row.sha256}:
        raise NotFound(f"the run {run} has been replaced by another", fix=_LISTED)
    run_import.remove_run(workspace, row, person=principal.person.name, now=site.clock())
    return json_response({"removed": row.id})


def of_golden(site: AppState, golden: str) -> Workspace:
    """The workspace with a golden set, by default its own.

    Raises:
        NotFound: unknown golden set.
    """
    return opened(site, golden or site.workspace.golden.name)


def _run(site: AppState, run: str, golden: str) -> tuple[Workspace, RunRow]:
    """A run by its number, in any golden set, else by its name in ``golden``.

    Raises:
        NotFound: unknown run.
    """
    if run.isascii() and run.isdigit() and len(run) < _DIGITS:
        with site.workspace.store.read() as connection:
            numbered = comparisons.find_run(connection, int(run))
            if numbered is not None:
                name = golden_sets.by_id(connection, numbered[0]).name
        if numbered is not None:
            return site.opened(name), numbered[1]
    workspace = of_golden(site, golden)
    with workspace.store.read() as connection:
        by_name = runs.by_name(runs.runs(connection, workspace.golden.id))
    if run not in by_name:
        what = f"there is no run {run!r} in the golden set {workspace.golden.name!r}"
        raise NotFound(what, nearest=nearest(run, by_name, 1), fix=_LISTED)
    return workspace, by_name[run]


def _stored_runs(workspace: Workspace) -> tuple[list[RunRow], dict[str, str]]:
    """The runs of a golden set, and who stored each, by SHA-256."""
    with workspace.store.read() as connection:
        rows = runs.runs(connection, workspace.golden.id)
        return rows, comparisons.stored_by(connection, run_import.KEPT, run_import.REMOVED)


def _one_run_json(row: RunRow, workspace: Workspace) -> dict[str, Any]:
    rows, stored_by = _stored_runs(workspace)
    return _run_json(row, workspace, runs.by_name(rows), stored_by)


def _run_json(
    row: RunRow, workspace: Workspace, by_name: Mapping[str, RunRow], stored_by: Mapping[str, str]
) -> dict[str, Any]:
    names = ("sha256", "queries", "rows", "about", "added_us")
    return {
        "id": row.id,
        "golden": workspace.golden.name,
        "name": row.name,
        "also": runs.others(row, by_name),
        **{name: getattr(row, name) for name in names},
        "kept_by": stored_by.get(row.sha256),
    }


NUMBERS = APIRouter(prefix="/api", tags=["numbers"])
Name = Annotated[str, Field(max_length=500)]


class EvaluateRequest(RequestBody):
    """Runs to evaluate; the defaults are those of the command line.

    Attributes:
        runs: Stored runs, by name or number.
        measures: Names of measures; the default ones if empty.
        by: Attributes to slice by.
        golden: Name of the golden set; that of the workspace if empty.
        edition: Name of an edition; `now` is the current golden set.
        per_query: Also return each query's value.
        interval: `t`, `bca` or `none`.
        seed: Random seed of the bootstrap.
        rel: Lowest grade that counts as relevant, for measures that do not set it.
        complete: Count every query of the golden set.
        depth: Cut rankings at this depth.
        judged_only: Drop unjudged documents.
        collapse: Fold chunks into the document named in this attribute of documents.
        threshold: A best score below it counts as no answer, for queries marked no_answer.
        outcomes: Attributes to correlate measures with.
        bounds: Compute bounds for what unjudged documents could change.
    """

    runs: list[int | str] = Field(min_length=1, max_length=1000)
    measures: list[Name] = Field(default_factory=list, max_length=200)
    by: list[Name] = Field(default_factory=list, max_length=50)
    golden: Name = ""
    edition: str = NOW
    per_query: bool = False
    interval: Literal["t", "bca", "none"] = "t"
    seed: int = Field(0, ge=0, lt=2**31)
    rel: float | None = None
    complete: bool = False
    depth: int | None = Field(None, ge=1, lt=2**31)
    judged_only: bool = False
    collapse: Name | None = None
    threshold: float | None = None
    outcomes: list[Name] = Field(default_factory=list, max_length=50)
    bounds: bool | None = True


@NUMBERS.post("/evaluate", response_description="As `karat evaluate --format json`.")
async def evaluate(
    request: Request,
    site: TheState,
    _asking: AReader,
    body: Annotated[EvaluateRequest, Depends(Body(EvaluateRequest))],
) -> Response:
    """Evaluate stored runs: numbers with intervals, counts and notes. Nothing is stored."""
    workspace = of_golden(site, body.golden)
    settings = body.model_dump(exclude={"runs", "measures", "golden"})
    results = await in_turn(
        request, lambda: evaluate_stored(workspace, body.runs, body.measures, **settings)
    )
    return dict_response(results.to_dict())


COMPARISONS = APIRouter(prefix="/api", tags=["comparisons"])
COMPARISON = (
    "`id`, `golden`, `name`, `runs` (`id` and `name`, the baseline first), `settings`, `made_by`, "
    "`created_us`, `state` (`waiting`, `running`, `done`, `failed`), `error`, `computed_us`, "
    "`verdict` (in words, or null), `older` (newer judgments that would count), `changed` "
    "(whether judgments, queries or documents have changed since, and its numbers may differ)"
)
_POLL_S = 0.2


class CompareRequest(RequestBody):
    """Runs to compare.

    Attributes:
        baseline: A stored run, by name or number.
        candidates: Other stored runs.
        measures: Names of measures; the default ones if empty.
        by: Attributes to slice by.
        margin: Smaller differences do not matter.
        edition: Name of an edition; `now` is the current golden set.
        name: Name of the comparison; made from the names of the runs if empty.
        golden: Name of the golden set; that of the workspace if empty.
    """

    baseline: int | str
    candidates: list[int | str] = Field(min_length=1, max_length=100)
    measures: list[Name] = Field(default_factory=list, max_length=200)
    by: list[Name] = Field(default_factory=list, max_length=50)
    margin: float | None = None
    edition: str = NOW
    name: str = Field("", max_length=200)
    golden: Name = ""


@COMPARISONS.get("/comparisons", response_description=f"List of {COMPARISON}.")
def list_comparisons(
    site: TheState, _asking: AReader, page: Paged, golden: Golden = ""
) -> Response:
    """List the stored comparisons."""
    workspace = of_golden(site, golden)
    with workspace.store.read() as connection:
        rows = comparisons.comparisons(connection, workspace.golden.id)
        by_id = {run.id: run for run in runs.runs(connection, workspace.golden.id)}
    since = Since(workspace, rows)

    def item(row: ComparisonRow) -> dict[str, Any]:
        return _comparison_json(
            workspace, row, [by_id[run] for run in row.runs if run in by_id], since
        )

    return page.items(rows, item)


@COMPARISONS.post(
    "/comparisons",
    status_code=201,
    response_description=f"The comparison, finished or in progress: {COMPARISON}.",
)
def make(
    site: TheState,
    principal: AnEngineer,
    body: Annotated[CompareRequest, Depends(Body(CompareRequest))],
) -> Response:
    """Create a comparison, computed in the background; the response waits a little for it."""
    workspace = of_golden(site, body.golden)
    rows = find_runs(workspace, [body.baseline, *body.candidates])
    comparison = Asked(
        [row.id for row in rows],
        body.measures,
        body.by,
        body.margin,
        body.edition,
        body.name,
    )
    comparison_id = ask(site, workspace, comparison, by=principal.person.name)
    return _comparison(site, comparison_id, 201)


@COMPARISONS.get("/comparisons/{comparison_id}", response_description=COMPARISON)
async def one_comparison(
    site: TheState,
    _asking: AReader,
    comparison_id: Number,
    wait: Annotated[float, Query(ge=0, le=30, description="Seconds to wait for its result.")] = 0,
) -> Response:
    """One comparison; starts to compute it if it waits."""

    def ended() -> bool:
        workspace, row = find(site, comparison_id)
        if not stored_comparisons.to_compute(
            workspace, row, stored_comparisons.kept(workspace, row)
        ):
            return True
        with suppress(Busy):  # the next poll tries again
            compute(site, workspace, row.id, 0.0)
        return False

    until = time.monotonic() + wait
    # Polled, since another process may compute it; no thread is blocked.
    while not await run_in_threadpool(ended) and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_S)
    return await run_in_threadpool(_comparison, site, comparison_id)


@COMPARISONS.get(
    "/comparisons/{comparison_id}/result",
    response_description="As `karat compare --format json`; its `queries`, for each measure and "
    "candidate, by decreasing contribution.",
)
def result(site: TheState, _asking: AReader, comparison_id: Number) -> Response:
    """The result of a comparison."""
    comparison = _done(site, comparison_id)
    queries = [
        {name: value for name, value in row.items() if name not in {"outcome", "counts"}}
        | {"slices": _by_attribute(row["slices"])}
        for row in comparison.frame.iter_rows(named=True)
    ]
    return dict_response(comparison.to_dict() | {"queries": queries})


@COMPARISONS.get(
    "/comparisons/{comparison_id}/queries",
    response_description="List of `candidate`, `measure`, `query_id`, `text`, `outcome` (better, "
    "same, worse), `baseline_value`, `candidate_value`, `difference`, `share`, `slices`, `counts` "
    "(whether it counts in overall numbers: not with zero weight); by decreasing contribution. "
    "`outcome=better&counts=yes` lists as many queries as `wins` counts.",
)
def comparison_queries(
    site: TheState, _asking: AReader, page: Paged, comparison_id: Number
) -> Response:
    """The queries of a comparison."""
    frame: pl.DataFrame = _done(site, comparison_id).frame
    return page.table(frame)


@COMPARISONS.post("/comparisons/{comparison_id}/again", response_description=COMPARISON)
def again(site: TheState, principal: AnEngineer, comparison_id: Number) -> Response:
    """Recompute a comparison with the current judgments."""
    request_again(site, comparison_id, by=principal.person.name)
    return _comparison(site, comparison_id)


@COMPARISONS.delete(
    "/comparisons/{comparison_id}", response_description="`removed`, the number of the comparison."
)
def remove_comparison(
    site: TheState,
    principal: AnEngineer,
    comparison_id: Number,
    created_us: Annotated[
        int | None,
        Query(description="Its creation time: another comparison with its number is not removed."),
    ] = None,
) -> Response:
    """Remove a comparison with its numbers; its runs stay."""
    workspace, row = find(site, comparison_id)
    if created_us not in {None, row.created_us}:
        raise NotFound(
            f"the comparison {comparison_id} has been replaced by another",
            fix="GET /api/comparisons lists them",
        )
    run_import.remove_comparison(workspace, row, person=principal.person.name, now=site.clock())
    return json_response({"removed": row.id})


@COMPARISONS.post(
    "/comparisons/{comparison_id}/queue",
    response_description="`added` (new pairs in the queue), `raised` (pairs moved up in the "
    "queue), `golds`.",
)
def queue_next(site: TheState, principal: AnEngineer, comparison_id: Number) -> Response:
    """Put the pairs whose grades could flip the sign at the front of the queue."""
    comparison = _done(site, comparison_id)
    workspace, row = find(site, comparison_id)
    queued = stored_comparisons.queue_next(
        workspace, row, comparison, by=principal.person.name, now=site.clock()
    )
    return json_response(queued)


def _done(site: AppState, comparison_id: int) -> StoredComparison:
    _, row, comparison = look(site, comparison_id)
    if comparison is None:
        if row.state == "failed":
            raise UsageError(row.error or "the comparison failed", fix="recompute it")
        raise UsageError("the comparison is not computed yet", fix="wait until its state is done")
    return comparison


def _comparison(site: AppState, comparison_id: int, status: int = 200) -> Response:
    workspace, row = find(site, comparison_id)
    compared = stored_comparisons.runs_of(workspace, row)
    return json_response(_comparison_json(workspace, row, compared, Since(workspace)), status)


def _comparison_json(
    workspace: Workspace, row: ComparisonRow, compared: Sequence[RunRow], since: Since
) -> dict[str, Any]:
    older = since.older(row, compared)
    names = ("settings", "made_by", "created_us", "state", "error", "computed_us")
    return {
        "id": row.id,
        "golden": workspace.golden.name,
        "name": row.name,
        "runs": [{"id": run.id, "name": run.name} for run in compared],
        **{name: getattr(row, name) for name in names},
        "verdict": verdict_of(workspace, row, compared),
        "older": older.judgments,
        "changed": older.changed,
    }


def _by_attribute(slices: list[str]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for name in slices:
        attribute, _, value = name.partition("=")
        out.setdefault(attribute, []).append(value)
    return out


CATALOGUE = APIRouter(prefix="/api", tags=["numbers"])
Size = Annotated[float, Query(gt=0, le=1e6, allow_inf_nan=False)]


@CATALOGUE.get(
    "/measures", response_description="List of the rows of `karat measures --format json`."
)
def measures(_asking: AReader, page: Paged) -> Response:
    """List the measures."""
    return page.items([as_json(entry) for entry in entries()])


@CATALOGUE.get(
    "/measures/{name:path}", response_description="As `karat measures NAME --format json`."
)
def measure(_asking: AReader, name: str) -> Response:
    """One measure, by any of its names."""
    try:
        return json_response(as_json(find_entry(name)))
    except UsageError as error:
        raise NotFound(error.what, nearest=error.nearest, fix=error.fix) from None


@CATALOGUE.get("/plan", response_description="As `karat golden plan --format json`.")
def plan(
    _asking: AReader,
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
