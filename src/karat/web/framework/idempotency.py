"""What a form makes once, however often it is sent, and its secret, which is shown once after it.

A page has a value drawn for it in each such form (``shell.once``). With the session's secret and
all that was typed it gives the secret that is made: a second click makes the same one, which the
store has. The answer leads to a page, so that a reload sends nothing; until that is shown, a cookie
holds the secret, sealed, for this session and page alone. It is never part of an address.

What a page says once after a form (``lead_saying``) goes the same way, so that nobody who is sent
the address reads it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from karat.web.framework.auth import Principal
from karat.web.framework.pages import Page, show
from karat.web.framework.signed_values import seal, unseal
from karat.web.framework.state import AppState

_LASTS_S = 60
Kind = Literal["once", "said"]
"""What a cookie holds: a secret, or what a page says."""

Once = Annotated[str, Form(max_length=200)]
"""A parameter of a route: what the form says under ``once``; empty if it does not."""


def secret_of(asking: Principal, sent: str, *about: object) -> str | None:
    """The secret that a form makes: 43 characters, as ``secrets.token_urlsafe(32)`` has.

    Args:
        asking: Who sends it.
        sent: What it says under ``once``.
        about: What it is for, and all that was typed: another wish makes another secret.

    Returns:
        None where there is no session, or the form says nothing: any will do then.
    """
    if asking.session is None or not sent:
        return None
    said = json.dumps(["once", sent, *map(str, about)])
    digest = hmac.digest(asking.session.encode(), said.encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def lead_to(
    request: Request, site: AppState, asking: Principal, where: str, secret: str
) -> Response:
    """Lead to the page that shows a secret.

    Args:
        request: What was asked.
        site: The site.
        asking: Who is to see it, in a session.
        where: The page, without the base; it answers by ``show_once``.
        secret: What it shows.
    """
    response = RedirectResponse(f"{site.settings.base}{where}", 303)
    _hold(response, request, site, asking, where, secret, "once")
    return response


def show_once(
    request: Request,
    site: AppState,
    asking: Principal,
    where: str,
    page: Callable[[str | None], Page],
) -> Response:
    """A page with the secret that ``lead_to`` led here with, if it did; the next time without.

    Args:
        request: What was asked; only a page for eyes takes the secret.
        site: The site.
        asking: Who looks.
        where: The page, without the base.
        page: Gives the page, with a secret or None.
    """
    sealed = request.cookies.get(_cookie(site))
    if sealed is None or asking.session is None or "format" in request.query_params:
        return show(request, page(None))
    secret = unseal(sealed, asking.session, [where])
    response = show(request, page(secret))
    if secret is not None:
        response.delete_cookie(_cookie(site), path=f"{site.settings.base}{where}")
    return response


def lead_saying(
    request: Request, site: AppState, asking: Principal, where: str, said: str, tail: str = ""
) -> Response:
    """Lead to a page that says once what was done.

    Args:
        request: What was asked.
        site: The site.
        asking: Who is to read it; without a session, as with an API token, it is not said.
        where: The page, without the base; it answers by ``show_said``.
        said: What it says; nothing if empty.
        tail: The rest of its address, from ``?`` or ``#`` on.
    """
    response = RedirectResponse(f"{site.settings.base}{where}{tail}", 303)
    if said and asking.session is not None:
        _hold(response, request, site, asking, where, said, "said")
    return response


_P = TypeVar("_P", bound=Page)


def show_said(
    request: Request,
    site: AppState,
    asking: Principal,
    where: str,
    page: Callable[[str], _P],
    waits: Callable[[_P], bool] = lambda _: False,
    status: Callable[[], int] = lambda: 200,
) -> Response:
    """A page with what ``lead_saying`` led here with, if it did; the next time without.

    Args:
        request: What was asked; only a page for eyes says it.
        site: The site.
        asking: Who looks.
        where: The page, without the base.
        page: Gives the page, with what is said, or an empty text.
        waits: Whether the page is shown again by itself, as its numbers are being computed: what
            is said stays until then.
        status: Of the answer, once the page is made.
    """
    said = said_here(request, site, asking, where)
    shown = page(said)
    response = show(request, shown, status())
    if said and not waits(shown):
        forget(response, site, where)
    return response


def said_here(request: Request, site: AppState, asking: Principal, where: str) -> str:
    """What ``lead_saying`` led here with; empty if it did not, or a program reads the page."""
    sealed = request.cookies.get(_cookie(site, "said"))
    if sealed is None or asking.session is None or "format" in request.query_params:
        return ""
    return unseal(sealed, asking.session, ["said", where]) or ""


def forget(response: Response, site: AppState, where: str) -> None:
    """Have the browser forget what ``lead_saying`` led to a page with."""
    response.delete_cookie(_cookie(site, "said"), path=f"{site.settings.base}{where}")


def _hold(
    response: Response,
    request: Request,
    site: AppState,
    asking: Principal,
    where: str,
    text: str,
    kind: Kind,
) -> None:
    """Have the browser hold a text for one page, sealed."""
    about = [where] if kind == "once" else [kind, where]
    response.set_cookie(
        _cookie(site, kind),
        seal(text, asking.session or "", about),
        max_age=_LASTS_S,
        path=f"{site.settings.base}{where}",
        secure=site.settings.secure or request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def _cookie(site: AppState, kind: Kind = "once") -> str:
    return f"{site.cookie}_{kind}"
