"""Authentication and authorization: every route declares one of the requirements below."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Annotated, Literal
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from karat.errors import UsageError
from karat.tables.accounts.people import ROLES, Role, Scope
from karat.web.framework.call import Call, Principal
from karat.web.framework.form_values import storable
from karat.web.framework.state import AppState

_SAFE = {"GET", "HEAD", "OPTIONS"}
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_CSRF = 32  # bytes, of the token and of what masks it
FIELD, HEADER = "csrf", "x-csrf"
"""The form field and the header that carry the CSRF token."""


class Refused(Exception):
    def __init__(self, status: Literal[401, 403], why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class Requires:
    """What a route requires of its caller.

    Without a role it is public; without a scope no API token is accepted; if it does not look up
    the caller, the store is not needed.
    """

    def __init__(self, role: Role | None, scope: Scope | None, *, looks: bool = True) -> None:
        self.role, self.scope, self.looks = role, scope, looks

    async def __call__(self, request: Request) -> Call:
        if not self.looks:
            request.state.principal = None
            return Call(request)
        site: AppState = request.app.state.site
        token = _token(request)
        if token is not None and self.role is not None:
            principal: Principal | None = await run_in_threadpool(self._by_token, site, token)
        else:
            principal = await run_in_threadpool(by_session, site, request)
        request.state.principal = principal
        if self.role is not None:
            if principal is None:
                raise Refused(401, "you are not signed in")
            if not _reaches(principal.person.role, self.role):
                has = f"{principal.person.name} has the role {principal.person.role}"
                raise Refused(403, f"this requires the role {self.role}; {has}")
        # Last, because it may read the body, which only an authorized caller may send.
        if principal is not None and principal.session is not None and request.method not in _SAFE:
            await _check_origin(request, principal.session)
        if request.method not in _SAFE:
            await _check_texts(request)
        return Call(request)

    def _by_token(self, site: AppState, token: str) -> Principal:
        owner = site.accounts.by_token(token)
        if owner is None:
            raise Refused(401, "the API token is unknown, revoked or expired")
        person, scopes = owner
        if self.scope is None:
            raise Refused(403, "API tokens are not accepted here: sign in")
        if self.scope not in scopes:
            raise Refused(403, f"the API token lacks the scope {self.scope!r}")
        return Principal(person, writes="write" in scopes)


def csrf_of(session: str) -> str:
    """The CSRF token for forms of a session, masked anew each time.

    Pages are compressed and echo parts of their address. If the token were always the same text,
    the length of a page would reveal how much of it a guess in the address gets right (BREACH).
    """
    mask = secrets.token_bytes(_CSRF)
    return (mask + _masked(_csrf(session), mask)).hex()


def _csrf(session: str) -> bytes:
    return hmac.digest(session.encode(), b"csrf", hashlib.sha256)


def _masked(text: bytes, mask: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(text, mask, strict=True))


def _is_csrf(token: str | None, session: str) -> bool:
    """Whether ``csrf_of`` made this token for this session, at any time."""
    try:
        data = bytes.fromhex(token or "")
    except ValueError:
        return False
    if len(data) != 2 * _CSRF:
        return False
    return hmac.compare_digest(_masked(data[_CSRF:], data[:_CSRF]), _csrf(session))


def by_session(site: AppState, request: Request) -> Principal | None:
    secret = request.cookies.get(site.cookie)
    person = site.accounts.by_session(secret) if secret else None
    return None if person is None or secret is None else Principal(person, secret, csrf_of(secret))


def may_upload(site: AppState, request: Request) -> bool:
    """Whether a request may be large: an engineer's, with a token only if it has ``write``."""
    token = _token(request)
    if token is not None:
        owner = site.accounts.by_token(token)
        return owner is not None and _reaches(owner[0].role, "engineer") and "write" in owner[1]
    principal = by_session(site, request)
    return principal is not None and _reaches(principal.person.role, "engineer")


def is_cross_site(request: Request) -> bool:
    """Whether the browser says that another site's page caused this request.

    Browsers send ``Sec-Fetch-Site`` only over HTTPS and to localhost, ``Origin`` everywhere.
    """
    fetch_site = request.headers.get("sec-fetch-site")
    if fetch_site is not None:
        return fetch_site not in {"same-origin", "none"}
    origin = request.headers.get("origin")
    if origin is None:
        return False
    try:
        # Without ports: a proxy may drop its port from Host.
        return (
            urlsplit(origin).hostname != urlsplit(f"//{request.headers.get('host', '')}").hostname
        )
    except ValueError:
        return True


def _token(request: Request) -> str | None:
    """The API token, if any; ``Basic`` credentials are for a proxy."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.casefold() == "bearer" else None


def _reaches(role: Role, least: Role) -> bool:
    return ROLES.index(role) >= ROLES.index(least)


async def _check_origin(request: Request, session: str) -> None:
    """Reject cross-site requests and those without a valid CSRF token."""
    token = request.headers.get(HEADER)
    if token is None and request.headers.get("content-type", "").startswith(_FORMS):
        field = (await request.form()).get(FIELD)
        token = field if isinstance(field, str) else None
    if not _is_csrf(token, session) or is_cross_site(request):
        raise Refused(403, "the request did not come from a page of karat: reload and try again")


async def _check_texts(request: Request) -> None:
    """Reject form texts that cannot be stored, for all routes at once."""
    # A route without a form may still have to read the body itself.
    if getattr(request, "_form", None) is None:
        return
    for name, value in (await request.form()).multi_items():
        text = value if isinstance(value, str) else value.filename or ""
        if not (storable(name) and storable(text)):
            raise UsageError("text must not contain NUL or unpaired surrogates")


ANYTHING = Requires(None, None, looks=False)
EVERYBODY = Requires(None, None)
RATER = Requires("rater", "judge")
READER = Requires("engineer", "read")
ENGINEER = Requires("engineer", "write")
OWNER = Requires("owner", "admin")
SESSION = Requires("rater", None)
"""Your own account, which no token may change."""


def requires_of(route: object) -> Requires:
    declared: list[Requires] = []
    if isinstance(route, APIRoute):
        calls = (dependency.call for dependency in route.dependant.dependencies)
        declared = [call for call in calls if isinstance(call, Requires)]
    if len(declared) != 1:
        raise TypeError(f"{getattr(route, 'path', route)} does not say who may call it")
    return declared[0]


Anonymous = Annotated[Call, Depends(ANYTHING)]
OptionalUser = Annotated[Call, Depends(EVERYBODY)]
ARater = Annotated[Call, Depends(RATER)]
AReader = Annotated[Call, Depends(READER)]
AnEngineer = Annotated[Call, Depends(ENGINEER)]
AnOwner = Annotated[Call, Depends(OWNER)]
SessionUser = Annotated[Call, Depends(SESSION)]
