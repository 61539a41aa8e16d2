"""Comparisons: their list, and the results of each, a part on each tab."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, Form, Query, Response

from karat.errors import UsageError, nearest
from karat.reports.diagnosis.diagnosis import entry
from karat.reports.offline import comparison as tables
from karat.reports.offline.evaluation import what_changed
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
from karat.web.framework.idempotency import Flash, redirect_with, show_with
from karat.web.framework.lists import Ask, Listed, frame_of, listed
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.web.framework.progress import Job, last
from karat.web.framework.state import AppState
from karat.web.offline._policy import PolicyVerdict, policy_verdict
from karat.web.offline.counted import counts_in, in_slice, narrowed, uncounted
from karat.web.offline.stored_comparisons import (
    axes,
    confirm,
    find,
    job_of,
    known,
    look,
    request_again,
    shown,
    state_of,
)
from karat.workflows.offline.stages import CANCELLED
from karat.workflows.release.policy_verdicts import write_first_policy
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.run_import import remove_comparison
from karat.workflows.workspace.stored_comparisons import StoredComparison
from karat.workflows.workspace.stored_runs import stored_run_names
from karat.workflows.workspace.stored_views import document_titles
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
WAIT_S = 0.5
"""Longest wait of a page for the policy's verdict and the diagnosis of its candidate, together."""
OUTCOMES = ("better", "same", "worse")
"""Outcomes of a query under a measure."""
VIEWS = ("summary", "slices", "queries", "priorities", "notes")
"""The tabs of a comparison; programs get all of them."""
_LACKS = "comparison has no measure or candidate"
_PENDING = {
    "waiting": "waiting to be computed",
    "running": "being computed",
    "failed": "could not be computed",
    CANCELLED: "cancelled",
}


@dataclass(frozen=True)
class Tab:
    view: str
    name: str
    where: str
    anchor: str = ""  # of the addresses that older versions had


@dataclass(frozen=True, kw_only=True)
class ComparisonPage(Page):
    template: ClassVar[str] = "comparison.html.j2"
    row: ComparisonRow
    runs: Sequence[RunRow]
    since: str = ""
    numbers: Mapping[str, Any] | None = None
    job: Job | None = field(default=None, repr=False)  # its computation, while it runs
    lead: Sequence[str] = ()
    # The comparison with the rows of the chosen candidate only
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
    queued: int | None = None
    raised: int = 0
    policy: PolicyVerdict | None = None
    view: str = field(default="", repr=False)
    tabs: Sequence[Tab] = field(default=(), repr=False)
    candidates: Sequence[str] = field(default=(), repr=False)
    measures: Sequence[str] = field(default=(), repr=False)
    verdicts: Sequence[str] = field(default=(), repr=False)  # of the chosen candidate
    costs: Sequence[str] = field(default=(), repr=False)
    sheets: Sequence[Table] = field(default=(), repr=False)
    leaderboard: Table | None = field(default=None, repr=False)
    judged: Mapping[Any, float | None] = field(default_factory=dict, repr=False)
    axis: float = field(default=1.0, repr=False)
    charts: Charts | None = field(default=None, repr=False)
    priorities: Table | None = field(default=None, repr=False)
    written: bool = field(default=False, repr=False)  # whether the policy was just written
    # Addresses of queries: by measure and candidate, by attribute and slice; and of any of these
    links: Mapping[Any, str] = field(default_factory=dict, repr=False)
    slice_links: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    address: Callable[..., str] = field(default=str, repr=False)
    parts: Mapping[str, Mapping[str, Sequence[Difference]]] = field(
        default_factory=dict, repr=False
    )


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
    view: str = "",
) -> Response:
    if view and view not in VIEWS:
        raise UsageError(f"unknown view {view[:50]!r}", nearest=nearest(view, VIEWS) or VIEWS)

    def page(flash: Flash) -> ComparisonPage:
        def made(opened: Workspace, row: ComparisonRow, found: StoredComparison) -> ComparisonPage:
            asked = _Shown(call, opened, row, found, measure, candidate, part, view)
            return asked.page(flash.said)

        workspace, row, computed = shown(call.site, comparison_id, made)
        return computed or ComparisonPage(**_common(call.site, workspace, row))

    return show_with(call, f"/comparisons/{comparison_id}", page)


def _common(site: AppState, workspace: Workspace, row: ComparisonRow) -> dict[str, Any]:
    [described] = stored_comparisons.described(workspace, [row])
    return {
        "title": row.name,
        "crumbs": [("Comparisons", "/comparisons")],
        "row": row,
        "runs": described.runs,
        "since": described.older.said,
        "job": last(site, job_of(row)) if row.state == "waiting" else None,
    }


@dataclass(frozen=True)
class _Shown:
    """A computed comparison, and what the address asks of it."""

    call: Call
    workspace: Workspace
    row: ComparisonRow
    result: StoredComparison
    asked_measure: str
    asked_candidate: str
    part: str
    asked_view: str
    began: float = field(default_factory=time.monotonic)

    @property
    def wait_s(self) -> float:
        """How long this page may still wait."""
        return max(0.0, WAIT_S - (time.monotonic() - self.began))

    @property
    def whole(self) -> bool:
        """Whether a program asks, which gets all tabs."""
        return self.call.request.query_params.get("format") == "json"

    @cached_property
    def view(self) -> str:
        """The tab; the parameters of a list lead to the list."""
        params = self.call.request.query_params
        of_list = set(params) - {"candidate", "format", "view"} or params.get("format") == "csv"
        return self.asked_view or ("queries" if of_list else "summary")

    @cached_property
    def measure(self) -> str:
        return known(self.asked_measure, axes(self.result.comparison)[0], _LACKS)

    @cached_property
    def candidate(self) -> str:
        return known(self.asked_candidate, axes(self.result.comparison)[1], _LACKS)

    @cached_property
    def comparison(self) -> Comparison:
        """The rows of the chosen candidate."""
        whole = self.result.comparison
        names = "differences", "slices", "disagreements", "answers", "costs", "changes"
        own: dict[str, Any] = {
            name: [row for row in getattr(whole, name) if row.candidate == self.candidate]
            for name in names
        }
        return replace(whole, **own)

    def address(self, **lead: str) -> str:
        """The queries of a number: of a measure, a slice, an outcome."""
        params = narrowed({name: value for name, value in lead.items() if value}, self.result.frame)
        return self._tab("queries", params) + "#queries"

    def query_page(self, query_id: str, **params: str) -> str:
        where = f"{self.call.site.settings.base}/comparisons/{self.row.id}/queries/"
        return where + quote(query_id, safe="") + (f"?{urlencode(params)}" if params else "")

    def _tab(self, view: str, params: Mapping[str, str]) -> str:
        several = len(axes(self.result.comparison)[1]) > 1
        own = {"candidate": self.candidate} if several else {}
        return f"?{urlencode({'view': view, **own, **params})}"

    def tabs(self) -> list[Tab]:
        found = self.comparison
        counts = {
            "slices": len({row.attribute for row in found.slices}),
            "queries": self.result.frame["query_id"].n_unique(),
            "priorities": len(found.judge_next),
            "notes": len(found.notes),
        }
        anchors = {"priorities": "next"}
        return [
            Tab(view, f"{view.capitalize()} {counts[view]:,}" if counts.get(view) else
                view.capitalize(), self._tab(view, {}), anchors.get(view, view))
            for view in VIEWS
        ]  # fmt: skip

    def page(self, said: str) -> ComparisonPage:
        common = _common(self.call.site, self.workspace, self.row)
        found, rows = self.comparison, self.result.results.results
        measures, candidates = axes(self.result.comparison)
        kind, *said_of = unpacked(said, 3) or [None, None, None]
        queued, raised = said_of if kind == "queued" else (None, None)
        shown = {
            **common,
            "lead": _lead(self.result, candidates),
            "comparison": found,
            "results": rows,
            "measure": self.measure,
            "candidate": self.candidate,
            "slice": self.part,
            "uncounted": uncounted(self.result.frame),
            "queued": None if queued is None else int(queued),
            "raised": int(raised or 0),
            "written": kind == "written",
            "view": self.view,
            "tabs": self.tabs(),
            "candidates": candidates,
            "measures": measures,
            "verdicts": _lead(self.result, [self.candidate], found),
            "address": self.address,
            "policy": self._policy(),
        }
        if self.whole:
            shown["numbers"] = self.result.to_dict()
        for view, part in (
            ("summary", self._summary),
            ("slices", self._slices),
            ("queries", self._queries),
            ("priorities", self._priorities),
        ):
            if view == self.view or self.whole:
                shown |= part(common["runs"])
        return ComparisonPage(**shown)

    def _policy(self) -> PolicyVerdict:
        measures, _ = axes(self.result.comparison)
        return policy_verdict(
            self.workspace,
            self.row,
            self.result,
            self.candidate,
            self.wait_s if self.view == "summary" else 0.0,
            lambda lost: self.query_page(
                lost.query_id, **({"measure": lost.measure} if lost.measure in measures else {})
            ),
        )

    def _summary(self, runs: Sequence[RunRow]) -> dict[str, Any]:
        found = self.comparison
        every = [
            tables.costs_and_answers(found, self.candidate),
            what_changed(found.changes),
            tables.stage_latency(found.costs),
        ]
        return {
            "whys": self._whys(runs),
            "gates": _gates(self.workspace, runs, self.candidate),
            "costs": cost_lines(found, self.candidate),
            "sheets": [table for table in every if table.rows],
            "leaderboard": tables.standings(self.result.comparison, found.standings),
            "axis": tables.axis(found.differences),
            "judged": {(row.measure, row.run): row.judged for row in self.result.results.results},
            "links": {
                (row.measure, row.candidate): self.address(measure=row.measure)
                for row in found.differences
            },
        }

    def _whys(self, runs: Sequence[RunRow]) -> list[Why]:
        return [
            replace(why, diagnosis=begin(why, self.wait_s)) if why.run == self.candidate else why
            for why in whys(self.workspace, runs)
        ]

    def _slices(self, _runs: Sequence[RunRow]) -> dict[str, Any]:
        parts: dict[str, dict[str, list[Difference]]] = {}
        links: dict[str, dict[str, str]] = {}
        for each in self.comparison.slices:
            name, part = str(each.attribute), str(each.slice)
            parts.setdefault(name, {}).setdefault(each.measure, []).append(each)
            links.setdefault(name, {})[part] = self.address(slice=f"{name}={part}")
        return {"parts": parts, "slice_links": links, "axis": tables.axis(self.comparison.slices)}

    def _queries(self, runs: Sequence[RunRow]) -> dict[str, Any]:
        result, reasons = self.result, self._whys(runs)
        rows = result.frame.filter(candidate=self.candidate, measure=self.measure)
        sliced = [(str(each.attribute), str(each.slice)) for each in result.comparison.slices]
        rows = in_slice(rows, self.part, result.frame, sliced)
        counted = counts_in(rows)
        counts = dict(counted.group_by("outcome").len().iter_rows())
        why = next((each for each in reasons if each.run == self.candidate), None)

        ask = self.call.ask
        ask = replace(ask, where={**ask.where, "view": "queries"})

        def target(lead: Mapping[str, str]) -> str:
            return self.query_page(lead["query"]) if "query" in lead else self.address(**lead)

        return {
            "whys": reasons,
            "counts": {outcome: counts.get(outcome, 0) for outcome in OUTCOMES},
            "zero_weight": rows.height - counted.height,
            "queries": list_of_queries(
                result, rows, self.measure, self.candidate, ask, self._query_link, why
            ),
            "charts": charts(result.drawn, target),
        }

    def _query_link(self, query_id: str) -> str:
        """The page of a query, which leads on in the order of this list."""
        measures, candidates = axes(self.result.comparison)
        params = {
            "measure": self.measure if self.measure != measures[0] else "",
            "candidate": self.candidate if self.candidate != candidates[0] else "",
            "outcome": self.call.ask.where.get("outcome", ""),
            "slice": self.part,
        }
        where = self.query_page(query_id, **{name: text for name, text in params.items() if text})
        return where.removeprefix(self.call.site.settings.base)

    def _priorities(self, _runs: Sequence[RunRow]) -> dict[str, Any]:
        rows = self.comparison.judge_next
        titles = document_titles(self.workspace, sorted({each.doc_id for each in rows}))
        return {
            "priorities": tables.judge_next(
                self.result.comparison,
                link=lambda row: self.query_page(row.query_id, doc=row.doc_id),
                titles=titles,
            )
        }


def _gates(workspace: Workspace, runs: Sequence[RunRow], candidate: str) -> GateLinks | None:
    row = next((run for run in runs[1:] if run.name == candidate), None)
    return None if row is None else gate_links(workspace, row, runs[0])


def list_of_queries(
    result: StoredComparison,
    rows: pl.DataFrame,
    measure: str,
    candidate: str,
    ask: Ask,
    page_of: Callable[[str], str],
    why: Why | None = None,
) -> Listed:
    """A row per query: its change under one measure, next to it under the others, and why it fails.

    ``page_of`` is the address of a query, and ``why`` the diagnosis of the candidate.
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
    unequal = stored_comparisons.adds_unequally(rows)

    def why_link(query: Mapping[str, Any]) -> str | None:
        return None if why is None or query["why"] is None else why.of_query(query["query_id"])

    columns = [
        Column("query", "Query", link=lambda row: page_of(row["query_id"]), longest=90),
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
    notice = packed("queued", str(put.added), str(put.raised))
    return redirect_with(call, f"/comparisons/{row.id}", "?view=priorities", said=notice)


@ROUTER.post("/comparisons/{comparison_id}/policy")
def write_policy(call: AnEngineer, comparison_id: Id) -> Response:
    """Write a policy for the workspace that fits the baseline; never over another."""
    workspace, row, result = look(call.site, comparison_id)
    if result is None:
        raise UsageError("the comparison is not computed yet", fix="wait and try again")
    write_first_policy(workspace, row, result, **call.by)
    return redirect_with(call, f"/comparisons/{row.id}", said=packed("written", None, None))


def _baseline(found: stored_comparisons.Listed) -> str | None:
    first = found.runs[0] if found.runs else None
    return first.name if first is not None and first.id == found.row.runs[0] else None


def _lead(
    result: StoredComparison, candidates: Sequence[str], found: Comparison | None = None
) -> list[str]:
    """The verdicts in sentences; of all candidates also their first change and its costs."""
    rows, comparison = result.results.results, found or result.comparison
    first_measure = [row for row in rows if row.measure == rows[0].measure]
    headlines = []
    for name in candidates if found is None else ():
        first = next(each for each in comparison.differences if each.candidate == name)
        lines = [report.headline(first), *(f"{line}." for line in cost_lines(comparison, name))]
        headlines += [f"{name}: {line}" for line in lines] if len(candidates) > 1 else lines
    return [
        *report.unanswered(first_measure, compared=True),
        *report.verdicts(comparison),
        *headlines,
    ]
