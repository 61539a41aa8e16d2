"""Comparisons: which there are, and what came out of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from karat.errors import UsageError
from karat.reports.phrases import report
from karat.reports.writers.sheets import Sheet, answer_changes, what_changed
from karat.store.sql import comparisons as stored
from karat.store.sql import runs
from karat.store.sql.comparisons import ComparisonRow
from karat.store.sql.runs import RunRow
from karat.tables.comparison import Comparison, Difference
from karat.tables.results import Result
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.chart_links import Charts, charts
from karat.web.framework.form_values import Id, packed, unpacked
from karat.web.framework.idempotency import lead_saying, show_said
from karat.web.framework.lists import Ask, Column, Listed, listed
from karat.web.framework.pages import Page, show
from karat.web.framework.state import AppState, TheState
from karat.web.offline._comparison_lists import WAYS, list_of_queries
from karat.web.offline.counted import counts_in, in_slice, narrowed, uncounted
from karat.web.offline.stored_comparisons import ask_again, axes, confirm, find, look
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.artifacts import ArtifactCorrupted
from karat.workflows.workspace.comparison_changes import Since
from karat.workflows.workspace.comparison_summary import verdict_of
from karat.workflows.workspace.run_import import remove_comparison
from karat.workflows.workspace.stored_comparisons import KeptComparison
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
_SAID = {
    "waiting": "is waiting to be computed",
    "running": "being computed",
    "failed": "could not be computed",
}


@dataclass(frozen=True, kw_only=True)
class ComparisonsPage(Page):
    """The comparisons that are kept.

    Attributes:
        golden: Name of the golden set.
        comparisons: The comparisons, the newest first.
        several: Whether there are runs to compare.
    """

    template: ClassVar[str] = "comparisons.html.j2"
    section: ClassVar[str] = "comparisons"
    golden: str
    comparisons: Listed
    several: bool


@dataclass(frozen=True, kw_only=True)
class ComparisonPage(Page):
    """What came out of a comparison.

    Attributes:
        row: What was asked, by whom, and how far it is.
        runs: The runs, the baseline first.
        since: What changed since it was computed, in a sentence; empty if nothing did.
        numbers: What ``karat compare --format json`` says, but for its queries; None before it is
            computed.
        lead: What may be said, in sentences.
        comparison: The same, as components of a report take it.
        results: Each run by itself.
        measure: The measure of the list.
        candidate: The candidate of the list.
        slice: The slice that the list is of, as ``lang=de``; empty for all.
        uncounted: How many queries count in no number over all, in a sentence; empty if all do.
        counts: How many queries of the list's measure are better, the same, worse, of those that
            count.
        zero_weight: How many of the list do not count, while others do.
        queries: The queries, the largest contribution first.
        listing: Whether the address asks for something of the list.
        titles: By document of a pair to judge next what it is called; only those known.
        queued: How many pairs were just put into the queue; None if nobody asked for it.
        raised: How many of those that were in it go first now.
        charts: The charts.
        sheets: How candidates answered, as a table of text; none where nothing is known of it.
        view_ids: Where the name of a measure leads.
        parts: The slices by candidate and attribute, then by measure.
        links: Where a slice leads, by candidate and attribute.
        ways: Where the counts of a measure lead.
    """

    template: ClassVar[str] = "comparison.html.j2"
    section: ClassVar[str] = "comparisons"
    row: ComparisonRow
    runs: Sequence[RunRow]
    since: str = ""
    numbers: Mapping[str, Any] | None = None
    lead: Sequence[str] = ()
    comparison: Comparison | None = field(default=None, repr=False)
    results: Sequence[Result] = ()
    measure: str = ""
    candidate: str = ""
    slice: str = ""
    uncounted: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    zero_weight: int = 0
    queries: Listed | None = None
    listing: bool = field(default=False, repr=False)
    titles: Mapping[str, str] = field(default_factory=dict, repr=False)
    queued: int | None = None
    raised: int = 0
    charts: Charts | None = field(default=None, repr=False)
    sheets: Sequence[Sheet] = field(default=(), repr=False)
    view_ids: Mapping[Any, str] = field(default_factory=dict, repr=False)
    parts: Mapping[Any, Mapping[str, Sequence[Difference]]] = field(
        default_factory=dict, repr=False
    )
    links: Mapping[Any, Mapping[str, str]] = field(default_factory=dict, repr=False)
    ways: Mapping[Any, Mapping[str, str]] = field(default_factory=dict, repr=False)


@ROUTER.get("/comparisons")
def list_comparisons(request: Request, site: TheState, _asking: AReader) -> Response:
    """The comparisons that are kept."""
    opened = site.opened(site.workspace.golden.name)
    with opened.store.read() as connection:
        rows = stored.comparisons(connection, opened.golden.id)
        known = {row.id: row for row in runs.runs(connection, opened.golden.id)}
    frame = pl.DataFrame(
        [
            {
                "id": row.id,
                "name": row.name,
                "said": _verdict(opened, row, known) or _SAID.get(row.state),
                "baseline": known[row.runs[0]].name if row.runs[0] in known else None,
                "edition": row.settings["edition"],
                "computed": row.computed_us if row.state == "done" else None,
                "by": row.made_by,
                "state": row.state,
            }
            for row in rows
        ],
        schema={
            "id": pl.Int64,
            "name": pl.String,
            "said": pl.String,
            "baseline": pl.String,
            "edition": pl.String,
            "computed": pl.Int64,
            "by": pl.String,
            "state": pl.String,
        },
    )
    columns = [
        Column("name", "comparison", link=lambda row: f"/comparisons/{row['id']}"),
        Column("said", "verdict"),
        Column("baseline", "baseline", choices=True),
        Column("edition", "grades of"),
        Column("computed", "computed", "time"),
        Column("by", "by"),
        Column("id", "number", "count", shown=False),
        Column("state", "state", shown=False),
    ]
    page = ComparisonsPage(
        title="Comparisons",
        golden=opened.golden.name,
        comparisons=listed(frame, columns, Ask.of(request), search=["name", "said"]),
        several=len(known) > 1,
    )
    return show(request, page)


@ROUTER.get("/comparisons/{comparison_id}")
def one_comparison(
    request: Request,
    site: TheState,
    asking: AReader,
    comparison_id: Id,
    measure: str = "",
    candidate: str = "",
    part: Annotated[str, Query(alias="slice")] = "",
) -> Response:
    """What came out, and its queries; and what became of pairs that were queued."""
    return show_said(
        request,
        site,
        asking,
        f"/comparisons/{comparison_id}",
        lambda said: _comparison_page(request, site, comparison_id, measure, candidate, part, said),
    )


def _comparison_page(
    request: Request,
    site: AppState,
    comparison_id: int,
    measure: str,
    candidate: str,
    part: str,
    just_queued: str,
) -> ComparisonPage:
    opened, row, found = look(site, comparison_id)
    numbers: Mapping[str, Any] = {}
    if found is not None and request.query_params.get("format") == "json":
        try:
            numbers = found.to_dict()
        except ArtifactCorrupted:
            opened, row, found = look(site, comparison_id)
            numbers = found.to_dict() if found is not None else {}
    said: dict[str, Any] = {
        "title": row.name,
        "crumbs": [("Comparisons", "/comparisons")],
        "row": row,
        "runs": stored_comparisons.runs_of(opened, row),
    }
    if found is None:
        return ComparisonPage(**said)
    queued, raised = unpacked(just_queued, 2) or [None, None]
    comparison = found.comparison
    measures, candidates = axes(comparison)
    measure, candidate = measure or measures[0], candidate or candidates[0]
    if measure not in measures or candidate not in candidates:
        what = measure if measure not in measures else candidate
        raise UsageError(f"the comparison has no {what!r}", nearest=[*measures, *candidates])
    several = len(candidates) > 1
    sides = f"{site.settings.base}/comparisons/{row.id}/queries/"

    def address(lead: Mapping[str, str]) -> str:
        if "query" in lead:
            return sides + quote(lead["query"], safe="")
        held = narrowed({name: value for name, value in lead.items() if value}, found.frame)
        if not several:
            held.pop("candidate", None)
        return f"?{urlencode(held)}#queries"

    parts: dict[Any, dict[str, list[Difference]]] = {}
    links: dict[Any, dict[str, str]] = {}
    for each in comparison.slices:
        key = each.candidate, str(each.attribute)
        parts.setdefault(key, {}).setdefault(each.measure, []).append(each)
        lead = {"slice": f"{each.attribute}={each.slice}", "candidate": each.candidate}
        links.setdefault(key, {})[str(each.slice)] = address(lead)
    own = found.frame.filter(candidate=candidate, measure=measure)
    sliced = [(str(each.attribute), str(each.slice)) for each in comparison.slices]
    own = in_slice(own, part, found.frame, sliced)
    counting = counts_in(own)
    counts = dict(counting.group_by("outcome").len().iter_rows())
    next_ones = sorted({each.doc_id for each in comparison.judge_next})
    with opened.store.read() as connection:
        titles = stored.titles(connection, opened.golden.id, next_ones)
    heads = [
        report.headline(next(each for each in comparison.differences if each.candidate == name))
        for name in candidates
    ]
    return ComparisonPage(
        **said,
        since=Since(opened).older(row, said["runs"]).said,
        numbers=numbers,
        lead=[
            *report.unanswered(_first(found), compared=True),
            *report.verdicts(comparison),
            *(
                f"{name}: {head}" if several else head
                for name, head in zip(candidates, heads, strict=True)
            ),
        ],
        comparison=comparison,
        results=found.results.results,
        measure=measure,
        candidate=candidate,
        slice=part,
        uncounted=uncounted(found.frame),
        counts={way: counts.get(way, 0) for way in WAYS},
        zero_weight=own.height - counting.height,
        queries=list_of_queries(row, found, own, measure, candidate, Ask.of(request)),
        listing=bool(request.query_params),
        titles=titles,
        queued=None if queued is None else int(queued),
        raised=int(raised or 0),
        charts=charts(found.drawn, address),
        sheets=[
            *([what_changed(comparison.changes)] if comparison.changes else ()),
            *([answer_changes(comparison.answers)] if comparison.answers else ()),
        ],
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
                way: address({"measure": each.measure, "candidate": each.candidate, "outcome": way})
                for way in WAYS
            }
            for each in comparison.differences
        },
    )


@ROUTER.post("/comparisons/{comparison_id}/again")
def make_again(site: TheState, asking: AnEngineer, comparison_id: Id) -> Response:
    """Compute a comparison again, with the judgments of now; its page says so while it goes on."""
    ask_again(site, comparison_id, by=asking.person.name)
    return RedirectResponse(f"{site.settings.base}/comparisons/{comparison_id}", 303)


@ROUTER.post("/comparisons/{comparison_id}/remove")
def take_away(
    site: TheState,
    asking: AnEngineer,
    comparison_id: Id,
    sure: Annotated[str, Form()] = "",
    seen: Annotated[str, Form()] = "",
) -> Response:
    """Remove a comparison; its page asks first."""
    opened, row = find(site, comparison_id)
    confirm(sure, seen, row.created_us)
    remove_comparison(opened, row, person=asking.person.name, now=site.clock())
    return RedirectResponse(f"{site.settings.base}/comparisons", 303)


@ROUTER.post("/comparisons/{comparison_id}/queue")
def queue_next(request: Request, site: TheState, asking: AnEngineer, comparison_id: Id) -> Response:
    """Put the pairs whose grades could turn the sign into the queue."""
    opened, row, found = look(site, comparison_id)
    if found is None:
        raise UsageError("the comparison is not computed yet", fix="wait, and try again")
    by, now = asking.person.name, site.clock()
    put = stored_comparisons.queue_next(opened, row, found, by=by, now=now)
    said = packed(str(put.added), str(put.raised))
    return lead_saying(request, site, asking, f"/comparisons/{row.id}", said, "#next")


def _verdict(opened: Workspace, row: ComparisonRow, known: Mapping[int, RunRow]) -> str | None:
    of_it = [known[each] for each in row.runs if each in known]
    return verdict_of(opened, row, of_it)


def _first(found: KeptComparison) -> list[Any]:
    rows = found.results.results
    return [row for row in rows if row.measure == rows[0].measure]
