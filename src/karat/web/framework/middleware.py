"""Before every route: accepted hosts, size and time limits, security headers, access log."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from karat.errors import UsageError
from karat.web.framework.auth import may_upload
from karat.web.framework.connections import SLOWEST
from karat.web.framework.errors import Said, error_response
from karat.web.framework.form_values import storable
from karat.web.framework.settings import plain_host
from karat.web.framework.state import AppState

LOG = logging.getLogger("karat.access")
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:{images}; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy: nothing from other hosts, only our own scripts and styles."""
FORM = 2**20
"""Bytes of a form, the limit for everyone; with ``max_upload`` for users who may upload."""
_SECRET = re.compile(r"/(link|invited)/.+", re.DOTALL)


class Guards:
    def __init__(
        self, app: ASGIApp, hosts: tuple[str, ...], images: tuple[str, ...], *, secure: bool
    ) -> None:
        self.app, self.hosts = app, set(map(plain_host, hosts))
        self.headers = {
            "content-security-policy": POLICY.format(images="".join(f" {o}" for o in images)),
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": "camera=(), geolocation=(), microphone=()",
            "x-frame-options": "DENY",
        }
        if secure:
            self.headers["strict-transport-security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, started = time.perf_counter(), 500, False

        async def send_with_headers(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
                took = 1000 * (time.perf_counter() - began)
                headers["server-timing"] = f"app;dur={took:.1f}"
            await send(message)

        def response_started() -> bool:
            return started

        site: AppState = scope["app"].state.site
        # The router works whether or not the proxy strips the prefix.
        scope["root_path"] = site.settings.base
        request = Request(scope)
        try:
            refusal, limit = await self._check(request)
            if refusal is not None:
                await refusal(scope, receive, send_with_headers)
            else:
                patience = site.settings.patience_s
                await self.app(
                    scope, _limited(receive, limit, patience, response_started), send_with_headers
                )
        except Exception as error:  # any further out, the response would lack our headers
            if started:
                raise
            response = await run_in_threadpool(error_response, request, error)
            await response(scope, receive, send_with_headers)
        finally:
            _log(scope, status, time.perf_counter() - began)

    async def _check(self, request: Request) -> tuple[Response | None, int]:
        """The response if the request is rejected at once, and the limit of its body."""
        host = request.headers.get("host", "")
        if self.hosts and _name(host) not in self.hosts:
            what = f"the host name {host!r} is not configured"
            body = Said("not_allowed", what, fix=f"karat serve --name {_name(host)}")
            return JSONResponse(body.to_dict(), 421), 0
        error: Exception | None = None
        texts = [text for item in request.query_params.multi_items() for text in item]
        if not all(map(storable, [request.scope["path"], *texts])):
            error = UsageError("an address must not contain NUL or unpaired surrogates")
        limit, size = FORM, _size(request.headers)
        if error is None and size > FORM:
            site: AppState = request.app.state.site
            if await run_in_threadpool(may_upload, site, request):
                limit = site.settings.max_upload
            if request.headers.get("content-length") and size > limit:
                error = HTTPException(413)
        if error is None:
            return None, limit
        return await run_in_threadpool(error_response, request, error), 0


def _size(headers: Headers) -> float:
    """Bytes of the body according to the headers; infinite if they do not say."""
    length = headers.get("content-length")
    if length is not None:
        return int(length) if length.isdecimal() and length.isascii() else float("inf")
    return float("inf") if "transfer-encoding" in headers else 0


def _limited(
    receive: Receive, limit: int, patience_s: float, response_started: Callable[[], bool]
) -> Receive:
    """``receive`` with a limit of size (413) and time (408).

    ``patience_s`` may pass without data. A slow client is not late: ``SLOWEST`` bytes earn another
    second. There are no limits once the response has begun.
    """
    received, left, complete = 0, patience_s, False

    async def counted() -> Message:
        nonlocal received, left, complete
        if complete or response_started():
            return await receive()
        began = time.monotonic()
        try:
            async with asyncio.timeout(left):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, headers={"connection": "close"}) from None
        size = len(message.get("body", b""))
        waited = time.monotonic() - began
        received, complete = received + size, not message.get("more_body", False)
        left = min(patience_s, left - waited + size / SLOWEST)
        if received > limit:
            raise HTTPException(413)
        return message

    return counted


def _log(scope: Scope, status: int, seconds: float) -> None:
    principal = scope.get("state", {}).get("principal")
    # One-time links are secrets; a line end would forge a log entry.
    path = _SECRET.sub(r"/\1/…", scope["path"])
    path = "".join(c if c.isprintable() else "?" for c in path)
    LOG.info(
        "%s %s %s",
        scope["method"],
        path,
        status,
        extra={
            "method": scope["method"],
            "path": path,
            "status": status,
            "ms": round(1000 * seconds, 1),
            "person": None if principal is None else principal.person.name,
            "address": (scope.get("client") or ("",))[0],
        },
    )


def _name(host: str) -> str:
    if host.startswith("["):
        return plain_host(host.partition("]")[0] + "]")
    return plain_host(host.partition(":")[0])
