"""Forms that create a secret once, however often they are sent, and show it once.

Each such form has a random value (``shell.once``). Together with the session's secret and the
input it determines the new secret: a second click creates the same one, which the store already
has. The response redirects to a page, so that a reload sends nothing; until that page is shown, a
cookie carries the secret, sealed for this session and page. It never appears in an address.

One-time messages after a form (``redirect_with_message``) use the same mechanism.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

from fastapi import Form, Request, Response

from karat.web.framework.auth import Principal
from karat.web.framework.pages import Page, redirect, show
from karat.web.framework.signed_values import seal, unseal
from karat.web.framework.state import AppState

_LASTS_S = 60
Kind = Literal["once", "said"]
"""What a cookie carries: a secret, or a message."""

Once = Annotated[str, Form(max_length=200)]
"""A parameter of a route: the form's ``once`` value; empty without one."""


def secret_of(principal: Principal, sent: str, *about: object) -> str | None:
    """The secret that a form creates: 43 characters, like ``secrets.token_urlsafe(32)``.

    Another input (``about``) gives another secret.

    Returns:
        None without a session or a ``once`` value: the caller then draws a random one.
    """
    if principal.session is None or not sent:
        return None
    message = json.dumps(["once", sent, *map(str, about)])
    digest = hmac.digest(principal.session.encode(), message.encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def lead_to(
    request: Request, site: AppState, principal: Principal, where: str, secret: str
) -> Response:
    """Redirect to the page ``where`` (without the base), which shows a secret by ``show_once``."""
    response = redirect(site, where)
    _set_cookie(response, request, site, principal, where, secret, "once")
    return response


def show_once(
    request: Request,
    site: AppState,
    principal: Principal,
    where: str,
    page: Callable[[str | None], Page],
) -> Response:
    """Show a page with the secret from ``lead_to``, if any, and forget the secret."""
    sealed = request.cookies.get(_cookie(site))
    if sealed is None or principal.session is None or "format" in request.query_params:
        return show(request, page(None))
    secret = unseal(sealed, principal.session, [where])
    response = show(request, page(secret))
    if secret is not None:
        response.delete_cookie(_cookie(site), path=f"{site.settings.base}{where}")
    return response


def redirect_with_message(
    request: Request, site: AppState, principal: Principal, where: str, said: str, tail: str = ""
) -> Response:
    """Redirect to a page that shows a message once."""
    response = redirect(site, f"{where}{tail}")
    if said and principal.session is not None:
        _set_cookie(response, request, site, principal, where, said, "said")
    return response


_P = TypeVar("_P", bound=Page)


def show_with_message(
    request: Request,
    site: AppState,
    principal: Principal,
    where: str,
    page: Callable[[str], _P],
    waits: Callable[[_P], bool] = lambda _: False,
    status: Callable[[], int] = lambda: 200,
) -> Response:
    """Show a page with the message from ``redirect_with_message``, if any, and forget it.

    With ``format=`` the message stays for the HTML page; also while ``waits``: such a page will
    reload itself because its numbers are being computed.
    """
    message = said_here(request, site, principal, where)
    shown = page(message)
    response = show(request, shown, status())
    if message and not waits(shown):
        forget(response, site, where)
    return response


def said_here(request: Request, site: AppState, principal: Principal, where: str) -> str:
    """The message of ``redirect_with_message``; empty without one, and for programs."""
    sealed = request.cookies.get(_cookie(site, "said"))
    if sealed is None or principal.session is None or "format" in request.query_params:
        return ""
    return unseal(sealed, principal.session, ["said", where]) or ""


def forget(response: Response, site: AppState, where: str) -> None:
    """Delete the message of ``redirect_with_message`` in the browser."""
    response.delete_cookie(_cookie(site, "said"), path=f"{site.settings.base}{where}")


def _set_cookie(
    response: Response,
    request: Request,
    site: AppState,
    principal: Principal,
    where: str,
    text: str,
    kind: Kind,
) -> None:
    """Set a cookie with a sealed text for one page."""
    about = [where] if kind == "once" else [kind, where]
    response.set_cookie(
        _cookie(site, kind),
        seal(text, principal.session or "", about),
        max_age=_LASTS_S,
        path=f"{site.settings.base}{where}",
        secure=site.settings.secure or request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def _cookie(site: AppState, kind: Kind = "once") -> str:
    return f"{site.cookie}_{kind}"
