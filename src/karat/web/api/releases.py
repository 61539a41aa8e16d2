"""Releases by the API: where they are, what they showed, and the steps of their operators."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from pydantic import Field

from karat.errors import UsageError
from karat.tables.release.pipeline import (
    EventKind,
    ReleaseStatus,
    ReleaseStory,
    RolledBack,
    TrackRecord,
)
from karat.web.api.bodies import Body, RequestBody
from karat.web.api.models import many, one
from karat.web.api.responses import Paged, json_response
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.jobs import InTurn
from karat.web.release.releases import release_of, roll_back
from karat.workflows.release import pipeline

ROUTER = APIRouter(prefix="/api/releases", tags=["releases"])


class StepBody(RequestBody):
    """A step onward."""

    # The stage that the release is in, as the caller knows it: refused if it is in another
    stage: str = Field("", max_length=40)


class ReasonBody(RequestBody):
    """A decision of a person."""

    reason: str = Field(min_length=1, max_length=2_000)  # why; shown permanently


class SkipBody(StepBody, ReasonBody):
    """A stage to go on without."""


AStep = Annotated[StepBody, Depends(Body(StepBody, required=False))]
AReason = Annotated[ReasonBody, Depends(Body(ReasonBody))]


@ROUTER.get("", response_model=many(ReleaseStatus))
def releases(call: AReader, page: Paged) -> Response:
    """List the releases, the latest first."""
    return page.items(pipeline.statuses(call.site.workspace, now=call.now))


@ROUTER.get("/record", response_model=one(TrackRecord))
def release_record(call: AReader) -> Response:
    """What releases promised and what was measured, over all that reached users and are over."""
    return json_response(pipeline.track_record(call.site.workspace))


@ROUTER.get("/{release}", response_model=one(ReleaseStatus))
def release(call: AReader, release: str) -> Response:
    """Where a release is, and what comes next."""
    return json_response(release_of(call, release).status())


@ROUTER.get("/{release}/story", response_model=one(ReleaseStory))
def release_story(call: AReader, release: str) -> Response:
    """Everything about a release: its promise, its ledger, and what was measured."""
    return json_response(release_of(call, release).story())


@ROUTER.post("/{release}/evidence", response_model=one(ReleaseStatus))
def release_evidence(call: AnEngineer, release: str, _turn: InTurn) -> Response:
    """Gather the evidence that the stage of a release wants, and record it."""
    return json_response(release_of(call, release).evidence())


@ROUTER.post("/{release}/advance", response_model=one(ReleaseStatus))
def release_advance(call: AnEngineer, release: str, body: AStep) -> Response:
    """Pass the current stage on its evidence; 409 if it does not suffice, or the stage is over."""
    return json_response(release_of(call, release).advance(by=call.who, stage=body.stage))


@ROUTER.post("/{release}/skip", response_model=one(ReleaseStatus))
def release_skip(
    call: AnEngineer, release: str, body: Annotated[SkipBody, Depends(Body(SkipBody))]
) -> Response:
    """Go on without the evidence of the current stage; 409 if the stage is over."""
    reason = _reason(body)
    found = release_of(call, release).skip(by=call.who, reason=reason, stage=body.stage)
    return json_response(found)


@ROUTER.post("/{release}/hold", response_model=one(ReleaseStatus))
def release_hold(call: AnEngineer, release: str, body: AReason) -> Response:
    """Stop a release where it is; guardrails still roll it back."""
    return _noted(call, release, "held", body)


@ROUTER.post("/{release}/resume", response_model=one(ReleaseStatus))
def release_resume(call: AnEngineer, release: str, body: AReason) -> Response:
    """Let a held release go on."""
    return _noted(call, release, "resumed", body)


@ROUTER.post("/{release}/reviewed", response_model=one(ReleaseStatus))
def release_reviewed(call: AnEngineer, release: str, body: AReason) -> Response:
    """Record the review of false positives, which is needed before the ramp."""
    return _noted(call, release, "reviewed", body)


@ROUTER.post("/{release}/override", response_model=one(ReleaseStatus))
def release_override(call: AnEngineer, release: str, body: AReason) -> Response:
    """Ignore the rollback signal from now on: for those whom the policy names."""
    return _noted(call, release, "overridden", body)


@ROUTER.post("/{release}/rollback", response_model=one(RolledBack))
def release_rollback(call: AnEngineer, release: str, body: AReason) -> Response:
    """Give all users the baseline again, then write the ledger.

    It succeeds without the database: `status` is then null, and `problem` says why.
    """
    return json_response(roll_back(call, release, _reason(body)))


def _noted(call: Call, name: str, kind: EventKind, body: ReasonBody) -> Response:
    reason = _reason(body)
    return json_response(release_of(call, name).note(kind, by=call.who, reason=reason))


def _reason(body: ReasonBody) -> str:
    if not body.reason.strip():
        raise UsageError("a reason is missing", fix="say why, in a sentence")
    return body.reason.strip()
