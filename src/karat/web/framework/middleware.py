"""What stands before every route: names we answer to, headers of every answer, a log of both."""

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
from karat.web.framework.errors import Said, answer
from karat.web.framework.form_values import storable
from karat.web.framework.settings import plain_host
from karat.web.framework.state import AppState

LOG = logging.getLogger("karat.access")
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:{images}; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy: nothing from another host, no script or style but our files."""
FORM = 2**20
"""Bytes that anybody may send: a form. More is for those who may upload (``max_upload``)."""
_SECRET = re.compile(r"/(link|invited)/.+", re.DOTALL)


class Guards:
    """Wraps the app.

    Args:
        app: The app.
        hosts: Names it answers to, without a port; empty for any.
        images: Origins that pictures of documents may come from, besides our own.
        secure: Whether browsers are told to come by HTTPS only.
    """

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
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, started = time.perf_counter(), 500, False

        async def guarded(message: Message) -> None:
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

        def begun() -> bool:
            return started

        site: AppState = scope["app"].state.site
        # Whether the proxy takes the prefix off or leaves it: the router is right with both.
        scope["root_path"] = site.settings.base
        request = Request(scope)
        try:
            refused, limit = await self._looked_at(request)
            if refused is not None:
                await refused(scope, receive, guarded)
            else:
                patience = site.settings.patience_s
                await self.app(scope, _limited(receive, limit, patience, begun), guarded)
        except Exception as error:  # outside of this, an answer would go without its headers
            if started:
                raise
            said = await run_in_threadpool(answer, request, error)
            await said(scope, receive, guarded)
        finally:
            _log(scope, status, time.perf_counter() - began)

    async def _looked_at(self, request: Request) -> tuple[Response | None, int]:
        """What is answered at once, if anything; and how many bytes may come."""
        host = request.headers.get("host", "")
        if self.hosts and _name(host) not in self.hosts:
            what = f"karat does not answer to {host!r}"
            said = Said("not_allowed", what, fix=f"karat serve --name {_name(host)}")
            return JSONResponse(said.to_dict(), 421), 0
        error: Exception | None = None
        texts = [part for each in request.query_params.multi_items() for part in each]
        if not all(map(storable, [request.scope["path"], *texts])):
            error = UsageError("no address holds the character 0, or half of a character")
        limit, size = FORM, _size(request.headers)
        if error is None and size > FORM:
            site: AppState = request.app.state.site
            if await run_in_threadpool(may_upload, site, request):
                limit = site.settings.max_upload
            if request.headers.get("content-length") and size > limit:
                error = HTTPException(413)
        if error is None:
            return None, limit
        return await run_in_threadpool(answer, request, error), 0


def _size(headers: Headers) -> float:
    """Bytes of the body, as far as the request says; without end if it does not."""
    said = headers.get("content-length")
    if said is not None:
        return int(said) if said.isdecimal() and said.isascii() else float("inf")
    return float("inf") if "transfer-encoding" in headers else 0


def _limited(
    receive: Receive, limit: int, patience_s: float, answering: Callable[[], bool]
) -> Receive:
    """The same, until more has come than may, or too little for too long.

    Args:
        receive: What gives the body.
        limit: Bytes at most.
        patience_s: Seconds that may pass while nothing comes. Slow is not late: ``SLOWEST`` bytes
            are worth a second.
        answering: Whether the answer has begun: then it is waited for the other end to leave.
    """
    came, left, whole = 0, patience_s, False

    async def counted() -> Message:
        nonlocal came, left, whole
        if whole or answering():
            return await receive()
        began = time.monotonic()
        try:
            async with asyncio.timeout(left):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, headers={"connection": "close"}) from None
        size = len(message.get("body", b""))
        waited = time.monotonic() - began
        came, whole = came + size, not message.get("more_body", False)
        left = min(patience_s, left - waited + size / SLOWEST)
        if came > limit:
            raise HTTPException(413)
        return message

    return counted


def _log(scope: Scope, status: int, seconds: float) -> None:
    asking = scope.get("state", {}).get("asking")
    # A one-time link would open the door to whoever reads the log; a line end would forge one.
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
            "person": None if asking is None else asking.person.name,
            "address": (scope.get("client") or ("",))[0],
        },
    )


def _name(host: str) -> str:
    """A Host header without its port."""
    if host.startswith("["):
        return plain_host(host.partition("]")[0] + "]")
    return plain_host(host.partition(":")[0])
