"""Your own account: password, sessions and API tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from fastapi import APIRouter, Form, Response

from karat.errors import UsageError
from karat.tables.accounts.people import SCOPES_OF, Scope
from karat.web.accounts.sign_in import show_refused
from karat.web.framework.auth import SessionUser
from karat.web.framework.call import Call
from karat.web.framework.errors import NotFound
from karat.web.framework.form_values import Id
from karat.web.framework.idempotency import Once, redirect_with, secret_of, show_with
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.workflows.accounts.accounts import SignInRefused
from karat.workflows.accounts.tokens import MOST_DAYS

ROUTER = APIRouter()
MEANT: Mapping[Scope, str] = {
    "judge": "judge pairs in the queue",
    "read": "read golden sets, runs and comparisons",
    "write": "change golden sets, upload runs, compare",
    "admin": "everything that only owners may do",
}
"""Description of each scope."""
DAYS = (30, 90, 365)
"""Choices for the lifetime of a token, besides never expiring."""
EVER = "ever"
"""The form's value for a token that never expires."""
_BROWSERS = ("Edg", "OPR", "Firefox", "Chrome", "Safari", "curl", "python")
_NAMES = {"Edg": "Edge", "OPR": "Opera", "python": "Python"}
_SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}


@ROUTER.get("/account")
def account(call: SessionUser) -> Response:
    return show_with(
        call, "/account", lambda flash: _page(call, secret=flash.secret, done=flash.said or None)
    )


@ROUTER.post("/account/password")
def change_password(
    call: SessionUser,
    old: Annotated[str, Form()],
    password: Annotated[str, Form()],
    again: Annotated[str, Form()],
) -> Response:
    if not call.site.settings.accounts:
        raise NotFound("this server has no accounts: it is for the user who started it")
    try:
        _need_password(call)
        if password != again:
            raise UsageError("the two new passwords differ")
        call.site.accounts.change_password(
            call.principal.person, old, password, call.principal.session
        )
    except SignInRefused as refused:
        return _refused(call, refused)
    except UsageError as error:
        return show(call, _page(call, wrong=error.what), 400)
    message = "Your password has been changed. All other browsers are signed out."
    return redirect_with(call, "/account", said=message)


@ROUTER.post("/account/tokens")
def make_token(
    call: SessionUser,
    name: Annotated[str, Form()],
    scopes: Annotated[list[str] | None, Form()] = None,
    days: Annotated[str, Form()] = "90",
    password: Annotated[str, Form()] = "",
    once: Once = "",
) -> Response:
    """Create an API token and show it once; it outlives the session, so it needs the password."""
    typed: dict[str, Any] = {"name": name, "chosen": scopes or (), "chosen_days": days}
    try:
        token_scopes = cast("list[Scope]", scopes or [])
        limit = _days(days)
        if call.site.settings.accounts:
            _need_password(call)
            call.site.accounts.confirm(call.principal.person, password)
        drawn = secret_of(call.principal, once, "token", name, *sorted(token_scopes), days)
        token = call.site.accounts.make_token(
            call.principal.person, name, token_scopes, limit, drawn
        )
    except SignInRefused as refused:
        return _refused(call, refused, **typed)
    except UsageError as error:
        return show(call, _page(call, wrong=error.what, **typed), 400)
    return redirect_with(call, "/account", secret=token.text)


@ROUTER.post("/account/tokens/{token_id}/revoke")
def revoke(call: SessionUser, token_id: Id) -> Response:
    try:
        call.site.accounts.revoke(call.principal.person, token_id)
    except UsageError as error:
        raise NotFound(error.what) from None
    return redirect(call, "/account")


def browser(agent: str) -> str:
    """Readable name of a browser from its User-Agent: ``Firefox on Linux``."""
    name = next((part for part in _BROWSERS if part in agent), None)
    system = next((label for part, label in _SYSTEMS.items() if part in agent), None)
    if name is None:
        return agent[:60] or "Unknown browser"
    return _NAMES.get(name, name) + (f" on {system}" if system else "")


def _days(text: str) -> int | None:
    """Days from the form; None for a token that never expires."""
    if text.strip() == EVER:
        return None
    try:
        return int(text) if len(text) <= 10 else MOST_DAYS + 1
    except ValueError:
        raise UsageError(f"{text!r} is not a number of days") from None


def _need_password(call: Call) -> None:
    """Raise UsageError for a user without a password, who has only used one-time links so far."""
    if not call.site.accounts.has_password(call.principal.person):
        raise UsageError(
            "you have no password yet: choose one first, with a link for a new password"
        )


def _refused(call: Call, refused: SignInRefused, **typed: Any) -> Response:
    return show_refused(call, _page(call, wrong=refused.what, **typed), refused)


def _page(call: Call, **more: Any) -> Page:
    rows = call.site.accounts.sessions(call.principal.person, call.principal.session)
    none: dict[str, Any] = dict.fromkeys(("secret", "wrong", "done", "chosen"))
    return PlainPage(
        "account.html.j2",
        "Account",
        password=call.site.settings.accounts
        and call.site.accounts.has_password(call.principal.person),
        sessions=[(row, browser(row.agent)) for row in rows],
        tokens=call.site.accounts.tokens(call.principal.person),
        scopes=[(scope, MEANT[scope]) for scope in SCOPES_OF[call.principal.person.role]],
        days=DAYS,
        ever=EVER,
        **{**none, "name": "", "chosen_days": "90", **more},
    )
