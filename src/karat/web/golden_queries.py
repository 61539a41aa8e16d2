"""Queries of a golden set: their list, and one with its documents and what was said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import polars as pl
from fastapi import APIRouter, Request, Response

from karat.errors import UsageError
from karat.web.access import AReader
from karat.web.errors import NotFound
from karat.web.golden import GoldenPage, address, crumbs, opened
from karat.web.listing import OWN, SOME, Ask, Column, Listed, listed
from karat.web.page import show
from karat.web.site import TheSite
from karat.workflows.browsing import queries_in, query_in

ROUTER = APIRouter()
_SHOWN = 3
"""Attributes that stand in the table; the others are in CSV and JSON."""
_FACTS = ("need", "weight", "count", "band", "stratum", "origin", "probability")
_HEADS = {"need": "information need", "count": "times searched", "probability": "chance of draw"}


@dataclass(frozen=True, kw_only=True)
class QueriesPage(GoldenPage):
    """The queries.

    Attributes:
        queries: One row for each.
    """

    template: ClassVar[str] = "golden_queries.html.j2"
    tab: ClassVar[str] = "queries"
    queries: Listed


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
def queries(request: Request, site: TheSite, _asking: AReader, name: str) -> Response:
    """List the queries."""
    frame, attributes = queries_in(opened(site, name), OWN)
    page = QueriesPage(
        title=f"Queries of {name}",
        crumbs=crumbs(name),
        golden=name,
        queries=list_queries(frame, attributes, name, Ask.of(request)),
    )
    return show(request, page)


@ROUTER.get("/golden/{name}/queries/{query_id:path}")
def query(request: Request, site: TheSite, _asking: AReader, name: str, query_id: str) -> Response:
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
        Column("state", "State", choices=True),
        Column("waiting", "Waiting", "count"),
    )
    named = frame.with_columns(name=pl.coalesce("title", "doc_id"))
    named = named.sort("grade", descending=True, nulls_last=True, maintain_order=True)
    return listed(named, columns, ask, search=["name", "begins", "doc_id"], per_page=200)


def pair_address(name: str, row: Mapping[str, Any]) -> str:
    """The page of a pair of a golden set, without the base path."""
    return address(name, "pair", query=row["query_id"], document=row["doc_id"])
