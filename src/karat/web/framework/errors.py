"""Error responses: one shape for pages, one for the API."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.routing import Match

from karat.errors import InputError, KaratError, MissingExtra, UsageError, is_disk_full
from karat.golden.queue import LeaseLost
from karat.release.pipeline import NoRelease, NotAllowed
from karat.web.framework.auth import Refused, by_session
from karat.web.framework.call import Call
from karat.web.framework.jobs import BUSY
from karat.web.framework.pages import Page, show
from karat.web.framework.state import AppState
from karat.workflows.accounts.accounts import SignInRefused
from karat.workflows.workspace.workspace import Workspace

LOG = logging.getLogger("karat.web")
_OF_HTTP = {
    404: ("not_found", "there is no such page"),
    405: ("usage", "this method is not allowed here"),
    408: ("timeout", "the request timed out"),
    413: ("too_large", "the request is larger than allowed"),
    429: ("too_many", "too many requests"),
    503: ("busy", BUSY),
}


@dataclass(frozen=True)
class Said:
    """An error as the API returns it."""

    # ``usage`` | ``input`` | ``conflict`` | ``not_found`` | ``not_signed_in`` | ``not_allowed`` |
    # ``too_many`` | ``timeout`` | ``busy`` | ``too_large`` | ``missing_extra`` | ``is_disk_full`` |
    # ``error``
    code: str
    message: str
    where: dict[str, Any] = field(default_factory=dict)
    nearest: list[str] = field(default_factory=list)
    fix: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"error": {name: getattr(self, name) for name in self.__dataclass_fields__}}


class NotFound(UsageError):
    """Nothing has this name or id."""


@contextmanager
def or_not_found() -> Iterator[None]:
    """Report what an address names and does not exist as ``NotFound``."""
    try:
        yield
    except UsageError as error:
        raise NotFound(error.what, nearest=error.nearest, fix=error.fix) from None


def opened(site: AppState, name: str) -> Workspace:
    with or_not_found():
        return site.opened(name)


@dataclass(frozen=True, kw_only=True)
class ErrorPage(Page):
    template: ClassVar[str] = "error.html.j2"
    said: Said


def describe(error: Exception, *, trusted: bool = True) -> tuple[int, Said]:
    if isinstance(error, Refused):
        code = "not_signed_in" if error.status == 401 else "not_allowed"
        return error.status, Said(code, str(error))
    if is_disk_full(error):
        LOG.error("no space left: %s", error, exc_info=error)
        what = "the server has no space left for this"
        return 507, Said("no_room", what, fix="free disk space on the server, then send it again")
    if isinstance(error, UsageError):
        status, code = _of_usage(error)
        return status, Said(code, error.what, nearest=list(error.nearest), fix=error.fix)
    if isinstance(error, InputError):
        names = ("file", "line", "query", "doc_id")
        where = {name: getattr(error, name) for name in names if getattr(error, name) is not None}
        return 400, Said("input", error.what, where, fix=error.fix)
    if isinstance(error, MissingExtra):
        return 501, Said("missing_extra", error.what, fix=error.fix)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        where = {"field": place} if place else {}
        return 400, Said("usage", f"{place or 'the request'}: {first['msg']}", where)
    if isinstance(error, HTTPException):
        code, message = _OF_HTTP.get(error.status_code, ("usage", str(error.detail)))
        return error.status_code, Said(code, message)
    number = secrets.token_hex(4)
    LOG.error("error %s", number, exc_info=error, extra={"error": number})
    fix = f"look in the server's log for error {number}"
    if isinstance(error, KaratError):
        if trusted:
            own = f"{error.advice}; " if error.advice else ""
            return 503, Said("error", error.what, fix=own + fix)
        return 503, Said("error", "the server cannot do this now", fix=fix)
    return 500, Said("error", "this is a bug in karat", fix=fix)


def _of_usage(error: UsageError) -> tuple[int, str]:
    if isinstance(error, SignInRefused):
        return (429, "too_many") if error.wait_s else (403, "not_allowed")
    if isinstance(error, LeaseLost | NotAllowed):
        return 409, "conflict"
    return (404, "not_found") if isinstance(error, NotFound | NoRelease) else (400, "usage")


def refused(error: KaratError) -> tuple[int, Said]:
    """Status and message of an error, for the page with the rejected form."""
    return describe(error)


def error_response(request: Request, error: Exception) -> Response:
    """The response to a failed request: JSON for the API and scripts, else a page."""
    if not hasattr(request.state, "principal"):  # no route matched; the menu still needs the user
        request.state.principal = None
        with suppress(KaratError):  # the store may be what failed
            request.state.principal = by_session(request.app.state.site, request)
    principal = Call(request).user
    status, body = describe(
        error, trusted=principal is not None and principal.person.role != "rater"
    )
    headers: dict[str, str] = {}
    if isinstance(error, HTTPException) and error.headers:
        headers.update({name.lower(): value for name, value in error.headers.items()})
    if status == 405:  # the router names only the methods of the first route
        headers["allow"] = ", ".join(_methods(request))
    if isinstance(error, SignInRefused) and error.wait_s:
        headers["retry-after"] = str(error.wait_s)
    base: str = request.app.state.site.settings.base
    path = request.url.path.removeprefix(base)
    if path.startswith("/api/") or "text/html" not in request.headers.get("accept", "text/html"):
        if status == 401:
            headers["www-authenticate"] = "Bearer"
        return JSONResponse(body.to_dict(), status, headers)
    if status == 401 and request.method in {"GET", "HEAD"}:
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{base}/sign-in?{urlencode({'next': path + query})}", 303)
    titles = {401: "Sign in first", 403: "Not allowed", 404: "Not found", 429: "Too many attempts"}
    page = ErrorPage(title=titles.get(status, "Something went wrong"), said=body)
    response = show(Call(request), page, status)
    response.headers.update(headers)
    return response


def _methods(request: Request) -> list[str]:
    """The methods that a path accepts, over all its routes."""
    routes = (context.original_route for context in iter_route_contexts(request.app.routes))
    of_path = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({name for route in of_path for name in getattr(route, "methods", None) or ()})


def install(app: FastAPI) -> None:
    """Handle expected errors by ``error_response``; ``middleware`` does so for all others."""
    for kind in (Refused, KaratError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, error_response)
