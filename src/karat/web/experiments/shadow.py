"""Shadow logs: their list, and each with its verdict, differences and changed queries."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from karat.errors import KaratError
from karat.reports.experiments import shadow as report
from karat.reports.phrases.numbers import milliseconds, percent
from karat.reports.table import Column, Table
from karat.tables.experiments.shadow import ShadowBar, ShadowQuery, ShadowResult
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.errors import or_not_found
from karat.web.framework.jobs import Busy
from karat.web.framework.lists import Ask, Listed, frame_of, listed
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.web.framework.progress import Job, last, run
from karat.web.framework.state import AppState
from karat.workflows.experiments.stored_shadow import (
    ShadowAnalysis,
    find,
    logs,
    queue_priorities,
)

ROUTER = APIRouter()
WAIT_S, ENDLESS_S = 2.0, 1800.0  # longest wait of a page, and of the API, for a result
_LOOK_S = 0.2
By = Annotated[str, Query(max_length=200, description="An attribute of the queries to slice by.")]


@dataclass(frozen=True, kw_only=True)
class ShadowPage(Page):
    template: ClassVar[str] = "shadow.html.j2"
    name: str
    by: str = ""
    wrong: str | None = None
    result: ShadowResult | None = None
    headline: str = ""
    about: str = field(default="", repr=False)
    glance: Sequence[tuple[str, str]] = field(default=(), repr=False)
    checks: Mapping[str, Any] | None = field(default=None, repr=False)
    tables: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    bars: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    queries: Listed | None = None
    priorities: Mapping[str, Any] | None = field(default=None, repr=False)
    job: Job | None = field(default=None, repr=False)


@ROUTER.get("/shadow")
def shadows(call: AReader) -> Response:
    """List the shadow logs of the workspace, with their verdicts."""
    rows = [_row(call, each) for each in logs(call.workspace)]
    return show(call, PlainPage("shadows.html.j2", "Shadow", logs=rows))


@ROUTER.get("/shadow/{shadow}")
def shadow(call: AReader, shadow: str, by: By = "") -> Response:
    """Show a shadow log: verdict, differences, overlap, and the queries that change."""
    with or_not_found():
        log = find(call.workspace, shadow)
    asked = ShadowAnalysis(call.workspace, log, [by] if by else [])
    page: dict[str, Any] = {
        "title": shadow, "name": shadow, "by": by, "crumbs": [("Shadow", "/shadow")],
    }  # fmt: skip
    try:
        found = found_or_started(call.site, asked, WAIT_S)
    except KaratError as error:
        return show(call, ShadowPage(**page, wrong=_said(error)), 200 if not by else 400)
    if found is None:
        return show(call, ShadowPage(**page, job=last(call.site, _job(asked.key))))
    return show(call, ShadowPage(**page, **_shown(found, call.ask)))


@ROUTER.post("/shadow/{shadow}/queue")
def queue_shadow(call: AnEngineer, shadow: str) -> Response:
    """Add the judging priorities to the queue."""
    with or_not_found():
        log = find(call.workspace, shadow)
    found = found_or_started(call.site, ShadowAnalysis(call.workspace, log), WAIT_S)
    if found is None:
        return redirect(call, f"/shadow/{quote(shadow, safe='')}")
    queue_priorities(call.workspace, found, now=call.now)
    golden = quote(call.workspace.golden.name, safe="")
    return redirect(call, f"/golden/{golden}/pairs?chosen_by=shadow")


def found_or_started(site: AppState, asked: ShadowAnalysis, wait_s: float) -> ShadowResult | None:
    """The stored result; else it is computed in the background: None after a short wait."""
    found = asked.found()
    if found is None and run(
        site, _job(asked.key), "Answers of a shadow log", asked.compute, wait_s
    ):
        return asked.found()
    return found


async def awaited(site: AppState, asked: ShadowAnalysis) -> ShadowResult:
    """The result, awaited without blocking a thread."""
    until = time.monotonic() + ENDLESS_S
    # Polled: another process may compute it.
    while (found := await run_in_threadpool(found_or_started, site, asked, 0.0)) is None:
        if time.monotonic() > until:
            raise HTTPException(503, "the result is being computed", {"retry-after": "5"})
        await asyncio.sleep(_LOOK_S)
    return found


def _job(key: str) -> str:
    return f"shadow-{key}"


def _said(error: KaratError) -> str:
    """An error without folders of the server."""
    what = error.what
    return f"{what[:1].upper()}{what[1:]}." + (f" Fix: {error.fix}." if error.fix else "")


def _row(call: Call, log: Any) -> dict[str, Any]:
    """A log of the list; its verdict is None while it is computed."""
    row: dict[str, Any] = {
        "name": log.name,
        "where": f"/shadow/{quote(log.name, safe='')}",
        "sides": f"{log.candidate} against {log.baseline}",
        "modified": log.modified_us,
    }
    if log.error:
        return row | {"verdict": "error", "said": log.error, "sides": ""}
    found = None
    try:
        with suppress(Busy):
            found = found_or_started(call.site, ShadowAnalysis(call.workspace, log), 0.0)
    except KaratError as error:
        return row | {"verdict": "error", "said": _said(error)}
    if found is None:
        return row | {"verdict": None, "said": "is being computed"}
    return row | {
        "verdict": found.verdict, "said": found.reason, "requests": found.requests,
        "queries": found.queries,
    }  # fmt: skip


def _shown(found: ShadowResult, ask: Ask) -> dict[str, Any]:
    first, *rest = report.tables(found)
    left_out = {f"Overlap of the top {found.k}", report.CHANGED, report.PRIORITIES}
    others = [table for table in rest if table.title not in left_out]
    pairs = Table(report.PRIORITIES, report.PAIRS, list(found.judge_next))
    return {
        "result": found,
        "headline": report.headline(found),
        "about": report.about(found),
        "glance": _glance(found),
        "checks": first.texts(),
        "tables": [table.texts() for table in others],
        "bars": _bars(found, ask),
        "queries": _queries(found, ask),
        "priorities": pairs.texts() if pairs.rows else None,
    }


def _glance(found: ShadowResult) -> list[tuple[str, str]]:
    """What a reader looks for first: label and value."""
    group = found.groups[0] if found.groups else None
    p95 = [side.p95_us for side in found.sides[:2]]
    rows = [("requests answered by both", f"{min(s.answered for s in found.sides[:2]):,}")]
    if group is not None:
        rows.append(("queries with equal answers", percent(group.kinds["same"] / group.queries)))
        rows += [
            ("queries that lose all results", f"{group.kinds['lost_results']:,}"),
            ("queries that gain results", f"{group.kinds['gained_results']:,}"),
        ]
    if p95[0] is not None and p95[1] is not None:
        before, after = (milliseconds(each) for each in p95 if each is not None)
        rows.append(
            ("95th percentile of latency, baseline and candidate", f"{before} and {after} ms")
        )
    return rows


def _bin(query: ShadowQuery) -> str:
    if query.overlap is None:
        return "no answer"
    at = int(query.overlap * 10 + 1e-9)
    return "1" if at == 10 else f"{at / 10:.1f} to {(at + 1) / 10:.1f}"


def _bars(found: ShadowResult, ask: Ask) -> list[dict[str, Any]]:
    """The histogram of overlap; a bar opens its changed queries."""
    most = max([1, *(bar.queries for bar in found.histogram)])
    changed = {_bin(query) for query in found.most_changed}

    def drawn(bar: ShadowBar) -> dict[str, Any]:
        name = "1" if bar.low == 1 else f"{bar.low:.1f} to {bar.high:.1f}"
        where = f"{ask.address(bin=name, page=None)}#queries" if name in changed else ""
        share = bar.queries / most
        return {"name": name, "queries": bar.queries, "share": share, "where": where}

    return [drawn(bar) for bar in found.histogram]


def _queries(found: ShadowResult, ask: Ask) -> Listed:
    columns = [
        Column("query", "Query"),
        Column("requests", "Requests", "count"),
        Column("kind", "Answer", choices=True),
        Column("change", "Change", "number", help="1 minus RBO; 1 if the candidate failed"),
        Column("overlap", f"Overlap@{found.k}", "number"),
        Column("baseline_top", "Baseline"),
        Column("candidate_top", "Candidate"),
        Column("bin", "Overlap", shown=False),
    ]
    records = [
        (
            row,
            {
                "bin": _bin(row),
                "kind": report.KIND_WORDS[row.kind],
                "baseline_top": report.tops(row.baseline_top),
                "candidate_top": report.tops(row.candidate_top),
            },
        )
        for row in found.most_changed
    ]
    return listed(frame_of(records, columns), columns, ask, search=["query"])
