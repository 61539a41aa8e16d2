"""Runs: their list, adding one, and the values of one, query by query."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, get_args
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, File, Form, Query, Response, UploadFile

from karat.errors import InputError, KaratError, UsageError
from karat.reports.phrases import report
from karat.reports.table import Column
from karat.tables import Results
from karat.tables.results import State
from karat.tables.workspace import RunRow
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.chart_links import Charts, charts
from karat.web.framework.diagnosis_links import whys
from karat.web.framework.errors import NotFound, refused
from karat.web.framework.form_values import Id
from karat.web.framework.gate_links import GateLinks, gate_links
from karat.web.framework.idempotency import redirect_with, show_with
from karat.web.framework.jobs import COMPUTING, Busy
from karat.web.framework.lists import Ask, Listed, frame_of, listed
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.web.framework.state import AppState
from karat.web.framework.uploads import uploaded
from karat.web.offline._trade_off import trade_off
from karat.web.offline.counted import in_slice, narrowed, tallies, uncounted
from karat.web.offline.stored_comparisons import DEEPEST, RANKS, WAIT_S, confirm, known
from karat.workflows.golden.editions import NOW, list_editions
from karat.workflows.offline.catalogue import default_measures
from karat.workflows.workspace import stored_evaluations
from karat.workflows.workspace.artifacts import ArtifactCorrupted
from karat.workflows.workspace.evaluate_stored import run_by_id
from karat.workflows.workspace.listed import ListedRun, last_judged, list_runs
from karat.workflows.workspace.run_import import import_run, needed_by, remove_run, within
from karat.workflows.workspace.stored_evaluations import P95, Rules, StoredEvaluation
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
_MEASURES = 3  # in the list of runs
_AT_ONCE = 8  # runs that one view of the list computes, without those that fail
_LACKS = "run has no measure"
CURRENT = "current"
PENDING = ("outdated: being recomputed", "being computed")
"""States of values in the list that are not current yet: outdated ones, and missing ones."""
_FAILED = ("outdated: recomputing failed", "failed: see why")


@dataclass(frozen=True, kw_only=True)
class RunPage(Page):
    template: ClassVar[str] = "run.html.j2"
    run: RunRow
    kept_by: str | None
    also: Sequence[str]
    notice: str  # outcome of adding it, shown once; empty otherwise
    needed_by: Sequence[tuple[str, int]]
    edition: str
    by: Sequence[str]
    editions: Sequence[str]
    attributes: Sequence[str] = field(repr=False)
    gates: GateLinks
    error: str | None = None
    computed: bool = False
    older: bool = False
    lead: Sequence[str] = ()
    results: Results | None = None
    outcomes: Mapping[str, int] = field(default_factory=dict)
    ways: Mapping[str, str] = field(default_factory=dict, repr=False)
    measure: str = ""
    measures: Sequence[str] = ()
    slice: str = ""
    uncounted: str = ""
    tallies: Mapping[str, int] = field(default_factory=dict)
    queries: Listed | None = None
    charts: Charts | None = field(default=None, repr=False)
    view_ids: Mapping[Any, str] = field(default_factory=dict, repr=False)
    links: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)


@ROUTER.get("/runs")
def all_runs(call: AReader) -> Response:
    return show(call, _runs_page(call))


def _runs_page(call: Call, **more: Any) -> Page:
    workspace = call.workspace
    rows, describe = list_runs(workspace)
    runs_list = list_of_runs(workspace, rows, describe, call.ask)
    return PlainPage(
        "runs.html.j2",
        "Runs",
        golden=workspace.golden.name,
        runs=runs_list,
        judged_us=last_judged(workspace),
        waits=any(row["numbers"] in PENDING for row in runs_list.rows),
        several=len(rows) > 1,
        most=call.site.settings.max_upload // 2**20,
        not_in_json={
            "trade_off": trade_off(runs_list, default_measures()[0], call.site.settings.base),
            "typed": more.pop("typed", {}),
        },
        **{"wrong": None, **more},
    )


@ROUTER.post("/runs")
def add_run(
    call: AnEngineer,
    file: Annotated[UploadFile | None, File()] = None,
    name: Annotated[str, Form(max_length=200)] = "",
    path: Annotated[str, Form(max_length=1000)] = "",
) -> Response:
    """Add a run: an upload, or a file in the folder ``incoming`` of the workspace."""
    workspace = call.workspace
    options: dict[str, Any] = {"name": name, "person": call.who, "now": call.now}
    try:
        if file is not None and file.filename:
            with uploaded(file) as (upload, _):
                imported = import_run(workspace, upload, upload.name, **options)
        elif path.strip():
            imported = import_run(workspace, within(workspace, path), path.strip(), **options)
        else:
            raise UsageError(
                "no file was chosen", fix="choose a file, or enter the path of one in the workspace"
            )
    except (InputError, UsageError) as error:
        status, wrong = refused(error)
        typed = {"name": name, "path": path}
        return show(call, _runs_page(call, wrong=wrong, typed=typed), status)
    return redirect_with(call, f"/runs/{imported.row.id}", said=imported.said or "")


@ROUTER.post("/runs/{run_id}/remove")
def remove(
    call: AnEngineer,
    run_id: Id,
    sure: Annotated[str, Form()] = "",
    seen: Annotated[str, Form()] = "",
) -> Response:
    """Remove a run that no comparison uses; the form must confirm it."""
    workspace, row = find_run(call.site, run_id)
    confirm(sure, seen, row.sha256)
    remove_run(workspace, row, **call.by)
    return redirect(call, "/runs")


@ROUTER.get("/runs/{run_id}")
def one_run(
    call: AReader,
    run_id: Id,
    edition: str = NOW,
    by: Annotated[list[str] | None, Query()] = None,
    measure: str = "",
    part: Annotated[str, Query(alias="slice")] = "",
) -> Response:
    """Show one run: its measures, its slices, and its queries, lowest value first."""
    return show_with(
        call,
        f"/runs/{run_id}",
        lambda flash: _run_page(call, run_id, edition, by, measure, part, flash.said),
        lambda page: not page.computed and page.error is None,
    )


def _run_page(
    call: Call,
    run_id: int,
    edition: str,
    by: Sequence[str] | None,
    measure: str,
    part: str,
    notice: str,
) -> RunPage:
    workspace, row = find_run(call.site, run_id)
    rules = _rules(by, edition)
    described = list_runs(workspace)[1](row)
    common: dict[str, Any] = {
        "title": row.name,
        "crumbs": [("Runs", "/runs")],
        "run": row,
        "kept_by": described.kept_by,
        "also": described.also,
        "notice": notice,
        "needed_by": [(each.name, each.id) for each in needed_by(workspace, row)],
        "edition": edition,
        "by": sorted(set(rules.by)),
        "editions": [each.name for each in list_editions(workspace)],
        "attributes": stored_evaluations.attributes_of(workspace),
        "gates": gate_links(workspace, row),
    }
    try:
        rules = stored_evaluations.known(workspace, rules)
        result = _evaluated(workspace, row, rules)
    except KaratError as error:
        return RunPage(**common, error=str(error))
    if result is None:
        return RunPage(**common)
    measures = list(dict.fromkeys(each.measure for each in result.results.results))
    chosen = known(measure, measures, _LACKS)

    def address(lead: Mapping[str, str]) -> str:
        params = [(name, value) for name, value in call.request.query_params.multi_items()]
        params = [pair for pair in params if pair[0] in {"edition", "by"}]
        lead = narrowed(lead, result.frame)
        return f"?{urlencode([*params, *((n, v) for n, v in lead.items() if v)])}#queries"

    list_rows = result.frame.filter(measure=chosen)
    sliced = [(str(each.attribute), str(each.slice)) for each in result.results.slices]
    list_rows = in_slice(list_rows, part, result.frame, sliced)
    first = [each for each in result.results.results if each.measure == measures[0]]
    counts = {name: getattr(first[0], name) for name in ("failed", "missing", "empty", "unjudged")}
    return RunPage(
        **common,
        computed=True,
        older=result.older,
        lead=[*report.unanswered(first, compared=False), *report.means(result.results.results)],
        results=result.results,
        outcomes={name: count for name, count in counts.items() if count},
        ways={name: address({"state": name}) for name in counts},
        measure=chosen,
        measures=measures,
        slice=part,
        uncounted=uncounted(result.frame),
        tallies=tallies(list_rows),
        queries=list_of_queries(row, result, list_rows, chosen, measures, call.ask),
        charts=charts(result.drawn, address),
        view_ids={(name, None): address({"measure": name}) for name in measures},
        links={
            attribute: {
                str(each.slice): address({"slice": f"{attribute}={each.slice}"})
                for each in result.results.slices
                if each.attribute == attribute
            }
            for attribute in rules.by
        },
    )


@ROUTER.get("/runs/{run_id}/queries/{query_id:path}")
def one_query(
    call: AReader,
    run_id: Id,
    query_id: str,
    edition: str = NOW,
    by: Annotated[list[str] | None, Query()] = None,
    measure: str = "",
    ranks: Annotated[int, Query(ge=1, le=DEEPEST)] = RANKS,
) -> Response:
    workspace, row = find_run(call.site, run_id)
    rules = stored_evaluations.known(workspace, _rules(by, edition))
    for _ in range(2):  # damaged files are recomputed once
        result = _evaluated(workspace, row, rules)
        if result is not None:
            with suppress(ArtifactCorrupted):
                return show(call, _query_page(workspace, row, result, query_id, measure, ranks))
    return redirect(call, f"/runs/{row.id}")


def _query_page(
    workspace: Workspace,
    row: RunRow,
    result: StoredEvaluation,
    query_id: str,
    measure: str,
    ranks: int,
) -> Page:
    measures = list(dict.fromkeys(each.measure for each in result.results.results))
    chosen = known(measure, measures, _LACKS)
    side = stored_evaluations.side(workspace, result, query_id, chosen, ranks)
    if side is None:
        raise NotFound(f"the run has no query {query_id!r}")
    query_row = result.frame.filter(query_id=query_id).row(0, named=True)
    text = query_row["text"]
    return PlainPage(
        "comparison_query.html.j2",
        text or query_id,
        [("Runs", "/runs"), (row.name, f"/runs/{row.id}")],
        query_id=query_id,
        text=text,
        measure=chosen,
        measures=measures,
        where=f"/runs/{row.id}/queries/{quote(query_id, safe='')}",
        ranks=ranks,
        query=side.query,
        counts=query_row["counts"],
        changed=side.changed,
        now=side.now,
        whys=whys(workspace, [row], query_id),
        not_in_json={"content": side.content},
    )


def find_run(site: AppState, run_id: int) -> tuple[Workspace, RunRow]:
    found = run_by_id(site.workspace, run_id)
    if found is None:
        raise NotFound(f"there is no run {run_id}", fix="choose one from the list of runs")
    return found


def _rules(by: Sequence[str] | None, edition: str) -> Rules:
    return Rules(edition=edition, by=list(dict.fromkeys(each for each in by or () if each.strip())))


def _evaluated(workspace: Workspace, row: RunRow, rules: Rules) -> StoredEvaluation | None:
    """The numbers of a run, recomputed if outdated; None if that takes longer than a short wait."""
    result = stored_evaluations.kept(workspace, row, rules)
    if result is None or result.older:
        key = stored_evaluations.key(workspace, row, rules)
        compute_run(workspace, row, rules, key, WAIT_S)
        result = stored_evaluations.kept(workspace, row, rules)
    return result


def list_of_runs(
    workspace: Workspace, rows: Sequence[RunRow], describe: Callable[[RunRow], ListedRun], ask: Ask
) -> Listed:
    """A row per run, newest first; missing and outdated values are computed in the background."""
    summaries = stored_evaluations.in_short(workspace, rows)
    runs_list = _listed(rows, summaries, describe, ask, ())
    by_id = {row.id: (row, summary.key) for row, summary in zip(rows, summaries, strict=True)}
    missing = [by_id[row["id"]] for row in runs_list.rows if row["numbers"] != CURRENT]
    if not missing:
        return runs_list
    failed, started, deadline = set(), 0, time.monotonic() + WAIT_S
    with suppress(Busy):  # then the next view continues
        for row, key in missing:
            if started == _AT_ONCE:
                break
            try:
                compute_run(workspace, row, Rules(), key, max(0.0, deadline - time.monotonic()))
                started += 1
            except KaratError:  # the page of the run shows the reason
                failed.add(row.id)
    summaries = stored_evaluations.in_short(workspace, rows)
    return _listed(rows, summaries, describe, ask, failed)


def list_of_queries(
    row: RunRow,
    result: StoredEvaluation,
    rows: pl.DataFrame,
    measure: str,
    measures: Sequence[str],
    ask: Ask,
) -> Listed:
    """A row per query of a run: its value under one measure, and next to it under the others."""
    frame = rows.select("query_id", "text", "value", "state", "counts")
    frame = frame.with_columns(query=pl.coalesce("text", "query_id"))
    others = [name for name in measures if name != measure]
    for name in others:
        other = result.frame.filter(measure=name).select("query_id", pl.col("value").alias(name))
        frame = frame.join(other, on="query_id", how="left", maintain_order="left")
    params = {"measure": measure} if measure != measures[0] else {}
    params |= {"edition": result.rules.edition} if result.rules.edition != NOW else {}

    def link(query: Mapping[str, Any]) -> str:
        pairs = [*params.items(), *(("by", name) for name in result.rules.by)]
        tail = f"?{urlencode(pairs)}" if pairs else ""
        return f"/runs/{row.id}/queries/{quote(query['query_id'], safe='')}{tail}"

    columns = [
        Column("query", "Query", link=link),
        Column("query_id", "Id"),
        Column("value", measure, "number"),
        Column("state", "Answer", choices=True, vocabulary=get_args(State)),
        Column("counts", "Counts", "flag", choices=True, shown=not rows["counts"].all()),
        *(Column(name, name, "number") for name in others),
        Column("text", "Text", shown=False),
    ]
    return listed(frame, columns, ask, search=["query_id", "text"])


def compute_run(workspace: Workspace, row: RunRow, rules: Rules, key: str, wait_s: float) -> bool:
    """Compute the numbers of a run in the background; return whether it finished within the wait.

    A failure is retried once the ``key`` of its numbers is another.
    """
    job = "run", workspace.store.url, key
    return COMPUTING.run(job, lambda: stored_evaluations.compute(workspace, row, rules), wait_s)


def _listed(
    rows: Sequence[RunRow],
    summaries: Sequence[stored_evaluations.Kept],
    describe: Callable[[RunRow], ListedRun],
    ask: Ask,
    failed: Collection[int],
) -> Listed:
    names, records = default_measures()[:_MEASURES], []
    for row, summary in zip(rows, summaries, strict=True):
        values, described = summary.values or {}, describe(row)
        state = (_FAILED if row.id in failed else PENDING)[summary.values is None]
        if not summary.older:
            state = CURRENT
        more: dict[str, Any] = {
            "also": ", ".join(described.also) or None,
            "numbers": state,
            "results": row.rows,
            "kept": row.added_us,
            "by": described.kept_by,
        }
        records.append((row, more | {name: values.get(name) for name in (*names, P95)}))

    def run_page(row: Mapping[str, Any]) -> str:
        return f"/runs/{row['id']}"

    def why(row: Mapping[str, Any]) -> str | None:
        return run_page(row) if row["numbers"] in _FAILED else None

    columns = [
        Column("name", "Run", link=run_page),
        Column("also", "Also called", optional=True),
        *(Column(name, name, "number") for name in names),
        Column(P95, "p95, ms", "ms", optional=True),
        Column("numbers", "Values", link=why),
        Column("queries", "Queries", "count"),
        Column("results", "Results", "count"),
        Column("kept", "Added", "time"),
        Column("by", "By"),
        Column("id", "Number", "count", shown=False),
    ]
    return listed(frame_of(records, columns), columns, ask, search=["name", "also"])
