"""Forms that create a secret once, however often they are sent, and show it once.

Each such form has a random value (``shell.once``). Together with the session's secret and the
input it determines the new secret: a second click creates the same one, which the store already
has. The response redirects to a page, so that a reload sends nothing; until that page is shown, a
cookie carries the secret, sealed for this session and page. It never appears in an address.

One-time messages after a form use the same mechanism.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Form, Response

from karat.web.framework.call import Call, Principal
from karat.web.framework.pages import Page, redirect, show
from karat.web.framework.signed_values import seal, unseal

_LASTS_S = 60
_P = TypeVar("_P", bound=Page)
Once = Annotated[str, Form(max_length=200)]
"""A parameter of a route: the form's ``once`` value; empty without one."""


@dataclass(frozen=True)
class Flash:
    """What a page shows once, after a form: a new secret, a message."""

    secret: str | None = None
    said: str = ""


def secret_of(principal: Principal, sent: str, *about: object) -> str | None:
    """The secret that a form creates: 43 characters, like ``secrets.token_urlsafe(32)``.

    Another input (``about``) gives another secret. None without a session or a ``once`` value: the
    caller then draws a random one.
    """
    if principal.session is None or not sent:
        return None
    message = json.dumps(["once", sent, *map(str, about)])
    digest = hmac.digest(principal.session.encode(), message.encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def redirect_with(call: Call, where: str, tail: str = "", **shown_once: str) -> Response:
    """Redirect to the page ``where`` (without the base), which shows fields of ``Flash`` once."""
    site, principal = call.site, call.principal
    response = redirect(call, f"{where}{tail}")
    for kind, text in shown_once.items():
        if text and principal.session is not None:
            response.set_cookie(
                f"{site.cookie}_{kind}",
                seal(text.encode(), principal.session, [kind, where]),
                max_age=_LASTS_S,
                path=f"{site.settings.base}{where}",
                secure=site.settings.secure or call.request.url.scheme == "https",
                httponly=True,
                samesite="lax",
            )
    return response


def show_with(
    call: Call,
    where: str,
    page: Callable[[Flash], _P],
    waits: Callable[[_P], bool] = lambda _: False,
    status: Callable[[], int] = lambda: 200,
) -> Response:
    """Show a page with what ``redirect_with`` sent there, and forget that.

    With ``format=`` it stays for the HTML page; also while ``waits``: such a page will reload
    itself because its numbers are being computed.
    """
    flash: dict[str, str] = {}
    site, principal, request = call.site, call.principal, call.request
    if principal.session is not None and "format" not in request.query_params:
        for kind in ("secret", "said"):
            sealed = request.cookies.get(f"{site.cookie}_{kind}", "")
            text = unseal(sealed, principal.session, [kind, where])
            flash |= {} if text is None else {kind: text.decode()}
    shown = page(Flash(**flash))
    response = show(call, shown, status())
    for kind in () if waits(shown) else flash:
        response.delete_cookie(f"{site.cookie}_{kind}", path=f"{site.settings.base}{where}")
    return response
