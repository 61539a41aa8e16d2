"""The app: its pages and its API put together, over one workspace."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware

from karat.formats.own.workspace import find_workspace, read_workspace
from karat.web import api, home
from karat.web.accounts import account, audit_log, people, sign_in
from karat.web.framework import errors, static_files
from karat.web.framework.auth import Requires
from karat.web.framework.middleware import Guards
from karat.web.framework.pages import templates
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
from karat.web.judging import judge, table
from karat.web.offline import comparisons, new_comparison, runs, side_by_side
from karat.web.online import dashboard, offline_correlation, rows, watch
from karat.web.online import queries as online_queries
from karat.web.release import trends
from karat.workflows.accounts.accounts import Accounts
from karat.workflows.workspace.workspace import open_workspace

PAGES = (
    static_files.ROUTER,
    sign_in.ROUTER,
    home.ROUTER,
    golden_sets.ROUTER,
    queries.ROUTER,
    pairs.ROUTER,
    agreement.ROUTER,
    disagreements.ROUTER,
    editions.ROUTER,
    exchange.ROUTER,
    judge.ROUTER,
    table.ROUTER,
    runs.ROUTER,
    new_comparison.ROUTER,  # before comparisons: "new" is not a number
    comparisons.ROUTER,
    side_by_side.ROUTER,
    trends.ROUTER,
    dashboard.ROUTER,
    online_queries.ROUTER,
    offline_correlation.ROUTER,
    rows.ROUTER,
    watch.ROUTER,
    account.ROUTER,
    people.ROUTER,
    audit_log.ROUTER,
    *api.ROUTERS,
)
"""Everything that answers; a page or a part of the API adds its router here."""

_LEVEL = 5  # of 9: more takes much longer, and saves 3 % of a page
_AS_THEY_ARE = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream")
"""Kinds of answers that are not compressed: files, which may be already."""


def _clock() -> int:
    return time.time_ns() // 1000


def create_app(
    settings: Settings | None = None,
    clock: Callable[[], int] = _clock,
    routers: Sequence[APIRouter] = PAGES,
) -> FastAPI:
    """The app.

    Args:
        settings: How to serve; from the environment if None, as worker processes do.
        clock: Gives microseconds UTC, now.
        routers: What answers.
    """
    held = settings or Settings.from_environment()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        templates()  # so that nobody's first page waits for them
        with open_workspace(held.workspace, now=clock()) as opened:
            accounts = Accounts(opened.store, clock)
            app.state.site = AppState(held, opened, accounts, clock)
            yield

    app = FastAPI(
        title="karat",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    for router in routers:
        app.include_router(router)
    errors.install(app)
    for route in iter_route_contexts(app.routes):
        need_of(route.original_route)
    app.add_middleware(GZipMiddleware, compresslevel=_LEVEL, exclude_content_types=_AS_THEY_ARE)
    images = read_workspace(find_workspace(held.workspace)).images
    app.add_middleware(Guards, hosts=held.hosts, images=images, secure=held.secure)
    return app


def need_of(route: object) -> Requires:
    """What a route asks of who calls it.

    Raises:
        TypeError: it does not say: a route that was forgotten would be open to everybody.
    """
    found: list[Requires] = []
    if isinstance(route, APIRoute):
        found = [
            each.call for each in route.dependant.dependencies if isinstance(each.call, Requires)
        ]
    if len(found) != 1:
        raise TypeError(f"{getattr(route, 'path', route)} does not say who may call it")
    return found[0]
