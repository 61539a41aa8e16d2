"""Queries of a golden set: their list, and one with its documents and what was said of them."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Any, ClassVar

import polars as pl
from fastapi import APIRouter, File, Form, Request, Response, UploadFile

from karat.errors import KaratError, UsageError
from karat.web.framework.auth import AnEngineer, AReader, Principal
from karat.web.framework.errors import NotFound, Said, refused
from karat.web.framework.jobs import in_turn
from karat.web.framework.lists import OWN, SOME, Ask, Column, Listed, listed
from karat.web.framework.pages import show
from karat.web.framework.signed_values import seal, unseal
from karat.web.framework.state import TheState
from karat.web.framework.uploads import uploaded
from karat.web.golden.golden_sets import GoldenPage, address, crumbs, opened
from karat.workflows.golden.queries import STATES, queries_in, query_in
from karat.workflows.golden.sampling import (
    ON_SERVER,
    Drawn,
    Placed,
    Plan,
    draw_queries,
    plan_queries,
    put_sample,
    read_bands,
    read_quota,
)
from karat.workflows.workspace.display_names import told_as
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
MOST_QUERIES = 5_000
"""Queries that a page draws: they go to the browser and come back with the form."""
_MOST_HELD = 4 << 20
"""Bytes of a sample, compressed, that go so."""
_FIELD = 1 << 19  # characters: a form's fields hold twice as many, and no more
_SHOWN = 3
"""Attributes that stand in the table; the others are in CSV and JSON."""
_FACTS = ("need", "weight", "count", "band", "stratum", "origin", "probability")
_HEADS = {"need": "information need", "count": "times searched", "probability": "chance of draw"}


@dataclass(frozen=True)
class Typed:
    """What the form says that chooses queries from a log.

    Attributes:
        size: Queries to draw.
        bands: ``NAME=SHARE``, a line each; empty for thirds.
        quotas: ``ATTRIBUTE=VALUE:N``, a line each.
        hard: Queries known to be hard, a line each.
        text: The column of queries, if it has no usual name.
        count: The column of counts, likewise.
        mask: Whether what is personal is replaced.
    """

    size: str = "100"
    bands: str = ""
    quotas: str = ""
    hard: str = ""
    text: str = ""
    count: str = ""
    mask: bool = False


@dataclass(frozen=True, kw_only=True)
class QueriesPage(GoldenPage):
    """The queries.

    Attributes:
        queries: One row for each.
        typed: What the form that chooses from a log says.
        wrong: Why nothing was chosen from a log; None if nothing went wrong.
        placed: What became of a sample that was put in; None if none was.
    """

    template: ClassVar[str] = "golden_queries.html.j2"
    tab: ClassVar[str] = "queries"
    queries: Listed
    typed: Typed
    wrong: Said | None = None
    placed: Placed | None = None


@dataclass(frozen=True, kw_only=True)
class PlanPage(GoldenPage):
    """A sample of a log, before it is put into the golden set.

    Attributes:
        file: What the log is called.
        drawn: The sample, and what became of the log's rows; not in JSON, for it holds every
            query of the log.
        searches: In the log, without what was dropped.
        plan: What would become of the golden set.
        queries: The sample, most asked first.
        sealed: The sample in parts, for the form that puts it in.
    """

    template: ClassVar[str] = "golden_choose.html.j2"
    tab: ClassVar[str] = "queries"
    file: str
    drawn: Drawn = field(repr=False)
    searches: int
    plan: Plan
    queries: Sequence[Mapping[str, Any]]
    sealed: Sequence[str] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class QueryPage(GoldenPage):
    """One query.

    Attributes:
        query_id: Its id.
        text: What was typed; None if nobody knows.
        facts: What else is known of it: name and value.
        no_answer: Whether no document answers it.
        editions: Names of the editions that hold it.
        documents: What was queued or judged for it, with what each rater said.
    """

    template: ClassVar[str] = "golden_query.html.j2"
    tab: ClassVar[str] = "queries"
    query_id: str
    text: str | None
    facts: Sequence[tuple[str, Any]]
    no_answer: bool
    editions: Sequence[str]
    documents: Listed


@ROUTER.get("/golden/{name}/queries")
def queries(request: Request, site: TheState, _asking: AReader, name: str) -> Response:
    """List the queries; here they are chosen from a log."""
    return show(request, _page(opened(site, name), Ask.of(request)))


@ROUTER.post("/golden/{name}/queries")
async def plan(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    name: str,
    log: Annotated[UploadFile | None, File()] = None,
    size: Annotated[str, Form()] = "100",
    bands: Annotated[str, Form()] = "",
    quotas: Annotated[str, Form()] = "",
    hard: Annotated[str, Form()] = "",
    text: Annotated[str, Form()] = "",
    count: Annotated[str, Form()] = "",
    mask: Annotated[str, Form()] = "",
) -> Response:
    """Draw queries from a log, and show what putting them in would do; nothing is kept of it."""
    typed = Typed(size, bands, quotas, hard, text.strip(), count.strip(), bool(mask))
    return await in_turn(request, lambda: _planned(request, site, asking, name, log, typed))


def _planned(
    request: Request,
    site: TheState,
    asking: Principal,
    name: str,
    log: UploadFile | None,
    typed: Typed,
) -> Response:
    found = opened(site, name)
    try:
        with uploaded(log, "log") as (where, called), told_as(where, called):
            drawn = draw_queries(
                found,
                where,
                _size(typed.size),
                bands=read_bands(_lines(typed.bands)),
                quotas=[read_quota(line) for line in _lines(typed.quotas)],
                hard=_lines(typed.hard),
                mask=typed.mask,
                text=typed.text or None,
                count=typed.count or None,
                most=ON_SERVER,
            )
        sealed = _seal(drawn.sample.queries, found, asking, site.settings.max_upload // 2)
    except KaratError as error:
        status, wrong = refused(error)
        return show(request, _page(found, Ask(), typed=typed, wrong=wrong), status)
    page = PlanPage(
        title="What would be chosen",
        crumbs=crumbs(name, ("Queries", address(name, "queries"))),
        golden=name,
        file=called,
        drawn=drawn,
        searches=int(drawn.log.frame["count"].sum()),
        plan=plan_queries(found, drawn),
        queries=drawn.sample.queries.select("text", "band", "count").to_dicts(),
        sealed=sealed,
    )
    return show(request, page)


@ROUTER.post("/golden/{name}/chosen")
def choose(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    name: str,
    sample: Annotated[list[str] | None, Form()] = None,
    replace: Annotated[str, Form()] = "",
) -> Response:
    """Put a sample in that was shown before."""
    found = opened(site, name)
    try:
        placed = put_sample(
            found,
            _unseal("".join(sample or ()), found, asking),
            now=site.clock(),
            replace=bool(replace),
            person=asking.person.name,
        )
    except KaratError as error:
        status, wrong = refused(error)
        return show(request, _page(found, Ask(), wrong=wrong), status)
    return show(request, _page(found, Ask(), placed=placed))


@ROUTER.get("/golden/{name}/queries/{query_id:path}")
def query(request: Request, site: TheState, _asking: AReader, name: str, query_id: str) -> Response:
    """One query with its documents."""
    try:
        found = query_in(opened(site, name), query_id)
    except UsageError as error:
        raise NotFound(error.what, nearest=error.nearest, fix=error.fix) from None
    row = found.query
    others = [n for n in row if n not in {"query_id", "text", "no_answer", *_FACTS}]
    page = QueryPage(
        title=row.get("text") or query_id,
        crumbs=crumbs(name, ("Queries", address(name, "queries"))),
        golden=name,
        query_id=query_id,
        text=row.get("text"),
        facts=[(_HEADS.get(n, n), row[n]) for n in (*_FACTS, *others) if n in row],
        no_answer=bool(row.get("no_answer")),
        editions=found.editions,
        documents=_documents(found.documents, name, Ask.of(request)),
    )
    return show(request, page)


def list_queries(frame: pl.DataFrame, attributes: Mapping[str, str], name: str, ask: Ask) -> Listed:
    """Queries as a list.

    Args:
        frame: As ``browsing.queries_in`` gives it.
        attributes: What its columns of attributes are called.
        name: Of the golden set.
        ask: What is asked of the list.
    """
    frame = frame.with_columns(text=pl.coalesce("text", "query_id"))
    held = set(frame.columns)

    def to_pairs(**where: str) -> Any:
        return lambda row: address(name, "pairs", query_id=row["query_id"], **where)

    columns = [
        Column("text", "Query", link=lambda row: address(name, "queries", row["query_id"])),
        Column("query_id", "Id", shown=False),
        Column("need", "Need", shown=False),
        Column("weight", "Weight", "number"),
        Column("band", "Band", choices=True),
        Column("stratum", "Stratum", choices=True, shown=False),
        Column("origin", "Origin", choices=True, shown=False),
        Column("count", "Searches", "count"),
        Column("no_answer", "No answer", "flag", choices=True, shown=False),
        Column("words", "Words", choices=True, shown=False),
    ]
    # Of few values, for the rest would fill the screen; looked for no further than there is room.
    few = list(islice((c for c in attributes if frame[c].n_unique() <= 30), _SHOWN))
    for column in attributes:
        number = frame.schema[column].is_numeric()
        flag = frame.schema[column] == pl.Boolean
        columns.append(
            Column(
                column,
                attributes[column],
                "flag" if flag else "number" if number else "text",
                shown=column in few,
                choices=column in few and not number,
            )
        )
    columns += [
        Column("documents", "Documents", "count", link=to_pairs()),
        Column("graded", "Judged", "count", link=to_pairs(grade=SOME)),
        Column("judgments", "Judgments", "count", shown=False),
        Column("waiting", "Waiting", "count", link=to_pairs(waiting=">=1")),
        Column("editions", "Editions", "count", shown=False),
    ]
    there = [column for column in columns if column.name in held]
    search = [n for n in ("text", "need", "query_id") if n in held]
    return listed(frame, there, ask, search=search)


def _documents(frame: pl.DataFrame, name: str, ask: Ask) -> Listed:
    columns = (
        Column("name", "Document", link=lambda row: pair_address(name, row)),
        Column("doc_id", "Id", shown=False),
        Column("begins", "Begins", longest=160),
        Column("said", "Each rater"),
        Column("adjudicated", "Adjudicated", "grade"),
        Column("grade", "Grade", "grade"),
        Column("state", "State", choices=True, vocabulary=STATES),
        Column("waiting", "Waiting", "count"),
    )
    named = frame.with_columns(name=pl.coalesce("title", "doc_id"))
    named = named.sort("grade", descending=True, nulls_last=True, maintain_order=True)
    return listed(named, columns, ask, search=["name", "begins", "doc_id"], per_page=200)


def pair_address(name: str, row: Mapping[str, Any]) -> str:
    """The page of a pair of a golden set, without the base path."""
    return address(name, "pair", query=row["query_id"], document=row["doc_id"])


def _page(
    found: Workspace,
    ask: Ask,
    *,
    typed: Typed | None = None,
    wrong: Said | None = None,
    placed: Placed | None = None,
) -> QueriesPage:
    name = found.golden.name
    frame, attributes = queries_in(found, OWN)
    return QueriesPage(
        title=f"Queries of {name}",
        crumbs=crumbs(name),
        golden=name,
        queries=list_queries(frame, attributes, name, ask),
        typed=typed or Typed(),
        wrong=wrong,
        placed=placed,
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _size(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text.strip()) or not 1 <= int(text) <= MOST_QUERIES:
        raise UsageError(
            f"{text[:20]!r} is no number of queries from 1 to {MOST_QUERIES:,}", fix="such as 100"
        )
    return int(text)


def _seal(sample: pl.DataFrame, found: Workspace, asking: Principal, most: int) -> list[str]:
    """A sample as its form holds it: so nothing of the log is kept here until it is put in."""
    out = io.BytesIO()
    sample.write_ipc(out, compression="zstd")
    if out.tell() > min(_MOST_HELD, most // 2):  # base64 twice makes it 1.8 times as long
        raise UsageError(
            "these queries, with their attributes, are too long to be held by a page",
            fix="draw fewer, or take columns that nobody needs out of the log",
        )
    sealed = seal(base64.b64encode(out.getvalue()).decode(), *_about(found, asking))
    return [sealed[at : at + _FIELD] for at in range(0, len(sealed), _FIELD)]


def _unseal(text: str, found: Workspace, asking: Principal) -> pl.DataFrame:
    plain = unseal(text, *_about(found, asking))
    if plain is None:
        raise UsageError(
            "this is no sample that was shown to you", fix="choose the log again, and look at it"
        )
    return pl.read_ipc(io.BytesIO(base64.b64decode(plain)))


def _about(found: Workspace, asking: Principal) -> tuple[str, tuple[object, ...]]:
    """What a sample is sealed with: the key, and for whom and what it is good."""
    return found.golden.salt, ("sample", found.golden.id, asking.person.name)
