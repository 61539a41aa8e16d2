"""The app: pages and API over one workspace, static files, and a health check."""

from __future__ import annotations

import logging
import mimetypes
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext

from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import JSONResponse
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware

from karat.errors import KaratError
from karat.formats.own.workspace import find_workspace, read_workspace
from karat.web import api, first_steps, home, search
from karat.web.accounts import account, audit_log, people, sign_in
from karat.web.diagnosis import diagnosis
from karat.web.engines import engines, playground
from karat.web.experiments import experiments, shadow
from karat.web.framework import errors, progress
from karat.web.framework.auth import Anonymous, requires_of
from karat.web.framework.errors import NotFound
from karat.web.framework.middleware import Guards
from karat.web.framework.pages import static_file, templates
from karat.web.framework.settings import Settings
from karat.web.framework.state import AppState
from karat.web.golden import (
    agreement,
    disagreements,
    editions,
    exchange,
    golden_sets,
    pairs,
    queries,
)
from karat.web.judging import doubts, judge, machine_judges, table
from karat.web.offline import comparisons, new_comparison, runs, side_by_side
from karat.web.online import alerts, clicks, dashboard, offline_correlation, rows, watch
from karat.web.online import queries as online_queries
from karat.web.release import gates, releases, reviews, trends
from karat.workflows.accounts.accounts import Accounts
from karat.workflows.workspace.workspace import open_workspace

ROUTER = APIRouter()
LOG = logging.getLogger("karat.web")
mimetypes.add_type("text/javascript", ".mjs")
PAGES = (
    ROUTER,
    sign_in.ROUTER,
    home.ROUTER,
    first_steps.ROUTER,
    search.ROUTER,
    golden_sets.ROUTER,
    queries.ROUTER,
    pairs.ROUTER,
    agreement.ROUTER,
    disagreements.ROUTER,
    editions.ROUTER,
    exchange.ROUTER,
    clicks.ROUTER,
    judge.ROUTER,
    table.ROUTER,
    machine_judges.ROUTER,
    doubts.ROUTER,
    experiments.ROUTER,
    shadow.ROUTER,
    runs.ROUTER,
    diagnosis.ROUTER,
    new_comparison.ROUTER,  # before comparisons: "new" is not a number
    comparisons.ROUTER,
    side_by_side.ROUTER,
    trends.ROUTER,
    reviews.ROUTER,
    releases.ROUTER,
    gates.ROUTER,
    playground.ROUTER,
    engines.ROUTER,
    progress.ROUTER,
    dashboard.ROUTER,
    online_queries.ROUTER,
    offline_correlation.ROUTER,
    rows.ROUTER,
    watch.ROUTER,
    alerts.ROUTER,
    account.ROUTER,
    people.ROUTER,
    audit_log.ROUTER,
    *api.ROUTERS,
)
"""All routers; a new page or part of the API adds its own here."""

_LEVEL = 5  # of 9: more takes much longer, and saves 3 % of a page
_UNCOMPRESSED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream")
"""Content types that are not compressed: files may be compressed already."""


def _clock() -> int:
    return time.time_ns() // 1000


def create_app(
    config: Settings,
    clock: Callable[[], int] = _clock,
    routers: Sequence[APIRouter] = PAGES,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
    during: Callable[[AppState], AbstractContextManager[None]] | None = None,
) -> FastAPI:
    """The app.

    Args:
        config: Its settings.
        clock: The current time, microseconds UTC.
        routers: Its routes.
        around: What its process does before it opens the workspace and after it closed it.
        during: What it does in the background in between.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        templates()  # now, rather than during the first request
        with around(), open_workspace(config.workspace, now=clock()) as opened:
            accounts = Accounts(opened.store, clock)
            app.state.site = AppState(config, opened, accounts, clock)
            async with AsyncExitStack() as stack:
                if during is not None:
                    stack.enter_context(during(app.state.site))
                for router in routers:
                    await stack.enter_async_context(router.lifespan_context(app))
                yield

    # Not include_router, which makes every route again, by app, and looks each up twice.
    routes = [route for router in routers for route in router.routes]
    for route in routes:
        requires_of(route)  # raises for a route without one
    app = FastAPI(
        title="karat",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        routes=routes,
    )
    errors.install(app)
    app.add_middleware(GZipMiddleware, compresslevel=_LEVEL, exclude_content_types=_UNCOMPRESSED)
    images = read_workspace(find_workspace(config.workspace)).images
    app.add_middleware(Guards, hosts=config.hosts, images=images, secure=config.secure)
    return app


@ROUTER.get("/static/{name}")
def static(name: str, _call: Anonymous) -> Response:
    """A static file; its address has its version, so browsers may cache it for a year."""
    try:
        data, _version = static_file(name)
    except OSError:
        raise NotFound(f"there is no file {name!r}") from None
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(data, media_type=kind, headers=headers)


@ROUTER.get("/healthz")
def healthz(call: Anonymous) -> Response:
    """``{"status": "ok"}`` if the store answers; else 503."""
    try:
        call.site.golden_sets()
    except KaratError as error:
        LOG.error("health check: %s", error)  # not in the response: it may reveal the store
        return JSONResponse({"status": "the store does not respond as expected"}, 503)
    return JSONResponse({"status": "ok"})
