"""Alerts by the API: those that watches opened, and what people do about them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response
from pydantic import Field

from karat.tables.online.alerts import Alert, Did
from karat.web.api.bodies import Body, RequestBody
from karat.web.api.models import many, one
from karat.web.api.responses import Number, Paged, json_response
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.errors import or_not_found
from karat.workflows.online import alerts as workflow

ROUTER = APIRouter(prefix="/api/online/alerts", tags=["what users did"])


class NoteBody(RequestBody):
    """What a person says about an alert."""

    note: str = Field("", max_length=1_000)  # why, or what was found; shown with the alert


class MuteBody(NoteBody):
    """Until when an alert is quiet."""

    # A duration such as `8h`, or a time in UTC such as `2026-11-21T08:00`
    until: str = Field(min_length=1, max_length=40)


ANote = Annotated[NoteBody, Depends(Body(NoteBody, required=False))]


@ROUTER.get("", response_model=many(Alert))
def alerts(call: AReader, page: Paged) -> Response:
    """List the alerts, those that last first; at most 200."""
    return page.items(workflow.alerts(call.site.workspace, now=call.now))


@ROUTER.get("/{alert}", response_model=one(Alert))
def alert(call: AReader, alert: Number) -> Response:
    """An alert: its cause with the hours around its onset, and what was done about it."""
    with or_not_found():
        return json_response(workflow.find(call.site.workspace, alert, now=call.now))


@ROUTER.post("/{alert}/acknowledge", response_model=one(Alert))
def acknowledge_alert(call: AnEngineer, alert: Number, body: ANote) -> Response:
    """Say that you look into an alert."""
    return _act(call, alert, "acknowledged", note=body.note)


@ROUTER.post("/{alert}/mute", response_model=one(Alert))
def mute_alert(
    call: AnEngineer, alert: Number, body: Annotated[MuteBody, Depends(Body(MuteBody))]
) -> Response:
    """Keep an alert from notifying and from home, until a time."""
    return _act(call, alert, "muted", note=body.note, until=body.until)


@ROUTER.post("/{alert}/resolve", response_model=one(Alert))
def resolve_alert(call: AnEngineer, alert: Number, body: ANote) -> Response:
    """Say that an alert is dealt with: it is quiet until it comes back after it was usual."""
    return _act(call, alert, "resolved", note=body.note)


@ROUTER.post("/{alert}/reopen", response_model=one(Alert))
def reopen_alert(call: AnEngineer, alert: Number, body: ANote) -> Response:
    """Undo what was done about an alert."""
    return _act(call, alert, "reopened", note=body.note)


def _act(call: Call, number: int, action: Did, **how: Any) -> Response:
    with or_not_found():
        workflow.find(call.site.workspace, number, now=call.now)
    return json_response(workflow.act(call.site.workspace, number, action, **how, **call.by))
