"""Shadow logs by the API: those of the workspace, each with its result."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Response

from karat.tables.experiments.shadow import ShadowResult
from karat.web.api.models import many, one, picked
from karat.web.api.responses import Paged, json_response
from karat.web.experiments.shadow import By, awaited
from karat.web.framework.auth import AReader
from karat.web.framework.errors import or_not_found
from karat.workflows.experiments.stored_shadow import ShadowAnalysis, find, logs

ROUTER = APIRouter(prefix="/api/shadow", tags=["what users did"])


@dataclass(frozen=True)
class ShadowLogFile:
    """A shadow log in the workspace."""

    name: str
    baseline: str  # names of both sides
    candidate: str
    modified_us: int  # when it was last written
    size: int  # bytes
    error: str  # why it cannot be read; empty if it can


@ROUTER.get("", response_model=many(ShadowLogFile))
def shadow_logs(call: AReader, page: Paged) -> Response:
    """List the shadow logs of the workspace."""
    return page.items([picked(ShadowLogFile, each) for each in logs(call.workspace)])


@ROUTER.get("/{shadow}", response_model=one(ShadowResult))
async def shadow_log(call: AReader, shadow: str, by: By = "") -> Response:
    """A shadow log: verdict, differences and changed queries."""
    with or_not_found():
        log = find(call.workspace, shadow)
    asked = ShadowAnalysis(call.workspace, log, [by] if by else [])
    return json_response((await awaited(call.site, asked)).to_dict())
