"""What a form makes once, however often it is sent, and its secret, which is shown once after it.

A page has a value drawn for it in each such form (``shell.once``). With the session's secret and
all that was typed it gives the secret that is made: a second click makes the same one, which the
store has. The answer leads to a page, so that a reload sends nothing; until that is shown, a cookie
holds the secret, sealed, for this session and page alone. In no address it ever stands.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Annotated

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from karat.web.access import Asking
from karat.web.page import Page, show
from karat.web.sealing import seal, unseal
from karat.web.site import Site

_LASTS_S = 60

Once = Annotated[str, Form(max_length=200)]
"""A parameter of a route: what the form says under ``once``; empty if it does not."""


def secret_of(asking: Asking, sent: str, *about: object) -> str | None:
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


def lead_to(request: Request, site: Site, asking: Asking, where: str, secret: str) -> Response:
    """Lead to the page that shows a secret.

    Args:
        request: What was asked.
        site: The site.
        asking: Who is to see it, in a session.
        where: The page, without the base; it answers by ``show_once``.
        secret: What it shows.
    """
    response = RedirectResponse(f"{site.settings.base}{where}", 303)
    response.set_cookie(
        _cookie(site),
        seal(secret, asking.session or "", [where]),
        max_age=_LASTS_S,
        path=f"{site.settings.base}{where}",
        secure=site.settings.secure or request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response


def show_once(
    request: Request, site: Site, asking: Asking, where: str, page: Callable[[str | None], Page]
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


def _cookie(site: Site) -> str:
    return f"{site.cookie}_once"
