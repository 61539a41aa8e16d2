"""Comparisons: their list, and the results of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, Form, Query, Response

from karat.errors import UsageError
from karat.reports.diagnosis.diagnosis import entry
from karat.reports.offline.comparison import stage_latency
from karat.reports.offline.evaluation import answer_changes, what_changed
from karat.reports.phrases import report
from karat.reports.phrases.costs import cost_lines
from karat.reports.table import Column, Table
from karat.tables.comparison import Comparison, Difference
from karat.tables.results import Result
from karat.tables.workspace import ComparisonRow, RunRow
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.chart_links import Charts, charts
from karat.web.framework.diagnosis_links import Why, begin, whys
from karat.web.framework.form_values import Id, packed, unpacked
from karat.web.framework.gate_links import GateLinks, gate_links
from karat.web.framework.idempotency import redirect_with, show_with
from karat.web.framework.lists import Ask, Listed, frame_of, listed
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.web.framework.progress import Job, last
from karat.web.framework.state import AppState
from karat.web.offline.counted import counts_in, in_slice, narrowed, uncounted
from karat.web.offline.stored_comparisons import (
    axes,
    confirm,
    find,
    job_of,
    look,
    request_again,
    state_of,
)
from karat.workflows.offline.stages import CANCELLED
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.artifacts import ArtifactCorrupted
from karat.workflows.workspace.run_import import remove_comparison
from karat.workflows.workspace.stored_comparisons import StoredComparison
from karat.workflows.workspace.stored_runs import stored_run_names
from karat.workflows.workspace.stored_views import document_titles
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
WAIT_S = 0.5
"""Longest wait of a page for the diagnosis of its candidate, the first time."""
OUTCOMES = ("better", "same", "worse")
"""Outcomes of a query under a measure."""
_PENDING = {
    "waiting": "waiting to be computed",
    "running": "being computed",
    "failed": "could not be computed",
    CANCELLED: "cancelled",
}


@dataclass(frozen=True, kw_only=True)
class ComparisonPage(Page):
    template: ClassVar[str] = "comparison.html.j2"
    row: ComparisonRow
    runs: Sequence[RunRow]
    since: str = ""
    numbers: Mapping[str, Any] | None = None
    job: Job | None = field(default=None, repr=False)  # its computation, while it runs
    lead: Sequence[str] = ()
    comparison: Comparison | None = field(default=None, repr=False)
    results: Sequence[Result] = ()
    measure: str = ""
    candidate: str = ""
    slice: str = ""
    uncounted: str = ""
    # Queries of the list by outcome; those of zero weight are excluded
    counts: Mapping[str, int] = field(default_factory=dict)
    zero_weight: int = 0
    queries: Listed | None = None
    gates: GateLinks | None = None  # the gates of the candidate against the baseline
    whys: Sequence[Why] = ()  # the diagnosis of each run whose stages are known
    listing: bool = field(default=False, repr=False)
    titles: Mapping[str, str] = field(default_factory=dict, repr=False)
    queued: int | None = None
    raised: int = 0
    charts: Charts | None = field(default=None, repr=False)
    sheets: Sequence[Table] = field(default=(), repr=False)
    view_ids: Mapping[Any, str] = field(default_factory=dict, repr=False)
    parts: Mapping[Any, Mapping[str, Sequence[Difference]]] = field(
        default_factory=dict, repr=False
    )
    links: Mapping[Any, Mapping[str, str]] = field(default_factory=dict, repr=False)
    # Link of each outcome, by measure and candidate
    ways: Mapping[Any, Mapping[str, str]] = field(default_factory=dict, repr=False)


@ROUTER.get("/comparisons")
def list_comparisons(call: AReader) -> Response:
    workspace = call.workspace
    stored_rows = stored_comparisons.listed(workspace)
    columns = [
        Column("name", "Comparison", link=lambda row: f"/comparisons/{row['id']}"),
        Column("said", "Verdict"),
        Column("baseline", "Baseline", choices=True),
        Column("edition", "Grades of"),
        Column("computed", "Computed", "time"),
        Column("by", "By"),
        Column("id", "Number", "count", shown=False),
        Column("state", "State", shown=False),
    ]
    frame = frame_of(((each.row, _listed(call.site, each)) for each in stored_rows), columns)
    page = PlainPage(
        "comparisons.html.j2",
        "Comparisons",
        golden=workspace.golden.name,
        comparisons=listed(frame, columns, call.ask, search=["name", "said"]),
        several=len(stored_run_names(workspace)) > 1,
    )
    return show(call, page)


def _listed(site: AppState, each: stored_comparisons.Listed) -> dict[str, Any]:
    row, state = each.row, state_of(site, each.row)
    return {
        "said": each.verdict or _PENDING.get(CANCELLED if row.error == CANCELLED else state),
        "baseline": _baseline(each),
        "edition": row.settings["edition"],
        "computed": row.computed_us if row.state == "done" else None,
        "by": row.made_by,
        "state": state,
    }


@ROUTER.get("/comparisons/{comparison_id}")
def one_comparison(
    call: AReader,
    comparison_id: Id,
    measure: str = "",
    candidate: str = "",
    part: Annotated[str, Query(alias="slice")] = "",
) -> Response:
    return show_with(
        call,
        f"/comparisons/{comparison_id}",
        lambda flash: _comparison_page(call, comparison_id, measure, candidate, part, flash.said),
    )


def _comparison_page(
    call: Call, comparison_id: int, measure: str, candidate: str, part: str, just_queued: str
) -> ComparisonPage:
    workspace, row, result = look(call.site, comparison_id)
    numbers: Mapping[str, Any] = {}
    if result is not None and call.request.query_params.get("format") == "json":
        try:
            numbers = result.to_dict()
        except ArtifactCorrupted:
            workspace, row, result = look(call.site, comparison_id)
            numbers = result.to_dict() if result is not None else {}
    common: dict[str, Any] = {
        "title": row.name,
        "crumbs": [("Comparisons", "/comparisons")],
        "row": row,
    }
    [described] = stored_comparisons.described(workspace, [row])
    common["runs"] = described.runs
    common["job"] = last(call.site, job_of(row)) if row.state == "waiting" else None
    if result is None:
        return ComparisonPage(**common)
    queued, raised = unpacked(just_queued, 2) or [None, None]
    comparison = result.comparison
    measures, candidates = axes(comparison)
    measure, candidate = measure or measures[0], candidate or candidates[0]
    if measure not in measures or candidate not in candidates:
        unknown = measure if measure not in measures else candidate
        raise UsageError(
            f"the comparison has no measure or candidate {unknown!r}",
            nearest=[*measures, *candidates],
        )
    several = len(candidates) > 1
    query_pages = f"{call.site.settings.base}/comparisons/{row.id}/queries/"

    def address(lead: Mapping[str, str]) -> str:
        if "query" in lead:
            return query_pages + quote(lead["query"], safe="")
        params = narrowed({name: value for name, value in lead.items() if value}, result.frame)
        if not several:
            params.pop("candidate", None)
        return f"?{urlencode(params)}#queries"

    parts, links = _slices(comparison, address)
    list_rows = result.frame.filter(candidate=candidate, measure=measure)
    sliced = [(str(each.attribute), str(each.slice)) for each in comparison.slices]
    list_rows = in_slice(list_rows, part, result.frame, sliced)
    counted_rows = counts_in(list_rows)
    counts = dict(counted_rows.group_by("outcome").len().iter_rows())
    known = [
        replace(why, diagnosis=begin(why, WAIT_S)) if why.run == candidate else why
        for why in whys(workspace, described.runs)
    ]
    why = next((each for each in known if each.run == candidate), None)
    doc_ids = sorted({each.doc_id for each in comparison.judge_next})
    titles = document_titles(workspace, doc_ids)
    return ComparisonPage(
        **common,
        since=described.older.said,
        numbers=numbers,
        lead=_lead(result, candidates),
        comparison=comparison,
        results=result.results.results,
        measure=measure,
        candidate=candidate,
        slice=part,
        uncounted=uncounted(result.frame),
        counts={outcome: counts.get(outcome, 0) for outcome in OUTCOMES},
        zero_weight=list_rows.height - counted_rows.height,
        queries=list_of_queries(row, result, list_rows, measure, candidate, call.ask, why),
        gates=_gates(workspace, described.runs, candidate),
        whys=known,
        listing=bool(call.request.query_params),
        titles=titles,
        queued=None if queued is None else int(queued),
        raised=int(raised or 0),
        charts=charts(result.drawn, address),
        sheets=_sheets(comparison),
        view_ids={
            (each.measure, each.candidate): address(
                {"measure": each.measure, "candidate": each.candidate}
            )
            for each in comparison.differences
        },
        parts=parts,
        links=links,
        ways={
            (each.measure, each.candidate): {
                outcome: address(
                    {"measure": each.measure, "candidate": each.candidate, "outcome": outcome}
                )
                for outcome in OUTCOMES
            }
            for each in comparison.differences
        },
    )


def _gates(workspace: Workspace, runs: Sequence[RunRow], candidate: str) -> GateLinks | None:
    row = next((run for run in runs[1:] if run.name == candidate), None)
    return None if row is None else gate_links(workspace, row, runs[0])


def list_of_queries(
    row: ComparisonRow,
    result: StoredComparison,
    rows: pl.DataFrame,
    measure: str,
    candidate: str,
    ask: Ask,
    why: Why | None = None,
) -> Listed:
    """A row per query: its change under one measure, next to it under the others, and why it fails.

    ``why`` is the diagnosis of the candidate.
    """
    measures = axes(result.comparison)[0]
    plain = ["query_id", "text", "outcome", "baseline_value", "candidate_value", "difference"]
    frame = rows.select(*plain, "share", "counts")
    frame = frame.with_columns(query=pl.coalesce("text", "query_id"))
    others = [name for name in measures if name != measure]
    for name in others:
        other = result.frame.filter(candidate=candidate, measure=name)
        other = other.select("query_id", pl.col("difference").alias(name))
        frame = frame.join(other, on="query_id", how="left", maintain_order="left")
    modes = _modes(rows, why)
    why_of = [modes.get(query_id) for query_id in frame["query_id"].to_list()]
    frame = frame.with_columns(why=pl.Series(why_of, dtype=pl.String))
    params = {"measure": measure} if measure != measures[0] else {}
    tail = f"?{urlencode(params)}" if params else ""
    unequal = stored_comparisons.adds_unequally(rows)

    def link(query: Mapping[str, Any]) -> str:
        return f"/comparisons/{row.id}/queries/{quote(query['query_id'], safe='')}{tail}"

    def why_link(query: Mapping[str, Any]) -> str | None:
        return None if why is None or query["why"] is None else why.of_query(query["query_id"])

    columns = [
        Column("query", "Query", link=link, longest=90),
        Column("query_id", "Id"),
        Column("outcome", "Outcome", choices=True, vocabulary=OUTCOMES),
        Column("counts", "Counts", "flag", choices=True, shown=not rows["counts"].all()),
        Column("baseline_value", "From", "number"),
        Column("candidate_value", "To", "number"),
        Column("difference", f"Change, {measure}", "signed"),
        Column("share", "Adds", "signed", shown=unequal),
        *(Column(name, name, "signed") for name in others),
        Column(
            "why",
            f"Why {candidate} fails",
            choices=bool(modes),
            link=why_link,
            shown=bool(modes),
            vocabulary=list(dict.fromkeys(modes.values())),
        ),
        Column("text", "Text", shown=False),
    ]
    return listed(frame, columns, ask, search=["query_id", "text"])


def _modes(rows: pl.DataFrame, why: Why | None) -> dict[str, str]:
    """Why queries fail; while that is being computed, a word that leads to it."""
    if why is None:
        return {}
    if why.diagnosis is None:
        return dict.fromkeys(rows.filter(outcome="worse")["query_id"], "see why")
    modes = why.diagnosis.mode_of
    names = {mode: entry(mode).name for mode in set(modes.values())}
    return {query_id: names[mode] for query_id, mode in modes.items()}


@ROUTER.post("/comparisons/{comparison_id}/again")
def make_again(call: AnEngineer, comparison_id: Id) -> Response:
    """Recompute a comparison with the current judgments; its page shows the progress."""
    request_again(call.site, comparison_id, by=call.who)
    return redirect(call, f"/comparisons/{comparison_id}")


@ROUTER.post("/comparisons/{comparison_id}/remove")
def remove(
    call: AnEngineer,
    comparison_id: Id,
    sure: Annotated[str, Form()] = "",
    seen: Annotated[str, Form()] = "",
) -> Response:
    """Remove a comparison; the form must confirm it."""
    workspace, row = find(call.site, comparison_id)
    confirm(sure, seen, row.created_us)
    remove_comparison(workspace, row, **call.by)
    return redirect(call, "/comparisons")


@ROUTER.post("/comparisons/{comparison_id}/queue")
def queue_next(call: AnEngineer, comparison_id: Id) -> Response:
    """Queue the unjudged pairs whose grades could flip the sign of the difference."""
    workspace, row, result = look(call.site, comparison_id)
    if result is None:
        raise UsageError("the comparison is not computed yet", fix="wait and try again")
    put = stored_comparisons.queue_next(workspace, row, result, by=call.who, now=call.now)
    notice = packed(str(put.added), str(put.raised))
    return redirect_with(call, f"/comparisons/{row.id}", "#next", said=notice)


def _sheets(comparison: Comparison) -> list[Table]:
    every = [
        what_changed(comparison.changes),
        answer_changes(comparison.answers),
        stage_latency(comparison.costs),
    ]
    return [table for table in every if table.rows]


def _baseline(found: stored_comparisons.Listed) -> str | None:
    first = found.runs[0] if found.runs else None
    return first.name if first is not None and first.id == found.row.runs[0] else None


def _lead(result: StoredComparison, candidates: Sequence[str]) -> list[str]:
    rows, comparison = result.results.results, result.comparison
    first_measure = [row for row in rows if row.measure == rows[0].measure]
    headlines = []
    for name in candidates:
        first = next(each for each in comparison.differences if each.candidate == name)
        lines = [report.headline(first), *(f"{line}." for line in cost_lines(comparison, name))]
        headlines += [f"{name}: {line}" for line in lines] if len(candidates) > 1 else lines
    return [
        *report.unanswered(first_measure, compared=True),
        *report.verdicts(comparison),
        *headlines,
    ]


def _slices(
    comparison: Comparison, address: Callable[[Mapping[str, str]], str]
) -> tuple[dict[Any, dict[str, list[Difference]]], dict[Any, dict[str, str]]]:
    """By candidate and attribute: the differences by measure, and the link of each slice."""
    parts: dict[Any, dict[str, list[Difference]]] = {}
    links: dict[Any, dict[str, str]] = {}
    for each in comparison.slices:
        key = each.candidate, str(each.attribute)
        parts.setdefault(key, {}).setdefault(each.measure, []).append(each)
        lead = {"slice": f"{each.attribute}={each.slice}", "candidate": each.candidate}
        links.setdefault(key, {})[str(each.slice)] = address(lead)
    return parts, links
