"""Disagreements: what raters see differently, and who is asked to settle it."""

from __future__ import annotations

from typing import Annotated, Literal

import polars as pl
from fastapi import APIRouter, Depends, Query, Response

from karat.web.api.bodies import Body
from karat.web.api.bodies import Said as SaidBy
from karat.web.api.responses import Paged, said
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.state import TheState
from karat.web.golden.golden_sets import opened
from karat.workflows.golden.agreement import disagreements_in
from karat.workflows.golden.audited import put_before_adjudicator

ROUTER = APIRouter(prefix="/api", tags=["what a golden set holds"])
Between = Literal["raters", "import"]


class Put(SaidBy):
    """Which disagreements are put before an adjudicator.

    Attributes:
        pairs: Query and document of each; null for all there are.
        between: Of raters, or of raters with an imported grade.
    """

    pairs: list[tuple[str, str]] | None = None
    between: Between = "raters"


@ROUTER.get(
    "/golden/{golden}/disagreements",
    response_description="List of the rows of `frame` of `karat golden disagreements --format "
    "json`.",
)
def disagreements(
    site: TheState,
    _asking: AReader,
    page: Paged,
    golden: str,
    between: Annotated[Between | None, Query(description="Of raters, or with an import.")] = None,
) -> Response:
    """List pairs whose grades are far apart, and that nobody has settled."""
    frame = disagreements_in(opened(site, golden), now=site.clock()).frame
    return page.of(frame if between is None else frame.filter(pl.col("between") == between))


@ROUTER.post(
    "/golden/{golden}/disagreements/queue",
    response_description="`queued`: how many are new before an adjudicator.",
)
def queue_disagreements(
    site: TheState, asking: AnEngineer, golden: str, asked: Annotated[Put, Depends(Body(Put))]
) -> Response:
    """Put disagreements before an adjudicator."""
    count = put_before_adjudicator(
        opened(site, golden),
        asked.pairs,
        person=asking.person.name,
        now=site.clock(),
        between=asked.between,
    )
    return said({"queued": count})
