"""Who asks, and what they may: every route names one of the needs below, or it does not start."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from karat.errors import UsageError
from karat.tables.accounts.people import ROLES, Person, Role, Scope
from karat.web.framework.form_values import storable
from karat.web.framework.state import AppState

_SAFE = {"GET", "HEAD", "OPTIONS"}
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_CSRF = 32  # bytes, of the token and of what masks it
FIELD, HEADER = "csrf", "x-csrf"
"""Where a form and a script say the token that shows the request to come from our own page."""


@dataclass(frozen=True)
class Principal:
    """Who asks.

    Attributes:
        person: Who it is.
        session: The session's secret; None with an API token.
        csrf: What a form of theirs has to say; empty with an API token.
    """

    person: Person
    session: str | None = None
    csrf: str = ""


class Refused(Exception):
    """The request is not answered.

    Args:
        status: 401 nobody is signed in · 403 they may not.
        why: In a sentence.
    """

    def __init__(self, status: Literal[401, 403], why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class Requires:
    """What a route asks of who calls it.

    Args:
        role: Least role; None for a route open to everybody.
        scope: What an API token must be good for; None where no token is taken.
        looks: Whether it is looked up who asks; else nobody does, and the store is not needed.
    """

    def __init__(self, role: Role | None, scope: Scope | None, *, looks: bool = True) -> None:
        self.role, self.scope, self.looks = role, scope, looks

    async def __call__(self, request: Request) -> Principal | None:
        """Who asks; None on an open route where nobody is signed in.

        Raises:
            Refused: they are nobody, or may not.
            UsageError: a form holds what no store can.
        """
        if not self.looks:
            request.state.asking = None
            return None
        site: AppState = request.app.state.site
        token = _token(request)
        if token is not None and self.role is not None:
            asking: Principal | None = await run_in_threadpool(self._by_token, site, token)
        else:
            asking = await run_in_threadpool(by_session, site, request)
        request.state.asking = asking
        if self.role is not None:
            if asking is None:
                raise Refused(401, "nobody is signed in")
            if not _reaches(asking.person.role, self.role):
                raise Refused(403, f"this is for {self.role}s, and {asking.person.name} is none")
        # Last of all, because it may read the body: not that of somebody who may not send it.
        if asking is not None and asking.session is not None and request.method not in _SAFE:
            await _check_origin(request, asking.session)
        if request.method not in _SAFE:
            await _check_texts(request)
        return asking

    def _by_token(self, site: AppState, token: str) -> Principal:
        found = site.accounts.by_token(token)
        if found is None:
            raise Refused(401, "the API token is not known, was revoked, or has ended")
        person, scopes = found
        if self.scope is None:
            raise Refused(403, "this takes no API token: sign in")
        if self.scope not in scopes:
            raise Refused(403, f"the API token is not good for {self.scope!r}")
        return Principal(person)


def csrf_of(session: str) -> str:
    """What forms shown in a session have to say; written differently each time.

    Pages are compressed, and show what their address says. Were the token always the same text,
    the length of a page would tell how much of it an address has guessed (BREACH).
    """
    mask = secrets.token_bytes(_CSRF)
    return (mask + _masked(_csrf(session), mask)).hex()


def _csrf(session: str) -> bytes:
    return hmac.digest(session.encode(), b"csrf", hashlib.sha256)


def _masked(text: bytes, mask: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(text, mask, strict=True))


def _is_csrf(said: str | None, session: str) -> bool:
    """Whether a form says what ``csrf_of`` wrote for its session, at any time."""
    try:
        held = bytes.fromhex(said or "")
    except ValueError:
        return False
    if len(held) != 2 * _CSRF:
        return False
    return hmac.compare_digest(_masked(held[_CSRF:], held[:_CSRF]), _csrf(session))


def by_session(site: AppState, request: Request) -> Principal | None:
    """Who is signed in with the browser that sends a request."""
    secret = request.cookies.get(site.cookie)
    person = site.accounts.by_session(secret) if secret else None
    return None if person is None or secret is None else Principal(person, secret, csrf_of(secret))


def may_upload(site: AppState, request: Request) -> bool:
    """Whether a request may be large: an engineer sends it, or a token that may write."""
    token = _token(request)
    if token is not None:
        found = site.accounts.by_token(token)
        return found is not None and _reaches(found[0].role, "engineer") and "write" in found[1]
    asking = by_session(site, request)
    return asking is not None and _reaches(asking.person.role, "engineer")


def from_elsewhere(request: Request) -> bool:
    """Whether another site's page made a browser send this, as far as the browser says so.

    Browsers say ``Sec-Fetch-AppState`` over HTTPS and on this machine only; ``Origin`` everywhere.
    """
    said = request.headers.get("sec-fetch-site")
    if said is not None:
        return said not in {"same-origin", "none"}
    origin = request.headers.get("origin")
    if origin is None:
        return False
    try:
        # Without ports: a proxy may leave its own out of Host.
        return (
            urlsplit(origin).hostname != urlsplit(f"//{request.headers.get('host', '')}").hostname
        )
    except ValueError:
        return True


def _token(request: Request) -> str | None:
    """An API token; what a proxy asks of browsers (``Basic``) is not for us."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.casefold() == "bearer" else None


def _reaches(role: Role, least: Role) -> bool:
    return ROLES.index(role) >= ROLES.index(least)


async def _check_origin(request: Request, session: str) -> None:
    """Refuse what another site's page made a browser send."""
    said = request.headers.get(HEADER)
    if said is None and request.headers.get("content-type", "").startswith(_FORMS):
        field = (await request.form()).get(FIELD)
        said = field if isinstance(field, str) else None
    if not _is_csrf(said, session) or from_elsewhere(request):
        raise Refused(403, "the request did not come from a page of karat: reload, and try again")


async def _check_texts(request: Request) -> None:
    """Refuse texts of a form that no store can hold; here, so that no route has to."""
    # A route that reads no form has read none yet, and may read the body itself.
    if getattr(request, "_form", None) is None:
        return
    for name, value in (await request.form()).multi_items():
        text = value if isinstance(value, str) else value.filename or ""
        if not (storable(name) and storable(text)):
            raise UsageError("no text holds the character 0, or half of a character")


ANYTHING = Requires(None, None, looks=False)
EVERYBODY = Requires(None, None)
RATER = Requires("rater", "judge")
READER = Requires("engineer", "read")
ENGINEER = Requires("engineer", "write")
OWNER = Requires("owner", "admin")
SESSION = Requires("rater", None)
"""One's own account, which no token may change."""

Anonymous = Annotated[None, Depends(ANYTHING)]
MaybeSomebody = Annotated[Principal | None, Depends(EVERYBODY)]
ARater = Annotated[Principal, Depends(RATER)]
AReader = Annotated[Principal, Depends(READER)]
AnEngineer = Annotated[Principal, Depends(ENGINEER)]
AnOwner = Annotated[Principal, Depends(OWNER)]
SessionUser = Annotated[Principal, Depends(SESSION)]
