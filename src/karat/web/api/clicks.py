"""Clicks as judgments by the API: models, grades, agreement; added or queued."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from karat.online.clicks.grading import LEAST
from karat.tables.online.clicks import ClickJudgments, ClickOverview
from karat.web.api.bodies import Body, RequestBody
from karat.web.api.models import one
from karat.web.api.responses import TheGolden, json_response
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.online.log import awaited
from karat.workflows.online import click_overview, log_requests
from karat.workflows.online.click_overview import FromClicks

ROUTER = APIRouter(prefix="/api", tags=["what users did"])


class GradesRequest(RequestBody):
    """How clicks become grades."""

    model: str = "PBM"  # PBM, SDBN, DBN, …; or `naive`, which takes position for relevance
    # One for each grade above the lowest, ascending, each between 0 and 1; null: the default ones
    cuts: list[float] | None = Field(None, max_length=20)
    least: float = Field(LEAST, gt=0)  # effective impressions of a pair that gets a grade


@dataclass(frozen=True)
class QueuedClicks:
    """Pairs whose clicks contradict people, in the queue."""

    queued: int


Asked = Annotated[GradesRequest, Depends(Body(GradesRequest, required=False))]


@ROUTER.get("/golden/{golden}/clicks", response_model=one(ClickOverview))
async def clicks(
    call: AReader,
    workspace: TheGolden,
    model: str = "PBM",  # PBM, SDBN, DBN, …; or `naive`.
    # A cut point, repeatable: one for each grade above the lowest.
    cut: Annotated[list[float] | None, Query(max_length=20)] = None,
    least: Annotated[float, Query(gt=0)] = LEAST,  # Effective impressions of a pair.
) -> Response:
    """Click models of the log, the grades that one makes, and their agreement with people."""
    log = log_requests.log_of(workspace)
    answer = await awaited(call.site, log, FromClicks.of(workspace, model, cut, least))
    return json_response(click_overview.overview(workspace, answer))


@ROUTER.post("/golden/{golden}/clicks", response_model=one(ClickJudgments))
def add_clicks(call: AnEngineer, workspace: TheGolden, body: Asked) -> Response:
    """Replace the grades from clicks of a golden set; people’s are not touched."""
    asked = FromClicks.of(workspace, body.model, body.cuts, body.least)
    return json_response(click_overview.add_grades(asked, **call.by))


@ROUTER.post("/golden/{golden}/clicks/queue", response_model=one(QueuedClicks))
def queue_clicks(call: AnEngineer, workspace: TheGolden, body: Asked) -> Response:
    """Put the pairs whose clicks contradict people into the queue."""
    asked = FromClicks.of(workspace, body.model, body.cuts, body.least)
    return json_response(QueuedClicks(click_overview.queue_conflicts(asked, **call.by)))
