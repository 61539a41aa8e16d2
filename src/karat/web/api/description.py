"""The API, described for tools."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from karat.web.api.responses import printed
from karat.web.framework.auth import AReader

ROUTER = APIRouter(prefix="/api", tags=["account"])


@ROUTER.get("/openapi.json", response_description="OpenAPI 3.1.")
def openapi(request: Request, _asking: AReader) -> Response:
    """This description, for tools that read it."""
    from karat.web.framework.openapi import described  # it reads what this package is made of

    state = request.app.state
    if not hasattr(state, "openapi"):
        state.openapi = described(request.app.routes, state.site.settings.base)
    return printed(state.openapi)
