"""Pairs and judgments of a golden set, the history of one pair, and pooling from runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Depends, Form, Query, Response

from karat.errors import KaratError, UsageError, nearest
from karat.reports.table import Column
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import opened, or_not_found, refused
from karat.web.framework.lists import OWN, Ask, Listed, listed
from karat.web.framework.pages import Page, PlainPage, show
from karat.web.golden.golden_sets import address, crumbs, golden_page
from karat.web.golden.queries import pair_address
from karat.workflows.golden import queries as workflow
from karat.workflows.golden.pooling import Pooled
from karat.workflows.workspace.evaluate_stored import pool_stored
from karat.workflows.workspace.stored_runs import stored_run_names
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
Grade = Annotated[float | None, Query(allow_inf_nan=False)]
"""A route parameter: a grade in the address."""
_NUMBER = re.compile("[0-9]{1,9}")


@dataclass(frozen=True)
class Typed:
    """What the form has."""

    runs: Annotated[Sequence[str] | None, Form()] = None
    k: Annotated[str, Form()] = "10"
    method: Annotated[str, Form()] = "depth"
    budget: Annotated[str, Form()] = ""


@ROUTER.get("/golden/{name}/pairs")
def pairs(
    call: AReader,
    name: str,
    a: str | None = None,
    a_grade: Grade = None,
    b: str | None = None,
    b_grade: Grade = None,
) -> Response:
    """List the pairs; with two grades (and raters), only pairs that received both."""
    given = [(r, g) for r, g in ((a, a_grade), (b, b_grade)) if g is not None]
    return show(call, _page(opened(call.site, name), call.ask, given))


@ROUTER.post("/golden/{name}/pairs")
def pool(call: AnEngineer, name: str, typed: Annotated[Typed, Depends()]) -> Response:
    """Queue unjudged documents that the selected runs returned."""
    workspace, ask = opened(call.site, name), Ask()
    try:
        if not typed.runs:
            raise UsageError("no run is selected", fix="select one or more")
        if typed.budget.strip() and not _NUMBER.fullmatch(typed.budget.strip()):
            raise UsageError(f"the budget {typed.budget[:20]!r} is not a number of pairs")
        if not _NUMBER.fullmatch(typed.k.strip()):
            raise UsageError(f"the depth {typed.k[:20]!r} is not a number of documents", fix="10")
        limits: dict[str, Any] = {
            "k": int(typed.k),
            "budget": int(typed.budget) if typed.budget.strip() else None,
        }
        pooled = pool_stored(workspace, typed.runs, **call.by, method=typed.method, **limits)
    except KaratError as error:
        status, wrong = refused(error)
        typed = replace(typed, runs=typed.runs or ())
        return show(call, _page(workspace, ask, [], wrong=wrong, typed=typed), status)
    return show(call, _page(workspace, ask, [], pooled=pooled))


@ROUTER.get("/golden/{name}/pair")
def pair(call: AReader, name: str, query: str, document: str) -> Response:
    with or_not_found():
        result = workflow.pair_in(opened(call.site, name), query, document)
    document_row = result.document or {}
    url, row = document_row.get("url"), result.pair or {}
    about = dict(document_row.get("attributes") or {})
    if url and not url.startswith(("https://", "http://")):
        about, url = {"url": url, **about}, None
    page = PlainPage(
        "golden_pair.html.j2",
        document_row.get("title") or document,
        crumbs(
            name,
            ("Queries", address(name, "queries")),
            (result.text or query, address(name, "queries", query)),
        ),
        golden=name,
        query_id=query,
        query=result.text or query,
        need=result.need,
        doc_id=document,
        text=document_row.get("text"),
        url=url,
        about=list(about.items()),
        state=row.get("state"),
        grade=row.get("grade"),
        rule=row.get("rule"),
        history=_history(result.history, call.ask),
    )
    return show(call, page)


@ROUTER.get("/golden/{name}/judgments")
def judgments(call: AReader, name: str) -> Response:
    frame = workflow.judgments_in(opened(call.site, name)).with_columns(
        text=pl.coalesce("text", "query_id"), title=pl.coalesce("title", "doc_id")
    )
    page = golden_page(
        "golden_judgments.html.j2",
        name,
        f"Judgments of {name}",
        judgments=list_judgments(frame, name, call.ask),
    )
    return show(call, page)


def list_pairs(frame: pl.DataFrame, name: str, ask: Ask) -> Listed:
    columns = (
        Column("text", "Query", link=lambda row: address(name, "queries", row["query_id"])),
        Column("title", "Document", link=lambda row: pair_address(name, row)),
        Column("query_id", "Query id", shown=False),
        Column("doc_id", "Document id", shown=False),
        Column("state", "State", choices=True, vocabulary=workflow.STATES),
        Column("grade", "Grade", "grade"),
        Column("said", "Each rater"),
        Column("adjudicated", "Adjudicated", "grade", shown=False),
        Column("imported", "Imported", "grade", shown=False),
        Column("gold_grade", "Gold", "grade", shown=False),
        Column("votes", "Votes", "count"),
        Column("waiting", "Waiting", "count"),
        Column("rule", "Aggregation", shown=False, choices=True),
        Column("chosen_by", "Chosen by", shown=False, choices=True),
        Column("priority", "Priority", "count", shown=False),
    )
    frame = frame.with_columns(
        text=pl.coalesce("text", "query_id"), title=pl.coalesce("title", "doc_id")
    )
    return listed(frame, columns, ask, search=["text", "title", "doc_id", "query_id", "said"])


def list_judgments(frame: pl.DataFrame, name: str, ask: Ask) -> Listed:
    columns = (
        Column("text", "Query", link=lambda row: pair_address(name, row)),
        Column("title", "Document", link=lambda row: pair_address(name, row)),
        Column("rater", "Rater", choices=True),
        Column("machine", "Machine", choices=True, optional=True),
        Column("grade", "Grade", "grade"),
        Column("state", "State", choices=True, shown=False),
        Column("reason", "Reason"),
        Column("time_us", "When", "time"),
        Column("kind", "Kind", choices=True, shown=False),
        Column("source", "Source", choices=True, shown=False),
        Column("seconds", "Seconds", "number", shown=False),
        Column("guideline", "Guideline", choices=True, shown=False),
        Column("stale", "Stale", "flag", choices=True, shown=False),
        Column("query_id", "Query id", shown=False),
        Column("doc_id", "Document id", shown=False),
        Column("judgment", "Number", "count", shown=False),
    )
    return listed(frame, columns, ask, search=["text", "title", "rater", "reason", "doc_id"])


def _page(
    workspace: Workspace,
    ask: Ask,
    given: Sequence[tuple[str | None, float]],
    pooled: Pooled | None = None,
    **refusal: Any,
) -> Page:
    name, frame = workspace.golden.name, workflow.pairs_in(workspace)
    only = None
    if given:
        raters = set(frame["raters"].explode().drop_nulls())
        for rater, _ in given:
            if rater is not None and rater not in raters:
                near = nearest(rater, raters)
                raise UsageError(f"unknown rater {rater[:100]!r}", nearest=near)
        frame = workflow.given_by(frame, *given)
        only = " and ".join(f"{rater or 'a rater'} gave {grade:g}" for rater, grade in given)
    return golden_page(
        "golden_pairs.html.j2",
        name,
        f"Pairs of {name}",
        only=only,
        pairs=list_pairs(frame, name, ask),
        runs=stored_run_names(workspace),
        pooled=pooled,
        lacking=_lacking(workspace, pooled),
        **{"wrong": None, "typed": Typed(), **refusal},
    )


def _lacking(workspace: Workspace, pooled: Pooled | None) -> list[tuple[str, str]]:
    if pooled is None or not pooled.lacking:
        return []
    texts = dict(workflow.queries_in(workspace, OWN)[0].select("query_id", "text").iter_rows())
    return [(query, texts.get(query) or query) for query in pooled.lacking]


def _history(frame: pl.DataFrame, ask: Ask) -> Listed:
    columns = (
        Column("rater", "Rater"),
        Column("machine", "Machine", optional=True),
        Column("grade", "Grade", "grade"),
        Column("state", "State"),
        Column("kind", "Kind"),
        Column("reason", "Reason"),
        Column("time_us", "When", "time"),
        Column("seconds", "Seconds", "number"),
        Column("guideline", "Guideline"),
        Column("source", "Source", shown=False),
        Column("counts", "Counts", "flag"),
        Column("judgment", "Number", "count", shown=False),
        Column("supersedes", "Supersedes", "count", shown=False),
    )
    state = pl.col("state").str.replace("_", " ", literal=True)
    return listed(frame.with_columns(state=state), columns, ask, search=["rater"], per_page=200)
