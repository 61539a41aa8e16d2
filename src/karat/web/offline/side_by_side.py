"""One query of a comparison: the rankings side by side, and judging what nobody judged."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from karat.errors import UsageError
from karat.reports.html.content import Content, ShownQuery
from karat.store.sql import comparisons as stored
from karat.store.sql.comparisons import ComparisonRow
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import NotFound
from karat.web.framework.form_values import Id, packed, unpacked
from karat.web.framework.pages import Page, show
from karat.web.framework.state import TheState
from karat.web.judging.cards import Grade, grades_of, safe_link
from karat.web.offline.stored_comparisons import DEEPEST, RANKS, axes, find, shown
from karat.workflows.golden.editions import NOW
from karat.workflows.judging.in_place import (
    OwnHere,
    Seen,
    ToGrade,
    own_of,
    rate,
    take_back,
    to_grade,
)
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.comparison_changes import Since
from karat.workflows.workspace.stored_comparisons import KeptComparison
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()


@dataclass(frozen=True, kw_only=True)
class SidePage(Page):
    """One query of a comparison.

    Attributes:
        row: The comparison.
        since: What changed since it was computed, in a sentence; empty if nothing did.
        query_id: The query.
        text: What was typed, if it is known.
        measure: What documents are said to add to.
        measures: All measures.
        where: Address of this page.
        ranks: Ranks that are shown, at most.
        changes: By candidate and measure: both values, the difference, and what it adds.
        counts: Whether it counts in numbers over all queries.
        query: Its values and its rankings.
        content: What the components of a report are given.
        changed: How many of its grades changed since the comparison was computed.
        now: By measure the values of the runs by the grades of now, where any changed.
        grades: What can be answered; empty if nothing can be judged here.
        to_judge: By document what is to be read before it is graded.
        tokens: By document what its form says: what was shown, so that what changed since is not
            graded unseen, and a name, so that a rating sent twice counts once.
        yours: By document what whoever looks has said of it.
        before: The query that contributes next more, and where it is; None for the first.
        after: The query that contributes next less; None for the last.
    """

    template: ClassVar[str] = "comparison_query.html.j2"
    section: ClassVar[str] = "comparisons"
    row: ComparisonRow
    since: str
    query_id: str
    text: str | None
    measure: str
    measures: Sequence[str]
    where: str
    ranks: int
    changes: Sequence[Mapping[str, Any]]
    counts: bool
    query: ShownQuery
    content: Content = field(repr=False)
    changed: int
    now: Mapping[str, Sequence[float | None]]
    grades: Sequence[Grade]
    to_judge: Mapping[str, ToGrade] = field(repr=False)
    tokens: Mapping[str, str] = field(repr=False)
    yours: Mapping[str, OwnHere]
    before: str | None
    after: str | None


@ROUTER.get("/comparisons/{comparison_id}/queries/{query_id:path}")
def one_query(
    request: Request,
    site: TheState,
    asking: AReader,
    comparison_id: Id,
    query_id: str,
    measure: str = "",
    ranks: Annotated[int, Query(ge=1, le=DEEPEST)] = RANKS,
) -> Response:
    """The rankings of one query side by side."""

    def made(opened: Workspace, row: ComparisonRow, found: KeptComparison) -> SidePage:
        return _page(opened, row, found, query_id, measure, ranks, asking.person.name)

    row, page = shown(site, comparison_id, made)
    if page is None:
        return RedirectResponse(f"{site.settings.base}/comparisons/{row.id}", 303)
    return show(request, page)


def _page(
    opened: Workspace,
    row: ComparisonRow,
    found: KeptComparison,
    query_id: str,
    measure: str,
    ranks: int,
    who: str,
) -> SidePage:
    measures, candidates = axes(found.comparison)
    chosen = measure or measures[0]
    if chosen not in measures:
        raise UsageError(f"the comparison has no {chosen!r}", nearest=measures)
    side = stored_comparisons.side(opened, found, row, query_id, chosen, ranks)
    if side is None:
        raise NotFound(f"the comparison has no query {query_id!r}")
    own = found.frame.filter(query_id=query_id)
    order = found.frame.filter(candidate=candidates[0], measure=chosen)["query_id"]
    at = order.index_of(query_id)
    with opened.store.read() as connection:
        there = stored.has_query(connection, opened.golden.id, query_id)
    judging = there and row.settings["edition"] == NOW
    lacking = {
        one.doc_id
        for ranking in side.query.rankings
        for one in (*ranking.top, *ranking.below)
        if one.grade is None
    }
    tail = f"?{urlencode({'measure': chosen})}" if chosen != measures[0] else ""

    def address(place: int | None) -> str | None:
        if place is None or not 0 <= place < len(order):
            return None
        return f"/comparisons/{row.id}/queries/{quote(order[place], safe='')}{tail}"

    to_judge = {
        doc: replace(each, url=safe_link(each.url))
        for doc, each in (to_grade(opened, lacking).items() if judging else ())
    }
    text = own["text"].drop_nulls().first() if own.height else None
    return SidePage(
        title=str(text or query_id),
        crumbs=[("Comparisons", "/comparisons"), (row.name, f"/comparisons/{row.id}")],
        row=row,
        since=Since(opened).older(row).said,
        query_id=query_id,
        text=None if text is None else str(text),
        measure=chosen,
        measures=measures,
        where=f"/comparisons/{row.id}/queries/{quote(query_id, safe='')}",
        ranks=ranks,
        changes=own.filter(pl.col("measure") == chosen).drop("text", "query_id").to_dicts(),
        counts=bool(own["counts"].all()),
        query=side.query,
        content=side.content,
        changed=side.changed,
        now=side.now,
        grades=grades_of(opened.golden) if judging else [],
        to_judge=to_judge,
        tokens={doc: _token(each.seen) for doc, each in to_judge.items()},
        yours=own_of(opened, who, query_id) if judging else {},
        before=address(None if at is None else at - 1),
        after=address(None if at is None else at + 1),
    )


def _token(seen: Seen) -> str:
    return packed(secrets.token_hex(16), seen.document_sha256, seen.guideline)


def _seen(text: str) -> tuple[str, Seen]:
    """A token, and what was shown, as ``_token`` has them."""
    token, document, guideline = unpacked(text, 3) or [None] * 3
    if not token or guideline is None:
        raise UsageError("the form does not say what was shown", fix="reload the page")
    return token, Seen(document, guideline)


@ROUTER.post("/comparisons/{comparison_id}/queries/{query_id:path}")
def judge(
    site: TheState,
    asking: AnEngineer,
    comparison_id: Id,
    query_id: str,
    doc_id: Annotated[str, Form(max_length=2_000)],
    grade: Annotated[float | None, Form()] = None,
    token: Annotated[str, Form(max_length=1_000)] = "",
    undo: Annotated[int | None, Form(ge=1, lt=2**63)] = None,
    measure: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Record a grade of one's own for a document of this query, or take it back."""
    row, there = shown(
        site,
        comparison_id,
        lambda _, __, found: stored_comparisons.returned(found, query_id, doc_id),
    )
    if there is None:
        raise UsageError("the comparison is not computed yet", fix="wait, and try again")
    opened, row = find(site, comparison_id)
    if not there:
        raise NotFound("no run of the comparison has this document for this query")
    who, now = asking.person.name, site.clock()
    if undo is not None:
        take_back(opened, who, query_id, doc_id, undo, now=now)
    elif grade is None:
        raise UsageError("there is no grade", fix="press one")
    else:
        name, seen = _seen(token)
        rate(opened, who, query_id, doc_id, grade, now=now, token=name, seen=seen)
    tail = f"?{urlencode({'measure': measure})}" if measure else ""
    where = f"/comparisons/{row.id}/queries/{quote(query_id, safe='')}"
    return RedirectResponse(f"{site.settings.base}{where}{tail}", 303)
