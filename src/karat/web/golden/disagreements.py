"""Disagreements between raters or with imported grades, and sending them to adjudication."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Form, Response

from karat.errors import KaratError, UsageError, nearest
from karat.reports.phrases.numbers import counted
from karat.reports.table import Column
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import opened, refused
from karat.web.framework.form_values import packed, unpacked
from karat.web.framework.lists import Ask, listed
from karat.web.framework.pages import Page, show
from karat.web.golden.golden_sets import address, golden_page
from karat.web.golden.queries import pair_address
from karat.workflows.golden.agreement import IMPORT, RATERS, put_before_adjudicator
from karat.workflows.golden.queries import disagreements_listed
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()


@ROUTER.get("/golden/{name}/disagreements")
def disagreements(call: AReader, name: str, between: str = RATERS) -> Response:
    if between not in (RATERS, IMPORT):
        near = nearest(between, (RATERS, IMPORT)) or [RATERS, IMPORT]
        raise UsageError(f"unknown kind of disagreements {between[:50]!r}", nearest=near)
    return show(call, _page(opened(call.site, name), between, call.ask))


@ROUTER.post("/golden/{name}/disagreements")
def ask_adjudicator(
    call: AnEngineer,
    name: str,
    pair: Annotated[list[str] | None, Form()] = None,
    every: Annotated[bool, Form()] = False,
    between: Annotated[str, Form()] = RATERS,
) -> Response:
    """Send some or all disagreements to adjudication."""
    workspace = opened(call.site, name)
    ask = Ask(where={"between": between})
    try:
        selected = None if every else [_pair(text) for text in pair or []]
        count = put_before_adjudicator(workspace, selected, **call.by, between=between)
    except KaratError as error:
        status, wrong = refused(error)
        return show(call, _page(workspace, between, ask, wrong=wrong), status)
    if count:
        done = f"{counted(count, 'pair')} sent to adjudication."
    else:
        done = "These pairs were already sent to adjudication."
    return show(call, _page(workspace, between, ask, done=done))


def _pair(text: str) -> tuple[str, str]:
    query_id, doc_id = unpacked(text, 2) or (None, None)
    if query_id is None or doc_id is None:
        raise UsageError(
            "a pair must be a JSON list of query id and document id", fix='for example ["q1", "d1"]'
        )
    return query_id, doc_id


def _page(workspace: Workspace, between: str, ask: Ask, **outcome: Any) -> Page:
    name = workspace.golden.name
    between = between if between in (RATERS, IMPORT) else RATERS
    frame = disagreements_listed(workspace)
    frame = frame.with_columns(
        text=pl.coalesce("text", "query_id"), title=pl.coalesce("title", "doc_id")
    )
    shown = frame.filter(pl.col("between") == between)
    columns = [
        Column("text", "Query", link=lambda row: address(name, "queries", row["query_id"])),
        Column("title", "Document", link=lambda row: pair_address(name, row)),
        Column("said", "Each rater"),
        Column("imported", "Imported", "grade", shown=between == IMPORT),
        Column("spread", "Difference", "grade"),
        Column("why", "Reasons"),
        Column("asked", "Adjudicator", choices=True),
        Column("query_id", "Query id", shown=False),
        Column("doc_id", "Document id", shown=False),
    ]
    if shown["why"].null_count() == shown.height:
        columns = [column for column in columns if column.name != "why"]
    found = listed(shown, columns, ask, search=["text", "title", "said"])
    boxes = [{**row, "key": packed(row["query_id"], row["doc_id"])} for row in found.rows]
    return golden_page(
        "disagreements.html.j2",
        name,
        f"Disagreements in {name}",
        between=between,
        raters=frame.filter(pl.col("between") == RATERS).height,
        imported=frame.filter(pl.col("between") == IMPORT).height,
        unasked=shown["asked"].null_count(),
        sent=shown.filter(asked="waits").height,
        found=replace(found, rows=boxes),
        **{"done": None, "wrong": None, **outcome},
    )
