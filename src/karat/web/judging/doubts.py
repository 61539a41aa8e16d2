"""Pairs that people should look at next to what machine judges graded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Form, Query, Response

from karat.errors import KaratError
from karat.reports.phrases.numbers import counted
from karat.reports.table import Column
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.errors import opened, refused
from karat.web.framework.lists import Ask, listed
from karat.web.framework.pages import PlainPage, show
from karat.workflows.judging.machine_grades import doubts_listed, doubts_stored, judges_in
from karat.workflows.workspace.stored_runs import stored_run_names

ROUTER = APIRouter()
_MEASURE, _BUDGET = "DCG@10", 50
_MOST = 100_000


@ROUTER.get("/golden/{name}/doubts")
def doubts(
    call: AReader,
    name: str,
    judge: Annotated[list[str], Query(default_factory=list)],
    run: Annotated[list[str], Query(default_factory=list)],
    measure: str = _MEASURE,
    budget: Annotated[int, Query(ge=1, le=_MOST)] = _BUDGET,
) -> Response:
    """List the pairs, of all judges that have graded unless some are selected."""
    return _shown(call, name, call.ask, judge, run, measure=measure, budget=budget)


@ROUTER.post("/golden/{name}/doubts")
def queue(
    call: AnEngineer,
    name: str,
    judge: Annotated[list[str], Form(default_factory=list)],
    run: Annotated[list[str], Form(default_factory=list)],
    measure: Annotated[str, Form()] = _MEASURE,
    budget: Annotated[int, Form(ge=1, le=_MOST)] = _BUDGET,
) -> Response:
    """Put the pairs into the queue."""
    how = {"measure": measure, "budget": budget, "queue": True, "person": call.who}
    return _shown(call, name, Ask(), judge, run, **how)


def _shown(
    call: Call, name: str, ask: Ask, judges: Sequence[str], runs: Sequence[str], **how: Any
) -> Response:
    workspace, status, wrong, found, done = opened(call.site, name), 200, None, None, None
    graded = [each.name for each in judges_in(workspace, now=call.now) if each.pairs]
    chosen = list(judges) or graded
    try:
        if chosen:
            result = doubts_stored(workspace, chosen, runs, now=call.now, **how)
            columns = _columns(name)
            found = listed(
                doubts_listed(workspace, result), columns, ask, search=["text", "title", "doc_id"]
            )
            if result.queued is not None:
                done = f"{counted(result.queued, 'pair', 'pairs')} added to the queue."
    except KaratError as error:
        status, wrong = refused(error)
    page = PlainPage(
        "machine_doubts.html.j2",
        f"Pairs that people should judge in {name}",
        [("Machine judges", "/judges")],
        golden=name,
        judges=[(each, each in chosen) for each in graded],
        runs=[(each, each in runs) for each in stored_run_names(workspace)],
        measure=how["measure"],
        budget=how["budget"],
        found=found,
        done=done,
        wrong=wrong,
    )
    return show(call, page, status)


def _columns(name: str) -> Sequence[Column]:
    at = f"/golden/{quote(name, safe='')}"

    def pair(row: Any) -> str:
        return f"{at}/pair?{urlencode({'query': row['query_id'], 'document': row['doc_id']})}"

    return (
        Column("text", "Query", link=lambda row: f"{at}/queries/{quote(row['query_id'], safe='')}"),
        Column(
            "title", "Document", link=lambda row: pair(row) if row["people"] is not None else None
        ),
        Column("chosen_by", "Why", choices=True),
        Column("machine", "Machine", "number", digits=1),
        Column("people", "People", "grade"),
        Column("chance", "Chance", "number", digits=2),
        Column("query_id", "Query id", shown=False),
        Column("doc_id", "Document id", shown=False),
    )
