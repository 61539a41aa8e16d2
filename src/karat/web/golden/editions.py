"""Editions: a golden set frozen, looked at, and compared with another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import polars as pl
from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse

from karat.errors import KaratError, UsageError
from karat.golden.editions import EditionDifference
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import NotFound, Said, refused
from karat.web.framework.lists import Ask, Column, Listed, listed
from karat.web.framework.pages import show
from karat.web.framework.state import TheState
from karat.web.golden.golden_sets import GoldenPage, address, crumbs, opened
from karat.web.golden.queries import pair_address
from karat.workflows.golden.audited import freeze_noted
from karat.workflows.golden.editions import (
    LONGEST,
    NOW,
    compare_editions,
    content_of,
    list_editions,
    named,
)
from karat.workflows.golden.queries import Ready, ready_in
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
_EDITIONS = {
    "name": pl.String(),
    "created_us": pl.Int64(),
    "queries": pl.Int64(),
    "grades": pl.Int64(),
    "agreement": pl.String(),
    "sha256": pl.String(),
}


@dataclass(frozen=True, kw_only=True)
class EditionsPage(GoldenPage):
    """All editions, and what a new one would be.

    Attributes:
        editions: One row for each, the newest first.
        names: Their names, the newest first, and ``now``: what can be compared.
        ready: What an edition made now would be; None while nothing is judged.
        name: The name that was typed, or nothing.
        longest: Characters that a name has at most.
        wrong: Why none was made; None if nothing went wrong.
    """

    template: ClassVar[str] = "editions.html.j2"
    tab: ClassVar[str] = "editions"
    editions: Listed
    names: Sequence[str]
    ready: Ready
    name: str = ""
    longest: int = LONGEST
    wrong: Said | None = None


@dataclass(frozen=True, kw_only=True)
class EditionPage(GoldenPage):
    """One edition.

    Attributes:
        name: Its name.
        sha256: Of its content.
        created_us: When it was made, microseconds UTC.
        queries: How many it has.
        about: What is said of it: name and value.
        grades: One row for each.
    """

    template: ClassVar[str] = "edition.html.j2"
    tab: ClassVar[str] = "editions"
    name: str
    sha256: str
    created_us: int
    queries: int
    about: Sequence[tuple[str, str]]
    grades: Listed


@dataclass(frozen=True, kw_only=True)
class ChangesPage(GoldenPage):
    """What changed from one edition to another.

    Attributes:
        old: Name of the earlier; ``now`` for the golden set as it stands.
        new: Name of the later, likewise.
        names: What can be compared.
        difference: What changed.
        grades: Grades that changed, one row for each.
        queries: Changes of queries, by what they are: added, removed, changed.
    """

    template: ClassVar[str] = "edition_changes.html.j2"
    tab: ClassVar[str] = "editions"
    old: str
    new: str
    names: Sequence[str]
    difference: EditionDifference
    grades: Listed
    queries: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]


@ROUTER.get("/golden/{name}/editions")
def editions(request: Request, site: TheState, _asking: AReader, name: str) -> Response:
    """List the editions; here a new one is made."""
    return show(request, _page(opened(site, name), Ask.of(request)))


@ROUTER.post("/golden/{name}/editions")
def freeze(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    name: str,
    edition: Annotated[str, Form()] = "",
) -> Response:
    """Make an edition of the golden set as it stands, and show it."""
    found = opened(site, name)
    try:
        made = freeze_noted(found, edition, person=asking.person.name, now=site.clock())
    except KaratError as error:
        status, wrong = refused(error)
        return show(request, _page(found, Ask(), name=edition, wrong=wrong), status)
    where = address(name, "editions", made.name)
    return RedirectResponse(f"{site.settings.base}{where}", 303)


@ROUTER.get("/golden/{name}/editions/{edition:path}")
def one_edition(
    request: Request, site: TheState, _asking: AReader, name: str, edition: str
) -> Response:
    """One edition and its grades."""
    found = opened(site, name)
    row = next((each for each in list_editions(found) if each.name == edition), None)
    if row is None:
        try:
            content_of(found, edition)
        except UsageError as error:
            raise NotFound(error.what, nearest=error.nearest) from None
        raise NotFound(f"no edition {edition!r}")
    content = content_of(found, edition)
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
        Column("rule", "Rule", choices=True),
        Column("raters", "Raters"),
        Column("query_id", "Query id", shown=False),
        Column("doc_id", "Document id", shown=False),
    )
    graded = named(found, graded.with_columns(raters=pl.col("raters").list.join(", ")))
    page = EditionPage(
        title=edition,
        crumbs=crumbs(name, ("Editions", address(name, "editions"))),
        golden=name,
        name=edition,
        sha256=row.sha256,
        created_us=row.created_us,
        queries=row.queries,
        about=[(key, _said(value)) for key, value in row.about.items()],
        grades=listed(
            graded, columns, Ask.of(request), search=["text", "name", "doc_id", "raters"]
        ),
    )
    return show(request, page)


@ROUTER.get("/golden/{name}/changes")
def changes(
    request: Request,
    site: TheState,
    _asking: AReader,
    name: str,
    old: str,
    new: str = NOW,
) -> Response:
    """What changed from one edition to another, or to the golden set as it stands."""
    found = opened(site, name)
    changed = compare_editions(found, old, new)
    columns = (
        Column("text", "Query", link=lambda r: address(name, "queries", r["query_id"])),
        Column("name", "Document", link=lambda r: pair_address(name, r)),
        Column("change", "Change", choices=True),
        Column("old", "Grade before", "grade"),
        Column("new", "Grade after", "grade"),
        Column("query_id", "Query id", shown=False),
        Column("doc_id", "Document id", shown=False),
    )
    by_kind = {kind: changed.queries.filter(change=kind).to_dicts() for kind in _KINDS}
    page = ChangesPage(
        title=f"From {old} to {new}",
        crumbs=crumbs(name, ("Editions", address(name, "editions"))),
        golden=name,
        old=old,
        new=new,
        names=_names(found),
        difference=changed,
        grades=listed(
            named(found, changed.grades),
            columns,
            Ask.of(request),
            search=["text", "name", "query_id", "doc_id"],
        ),
        queries=[(kind, rows) for kind, rows in by_kind.items() if rows],
    )
    return show(request, page)


_KINDS = ("added", "removed", "changed")


def _names(found: Workspace) -> list[str]:
    return [*(row.name for row in reversed(list_editions(found))), NOW]


def _page(found: Workspace, ask: Ask, *, name: str = "", wrong: Said | None = None) -> EditionsPage:
    golden = found.golden.name
    rows = [
        {
            "name": row.name,
            "created_us": row.created_us,
            "queries": row.queries,
            "grades": row.grades,
            "agreement": row.about.get("agreement"),
            "sha256": row.sha256,
        }
        for row in reversed(list_editions(found))
    ]
    columns = (
        Column("name", "Edition", link=lambda row: address(golden, "editions", row["name"])),
        Column("created_us", "Made", "time"),
        Column("queries", "Queries", "count"),
        Column("grades", "Grades", "count"),
        Column("agreement", "Agreement"),
        Column("sha256", "SHA-256", shown=False),
    )
    return EditionsPage(
        title=f"Editions of {golden}",
        crumbs=crumbs(golden),
        golden=golden,
        editions=listed(pl.DataFrame(rows, schema=_EDITIONS), columns, ask, search=["name"]),
        names=_names(found),
        ready=ready_in(found),
        name=name,
        wrong=wrong,
    )


def _said(value: Any) -> str:
    return " to ".join(f"{each:g}" for each in value) if isinstance(value, list) else str(value)
