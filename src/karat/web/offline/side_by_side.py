"""One query of a comparison: its rankings, and a document to read and to grade next to them."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, replace
from typing import Annotated
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, Depends, Form, Query, Response

from karat.errors import UsageError
from karat.reports.html.content import ShownQuery
from karat.tables.workspace import ComparisonRow
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.diagnosis_links import whys
from karat.web.framework.errors import NotFound
from karat.web.framework.form_values import Id, packed, unpacked
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.web.judging.cards import grades_of, safe_link
from karat.web.offline.counted import in_slice
from karat.web.offline.stored_comparisons import DEEPEST, RANKS, axes, known, shown
from karat.workflows.golden.editions import NOW
from karat.workflows.judging import in_place
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.stored_comparisons import StoredComparison
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
_LACKS = "comparison has no measure"


@dataclass(frozen=True)
class Asked:
    """What an address asks of a query, and of the list that led to it."""

    measure: str = ""
    candidate: str = ""
    outcome: str = ""
    slice: str = ""
    ranks: Annotated[int, Query(ge=1, le=DEEPEST)] = RANKS
    doc: Annotated[str, Query(max_length=2_000)] = ""  # the document that is open

    def tail(self, **changed: str | int) -> str:
        values = {**asdict(self), "ranks": self.ranks if self.ranks != RANKS else "", **changed}
        given = {name: value for name, value in values.items() if value}
        return f"?{urlencode(given)}" if given else ""


@ROUTER.get("/comparisons/{comparison_id}/queries/{query_id:path}")
def one_query(
    call: AReader, comparison_id: Id, query_id: str, asked: Annotated[Asked, Depends()]
) -> Response:
    def make_page(workspace: Workspace, row: ComparisonRow, result: StoredComparison) -> Page:
        return _page(workspace, row, result, query_id, asked, call.who)

    _, row, page = shown(call.site, comparison_id, make_page)
    if page is None:
        return redirect(call, f"/comparisons/{row.id}")
    return show(call, page)


def _page(
    workspace: Workspace,
    row: ComparisonRow,
    result: StoredComparison,
    query_id: str,
    asked: Asked,
    who: str,
) -> Page:
    measures, candidates = axes(result.comparison)
    measure = known(asked.measure, measures, _LACKS)
    [described] = stored_comparisons.described(workspace, [row])
    side = stored_comparisons.side(
        workspace, result, row, query_id, measure, asked.ranks, stale=described.older.changed
    )
    if side is None:
        raise NotFound(f"the comparison has no query {query_id!r}")
    query_rows = result.frame.filter(query_id=query_id)
    order = _order(result, measure, known(asked.candidate, candidates, _LACKS), asked)
    at = order.index_of(query_id)
    live = row.settings["edition"] == NOW and stored_comparisons.has_query(workspace, query_id)
    document = _document(workspace, result, who, query_id, asked.doc)
    text = query_rows["text"].drop_nulls().first() if query_rows.height else None
    base = f"/comparisons/{row.id}/queries/"

    def address(position: int | None) -> str | None:
        if position is None or not 0 <= position < len(order):
            return None
        return base + quote(order[position], safe="") + asked.tail(doc="")

    return PlainPage(
        "comparison_query.html.j2",
        str(text or query_id),
        [("Comparisons", "/comparisons"), (row.name, f"/comparisons/{row.id}")],
        row=row,
        since=described.older.said,
        query_id=query_id,
        text=None if text is None else str(text),
        measure=measure,
        measures=measures,
        where=base + quote(query_id, safe=""),
        ranks=asked.ranks,
        changes=query_rows.filter(pl.col("measure") == measure).drop("text", "query_id").to_dicts(),
        counts=bool(query_rows["counts"].all()),
        query=side.query,
        changed=side.changed,
        now=side.now,
        grades=grades_of(workspace.golden) if live else [],
        yours=in_place.own_of(workspace, who, query_id) if live else {},
        whys=whys(workspace, described.runs, query_id),
        before=address(None if at is None else at - 1),
        after=address(None if at is None else at + 1),
        document=document,
        not_in_json={
            "content": side.content,
            "asked": asked,
            "token": "" if document is None else _token(document.seen),
            "place": None if at is None else (at + 1, len(order)),
            "unjudged": _unjudged(side.query, asked.doc) if live else None,
        },
    )


def _order(result: StoredComparison, measure: str, candidate: str, asked: Asked) -> pl.Series:
    """The queries in the order of the list that led here."""
    rows = result.frame.filter(candidate=candidate, measure=measure)
    if asked.outcome:
        rows = rows.filter(outcome=asked.outcome)
    if asked.slice:
        sliced = [(str(each.attribute), str(each.slice)) for each in result.comparison.slices]
        rows = in_slice(rows, asked.slice, result.frame, sliced)
    return rows["query_id"]


def _unjudged(query: ShownQuery, doc: str) -> str | None:
    """The next document without a grade, from the candidate's first on; None if all have one."""
    placed = [one for ranking in reversed(query.rankings) for one in (*ranking.top, *ranking.below)]
    ids = list(dict.fromkeys(one.doc_id for one in placed))
    at = ids.index(doc) + 1 if doc in ids else 0
    lacking = {one.doc_id for one in placed if one.grade is None} - {doc}
    return next((each for each in (*ids[at:], *ids[:at]) if each in lacking), None)


def _document(
    workspace: Workspace, result: StoredComparison, who: str, query_id: str, doc_id: str
) -> in_place.ReadDocument | None:
    """The document that is open; None if none is."""
    if not doc_id:
        return None
    if not stored_comparisons.returned(result, query_id, doc_id):
        raise NotFound("no run of the comparison returned this document for this query")
    found = in_place.read_document(workspace, who, query_id, doc_id)
    return replace(found, url=safe_link(found.url))


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
    another: Annotated[str, Form(max_length=10)] = "",
    asked: Annotated[str, Form(max_length=5_000)] = "",
) -> Response:
    """Record the user's grade for a document of this query; or undo it, or ask another rater."""
    workspace, row, returned = shown(
        call.site,
        comparison_id,
        lambda _, __, result: stored_comparisons.returned(result, query_id, doc_id),
    )
    if returned is None:
        raise UsageError("the comparison is not computed yet", fix="wait and try again")
    if not returned:
        raise NotFound("no run of the comparison returned this document for this query")
    rater, now = call.who, call.now
    if undo is not None:
        in_place.take_back(workspace, rater, query_id, doc_id, undo, now=now)
    elif another:
        in_place.ask_another(workspace, query_id, doc_id, **call.by)
    elif grade is None:
        raise UsageError("no grade was given", fix="choose a grade")
    else:
        token_id, seen = _seen(token)
        in_place.rate(workspace, rater, query_id, doc_id, grade, now=now, token=token_id, seen=seen)
    where = f"/comparisons/{row.id}/queries/{quote(query_id, safe='')}"
    return redirect(call, where + (asked if asked.startswith("?") else ""))
