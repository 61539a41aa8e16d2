"""Disagreements: what raters see differently, and who is asked to settle it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, ClassVar

import polars as pl
from fastapi import APIRouter, Form, Request, Response

from karat.errors import KaratError, UsageError, nearest
from karat.reports.phrases.numbers import counted
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import Said, refused
from karat.web.framework.form_values import storable
from karat.web.framework.lists import Ask, Column, Listed, listed
from karat.web.framework.pages import show
from karat.web.framework.state import TheState
from karat.web.golden.golden_sets import GoldenPage, address, crumbs, opened
from karat.web.golden.queries import pair_address
from karat.workflows.golden.agreement import IMPORT, RATERS
from karat.workflows.golden.audited import put_before_adjudicator
from karat.workflows.golden.queries import disagreements_listed
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()


@dataclass(frozen=True, kw_only=True)
class DisagreementsPage(GoldenPage):
    """What nobody has settled yet.

    Attributes:
        between: ``raters``, or ``import``: imported grades that raters contradict.
        raters: Disagreements between raters.
        imported: Imported grades that raters contradict.
        unasked: Of those listed, how many no adjudicator was asked to settle.
        sent: Of those listed, how many wait for an adjudicator.
        found: One row for each.
        done: What was just done, in a sentence; None for nothing.
        wrong: Why something was not done; None if it was.
    """

    template: ClassVar[str] = "disagreements.html.j2"
    tab: ClassVar[str] = "disagreements"
    between: str
    raters: int
    imported: int
    unasked: int
    sent: int
    found: Listed
    done: str | None = None
    wrong: Said | None = None


@ROUTER.get("/golden/{name}/disagreements")
def disagreements(
    request: Request, site: TheState, _asking: AReader, name: str, between: str = RATERS
) -> Response:
    """List what is not settled."""
    if between not in (RATERS, IMPORT):
        near = nearest(between, (RATERS, IMPORT)) or [RATERS, IMPORT]
        what = f"disagreements are between raters, or with an import, not {between[:50]!r}"
        raise UsageError(what, nearest=near)
    return show(request, _page(opened(site, name), between, Ask.of(request)))


@ROUTER.post("/golden/{name}/disagreements")
def ask_adjudicator(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    name: str,
    pair: Annotated[list[str] | None, Form()] = None,
    every: Annotated[bool, Form()] = False,
    between: Annotated[str, Form()] = RATERS,
) -> Response:
    """Put some, or all, before an adjudicator."""
    found = opened(site, name)
    ask = Ask(where={"between": between})
    try:
        chosen = None if every else [_pair(text) for text in pair or []]
        count = put_before_adjudicator(
            found, chosen, person=asking.person.name, now=site.clock(), between=between
        )
    except KaratError as error:
        status, wrong = refused(error)
        return show(request, _page(found, between, ask, wrong=wrong), status)
    if count:
        done = f"{counted(count, 'pair', 'pairs')} sent to adjudication."
    else:
        done = "These were sent to adjudication before."
    return show(request, _page(found, between, ask, done=done))


def _pair(text: str) -> tuple[str, str]:
    """Query and document, as the boxes of the list say them.

    Raises:
        UsageError: it is neither.
    """
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    texts = isinstance(said, list) and [type(each) for each in said] == [str, str]
    if texts and all(map(storable, said)):
        return said[0], said[1]
    raise UsageError("a pair is chosen by query and document", fix='["q1", "d1"]')


def _page(
    opened_set: Workspace,
    between: str,
    ask: Ask,
    *,
    done: str | None = None,
    wrong: Said | None = None,
) -> DisagreementsPage:
    name = opened_set.golden.name
    between = between if between in (RATERS, IMPORT) else RATERS
    frame = disagreements_listed(opened_set)
    keys = [
        json.dumps(row, ensure_ascii=False) for row in frame.select("query_id", "doc_id").rows()
    ]
    frame = frame.with_columns(
        pl.Series("key", keys, pl.String),
        text=pl.coalesce("text", "query_id"),
        title=pl.coalesce("title", "doc_id"),
    )
    chosen = frame.filter(pl.col("between") == between)
    columns = [
        Column("text", "Query", link=lambda row: address(name, "queries", row["query_id"])),
        Column("title", "Document", link=lambda row: pair_address(name, row)),
        Column("said", "Each rater"),
        Column("imported", "Imported", "grade", shown=between == IMPORT),
        Column("spread", "Apart by", "grade"),
        Column("why", "Reasons"),
        Column("asked", "Adjudicator", choices=True),
        Column("query_id", "Query id", shown=False),
        Column("doc_id", "Document id", shown=False),
    ]
    if chosen["why"].null_count() == chosen.height:
        columns = [column for column in columns if column.name != "why"]
    return DisagreementsPage(
        title=f"Disagreements in {name}",
        crumbs=crumbs(name),
        golden=name,
        between=between,
        raters=frame.filter(pl.col("between") == RATERS).height,
        imported=frame.filter(pl.col("between") == IMPORT).height,
        unasked=chosen["asked"].null_count(),
        sent=chosen.filter(asked="waits").height,
        found=listed(chosen, columns, ask, search=["text", "title", "said"]),
        done=done,
        wrong=wrong,
    )
