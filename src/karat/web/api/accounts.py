"""Your own account: who you are, and your API tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fastapi import APIRouter, Response

from karat.tables.accounts.people import SCOPES_OF, Role, Scope, TokenRow
from karat.web.api.models import many, one
from karat.web.api.responses import Number, Paged, json_response
from karat.web.framework.auth import AReader, SessionUser
from karat.web.framework.errors import or_not_found

ROUTER = APIRouter(prefix="/api", tags=["account"])


@dataclass(frozen=True)
class Me:
    """The current user."""

    name: str
    role: Role
    scopes: Sequence[Scope]  # scopes that the user's tokens may have
    signed_in_by: Literal["session", "token"]  # `session` or `token`
    golden: str  # name of the golden set of the workspace


@dataclass(frozen=True)
class Revoked:
    """The number of a revoked token."""

    revoked: int


@ROUTER.get("/me", response_model=one(Me))
def me(call: AReader) -> Response:
    """The current user."""
    person = call.principal.person
    how: Literal["session", "token"] = "token" if call.principal.session is None else "session"
    golden = call.site.workspace.golden.name
    return json_response(Me(person.name, person.role, SCOPES_OF[person.role], how, golden))


@ROUTER.get("/tokens", response_model=many(TokenRow))
def tokens(call: SessionUser, page: Paged) -> Response:
    """List your own tokens, without their secrets."""
    return page.items(call.site.accounts.tokens(call.principal.person))


@ROUTER.delete("/tokens/{token_id}", response_model=one(Revoked))
def revoke(call: SessionUser, token_id: Number) -> Response:
    """Revoke one of your own tokens."""
    with or_not_found():
        call.site.accounts.revoke(call.principal.person, token_id)
    return json_response(Revoked(token_id))
