"""Golden sets: which there are, where one stands, and how far raters and runs are."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.requests import Request

from karat.web.api.responses import Paged, said
from karat.web.framework.auth import AReader
from karat.web.framework.jobs import in_turn
from karat.web.framework.state import TheState
from karat.web.golden.golden_sets import opened
from karat.workflows.golden.agreement import agreement_in
from karat.workflows.golden.editions import NOW, stale_judgments
from karat.workflows.golden.status import STATUSES
from karat.workflows.workspace.evaluate_stored import coverage_kept

ROUTER = APIRouter(prefix="/api", tags=["golden sets"])


@ROUTER.get(
    "/golden",
    response_description="List of `name`, `scale` (lowest and highest grade), `raters` (of each "
    "pair), `guideline` (version), `created_us`.",
)
def list_golden_sets(site: TheState, _asking: AReader, page: Paged) -> Response:
    """List the golden sets."""
    names = ("name", "scale", "raters", "guideline", "created_us")
    return page.over([{n: getattr(row, n) for n in names} for row in site.golden_sets()])


@ROUTER.get(
    "/golden/{golden}/status",
    response_description="As `karat golden status --format json`.",
)
def golden_status(site: TheState, _asking: AReader, golden: str) -> Response:
    """Say where a golden set stands, and what to do next."""
    return said(STATUSES.get(opened(site, golden), now=site.clock()))


@ROUTER.get(
    "/golden/{golden}/agreement",
    response_description="As `karat golden agreement --format json`.",
)
def agreement(
    site: TheState,
    _asking: AReader,
    golden: str,
    by: Annotated[str | None, Query(description="Class by class, by this attribute.")] = None,
) -> Response:
    """Say how far raters agree, and how sure that is."""
    return said(agreement_in(opened(site, golden), by))


@ROUTER.get(
    "/golden/{golden}/stale",
    response_description="As `karat golden stale --format json`.",
)
def stale(site: TheState, _asking: AReader, golden: str) -> Response:
    """List judgments of documents whose text has changed since they were shown."""
    return said(stale_judgments(opened(site, golden)))


@ROUTER.get(
    "/golden/{golden}/coverage",
    response_description="As `karat golden coverage --format json`.",
)
async def coverage(
    request: Request,
    site: TheState,
    _asking: AReader,
    golden: str,
    run: Annotated[list[str], Query(description="A kept run, by name or number; repeat it.")],
    edition: Annotated[str, Query(description="An edition.")] = NOW,
    k: Annotated[int, Query(ge=1, lt=2**31, description="Documents of each query.")] = 10,
) -> Response:
    """Say how much of the top k of runs is judged, and what is not."""
    return said(
        await in_turn(
            request, lambda: coverage_kept(opened(site, golden), run, edition=edition, k=k)
        )
    )
