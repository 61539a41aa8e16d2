"""Editions: freezing a golden set, and viewing and comparing the frozen editions."""

from __future__ import annotations

from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Form, Response

from karat.errors import KaratError
from karat.reports.table import Column
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import NotFound, Said, opened, or_not_found, refused
from karat.web.framework.lists import Ask, frame_of, listed
from karat.web.framework.pages import Page, redirect, show
from karat.web.golden.golden_sets import address, golden_page
from karat.web.golden.queries import pair_address
from karat.workflows.golden.editions import (
    LONGEST,
    NOW,
    compare_editions,
    content_of,
    list_editions,
    named,
)
from karat.workflows.golden.editions import freeze as freeze_edition
from karat.workflows.golden.queries import ready_in
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()


@ROUTER.get("/golden/{name}/editions")
def editions(call: AReader, name: str) -> Response:
    """List the editions, with a form to freeze a new one."""
    return show(call, _page(opened(call.site, name), call.ask))


@ROUTER.post("/golden/{name}/editions")
def freeze(call: AnEngineer, name: str, edition: Annotated[str, Form()] = "") -> Response:
    """Freeze an edition of the current golden set, and show it."""
    workspace = opened(call.site, name)
    try:
        frozen = freeze_edition(workspace, edition.strip(), **call.by)
    except KaratError as error:
        status, wrong = refused(error)
        return show(call, _page(workspace, Ask(), name=edition, wrong=wrong), status)
    return redirect(call, address(name, "editions", frozen.name))


@ROUTER.get("/golden/{name}/editions/{edition:path}")
def one_edition(call: AReader, name: str, edition: str) -> Response:
    workspace = opened(call.site, name)
    row = next((each for each in list_editions(workspace) if each.name == edition), None)
    if row is None:
        with or_not_found():
            content_of(workspace, edition)
        raise NotFound(f"unknown edition {edition!r}")
    content = content_of(workspace, edition)
    texts = content.queries.select(
        "query_id",
        text=pl.coalesce("text", "query_id") if "text" in content.queries.columns else "query_id",
    )
    graded = content.grades.join(texts, on="query_id", how="left", maintain_order="left")
    columns = (
        Column("text", "Query", link=lambda r: address(name, "queries", r["query_id"])),
        Column("name", "Document", link=lambda r: pair_address(name, r)),
        Column("grade", "Grade", "grade"),
        Column("votes", "Votes", "count"),
        Column("rule", "Aggregation", choices=True),
        Column("raters", "Raters"),
        Column("query_id", "Query id", shown=False),
        Column("doc_id", "Document id", shown=False),
    )
    graded = named(workspace, graded.with_columns(raters=pl.col("raters").list.join(", ")))
    page = golden_page(
        "edition.html.j2",
        name,
        edition,
        ("Editions", address(name, "editions")),
        name=edition,
        sha256=row.sha256,
        created_us=row.created_us,
        queries=row.queries,
        about=[(key, _display(value)) for key, value in row.about.items()],
        grades=listed(graded, columns, call.ask, search=["text", "name", "doc_id", "raters"]),
    )
    return show(call, page)


@ROUTER.get("/golden/{name}/changes")
def changes(call: AReader, name: str, old: str, new: str = NOW) -> Response:
    """Show what changed from one edition to another, or to the current golden set."""
    workspace = opened(call.site, name)
    difference = compare_editions(workspace, old, new)
    columns = (
        Column("text", "Query", link=lambda r: address(name, "queries", r["query_id"])),
        Column("name", "Document", link=lambda r: pair_address(name, r)),
        Column("change", "Change", choices=True),
        Column("old", "Grade before", "grade"),
        Column("new", "Grade after", "grade"),
        Column("query_id", "Query id", shown=False),
        Column("doc_id", "Document id", shown=False),
    )
    by_kind = {kind: difference.queries.filter(change=kind).to_dicts() for kind in _KINDS}
    page = golden_page(
        "edition_changes.html.j2",
        name,
        f"From {old} to {new}",
        ("Editions", address(name, "editions")),
        old=old,
        new=new,
        names=_names(workspace),
        difference=difference,
        grades=listed(
            named(workspace, difference.grades),
            columns,
            call.ask,
            search=["text", "name", "query_id", "doc_id"],
        ),
        queries=[(kind, rows) for kind, rows in by_kind.items() if rows],
    )
    return show(call, page)


_KINDS = ("added", "removed", "changed")


def _names(workspace: Workspace) -> list[str]:
    return [*(row.name for row in reversed(list_editions(workspace))), NOW]


def _page(workspace: Workspace, ask: Ask, *, name: str = "", wrong: Said | None = None) -> Page:
    golden = workspace.golden.name
    columns = (
        Column("name", "Edition", link=lambda row: address(golden, "editions", row["name"])),
        Column("created_us", "Made", "time"),
        Column("queries", "Queries", "count"),
        Column("grades", "Grades", "count"),
        Column("agreement", "Agreement"),
        Column("sha256", "SHA-256", shown=False),
    )
    frame = frame_of(
        (
            (row, {"agreement": row.about.get("agreement")})
            for row in list_editions(workspace)[::-1]
        ),
        columns,
    )
    return golden_page(
        "editions.html.j2",
        golden,
        f"Editions of {golden}",
        editions=listed(frame, columns, ask, search=["name"]),
        names=_names(workspace),
        ready=ready_in(workspace),
        name=name,
        longest=LONGEST,
        wrong=wrong,
    )


def _display(value: Any) -> str:
    return " to ".join(f"{each:g}" for each in value) if isinstance(value, list) else str(value)
