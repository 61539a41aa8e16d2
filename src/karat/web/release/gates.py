"""Gates: their results, one with the rule that decides it, and a form that checks a stored run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Form, Response
from pydantic import Field

from karat.errors import KaratError
from karat.reports.html.page import ORIGINS
from karat.reports.offline.evaluation import what_changed
from karat.reports.phrases import gate as words
from karat.reports.phrases.report import still_failing
from karat.reports.release import gate as report
from karat.reports.table import Column, Table
from karat.tables.release.gate import Check, GateRecord, GateRow, Regression
from karat.tables.workspace import RunRow
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.diagnosis_links import Why, whys
from karat.web.framework.errors import NotFound, refused
from karat.web.framework.form_values import Id
from karat.web.framework.lists import Listed, frame_of, listed
from karat.web.framework.pages import Page, redirect, show
from karat.web.framework.progress import Outcome, Progress, find, run
from karat.web.release.trends import address_of
from karat.workflows.golden.editions import NOW, list_editions
from karat.workflows.release import stored_gates
from karat.workflows.release.stored_gates import Checked
from karat.workflows.workspace.evaluate_stored import run_by_id
from karat.workflows.workspace.listed import list_runs

ROUTER = APIRouter()
WAIT_S = 3.0
"""Longest wait of the page for a result."""
Number = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True)
class Typed:
    """What the form has."""

    candidate: int = 0
    baseline: int = 0  # 0 for none
    policy: str = ""
    edition: str = NOW


@dataclass(frozen=True, kw_only=True)
class GatesPage(Page):
    template: ClassVar[str] = "gates.html.j2"
    gates: Listed
    policies: Sequence[str]
    runs: Sequence[RunRow] = field(repr=False)
    editions: Sequence[str] = field(repr=False)
    typed: Typed = field(repr=False)
    wrong: Any = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class GatePage(Page):
    template: ClassVar[str] = "gate.html.j2"
    record: GateRecord
    answer: str  # the verdict in a word
    why: str  # the reason, in a sentence
    change: str = field(repr=False)
    draw_check: Callable[[Check], str] = field(repr=False)
    rules: Table = field(repr=False)
    broke: Sequence[tuple[str, Table]] = field(repr=False)
    failing: str = field(repr=False)
    changed: Table = field(repr=False)
    origins: Table = field(repr=False)
    comparison: str = field(repr=False)  # address of the comparison, or of the form for one
    trend: str = field(repr=False)
    whys: Sequence[Why] = field(repr=False)


@ROUTER.get("/gates")
def gates(call: AReader) -> Response:
    """List the results of gates, newest first, and offer to check a stored run."""
    return show(call, _gates_page(call))


@ROUTER.post("/gates")
def check(
    call: AnEngineer,
    candidate: Annotated[Number, Form()],
    policy: Annotated[str, Form(max_length=500)],
    baseline: Annotated[Number, Form()] = 0,
    edition: Annotated[str, Form(max_length=500)] = NOW,
) -> Response:
    """Check a stored run against a policy of the workspace; its page shows the result."""
    workspace, typed = call.workspace, Typed(candidate, baseline, policy, edition)
    by = Checked("page", call.who, call.now)

    def work(progress: Progress) -> Outcome:
        progress("checking the rules")
        number = stored_gates.check_by_file(
            workspace, policy, baseline or None, candidate, by, edition=edition
        )
        return Outcome(f"/gates/{number}")

    number = hashlib.sha256(repr((workspace.golden.id, typed)).encode()).hexdigest()[:12]
    name = f"gate-{number}"
    try:
        run(call.site, name, f"Gate by {policy}", work, WAIT_S, remembered_s=0.0)
    except KaratError as error:
        status, wrong = refused(error)
        return show(call, _gates_page(call, typed=typed, wrong=wrong), status)
    return redirect(call, find(call.site, name).page or f"/jobs/{name}")


@ROUTER.get("/gates/{gate_id}")
def one_gate(call: AReader, gate_id: Id) -> Response:
    """Show a result: the rule that decides, every rule, and the queries that broke each."""
    return show(call, _gate_page(call, found(call, gate_id)))


def found(call: Call, gate_id: int) -> GateRecord:
    record = stored_gates.gate_record(call.site.workspace, gate_id)
    if record is None:
        raise NotFound(f"there is no gate {gate_id}", fix="choose one from the list of gates")
    return record


def _gates_page(call: Call, typed: Typed | None = None, wrong: Any = None) -> GatesPage:
    workspace = call.workspace
    rows, known = list_runs(workspace)[0], stored_gates.policies(workspace)
    newest = [row.id for row in rows]
    if typed is None:  # the newest run against the oldest, as for a comparison
        typed = Typed(next(iter(newest), 0), newest[-1] if newest[1:] else 0)
    return GatesPage(
        title="Gates",
        gates=_listed(call, stored_gates.gates_listed(workspace)),
        policies=known,
        runs=rows,
        editions=[row.name for row in list_editions(workspace)],
        typed=typed,
        wrong=wrong,
    )


def _listed(call: Call, rows: Sequence[GateRow]) -> Listed:
    """The list; the checks that decide are read for the rows of the page, unless all are asked."""
    ask, workspace = call.ask, call.workspace
    asked = ask.strict or "rule" in {*ask.where, (ask.sort or "").removeprefix("-")}
    if asked:
        rows = stored_gates.with_checks(workspace, rows)
    columns = [
        Column("candidate", "Candidate", choices=True, link=lambda row: f"/gates/{row['id']}"),
        Column("answer", "Verdict", choices=True, vocabulary=list(words.ANSWERS.values())),
        Column("rule", "Rule that decides"),
        Column("baseline", "Baseline", optional=True),
        Column("policy", "Policy", choices=True),
        Column("time_us", "When", "time"),
        Column("person", "By"),
        Column("source", "From"),
        Column("commit", "Commit", longest=12, optional=True),
        Column("id", "Number", "count", shown=False),
        Column("verdict", "Verdict as the command has it", shown=False),
    ]
    frame = frame_of(
        ((row, {"answer": words.ANSWERS[row.verdict], "rule": _rule(row)}) for row in rows), columns
    )
    found = listed(frame, columns, ask, search=["candidate", "baseline", "policy", "commit"])
    if asked:
        return found
    by_id = {row.id: row for row in rows}
    shown = stored_gates.with_checks(workspace, [by_id[row["id"]] for row in found.rows])
    both = zip(found.rows, shown, strict=True)
    return replace(found, rows=[{**row, "rule": _rule(gate)} for row, gate in both])


def _rule(row: GateRow) -> str | None:
    return None if row.decides is None else words.label(row.decides)


def _gate_page(call: Call, record: GateRecord) -> GatePage:
    gate, places, base = record.gate, record.places, call.site.settings.base
    ids = [each for each in (places.baseline, places.candidate) if each is not None]
    runs = [each for each in (run_by_id(call.site.workspace, number) for number in ids) if each]
    known = whys(runs[0][0], [row for _, row in runs]) if runs else []
    own = next((why for why in known if why.asked.row.id == places.candidate), None)

    def rankings(row: Regression) -> str | None:
        query = quote(row.query_id, safe="")
        if places.comparison is not None:
            return f"{base}/comparisons/{places.comparison}/queries/{query}"
        if places.candidate is not None:
            return f"{base}/runs/{places.candidate}/queries/{query}"
        return None

    def trace(row: Regression) -> str | None:
        return None if own is None else base + own.of_query(row.query_id)

    draw_check = report.drawing(gate.checks, gate.results)
    trace_of = None if own is None else trace
    return GatePage(
        title=gate.candidate + (f" against {gate.baseline}" if gate.baseline else ""),
        crumbs=[("Gates", "/gates")],
        record=record,
        answer=words.ANSWERS[gate.verdict],
        why=words.why(gate),
        change="" if record.row.decides is None else words.to_change(record.row.decides),
        draw_check=draw_check,
        rules=report.checks(gate.checks, queries=True, drawn=draw_check),
        broke=[
            (words.label(check), report.lost(rows, link=rankings, trace=trace_of))
            for check, rows in report.broke(gate)
        ],
        failing=still_failing(gate) if gate.known_failures else "",
        changed=what_changed(gate.changes),
        origins=Table("Computed from", ORIGINS, record.origins),
        comparison=_comparison(record),
        trend=_trend(record),
        whys=known,
    )


def _comparison(record: GateRecord) -> str:
    places = record.places
    if places.comparison is not None:
        return f"/comparisons/{places.comparison}"
    if places.candidate is None or places.baseline is None:
        return ""
    ask = {"baseline": places.baseline, "candidate": places.candidate}
    return f"/comparisons/new?{urlencode(ask)}"


def _trend(record: GateRecord) -> str:
    places, decides = record.places, record.row.decides
    if places.history is None:
        return ""
    measure = None if decides is None or decides.attribute is not None else decides.measure
    return address_of(places.history, places.series or "", measure or "")
