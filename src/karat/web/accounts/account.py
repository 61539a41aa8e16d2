"""One's own account: password, where one is signed in, and tokens for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, cast

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse

from karat.errors import UsageError
from karat.store.sql.sessions import SessionRow, TokenRow
from karat.tables.accounts.people import SCOPES_OF, Scope
from karat.web.framework.auth import Principal, SessionUser
from karat.web.framework.errors import NotFound
from karat.web.framework.form_values import Id
from karat.web.framework.idempotency import (
    Once,
    forget,
    lead_saying,
    lead_to,
    said_here,
    secret_of,
    show_once,
)
from karat.web.framework.pages import Page, show
from karat.web.framework.state import AppState, TheState
from karat.workflows.accounts.accounts import SignInRefused
from karat.workflows.accounts.tokens import MOST_DAYS

ROUTER = APIRouter()
MEANT: Mapping[Scope, str] = {
    "judge": "judge pairs in the queue",
    "read": "read golden sets, runs and comparisons",
    "write": "change golden sets, upload runs, compare",
    "admin": "what only owners may do",
}
"""What each scope is good for, in words."""
DAYS = (30, 90, 365)
"""For how long a token may be good, besides for ever."""
EVER = "ever"
"""How a form says that a token is good for ever."""
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


@dataclass(frozen=True, kw_only=True)
class AccountPage(Page):
    """One's own account.

    Attributes:
        password: Whether one has a password to sign in by, and can change it.
        sessions: Where one is signed in, and how the browser is called; last seen first.
        tokens: One's tokens, the newest first.
        scopes: What a new token may be good for, and what that is in words.
        days: For how many days a new token may be good.
        ever: What the form says of one that is good for ever.
        secret: The token that was just made; it is shown once. None if none was.
        wrong: What did not work; None if nothing was wrong.
        done: What worked; None if nothing was done.
        name: Of the token, as it was typed, if it was refused.
        chosen: Its scopes, likewise; None where no form was sent.
        chosen_days: For how long, likewise.
    """

    template: ClassVar[str] = "account.html.j2"
    section: ClassVar[str] = "account"
    password: bool
    sessions: Sequence[tuple[SessionRow, str]]
    tokens: Sequence[TokenRow]
    scopes: Sequence[tuple[Scope, str]]
    days: Sequence[int] = DAYS
    ever: str = EVER
    secret: str | None = None
    wrong: str | None = None
    done: str | None = None
    name: str = ""
    chosen: Sequence[str] | None = None
    chosen_days: str = "90"


@ROUTER.get("/account")
def account(request: Request, site: TheState, asking: SessionUser) -> Response:
    """One's own account."""
    said = said_here(request, site, asking, "/account")
    response = show_once(
        request,
        site,
        asking,
        "/account",
        lambda secret: _page(site, asking, secret=secret, done=said or None),
    )
    if said:
        forget(response, site, "/account")
    return response


@ROUTER.post("/account/password")
def change_password(
    request: Request,
    site: TheState,
    asking: SessionUser,
    old: Annotated[str, Form()],
    password: Annotated[str, Form()],
    again: Annotated[str, Form()],
) -> Response:
    """Change one's password; every other session ends."""
    if not site.settings.accounts:
        raise NotFound("there are no passwords where karat is for whoever started it")
    try:
        _need_password(site, asking)
        if password != again:
            raise UsageError("the two new passwords differ")
        site.accounts.change_password(asking.person, old, password, asking.session)
    except SignInRefused as refused:
        return _refused(request, site, asking, refused)
    except UsageError as error:
        return show(request, _page(site, asking, wrong=error.what), 400)
    said = "The password is changed, and every other browser is signed out."
    return lead_saying(request, site, asking, "/account", said)


@ROUTER.post("/account/tokens")
def make_token(
    request: Request,
    site: TheState,
    asking: SessionUser,
    name: Annotated[str, Form()],
    scopes: Annotated[list[str] | None, Form()] = None,
    days: Annotated[str, Form()] = "90",
    password: Annotated[str, Form()] = "",
    once: Once = "",
) -> Response:
    """Make a token for programs, and show it once; it outlives the session, so that whoever
    makes it says the password.
    """
    typed: dict[str, Any] = {"name": name, "chosen": scopes or (), "chosen_days": days}
    try:
        wanted = cast("list[Scope]", scopes or [])
        limit = _days(days)
        if site.settings.accounts:
            _need_password(site, asking)
            site.accounts.confirm(asking.person, password)
        drawn = secret_of(asking, once, "token", name, *sorted(wanted), days)
        made = site.accounts.make_token(asking.person, name, wanted, limit, drawn)
    except SignInRefused as refused:
        return _refused(request, site, asking, refused, **typed)
    except UsageError as error:
        return show(request, _page(site, asking, wrong=error.what, **typed), 400)
    return lead_to(request, site, asking, "/account", made.text)


@ROUTER.post("/account/tokens/{token_id}/revoke")
def revoke(site: TheState, asking: SessionUser, token_id: Id) -> Response:
    """Revoke one of one's own tokens."""
    try:
        site.accounts.revoke(asking.person, token_id)
    except UsageError as error:
        raise NotFound(error.what) from None
    return RedirectResponse(f"{site.settings.base}/account", 303)


def browser(agent: str) -> str:
    """A browser as people call it, from what it calls itself: ``Firefox on Linux``."""
    called = next((name for name in _BROWSERS if name in agent), None)
    system = next((name for part, name in _SYSTEMS.items() if part in agent), None)
    if called is None:
        return agent[:60] or "A browser that does not say its name"
    return _NAMES.get(called, called) + (f" on {system}" if system else "")


def _days(said: str) -> int | None:
    """Days as the form says them; None for ever."""
    if said.strip() == EVER:
        return None
    try:
        return int(said) if len(said) <= 10 else MOST_DAYS + 1
    except ValueError:
        raise UsageError(f"{said!r} is no number of days") from None


def _need_password(site: AppState, asking: Principal) -> None:
    """Who served karat on this machine alone has none yet, and can neither change nor say it.

    Raises:
        UsageError: they have none.
    """
    if not site.accounts.has_password(asking.person):
        raise UsageError("you have no password yet: choose one first, by a link that is for you")


def _refused(
    request: Request, site: AppState, asking: Principal, refused: SignInRefused, **typed: Any
) -> Response:
    page = _page(site, asking, wrong=refused.what, **typed)
    response = show(request, page, 429 if refused.wait_s else 403)
    if refused.wait_s:
        response.headers["retry-after"] = str(refused.wait_s)
    return response


def _page(
    site: AppState,
    asking: Principal,
    *,
    secret: str | None = None,
    wrong: str | None = None,
    done: str | None = None,
    **typed: Any,
) -> AccountPage:
    rows = site.accounts.sessions(asking.person, asking.session)
    return AccountPage(
        title="Account",
        password=site.settings.accounts and site.accounts.has_password(asking.person),
        sessions=[(row, browser(row.agent)) for row in rows],
        tokens=site.accounts.tokens(asking.person),
        scopes=[(scope, MEANT[scope]) for scope in SCOPES_OF[asking.person.role]],
        secret=secret,
        wrong=wrong,
        done=done,
        **typed,
    )
