"""What a golden set holds, row by row: queries, documents, pairs, judgments, grades."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from fastapi import APIRouter, Query, Response

from karat.errors import UsageError
from karat.store.sql import documents as stored
from karat.web.api.responses import OF_LISTS, Paged, said
from karat.web.framework.auth import AReader
from karat.web.framework.errors import NotFound
from karat.web.framework.state import TheState
from karat.web.golden.golden_sets import opened
from karat.workflows.golden.editions import NOW, content_of, weighed
from karat.workflows.golden.queries import judgments_in, pair_in, pairs_in, queries_in, query_in

ROUTER = APIRouter(prefix="/api", tags=["what a golden set holds"])
Edition = Annotated[str, Query(description="An edition; `now` is the golden set as it stands.")]


@ROUTER.get(
    "/golden/{golden}/queries",
    response_description="List of queries with their attributes; of those that stand now also "
    "`documents`, `graded`, `judgments`, `waiting`, `editions` (counts) and `words`. An attribute "
    "whose name means something else here is called `attribute NAME`. `weight` is what numbers are "
    "computed with: 0 where others have one and the query none; absent where none has one.",
)
def queries(
    site: TheState, _asking: AReader, page: Paged, golden: str, edition: Edition = NOW
) -> Response:
    """List the queries."""
    found = opened(site, golden)
    if edition != NOW:
        return page.of(weighed(content_of(found, edition).queries)[0])
    return page.of(weighed(queries_in(found, OF_LISTS)[0])[0])


@ROUTER.get(
    "/golden/{golden}/queries/{query_id:path}",
    response_description="`query`, `documents` (rows as of pairs, with `begins`), `editions` "
    "(names).",
)
def query(site: TheState, _asking: AReader, golden: str, query_id: str) -> Response:
    """One query with its documents."""
    try:
        return said(query_in(opened(site, golden), query_id))
    except UsageError as error:
        raise NotFound(error.what, nearest=error.nearest, fix=error.fix) from None


@ROUTER.get(
    "/golden/{golden}/documents",
    response_description="List of `doc_id`, `title`, `text`, `url`, `sha256` (of what raters are "
    "shown), and attributes.",
)
def documents(site: TheState, _asking: AReader, page: Paged, golden: str) -> Response:
    """List the documents."""
    found = opened(site, golden)
    with found.store.read() as connection:
        return page.of(stored.frame(connection, found.golden.id))


@ROUTER.get(
    "/golden/{golden}/pairs",
    response_description="List of pairs that are queued or judged: `query_id`, `text`, `doc_id`, "
    "`title`, `state`, `grade` that counts, `rule` that made it, `votes`, `raters` and `grades` "
    "(one order), `adjudicated`, `imported`, `gold_grade`, `waiting`, `priority`, `chosen_by`.",
)
def pairs(site: TheState, _asking: AReader, page: Paged, golden: str) -> Response:
    """List the pairs."""
    return page.of(pairs_in(opened(site, golden)))


@ROUTER.get(
    "/golden/{golden}/pair",
    response_description="`query_id`, `text`, `need`, `doc_id`, `document`, `pair` (as of pairs), "
    "`history`: every judgment ever given.",
)
def pair(site: TheState, _asking: AReader, golden: str, query: str, document: str) -> Response:
    """One pair, and everything that was ever said of it."""
    try:
        return said(pair_in(opened(site, golden), query, document))
    except UsageError as error:
        raise NotFound(error.what, nearest=error.nearest, fix=error.fix) from None


@ROUTER.get(
    "/golden/{golden}/judgments",
    response_description="List of judgments that count, the newest first: the columns of the "
    "table judgments, `text` of the query, `title` of the document, `stale`.",
)
def judgments(site: TheState, _asking: AReader, page: Paged, golden: str) -> Response:
    """List the judgments."""
    return page.of(judgments_in(opened(site, golden)))


@ROUTER.get(
    "/golden/{golden}/grades",
    response_description="List of `query_id`, `doc_id`, `grade`, `votes`, `rule`, `raters`: one "
    "row for each pair with a grade, none for what nobody judged.",
)
def grades(
    site: TheState, _asking: AReader, page: Paged, golden: str, edition: Edition = NOW
) -> Response:
    """List the grades that count: what runs are evaluated with."""
    frame: pl.DataFrame = content_of(opened(site, golden), edition).grades
    return page.of(frame.select("query_id", "doc_id", "grade", "votes", "rule", "raters"))
