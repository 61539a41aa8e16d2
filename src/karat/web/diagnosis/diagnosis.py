"""The diagnosis of a run: which stage loses relevant documents, and why queries fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

from fastapi import APIRouter, File, Query, Request, Response, UploadFile

from karat.errors import InputError, KaratError, UsageError
from karat.reports.charts.diagnosis import bump
from karat.reports.diagnosis.diagnosis import entry, fixes_table, roads_table, summary
from karat.reports.html.figures import DrawnChart
from karat.reports.table import Column, Table
from karat.tables.diagnosis.results import Diagnosis, QueryMode, Road
from karat.tables.stored_runs import RunRow
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import NotFound, Said, or_not_found, refused
from karat.web.framework.form_values import Id
from karat.web.framework.jobs import COMPUTING
from karat.web.framework.lists import Ask, Listed, frame_of, listed
from karat.web.framework.pages import Page, redirect, show
from karat.web.framework.state import AppState, TheState
from karat.web.framework.uploads import uploaded
from karat.workflows.diagnosis import stored_diagnoses, stored_traces
from karat.workflows.diagnosis.stored_diagnoses import Choice, StoredDiagnosis
from karat.workflows.workspace.artifacts import ArtifactCorrupted
from karat.workflows.workspace.evaluate_stored import run_by_id
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
WAIT_S = 3.0
"""Longest wait of a page for its numbers."""
_OFFERED = 30  # runs that are offered as further stages, the newest of them
Stages = Annotated[list[str], Query(alias="stage", description="The runs of the stages, in order.")]


@dataclass(frozen=True)
class OfferedStage:
    """A run in the form."""

    stage: str
    chosen: bool
    own: bool  # whether it is the diagnosed run itself
    earlier: str  # the address with this stage one place earlier; empty if it cannot be


@dataclass(frozen=True, kw_only=True)
class _StagesPage(Page):
    """A page of a run and the stages of its pipeline."""

    run: RunRow
    stages: Sequence[str]

    @property
    def as_json(self) -> str:
        """The address of this page as JSON."""
        return f"{_ask(self.stages)}{'&' if self.stages else '?'}format=json"

    @property
    def entry(self) -> Any:
        """From a mode to its description."""
        return entry


@dataclass(frozen=True, kw_only=True)
class DiagnosisPage(_StagesPage):
    """The diagnosis of a run; before stages are chosen, only the form."""

    template: ClassVar[str] = "diagnosis.html.j2"
    offered: Sequence[OfferedStage]
    traced: bool
    wrong: Said | None = None
    error: str | None = None
    summary: str = ""
    diagnosis: Diagnosis | None = None
    fixes: Table | None = field(default=None, repr=False)
    queries: Listed | None = None


@dataclass(frozen=True, kw_only=True)
class DiagnosedQueryPage(_StagesPage):
    """The relevant documents of a query on their way through the stages."""

    template: ClassVar[str] = "diagnosed_query.html.j2"
    query_id: str
    failure: QueryMode | None  # None if the query does not fail
    measure: str
    pipeline: str
    roads: Sequence[Road]
    chart: DrawnChart = field(repr=False)
    table: Table = field(repr=False)


@ROUTER.get("/runs/{run_id}/diagnosis")
def run_diagnosis(
    request: Request,
    site: TheState,
    _asking: AReader,
    run_id: Id,
    stages: Stages = [],  # noqa: B006
) -> Response:
    """Show which stage loses relevant documents, what fixes are worth, and why queries fail."""
    return _diagnosis_page(request, site, run_id, stages)


@ROUTER.post("/runs/{run_id}/diagnosis")
def add_trace(
    request: Request,
    site: TheState,
    principal: AnEngineer,
    run_id: Id,
    file: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Store the trace of a run, and show its diagnosis."""
    workspace, row = _run(site, run_id)
    person, now = principal.person.name, site.clock()
    try:
        with uploaded(file, "trace") as (path, called):
            stored_traces.store_trace(workspace, row, path, called, person=person, now=now)
    except (InputError, UsageError) as error:
        status, wrong = refused(error)
        return _diagnosis_page(request, site, run_id, [], status, wrong=wrong)
    return redirect(site, f"/runs/{row.id}/diagnosis")


def _diagnosis_page(
    request: Request,
    site: AppState,
    run_id: int,
    stages: Sequence[str],
    status: int = 200,
    **more: Any,
) -> Response:
    workspace, row = _run(site, run_id)
    pipeline = _in_order(stored_diagnoses.chosen(workspace, stages), row)
    names = [stage.stage for stage in pipeline]
    common: dict[str, Any] = {
        "title": f"Diagnosis of {row.name}",
        "crumbs": [("Runs", "/runs"), (row.name, f"/runs/{row.id}")],
        "run": row,
        "offered": _offered(workspace, row, pipeline),
        "stages": names,
        "traced": stored_traces.mark(workspace, row) is not None,
    }
    if not pipeline and not common["traced"]:
        return show(request, DiagnosisPage(**common, **more), status)
    try:
        found = _diagnosed(workspace, row, pipeline)
    except KaratError as error:
        return show(request, DiagnosisPage(**common, **more, error=str(error)), status)
    if found is None:
        return show(request, DiagnosisPage(**common, **more), status)
    page = DiagnosisPage(
        **common,
        **more,
        summary=summary(found.diagnosis),
        diagnosis=found.diagnosis,
        fixes=replace(fixes_table(found.diagnosis), title=""),
        queries=_queries(found.diagnosis, row, names, Ask.of(request)),
    )
    return show(request, page, status)


@ROUTER.get("/runs/{run_id}/diagnosis/{query_id:path}")
def query_diagnosis(
    request: Request,
    site: TheState,
    _asking: AReader,
    run_id: Id,
    query_id: str,
    stages: Stages = [],  # noqa: B006
) -> Response:
    """Show the relevant documents of a query, with their ranks in each stage."""
    workspace, row = _run(site, run_id)
    pipeline = _in_order(stored_diagnoses.chosen(workspace, stages), row)
    names = [stage.stage for stage in pipeline]
    for _ in range(2):  # damaged files are recomputed once
        traced = stored_traces.mark(workspace, row) is not None
        found = _diagnosed(workspace, row, pipeline) if pipeline or traced else None
        if found is None:
            break
        with suppress(ArtifactCorrupted):
            return show(request, _query_page(workspace, row, found, query_id, names))
    return redirect(site, f"/runs/{row.id}/diagnosis{_ask(names)}")


def _query_page(
    workspace: Workspace,
    row: RunRow,
    found: StoredDiagnosis,
    query_id: str,
    stages: Sequence[str],
) -> DiagnosedQueryPage:
    with or_not_found():
        roads = found.roads(query_id)
    diagnosis, above = found.diagnosis, f"/runs/{row.id}/diagnosis{_ask(stages)}"
    failure = next((each for each in diagnosis.queries if each.query_id == query_id), None)
    text = failure.text if failure is not None else None
    golden = quote(workspace.golden.name, safe="")

    def pair(road: Road) -> str:
        asked = urlencode({"query": query_id, "document": road.doc_id})
        return f"/golden/{golden}/pair?{asked}"

    return DiagnosedQueryPage(
        title=text or query_id,
        crumbs=[("Runs", "/runs"), (row.name, f"/runs/{row.id}"), ("Diagnosis", above)],
        run=row,
        query_id=query_id,
        failure=failure,
        measure=diagnosis.measure,
        pipeline=diagnosis.pipeline,
        stages=stages,
        roads=roads,
        chart=bump(query_id, roads),
        table=replace(roads_table(query_id, roads, pair), title=""),
    )


def _run(site: AppState, run_id: int) -> tuple[Workspace, RunRow]:
    found = run_by_id(site.workspace, run_id)
    if found is None:
        raise NotFound(f"there is no run {run_id}", fix="choose one from the list of runs")
    return found


def _ask(stages: Sequence[str]) -> str:
    return "?" + urlencode({"stage": list(stages)}, doseq=True) if stages else ""


def _in_order(stages: Sequence[Choice], row: RunRow) -> list[Choice]:
    """The stages as chosen, but the run itself is the last."""
    return sorted(stages, key=lambda stage: stage.row.id == row.id)


def _offered(workspace: Workspace, row: RunRow, pipeline: Sequence[Choice]) -> list[OfferedStage]:
    """The chosen runs in order, then the others, and the run itself at the end."""
    names, taken = [stage.stage for stage in pipeline], {stage.row.id for stage in pipeline}
    others = [each for each in stored_diagnoses.choices(workspace) if each.row.id not in taken]
    own = [each for each in (*others, *pipeline) if each.row.id == row.id]
    others = [each for each in others if each not in own][-_OFFERED:]
    before = [each for each in pipeline if each not in own]
    offered = []
    for at, each in enumerate([*before, *others, *own]):
        moved = (
            [*names[: at - 1], names[at], names[at - 1], *names[at + 1 :]]
            if (0 < at < len(before))
            else []
        )
        offered.append(OfferedStage(each.stage, each.row.id in taken, each in own, _ask(moved)))
    return offered


def _diagnosed(
    workspace: Workspace, row: RunRow, stages: Sequence[Choice]
) -> StoredDiagnosis | None:
    """The diagnosis, computed unless it is there; None if that takes longer than a short wait."""
    found = stored_diagnoses.kept(workspace, row, stages)
    if found is None:
        job = "diagnosis", workspace.store.url, stored_diagnoses.key(workspace, row, stages)
        COMPUTING.run(job, lambda: stored_diagnoses.compute(workspace, row, stages), WAIT_S)
        found = stored_diagnoses.kept(workspace, row, stages)
    return found


def _queries(found: Diagnosis, row: RunRow, stages: Sequence[str], ask: Ask) -> Listed:
    """A row per failing query, the largest losses first."""
    records = [
        (each, {"query": each.text or each.query_id, "mode": entry(each.mode).name})
        for each in found.queries
    ]
    frame = frame_of(records, text="query query_id mode stage evidence doc_id", real="value loss")

    def link(query: Mapping[str, Any]) -> str:
        return f"/runs/{row.id}/diagnosis/{quote(query['query_id'], safe='')}{_ask(stages)}"

    columns = [
        Column("query", "Query", link=link),
        Column("query_id", "Id"),
        Column("value", found.measure, "number"),
        Column("mode", "Why", choices=True, vocabulary=[entry(m.mode).name for m in found.modes]),
        Column("doc_id", "Document"),
        Column("evidence", "Evidence"),
        Column("loss", "Loss", "number"),
        Column("stage", "Stage", shown=False),
    ]
    return listed(frame, columns, ask, search=["query", "query_id", "doc_id", "evidence"])
