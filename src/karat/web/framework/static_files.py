"""Our own style sheets and scripts, and whether we are well."""

from __future__ import annotations

import logging
import mimetypes

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from karat.errors import KaratError
from karat.store.sql import golden_sets
from karat.web.framework.auth import Anonymous
from karat.web.framework.errors import NotFound
from karat.web.framework.pages import static_file
from karat.web.framework.state import TheState

ROUTER = APIRouter()
LOG = logging.getLogger("karat.web")
mimetypes.add_type("text/javascript", ".mjs")


@ROUTER.get("/static/{name}")
def static(name: str, _asking: Anonymous) -> Response:
    """A file of ours; its address holds its version, so it may be kept for a year."""
    try:
        data, _version = static_file(name)
    except OSError:
        raise NotFound(f"there is no file {name!r}") from None
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    keep = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(data, media_type=kind, headers=keep)


@ROUTER.get("/healthz")
def healthz(site: TheState, _asking: Anonymous) -> Response:
    """``{"status": "ok"}`` if the store answers; else 503."""
    try:
        with site.workspace.store.read() as connection:
            golden_sets.names(connection)
    except KaratError as error:
        LOG.error("not well: %s", error)  # where the store is, is not for everybody
        return JSONResponse({"status": "the store does not answer as it should"}, 503)
    return JSONResponse({"status": "ok"})
