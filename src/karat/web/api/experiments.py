"""Experiments by the API: the planned ones, each with its effects, planning and interleaving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response

from karat.errors import UsageError
from karat.tables.experiments.experiment import ExperimentResult
from karat.tables.experiments.interleaving import InterleavingResult
from karat.tables.experiments.planning import Planning
from karat.web.api.models import many, one
from karat.web.api.responses import Paged, json_response
from karat.web.framework.auth import AReader
from karat.web.framework.errors import or_not_found
from karat.web.online.log import awaited
from karat.workflows.experiments import stored
from karat.workflows.online import log_requests

ROUTER = APIRouter(prefix="/api/experiments", tags=["what users did"])


@dataclass(frozen=True)
class PlannedExperiment:
    """An experiment that the workspace plans."""

    name: str
    control: str | None  # None if the file is not a plan
    treatment: str | None
    error: str  # why it is not a plan; empty if it is


@ROUTER.get("", response_model=many(PlannedExperiment))
def experiments(call: AReader, page: Paged) -> Response:
    """List the experiments that the workspace plans."""
    rows = []
    for each in stored.declared(call.site.workspace):
        arms = (None, None) if each.plan is None else (each.plan.control, each.plan.treatment)
        rows.append(PlannedExperiment(each.name, arms[0], arms[1], each.error))
    return page.items(rows)


@ROUTER.get("/planning", response_model=one(Planning))
async def experiment_planning(call: AReader) -> Response:
    """Which effects the traffic of the log can show, and which metrics may decide."""
    log = log_requests.log_of(call.site.workspace)
    return json_response(await awaited(call.site, log, stored.Plan()))


@ROUTER.get("/interleaving", response_model=one(InterleavingResult))
async def interleaving(call: AReader) -> Response:
    """Which of two interleaved rankings users prefer."""
    log = log_requests.log_of(call.site.workspace)
    return json_response(await awaited(call.site, log, stored.Preference()))


@ROUTER.get("/{experiment}", response_model=one(ExperimentResult))
async def experiment(
    call: AReader,
    experiment: str,
    by: Annotated[str, Query(max_length=200)] = "",  # An attribute of the log to slice by.
) -> Response:
    """An experiment: health, effects and verdict."""
    with or_not_found():
        found = stored.find(call.site.workspace, experiment)
    if found.plan is None:
        raise UsageError(found.error)
    log = log_requests.log_of(call.site.workspace)
    asked = stored.Analysis(found, [by] if by else [])
    return json_response(await awaited(call.site, log, asked))
