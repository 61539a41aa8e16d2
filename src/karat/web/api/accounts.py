"""Your own account: who you are, and your API tokens."""

from __future__ import annotations

from fastapi import APIRouter, Response

from karat.errors import UsageError
from karat.tables.accounts.people import SCOPES_OF
from karat.web.api.responses import Number, Paged, json_response
from karat.web.framework.auth import AReader, SessionUser
from karat.web.framework.errors import NotFound
from karat.web.framework.state import TheState

ROUTER = APIRouter(prefix="/api", tags=["account"])
_TOKEN = ("id", "name", "scopes", "created_us", "used_us", "ends_us")


@ROUTER.get(
    "/me",
    response_description="`name`, `role`, `scopes` (that your tokens may have), `signed_in_by` "
    "(`session` or `token`), `golden` (the golden set of the workspace).",
)
def me(site: TheState, principal: AReader) -> Response:
    """The current user."""
    return json_response(
        {
            "name": principal.person.name,
            "role": principal.person.role,
            "scopes": SCOPES_OF[principal.person.role],
            "signed_in_by": "token" if principal.session is None else "session",
            "golden": site.workspace.golden.name,
        }
    )


@ROUTER.get(
    "/tokens",
    response_description="List of `id`, `name`, `scopes`, `created_us`, `used_us`, `ends_us`.",
)
def tokens(site: TheState, principal: SessionUser, page: Paged) -> Response:
    """List your own tokens, without their secrets."""
    rows = site.accounts.tokens(principal.person)
    return page.items([{name: getattr(row, name) for name in _TOKEN} for row in rows])


@ROUTER.delete("/tokens/{token_id}", response_description="`revoked`: its number.")
def revoke(site: TheState, principal: SessionUser, token_id: Number) -> Response:
    """Revoke one of your own tokens."""
    try:
        site.accounts.revoke(principal.person, token_id)
    except UsageError as error:
        raise NotFound(error.what) from None
    return json_response({"revoked": token_id})
