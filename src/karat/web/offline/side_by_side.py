"""One query of a comparison: its rankings side by side, and judging unjudged documents."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, Form, Query, Response

from karat.errors import UsageError
from karat.reports.html.content import ShownQuery
from karat.tables.workspace import ComparisonRow
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.diagnosis_links import whys
from karat.web.framework.errors import NotFound
from karat.web.framework.form_values import Id, packed, unpacked
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.web.judging.cards import grades_of, safe_link
from karat.web.offline.stored_comparisons import DEEPEST, RANKS, axes, find, shown
from karat.workflows.golden.editions import NOW
from karat.workflows.judging import in_place
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.stored_comparisons import StoredComparison
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()


@ROUTER.get("/comparisons/{comparison_id}/queries/{query_id:path}")
def one_query(
    call: AReader,
    comparison_id: Id,
    query_id: str,
    measure: str = "",
    ranks: Annotated[int, Query(ge=1, le=DEEPEST)] = RANKS,
) -> Response:
    def make_page(workspace: Workspace, row: ComparisonRow, result: StoredComparison) -> Page:
        return _page(workspace, row, result, query_id, measure, ranks, call.who)

    row, page = shown(call.site, comparison_id, make_page)
    if page is None:
        return redirect(call, f"/comparisons/{row.id}")
    return show(call, page)


def _page(
    workspace: Workspace,
    row: ComparisonRow,
    result: StoredComparison,
    query_id: str,
    measure: str,
    ranks: int,
    who: str,
) -> Page:
    measures, candidates = axes(result.comparison)
    chosen = _known(measure, measures)
    side = stored_comparisons.side(workspace, result, row, query_id, chosen, ranks)
    if side is None:
        raise NotFound(f"the comparison has no query {query_id!r}")
    query_rows = result.frame.filter(query_id=query_id)
    order = result.frame.filter(candidate=candidates[0], measure=chosen)["query_id"]
    at = order.index_of(query_id)
    judging = row.settings["edition"] == NOW and stored_comparisons.has_query(workspace, query_id)
    tail = f"?{urlencode({'measure': chosen})}" if chosen != measures[0] else ""

    def address(position: int | None) -> str | None:
        if position is None or not 0 <= position < len(order):
            return None
        return f"/comparisons/{row.id}/queries/{quote(order[position], safe='')}{tail}"

    to_judge = _ungraded(workspace, side.query) if judging else {}
    text = query_rows["text"].drop_nulls().first() if query_rows.height else None
    [described] = stored_comparisons.described(workspace, [row])
    return PlainPage(
        "comparison_query.html.j2",
        str(text or query_id),
        [("Comparisons", "/comparisons"), (row.name, f"/comparisons/{row.id}")],
        row=row,
        since=described.older.said,
        query_id=query_id,
        text=None if text is None else str(text),
        measure=chosen,
        measures=measures,
        where=f"/comparisons/{row.id}/queries/{quote(query_id, safe='')}",
        ranks=ranks,
        changes=query_rows.filter(pl.col("measure") == chosen).drop("text", "query_id").to_dicts(),
        counts=bool(query_rows["counts"].all()),
        query=side.query,
        changed=side.changed,
        now=side.now,
        grades=grades_of(workspace.golden) if judging else [],
        yours=in_place.own_of(workspace, who, query_id) if judging else {},
        whys=whys(workspace, described.runs, query_id),
        before=address(None if at is None else at - 1),
        after=address(None if at is None else at + 1),
        not_in_json={
            "content": side.content,
            "to_judge": to_judge,
            "tokens": {doc: _token(document.seen) for doc, document in to_judge.items()},
        },
    )


def _known(measure: str, measures: Sequence[str]) -> str:
    chosen = measure or measures[0]
    if chosen not in measures:
        raise UsageError(f"the comparison has no measure {chosen!r}", nearest=measures)
    return chosen


def _ungraded(workspace: Workspace, query: ShownQuery) -> dict[str, in_place.GradableDocument]:
    ungraded = {
        document.doc_id
        for ranking in query.rankings
        for document in (*ranking.top, *ranking.below)
        if document.grade is None
    }
    documents = in_place.to_grade(workspace, ungraded).items()
    return {doc: replace(each, url=safe_link(each.url)) for doc, each in documents}


def _token(seen: in_place.Seen) -> str:
    return packed(secrets.token_hex(16), seen.document_sha256, seen.guideline)


def _seen(text: str) -> tuple[str, in_place.Seen]:
    token, document, guideline = unpacked(text, 3) or [None] * 3
    if not token or guideline is None:
        raise UsageError("the form has an invalid token", fix="reload the page")
    return token, in_place.Seen(document, guideline)


@ROUTER.post("/comparisons/{comparison_id}/queries/{query_id:path}")
def judge(
    call: AnEngineer,
    comparison_id: Id,
    query_id: str,
    doc_id: Annotated[str, Form(max_length=2_000)],
    grade: Annotated[float | None, Form()] = None,
    token: Annotated[str, Form(max_length=1_000)] = "",
    undo: Annotated[int | None, Form(ge=1, lt=2**63)] = None,
    measure: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Record the user's own grade for a document of this query, or undo it."""
    row, returned = shown(
        call.site,
        comparison_id,
        lambda _, __, result: stored_comparisons.returned(result, query_id, doc_id),
    )
    if returned is None:
        raise UsageError("the comparison is not computed yet", fix="wait and try again")
    workspace, row = find(call.site, comparison_id)
    if not returned:
        raise NotFound("no run of the comparison returned this document for this query")
    rater, now = call.who, call.now
    if undo is not None:
        in_place.take_back(workspace, rater, query_id, doc_id, undo, now=now)
    elif grade is None:
        raise UsageError("no grade was given", fix="choose a grade")
    else:
        token_id, seen = _seen(token)
        in_place.rate(workspace, rater, query_id, doc_id, grade, now=now, token=token_id, seen=seen)
    tail = f"?{urlencode({'measure': measure})}" if measure else ""
    where = f"/comparisons/{row.id}/queries/{quote(query_id, safe='')}"
    return redirect(call, f"{where}{tail}")
