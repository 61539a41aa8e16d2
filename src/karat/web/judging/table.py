"""Bulk judging in a table: filter, select rows, one grade for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, Form, Response

from karat.errors import UsageError
from karat.golden.queue import Pair
from karat.reports.table import Column
from karat.web.framework.auth import AnEngineer
from karat.web.framework.call import Call
from karat.web.framework.errors import opened
from karat.web.framework.form_values import packed, unpacked
from karat.web.framework.idempotency import Once, secret_of
from karat.web.framework.lists import listed
from karat.web.framework.pages import Page, PlainPage, show
from karat.web.judging.cards import grades_of, guideline_blocks
from karat.workflows.judging.in_place import Rated, Seen, pairs_of, rate_pairs
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
MOST = 500
"""Most pairs graded at once."""
_KEY = ("query_id", "doc_id", "document_sha256", "guideline")
"""Columns that identify a row: the pair, and the versions shown to the rater."""
_COLUMNS = (
    Column("title", "Document"),
    Column("begins", "Text"),
    Column("query", "Query"),
    Column("need", "Need", shown=False),
    Column("yours", "Your grade", choices=True),
    Column("judgments", "Judgments", "count"),
    Column("free", "Open ratings", "count"),
    Column("priority", "Priority", "count"),
    Column("chosen_by", "Chosen by", choices=True),
    Column("query_id", "Query id", shown=False),
    Column("doc_id", "Document id", shown=False),
    Column("pair", "Pair", shown=False),
)


@ROUTER.get("/judge/{name}/table")
def table(call: AnEngineer, name: str) -> Response:
    return show(call, _page(call, opened(call.site, name), call.who, []))


@ROUTER.post("/judge/{name}/table")
def grade_chosen(
    call: AnEngineer,
    name: str,
    grade: Annotated[float, Form()],
    pair: Annotated[list[str] | None, Form()] = None,
    reason: Annotated[str, Form()] = "",
    once: Once = "",
) -> Response:
    """Grade the selected pairs; report each refusal."""
    workspace, rater = opened(call.site, name), call.who
    selected = dict(_pair(text) for text in pair or ())  # all are checked before one is graded
    if not selected:
        raise UsageError("no row is selected", fix="tick rows, then choose a grade")
    if len(selected) > MOST:
        raise UsageError(
            f"{len(selected):,} rows are selected; at most {MOST} can be graded at once",
            fix="grade them in parts",
        )
    comment, now = reason.strip() or None, call.now
    token = secret_of(call.principal, once, "rate", name, grade, comment)
    rated = rate_pairs(
        workspace, rater, selected, grade, now=now, reason=comment, seen=selected, token=token
    )
    return show(call, _page(call, workspace, rater, rated))


def _page(call: Call, workspace: Workspace, rater: str, rated: Sequence[Rated]) -> Page:
    frame = pairs_of(workspace, rater)
    frame = frame.with_columns(pair=pl.struct(*_KEY).map_elements(_key, pl.String)).drop(_KEY[2:])
    ask, golden = call.ask, workspace.golden
    search = ["query", "need", "title", "begins", "doc_id", "query_id"]
    rows = frame.select("query_id", "doc_id", "query", "title").iter_rows()
    title_of = {(q, d): f"{query}: {title}" for q, d, query, title in rows}
    refused = [
        (title_of.get((each.query_id, each.doc_id), each.doc_id), each.refused)
        for each in rated
        if each.refused is not None
    ]
    query = urlencode(list(call.request.query_params.multi_items()))
    return PlainPage(
        "judge_table.html.j2",
        f"Judge {golden.name} in a table",
        [(golden.name, f"/golden/{quote(golden.name, safe='')}")],
        golden=golden.name,
        found=listed(frame, _COLUMNS, ask, search=search),
        grades=grades_of(golden),
        guideline=guideline_blocks(golden.guideline_text),
        version=golden.guideline,
        graded=len(rated) - len(refused),
        corrected=sum(each.first_stays for each in rated),
        refused=refused,
        address=f"?{query}" if query else "",
    )


def _key(row: dict[str, str | None]) -> str:
    return packed(*(row[name] for name in _KEY))


def _pair(text: str) -> tuple[Pair, Seen]:
    query_id, doc_id, document_sha256, guideline = unpacked(text, len(_KEY)) or [None] * len(_KEY)
    if query_id is None or doc_id is None or guideline is None:
        raise UsageError("a selected row is invalid", fix="reload the page")
    return (query_id, doc_id), Seen(document_sha256, guideline)
