"""The catalogue of measures, and what a golden set costs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from karat.errors import UsageError
from karat.golden.planning import SECONDS, TYPICAL_SD
from karat.golden.planning import plan as planned
from karat.measures import entries
from karat.reports.offline.catalogue import as_json
from karat.web.api.responses import Paged, said
from karat.web.framework.auth import AReader
from karat.web.framework.errors import NotFound
from karat.workflows.offline.catalogue import find_entry

ROUTER = APIRouter(prefix="/api", tags=["numbers"])
Size = Annotated[float, Query(gt=0, le=1e6, allow_inf_nan=False)]


@ROUTER.get("/measures", response_description="List of the rows of `karat measures --format json`.")
def measures(_asking: AReader, page: Paged) -> Response:
    """List the measures."""
    return page.over([as_json(entry) for entry in entries()])


@ROUTER.get("/measures/{name:path}", response_description="As `karat measures NAME --format json`.")
def measure(_asking: AReader, name: str) -> Response:
    """One measure, in any spelling."""
    try:
        return said(as_json(find_entry(name)))
    except UsageError as error:
        raise NotFound(error.what, nearest=error.nearest, fix=error.fix) from None


@ROUTER.get("/plan", response_description="As `karat golden plan --format json`.")
def plan(
    _asking: AReader,
    difference: Size = 0.05,
    sd: Size = TYPICAL_SD,
    depth: Size = 15,
    raters: Annotated[int, Query(ge=1, le=1000)] = 2,
    seconds: Size = SECONDS,
    per_hour: Annotated[float | None, Query(ge=0, le=1e9, allow_inf_nan=False)] = None,
) -> Response:
    """How many queries and judgments show a difference, and what they cost."""
    return said(
        planned(difference, sd=sd, depth=depth, raters=raters, seconds=seconds, per_hour=per_hour)
    )
