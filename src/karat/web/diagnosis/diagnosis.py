"""The diagnosis of a run: which stage loses relevant documents, and why queries fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

from fastapi import APIRouter, File, Query, Response, UploadFile

from karat.diagnosis.waterfall import SERVED
from karat.errors import InputError, KaratError, UsageError
from karat.reports.charts.diagnosis import bump
from karat.reports.diagnosis.diagnosis import (
    entry,
    fixes_table,
    lost_by,
    modes_by,
    most_lost,
    reliability_table,
    roads_table,
    summary,
)
from karat.reports.html.figures import DrawnChart
from karat.reports.phrases.numbers import percent
from karat.reports.table import Column, Table
from karat.tables.diagnosis.results import Diagnosis, QueryMode, Road
from karat.tables.workspace import RunRow
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.diagnosis_links import diagnosis_address
from karat.web.framework.errors import Said, or_not_found, refused
from karat.web.framework.form_values import Id
from karat.web.framework.jobs import stored_or_computed
from karat.web.framework.lists import Ask, Listed, frame_of, listed
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.web.framework.uploads import uploaded
from karat.web.offline.runs import find_run
from karat.workflows.diagnosis import stored_traces
from karat.workflows.diagnosis.query_stages import QueryStage, other_roads, query_stages, roads_in
from karat.workflows.diagnosis.stored_diagnoses import Diagnosing, StoredDiagnosis, judged_by
from karat.workflows.workspace import run_stages
from karat.workflows.workspace.artifacts import ArtifactCorrupted
from karat.workflows.workspace.evaluate_stored import find_runs
from karat.workflows.workspace.known_queries import query_frame
from karat.workflows.workspace.run_stages import Choice
from karat.workflows.workspace.stored_evaluations import value_of
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
WAIT_S = 3.0
"""Longest wait of a page for its numbers."""
_OFFERED = 30  # runs that are offered as further stages, the newest of them
Stages = Annotated[list[str], Query(alias="stage", description="The runs of the stages, in order.")]
Other = Annotated[str, Query(max_length=500)]  # number or name of another run


@dataclass(frozen=True)
class OfferedStage:
    """A run in the form."""

    stage: str
    chosen: bool
    own: bool  # whether it is the diagnosed run itself
    earlier: str  # the address with this stage one place earlier; empty if it cannot be


@dataclass(frozen=True, kw_only=True)
class _StagesPage(Page):
    run: RunRow
    stages: Sequence[str]
    against: RunRow | None  # queries that it has a higher value for fail too

    @property
    def as_json(self) -> str:
        """The address of this page as JSON."""
        asked = _ask(self.stages, self.against)
        return f"{asked}{'&' if asked else '?'}format=json"

    @property
    def entry(self) -> Any:
        return entry


@dataclass(frozen=True, kw_only=True)
class DiagnosisPage(_StagesPage):
    """The diagnosis of a run; before stages are chosen, only the form."""

    template: ClassVar[str] = "diagnosis.html.j2"
    offered: Sequence[OfferedStage]
    traced: bool
    proposed: Sequence[str] = ()  # names of runs whose documents make the run, it itself the last
    wrong: Said | None = None
    error: str | None = None
    summary: str = ""
    diagnosis: Diagnosis | None = None
    fixes: Table | None = field(default=None, repr=False)
    # What stages lose, and why queries fail, by grade and slice
    parts: Sequence[Table] = field(default=(), repr=False)
    queries: Listed | None = None

    @property
    def ready(self) -> tuple[str, str] | None:
        """The proposed stages: in words, and as an address."""
        if not self.proposed:
            return None
        return _arrow(self.proposed), _ask(self.proposed, self.against)


@dataclass(frozen=True)
class ScoredDocument:
    doc_id: str
    grade: float | None
    # Stage, rank, score, and what that is made of, the largest part first
    scores: Sequence[tuple[str, int, float, Sequence[tuple[str, float]]]]


@dataclass(frozen=True)
class Baseline:
    """The same query in another run."""

    run: str
    value: float | None  # None if it is not computed
    address: str | None = None  # of its diagnosis; None if its stages are not known
    roads: Sequence[Road] = ()  # of the relevant documents; none if its stages are not known
    ranks: Mapping[str, int] = field(default_factory=dict, repr=False)  # those that it served
    chart: DrawnChart | None = field(default=None, repr=False)
    table: Table | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class DiagnosedQueryPage(_StagesPage):
    """The relevant documents of a query on their way through the stages, and what was served."""

    template: ClassVar[str] = "diagnosed_query.html.j2"
    query_id: str
    failure: QueryMode | None  # None if the query does not fail
    measure: str
    value: float | None
    counts: bool  # whether it is diagnosed: something relevant is judged
    pipeline: str
    roads: Sequence[Road]
    others: Sequence[Road]  # what else was served
    details: Sequence[QueryStage]
    baseline: Baseline | None
    scores: Sequence[ScoredDocument] = field(repr=False)
    chart: DrawnChart | None = field(repr=False)  # None without documents
    table: Table = field(repr=False)
    others_table: Table = field(repr=False)

    @property
    def road(self) -> str:
        """The ranks of the document that loses most, in words."""
        lost = self.failure and self.failure.doc_id
        ranks = next((road.ranks for road in self.roads if road.doc_id == lost), {})
        return ", ".join(
            f"not {name}" if rank is None and name == SERVED
            else f"not in {name}" if rank is None
            else f"{name} at rank {rank:,}"
            for name, rank in ranks.items()
        )  # fmt: skip


@ROUTER.get("/diagnosis")
def diagnoses(call: AReader) -> Response:
    """List the runs with a trace, or with stages among the other runs."""
    workspace = call.workspace
    found = run_stages.with_stages(workspace)
    judgments = judged_by(workspace)
    records = [(row, _outlined(workspace, row, stages, judgments)) for row, stages in found]
    measure = next((more["measure"] for _, more in records if more["measure"]), None)
    columns = [
        Column("name", "Run", link=lambda row: row["address"]),
        Column("stages", "Stages"),
        Column("value", str(measure or "Value"), "number"),
        Column("failing", "Queries fail", "count"),
        Column("mode", "Most often"),
        Column("lost", "Most lost in"),
        Column("id", "Number", "count", shown=False),
        Column("measure", "Measure", shown=False),
        Column("address", "Address", shown=False),
    ]
    page = PlainPage(
        "diagnoses.html.j2",
        "Diagnosis",
        golden=workspace.golden.name,
        runs=listed(frame_of(records, columns), columns, call.ask, search=["name", "stages"]),
    )
    return show(call, page)


def _outlined(
    workspace: Workspace, row: RunRow, stages: Sequence[str], judgments: str
) -> dict[str, Any]:
    """A row of the list; what loses most only where it is computed."""
    steps = run_stages.chosen(workspace, stages)
    stored = Diagnosing(workspace, row, steps, judgments=judgments).kept()
    found = None if stored is None else stored.diagnosis
    by = _arrow(stages) if stages else "its trace"
    first = found.modes[0] if found and found.modes else None
    name, lost, given = most_lost(found) if found and found.stages else ("", 0, 0)
    return {
        "address": diagnosis_address(row.id, stages),
        "stages": found.pipeline if found and found.pipeline else by,
        "measure": found and found.measure,
        "value": found and found.value,
        "failing": found and found.failing,
        "mode": f"{entry(first.mode).name} ({percent(first.share)})" if first else None,
        "lost": f"{name}: {lost:,} of {given:,}" if lost else None,
    }


@ROUTER.get("/runs/{run_id}/diagnosis")
def run_diagnosis(
    call: AReader,
    run_id: Id,
    stages: Stages = [],  # noqa: B006
    baseline: Other = "",
) -> Response:
    """Show which stage loses relevant documents, what fixes are worth, and why queries fail."""
    return _diagnosis_page(call, run_id, stages, baseline)


@ROUTER.post("/runs/{run_id}/diagnosis")
def add_trace(
    call: AnEngineer, run_id: Id, file: Annotated[UploadFile | None, File()] = None
) -> Response:
    workspace, row = find_run(call.site, run_id)
    try:
        with uploaded(file, "trace") as (path, called):
            stored_traces.store_trace(workspace, row, path, called, **call.by)
    except (InputError, UsageError) as error:
        status, wrong = refused(error)
        return _diagnosis_page(call, run_id, [], "", status, wrong=wrong)
    return redirect(call, f"/runs/{row.id}/diagnosis")


def _diagnosis_page(
    call: Call, run_id: int, stages: Sequence[str], baseline: str, status: int = 200, **more: Any
) -> Response:
    workspace, row = find_run(call.site, run_id)
    against = find_runs(workspace, [baseline])[0] if baseline else None
    pipeline = _in_order(run_stages.chosen(workspace, stages), row)
    names = [stage.stage for stage in pipeline]
    common: dict[str, Any] = {
        "title": f"Diagnosis of {row.name}",
        "crumbs": [("Runs", "/runs"), (row.name, f"/runs/{row.id}")],
        "run": row,
        "offered": _offered(workspace, row, pipeline, against),
        "stages": names,
        "against": against,
        "traced": run_stages.is_traced(workspace, row),
    }
    if not pipeline and not common["traced"]:
        common["proposed"] = run_stages.stages_of(workspace, row) or []
        return show(call, DiagnosisPage(**common, **more), status)
    try:
        asked = Diagnosing(workspace, row, pipeline, against)
        found = stored_or_computed("diagnosis", asked, WAIT_S)
    except KaratError as error:
        return show(call, DiagnosisPage(**common, **more, error=str(error)), status)
    if found is None:
        return show(call, DiagnosisPage(**common, **more), status)
    page = DiagnosisPage(
        **common,
        **more,
        summary=summary(found.diagnosis),
        diagnosis=found.diagnosis,
        fixes=replace(fixes_table(found.diagnosis), title=""),
        parts=[table(found.diagnosis) for table in (lost_by, modes_by, reliability_table)],
        queries=_queries(found.diagnosis, row, names, against, call.ask),
    )
    return show(call, page, status)


@ROUTER.get("/runs/{run_id}/diagnosis/{query_id:path}")
def query_diagnosis(
    call: AReader,
    run_id: Id,
    query_id: str,
    stages: Stages = [],  # noqa: B006
    baseline: Other = "",
) -> Response:
    """Show the documents of a query, with their ranks in each stage, next to those of a baseline.

    ``baseline`` is the number or name of another run.
    """
    workspace, row = find_run(call.site, run_id)
    before = find_runs(workspace, [baseline])[0] if baseline else None
    pipeline = _in_order(run_stages.chosen(workspace, stages), row)
    names = [stage.stage for stage in pipeline]
    for _ in range(2):  # damaged files are recomputed once
        traced = run_stages.is_traced(workspace, row)
        asked = Diagnosing(workspace, row, pipeline, before)
        known = pipeline or traced
        found = stored_or_computed("diagnosis", asked, WAIT_S) if known else None
        if found is None:
            break
        with suppress(ArtifactCorrupted):
            return show(call, _query_page(workspace, row, found, query_id, pipeline, before))
    return redirect(call, diagnosis_address(row.id, names, "", before))


def _query_page(
    workspace: Workspace,
    row: RunRow,
    found: StoredDiagnosis,
    query_id: str,
    pipeline: Sequence[Choice],
    before: RunRow | None,
) -> DiagnosedQueryPage:
    diagnosis, stages = found.diagnosis, [stage.stage for stage in pipeline]
    details = query_stages(workspace, row, pipeline, query_id)
    with or_not_found():
        try:
            counts, roads = True, found.roads(query_id)
        except UsageError:
            if not details[-1].ranks:
                raise
            counts, roads = False, []
    failure = next((each for each in diagnosis.queries if each.query_id == query_id), None)
    texts = query_frame(workspace).filter(query_id=query_id)["text"].drop_nulls().to_list()
    golden = quote(workspace.golden.name, safe="")
    others = other_roads(workspace, query_id, roads, details)
    measure = diagnosis.measure
    other = None if before is None else _baseline(workspace, before, row, query_id, measure, roads)
    if other is not None and other.value is None and failure is not None:
        other = replace(other, value=failure.baseline_value)
    earlier = (f"served by {other.run}", other.ranks) if other else None

    def pair(road: Road) -> str:
        asked = urlencode({"query": query_id, "document": road.doc_id})
        return f"/golden/{golden}/pair?{asked}"

    tables = (roads_table(query_id, each, pair, earlier) for each in (roads, others))
    table, others_table = (replace(each, title="") for each in tables)
    times = {each.stage: each.latency_us for each in details if each.latency_us is not None}
    return DiagnosedQueryPage(
        title=texts[0] if texts else query_id,
        crumbs=[
            ("Runs", "/runs"),
            (row.name, f"/runs/{row.id}"),
            ("Diagnosis", diagnosis_address(row.id, stages, "", before)),
        ],
        run=row,
        query_id=query_id,
        failure=failure,
        measure=measure,
        value=failure.value if failure else value_of(workspace, row, measure, query_id),
        counts=counts,
        pipeline=diagnosis.pipeline,
        stages=stages,
        against=before,
        roads=roads,
        others=others,
        details=details,
        baseline=other,
        scores=_scores([*roads, *others], details),
        chart=bump(query_id, roads, others, times) if roads or others else None,
        table=table,
        others_table=others_table,
    )


def _baseline(
    workspace: Workspace, before: RunRow, row: RunRow, query_id: str, measure: str,
    roads: Sequence[Road],
) -> Baseline:  # fmt: skip
    """The relevant documents of a query in another run."""
    value = value_of(workspace, before, measure, query_id)
    stages = run_stages.stages_of(workspace, before)
    pipeline = run_stages.chosen(workspace, stages or [])
    *found, served = query_stages(workspace, before, pipeline, query_id)
    if stages is None or not roads:
        return Baseline(before.name, value, ranks=served.ranks)
    there = roads_in([*found, served], roads)
    times = {each.stage: each.latency_us for each in found if each.latency_us is not None}
    table = roads_table(query_id, [replace(road, lost_at=None) for road in there])
    return Baseline(
        before.name,
        value,
        diagnosis_address(before.id, stages, query_id, row),
        there,
        served.ranks,
        bump(query_id, there, times=times, run=before.name),
        replace(table, title=""),
    )


def _scores(roads: Sequence[Road], details: Sequence[QueryStage]) -> list[ScoredDocument]:
    found = []
    for road in roads:
        doc = road.doc_id
        scores = [
            (each.stage, each.ranks[doc], each.scores[doc],
             sorted(each.parts.get(doc, {}).items(), key=lambda part: -abs(part[1])))
            for each in details
            if each.scores.get(doc) is not None
        ]  # fmt: skip
        if scores:
            found.append(ScoredDocument(doc, road.grade, scores))
    return found


def _ask(stages: Sequence[str], against: RunRow | None) -> str:
    params = [("stage", each) for each in stages]
    params += [] if against is None else [("baseline", str(against.id))]
    return f"?{urlencode(params)}" if params else ""


def _arrow(stages: Sequence[str]) -> str:
    return " → ".join(part for part in (", ".join(stages[:-1]), stages[-1]) if part)


def _in_order(stages: Sequence[Choice], row: RunRow) -> list[Choice]:
    """The stages as chosen, but the run itself is the last."""
    return sorted(stages, key=lambda stage: stage.row.id == row.id)


def _offered(
    workspace: Workspace, row: RunRow, pipeline: Sequence[Choice], against: RunRow | None
) -> list[OfferedStage]:
    """The chosen runs in order, then the others, and the run itself at the end."""
    names, taken = [stage.stage for stage in pipeline], {stage.row.id for stage in pipeline}
    others = [each for each in run_stages.choices(workspace) if each.row.id not in taken]
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
        earlier = _ask(moved, against) if moved else ""
        offered.append(OfferedStage(each.stage, each.row.id in taken, each in own, earlier))
    return offered


def _queries(
    found: Diagnosis, row: RunRow, stages: Sequence[str], against: RunRow | None, ask: Ask
) -> Listed:
    """A row per failing query, the largest losses first."""
    records = [
        (each, {"query": each.text or each.query_id, "mode": entry(each.mode).name})
        for each in found.queries
    ]

    def link(query: Mapping[str, Any]) -> str:
        return diagnosis_address(row.id, stages, query["query_id"], against)

    columns = [
        Column("query", "Query", link=link),
        Column("query_id", "Id"),
        Column("value", found.measure, "number"),
        Column(
            "baseline_value",
            f"In {against.name if against else 'the baseline'}",
            "number",
            shown=against is not None,
        ),
        Column("mode", "Why", choices=True, vocabulary=[entry(m.mode).name for m in found.modes]),
        Column("doc_id", "Document"),
        Column("evidence", "Evidence"),
        Column("loss", "Loss", "number"),
        Column("stage", "Stage", shown=False),
    ]
    frame = frame_of(records, columns)
    return listed(frame, columns, ask, search=["query", "query_id", "doc_id", "evidence"])
