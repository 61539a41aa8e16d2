"""Declared engines, tries and jobs by the API."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from karat.tables.engines import Tried, TryRow, Variant
from karat.web.api.bodies import Body, RequestBody
from karat.web.api.models import many, one
from karat.web.api.offline import GoldenSet, Removed
from karat.web.api.responses import Paged, json_response
from karat.web.engines.engines import ShownEngine, shown_engines, start_check
from karat.web.engines.playground import start_try
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import or_not_found
from karat.web.framework.progress import Job, cancel, find
from karat.workflows.engines.tries import DEEPEST, DEPTH, find_try, forget_try, list_tries
from karat.workflows.engines.tries import try_query as asked

ROUTER = APIRouter(prefix="/api", tags=["engines"])


class VariantBody(RequestBody):
    """An engine to try."""

    engine: str = Field(max_length=100)  # name of a declared engine
    # Another template; null for the declared one
    template: str | None = Field(None, max_length=48_000)
    params: dict[str, Any] = Field({})  # other values of its parameters

    def variant(self) -> Variant:
        return _variant(self.engine, self.template, self.params)


class TryBody(VariantBody):
    """One query for one or two variants."""

    query: str = Field(max_length=1_000)  # a text, or the id of a query of the golden set
    against: str | None = Field(None, max_length=100)  # a second engine; null for none
    # Another template of the second engine; null for the declared one
    against_template: str | None = Field(None, max_length=48_000)
    against_params: dict[str, Any] = Field({})  # other values of the second engine's parameters
    depth: int = Field(DEPTH, ge=1, le=DEEPEST)  # documents asked for
    explain: bool = False  # whether to ask what scores are made of, by a second request


class TryAllBody(VariantBody):
    """All queries of the golden set for one variant."""

    name: str = Field("", max_length=200)  # name of the try; `ENGINE-try-NUMBER` if empty


def _variant(engine: str, template: str | None, params: dict[str, Any]) -> Variant:
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in params.items()
    }
    return Variant(engine, template, texts)


@ROUTER.get("/engines", response_model=many(ShownEngine))
def engines(call: AReader, page: Paged) -> Response:
    """List the declared engines with their newest run and last check; none is asked."""
    return page.items(shown_engines(call.site))


@ROUTER.post("/engines/{engine}/check", status_code=202, response_model=one(Job))
def check_engine(call: AnEngineer, engine: str) -> Response:
    """Check an engine in the background; the checks are the job's result."""
    with or_not_found():
        return json_response(start_check(call.site, engine), 202)


@ROUTER.post("/try", response_model=one(Tried))
def try_query(
    _call: AnEngineer, workspace: GoldenSet, body: Annotated[TryBody, Depends(Body(TryBody))]
) -> Response:
    """Ask one or two variants of engines one query; an error of one is in its result."""
    variants = [body.variant()]
    if body.against is not None:
        variants.append(_variant(body.against, body.against_template, body.against_params))
    root = workspace.workspace.root
    tried = asked(
        root, variants, body.query, opened=workspace, depth=body.depth, explain=body.explain
    )
    return json_response(tried)


@ROUTER.get("/tries", response_model=many(TryRow))
def tries(
    _call: AReader,
    workspace: GoldenSet,
    page: Paged,
    engine: Annotated[str, Query(max_length=100)] = "",  # Only tries of this engine.
) -> Response:
    """List the tries, newest first."""
    return page.items(list_tries(workspace, engine))


@ROUTER.post("/tries", status_code=202, response_model=one(Job))
def try_all(
    call: AnEngineer, workspace: GoldenSet, body: Annotated[TryAllBody, Depends(Body(TryAllBody))]
) -> Response:
    """Ask all queries in the background; the try is stored as a run, evaluated and compared."""
    return json_response(start_try(call.site, workspace, body.variant(), call.who, body.name), 202)


@ROUTER.delete("/tries/{try_name:path}", response_model=one(Removed))
def remove_try(call: AnEngineer, workspace: GoldenSet, try_name: str) -> Response:
    """Delete a try, with its run and the comparison that was made for it."""
    with or_not_found():
        row = find_try(workspace, try_name)
    forget_try(workspace, row.name, **call.by)
    return json_response(Removed(row.run))


@ROUTER.get("/jobs/{job_id}", response_model=one(Job))
def job(call: AReader, job_id: str) -> Response:
    """A job that runs in the background: its stage, and how much of that is done."""
    return json_response(find(call.site, job_id))


@ROUTER.post("/jobs/{job_id}/cancel", response_model=one(Job))
def cancel_job(call: AnEngineer, job_id: str) -> Response:
    """Cancel a job; it stops at its next step."""
    return json_response(cancel(call.site, job_id))
