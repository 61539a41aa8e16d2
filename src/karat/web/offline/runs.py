"""Runs: which are kept, bringing one, and what one of them is worth, query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import RedirectResponse

from karat.errors import InputError, KaratError, UsageError, on_page
from karat.reports.html.content import Content, ShownQuery
from karat.reports.phrases import report
from karat.store.sql import comparisons, golden_sets, judgments, runs
from karat.store.sql.runs import RunRow
from karat.tables import Results
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.chart_links import Charts, charts
from karat.web.framework.errors import NotFound, Said, refused
from karat.web.framework.form_values import Id
from karat.web.framework.idempotency import lead_saying, show_said
from karat.web.framework.lists import Ask, Listed
from karat.web.framework.pages import Page, show
from karat.web.framework.state import AppState, TheState
from karat.web.framework.uploads import uploaded
from karat.web.offline._run_lists import WAITING, compute_run, list_of_queries, list_of_runs
from karat.web.offline.counted import in_slice, narrowed, tallies, uncounted
from karat.web.offline.stored_comparisons import DEEPEST, RANKS, WAIT_S, confirm
from karat.workflows.golden.editions import NOW, list_editions
from karat.workflows.workspace import stored_evaluations
from karat.workflows.workspace.artifacts import ArtifactCorrupted
from karat.workflows.workspace.run_import import (
    KEPT,
    REMOVED,
    import_run,
    needed_by,
    remove_run,
    within,
)
from karat.workflows.workspace.stored_evaluations import KeptEvaluation, Rules
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()


@dataclass(frozen=True, kw_only=True)
class RunsPage(Page):
    """The runs that are kept.

    Attributes:
        golden: Name of the golden set they belong to.
        runs: The runs, the newest first; ``numbers`` says of what time the values are.
        judged_us: When somebody last judged; None if nobody has.
        waits: Whether numbers are being computed.
        several: Whether two can be compared.
        most: Megabytes of one upload.
        wrong: Why a run was not kept; None if nothing went wrong.
        typed: What was typed into the form that was refused: ``name`` and ``path``.
    """

    template: ClassVar[str] = "runs.html.j2"
    section: ClassVar[str] = "runs"
    golden: str
    runs: Listed
    judged_us: int | None
    waits: bool
    several: bool
    most: int
    wrong: Said | None = None
    typed: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class RunPage(Page):
    """One run by itself.

    Attributes:
        run: What is known of it.
        kept_by: Who brought it first, if the audit tells.
        also: Its other names.
        notice: What became of it when it was brought; empty otherwise.
        needed_by: Comparisons it is in: name and number. While there are any, it stays.
        edition: Whose grades count, or ``now``.
        by: What it is sliced by.
        editions: The editions to choose from.
        attributes: What can be sliced by.
        error: Why there are no numbers; None if there are, or will be.
        computed: Whether there are numbers.
        older: Whether judgments, queries or documents changed since they were computed.
        lead: The answer in sentences.
        results: The numbers; None before they are computed.
        outcomes: How many queries that count got no plain answer, by what became of them.
        ways: Where these are.
        measure: The measure of the list.
        measures: All measures.
        slice: The slice that the list is of, as ``lang=de``; empty for all.
        uncounted: How many queries count in no number over all, in a sentence; empty if all do.
        tallies: By what the list is filtered by (nothing, ``yes``, ``no``) how many of its queries
            count and do not; empty if all do alike.
        queries: The queries, the worst first.
        charts: The charts.
        view_ids: Where the name of a measure leads.
        links: Where a slice leads, by attribute.
    """

    template: ClassVar[str] = "run.html.j2"
    section: ClassVar[str] = "runs"
    run: RunRow
    kept_by: str | None
    also: Sequence[str]
    notice: str
    needed_by: Sequence[tuple[str, int]]
    edition: str
    by: Sequence[str]
    editions: Sequence[str]
    attributes: Sequence[str] = field(repr=False)
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


@dataclass(frozen=True, kw_only=True)
class RunQueryPage(Page):
    """One query of a run, with its ranking.

    Attributes:
        query_id: The query.
        text: What was typed, if it is known.
        measure: What documents are said to add to.
        measures: All measures.
        where: Address of this page.
        ranks: Ranks that are shown, at most.
        query: Its values and its ranking.
        content: What the components of a report are given.
        counts: Whether it counts in numbers over all queries.
        changed: How many of its grades changed since the numbers were computed.
        now: By measure its value by the grades of now, where any changed.
    """

    template: ClassVar[str] = "comparison_query.html.j2"
    section: ClassVar[str] = "runs"
    query_id: str
    text: str | None
    measure: str
    measures: Sequence[str]
    where: str
    ranks: int
    query: ShownQuery
    content: Content = field(repr=False)
    counts: bool
    changed: int
    now: Mapping[str, Sequence[float | None]]


@ROUTER.get("/runs")
def list_runs(request: Request, site: TheState, _asking: AReader) -> Response:
    """The runs that are kept."""
    return show(request, _runs_page(request, site))


def _runs_page(request: Request, site: AppState, **more: Any) -> RunsPage:
    opened = site.opened(site.workspace.golden.name)
    with opened.store.read() as connection:
        rows = runs.runs(connection, opened.golden.id)[::-1]
        who = comparisons.who_kept(connection, KEPT, REMOVED)
        judged_us = judgments.last_judged(connection, opened.golden.id)
    found = list_of_runs(opened, rows, who, Ask.of(request))
    return RunsPage(
        title="Runs",
        golden=opened.golden.name,
        runs=found,
        judged_us=judged_us,
        waits=any(row["numbers"] in WAITING for row in found.rows),
        several=len(rows) > 1,
        most=site.settings.max_upload // 2**20,
        **more,
    )


@ROUTER.post("/runs")
def bring_run(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    file: Annotated[UploadFile | None, File()] = None,
    name: Annotated[str, Form(max_length=200)] = "",
    path: Annotated[str, Form(max_length=1000)] = "",
) -> Response:
    """Keep a run: one that is uploaded, or a file that lies in the workspace's folder."""
    opened = site.opened(site.workspace.golden.name)
    settled: dict[str, Any] = {"name": name, "person": asking.person.name, "now": site.clock()}
    try:
        if file is not None and file.filename:
            with uploaded(file) as (held, _):
                made = import_run(opened, held, held.name, **settled)
        elif path.strip():
            made = import_run(opened, within(opened, path), path.strip(), **settled)
        else:
            raise UsageError("no file was chosen", fix="choose one, or name one of the workspace")
    except (InputError, UsageError) as error:
        status, wrong = refused(error)
        typed = {"name": name, "path": path}
        return show(request, _runs_page(request, site, wrong=wrong, typed=typed), status)
    return lead_saying(request, site, asking, f"/runs/{made.row.id}", made.said or "")


@ROUTER.post("/runs/{run_id}/remove")
def take_away(
    site: TheState,
    asking: AnEngineer,
    run_id: Id,
    sure: Annotated[str, Form()] = "",
    seen: Annotated[str, Form()] = "",
) -> Response:
    """Remove a run that nothing needs; its page asks first."""
    opened, row = _run(site, run_id)
    confirm(sure, seen, row.sha256)
    remove_run(opened, row, person=asking.person.name, now=site.clock())
    return RedirectResponse(f"{site.settings.base}/runs", 303)


@ROUTER.get("/runs/{run_id}")
def one_run(
    request: Request,
    site: TheState,
    asking: AReader,
    run_id: Id,
    edition: str = NOW,
    by: Annotated[list[str] | None, Query()] = None,
    measure: str = "",
    part: Annotated[str, Query(alias="slice")] = "",
) -> Response:
    """One run: its measures, its slices, and its queries, the worst first."""
    return show_said(
        request,
        site,
        asking,
        f"/runs/{run_id}",
        lambda notice: _run_page(request, site, run_id, edition, by, measure, part, notice),
        lambda page: not page.computed and page.error is None,
    )


def _run_page(
    request: Request,
    site: AppState,
    run_id: int,
    edition: str,
    by: Sequence[str] | None,
    measure: str,
    part: str,
    notice: str,
) -> RunPage:
    opened, row = _run(site, run_id)
    rules = _rules(by, edition)
    with opened.store.read() as connection:
        who = comparisons.who_kept(connection, KEPT, REMOVED, row.sha256).get(row.sha256)
        meant = runs.by_name(runs.runs(connection, opened.golden.id))
    said: dict[str, Any] = {
        "title": row.name,
        "crumbs": [("Runs", "/runs")],
        "run": row,
        "kept_by": who,
        "also": runs.others(row, meant),
        "notice": notice,
        "needed_by": [(each.name, each.id) for each in needed_by(opened, row)],
        "edition": edition,
        "by": sorted(set(rules.by)),
        "editions": [each.name for each in list_editions(opened)],
        "attributes": stored_evaluations.attributes_of(opened),
    }
    try:
        rules = stored_evaluations.known(opened, rules)
        found = _evaluated(opened, row, rules)
    except KaratError as error:
        return RunPage(**said, error=on_page(error))
    if found is None:
        return RunPage(**said)
    measures = list(dict.fromkeys(each.measure for each in found.results.results))
    chosen = measure or measures[0]
    if chosen not in measures:
        raise UsageError(f"the run has no value of {chosen!r}", nearest=measures)

    def address(lead: Mapping[str, str]) -> str:
        kept = [(name, value) for name, value in request.query_params.multi_items()]
        kept = [pair for pair in kept if pair[0] in {"edition", "by"}]
        lead = narrowed(lead, found.frame)
        return f"?{urlencode([*kept, *((n, v) for n, v in lead.items() if v)])}#queries"

    own = found.frame.filter(measure=chosen)
    sliced = [(str(each.attribute), str(each.slice)) for each in found.results.slices]
    own = in_slice(own, part, found.frame, sliced)
    first = [each for each in found.results.results if each.measure == measures[0]]
    counted = {name: getattr(first[0], name) for name in ("failed", "missing", "empty", "unjudged")}
    return RunPage(
        **said,
        computed=True,
        older=stored_evaluations.is_older(opened, found),
        lead=[*report.unanswered(first, compared=False), *report.means(found.results.results)],
        results=found.results,
        outcomes={name: count for name, count in counted.items() if count},
        ways={name: address({"state": name}) for name in counted},
        measure=chosen,
        measures=measures,
        slice=part,
        uncounted=uncounted(found.frame),
        tallies=tallies(own),
        queries=list_of_queries(row, found, own, chosen, measures, Ask.of(request)),
        charts=charts(found.drawn, address),
        view_ids={(name, None): address({"measure": name}) for name in measures},
        links={
            attribute: {
                str(each.slice): address({"slice": f"{attribute}={each.slice}"})
                for each in found.results.slices
                if each.attribute == attribute
            }
            for attribute in rules.by
        },
    )


@ROUTER.get("/runs/{run_id}/queries/{query_id:path}")
def one_query(
    request: Request,
    site: TheState,
    _asking: AReader,
    run_id: Id,
    query_id: str,
    edition: str = NOW,
    by: Annotated[list[str] | None, Query()] = None,
    measure: str = "",
    ranks: Annotated[int, Query(ge=1, le=DEEPEST)] = RANKS,
) -> Response:
    """One query of a run."""
    opened, row = _run(site, run_id)
    rules = stored_evaluations.known(opened, _rules(by, edition))
    for _ in range(2):  # its files may turn out damaged: then they are computed again
        found = _evaluated(opened, row, rules)
        if found is not None:
            with suppress(ArtifactCorrupted):
                return show(request, _query_page(opened, row, found, query_id, measure, ranks))
    return RedirectResponse(f"{site.settings.base}/runs/{row.id}", 303)


def _query_page(
    opened: Workspace,
    row: RunRow,
    found: KeptEvaluation,
    query_id: str,
    measure: str,
    ranks: int,
) -> RunQueryPage:
    measures = list(dict.fromkeys(each.measure for each in found.results.results))
    chosen = measure or measures[0]
    if chosen not in measures:
        raise UsageError(f"the run has no value of {chosen!r}", nearest=measures)
    side = stored_evaluations.side(opened, found, query_id, chosen, ranks)
    if side is None:
        raise NotFound(f"the run has no query {query_id!r}")
    known = found.frame.filter(query_id=query_id).row(0, named=True)
    text = known["text"]
    return RunQueryPage(
        title=text or query_id,
        crumbs=[("Runs", "/runs"), (row.name, f"/runs/{row.id}")],
        query_id=query_id,
        text=text,
        measure=chosen,
        measures=measures,
        where=f"/runs/{row.id}/queries/{quote(query_id, safe='')}",
        ranks=ranks,
        query=side.query,
        content=side.content,
        counts=known["counts"],
        changed=side.changed,
        now=side.now,
    )


def _run(site: AppState, run_id: int) -> tuple[Workspace, RunRow]:
    with site.workspace.store.read() as connection:
        found = comparisons.find_run(connection, run_id)
        if found is None:
            raise NotFound(f"there is no run {run_id}", fix="go to the list of runs")
        name = golden_sets.by_id(connection, found[0]).name
    return site.opened(name), found[1]


def _rules(by: Sequence[str] | None, edition: str) -> Rules:
    return Rules(edition=edition, by=list(dict.fromkeys(each for each in by or () if each.strip())))


def _evaluated(opened: Workspace, row: RunRow, rules: Rules) -> KeptEvaluation | None:
    """The numbers of a run; computed now if need be, None while that takes long."""
    found = stored_evaluations.kept(opened, row, rules)
    now = stored_evaluations.clock(opened, rules)
    if found is None or found.clock != now:
        compute_run(opened, row, rules, now, WAIT_S)
        found = stored_evaluations.kept(opened, row, rules)
    return found
