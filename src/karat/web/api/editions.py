"""Editions: listed, made, and compared with each other."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from karat.errors import nearest
from karat.web.api.bodies import Body, Said
from karat.web.api.responses import Paged, said
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import NotFound
from karat.web.framework.state import TheState
from karat.web.golden.golden_sets import opened
from karat.workflows.golden.audited import freeze_noted
from karat.workflows.golden.editions import NOW, compare_editions, list_editions

ROUTER = APIRouter(prefix="/api", tags=["editions"])


class New(Said):
    """An edition to be made.

    Attributes:
        name: Its name, of no other edition.
    """

    name: str


@ROUTER.get(
    "/golden/{golden}/editions",
    response_description="List of the rows of `karat golden editions --format json`.",
)
def editions(site: TheState, _asking: AReader, page: Paged, golden: str) -> Response:
    """List the editions, the first first."""
    return page.over(list_editions(opened(site, golden)))


@ROUTER.post(
    "/golden/{golden}/editions",
    status_code=201,
    response_description="As `karat golden freeze --format json`.",
)
def freeze(
    site: TheState, asking: AnEngineer, golden: str, asked: Annotated[New, Depends(Body(New))]
) -> Response:
    """Make an edition of the golden set as it stands; nothing changes it after."""
    found = opened(site, golden)
    return said(freeze_noted(found, asked.name, person=asking.person.name, now=site.clock()), 201)


@ROUTER.get(
    "/golden/{golden}/editions/{edition:path}",
    response_description="One row of `karat golden editions --format json`. Its content: queries "
    "and grades with `?edition=`.",
)
def edition(site: TheState, _asking: AReader, golden: str, edition: str) -> Response:
    """What is known of one edition."""
    rows = {row.name: row for row in list_editions(opened(site, golden))}
    if edition not in rows:
        raise NotFound(f"there is no edition {edition!r}", nearest=nearest(edition, rows, 1))
    return said(rows[edition])


@ROUTER.get(
    "/golden/{golden}/diff",
    response_description="As `karat golden diff --format json`.",
)
def diff(
    site: TheState,
    _asking: AReader,
    golden: str,
    old: str,
    new: Annotated[str, Query(description="`now` is the golden set as it stands.")] = NOW,
    by: Annotated[str | None, Query(description="Count by this attribute of the queries.")] = None,
) -> Response:
    """Say what changed from one edition to another, or to the golden set as it stands."""
    return said(compare_editions(opened(site, golden), old, new, by=by))
