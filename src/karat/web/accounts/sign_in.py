"""Sign-in and sign-out: with an account, an invitation, or the one-time link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Form, Request, Response

from karat.errors import UsageError
from karat.tables.accounts.people import Invitation, Person
from karat.web.framework.auth import OptionalUser, Refused, SessionUser, is_cross_site
from karat.web.framework.errors import NotFound
from karat.web.framework.pages import Page, redirect, show
from karat.web.framework.state import AppState, TheState
from karat.workflows.accounts.accounts import DEVICE_US, LONGEST_US, SignInRefused

ROUTER = APIRouter()


@dataclass(frozen=True, kw_only=True)
class SignInPage(Page):
    """The sign-in form."""

    template: ClassVar[str] = "sign_in.html.j2"
    name: str
    wrong: str | None
    next: str
    accounts: bool


@dataclass(frozen=True, kw_only=True)
class InvitedPage(Page):
    """Choosing a password with an invitation."""

    template: ClassVar[str] = "invited.html.j2"
    token: str
    invitation: Invitation
    wrong: str | None


@ROUTER.get("/sign-in")
def sign_in_page(
    request: Request,
    site: TheState,
    principal: OptionalUser,
    next: str = "/",  # noqa: A002 - as in the address
) -> Response:
    """The sign-in form."""
    if principal is not None:
        return redirect(site, _safe(next))
    page = SignInPage(
        title="Sign in", name="", wrong=None, next=_safe(next), accounts=site.settings.accounts
    )
    return show(request, page)


@ROUTER.post("/sign-in")
def sign_in(
    request: Request,
    site: TheState,
    _asking: OptionalUser,
    name: Annotated[str, Form()],
    password: Annotated[str, Form()],
    next: Annotated[str, Form()] = "/",  # noqa: A002
) -> Response:
    """Sign in; an error does not say whether the name or the password is wrong."""
    _from_our_page(request)
    if not site.settings.accounts:
        raise NotFound("this server has no accounts", fix="open the link that karat serve printed")
    try:
        device = request.cookies.get(_device(site))
        person = site.accounts.sign_in(name, password, _address(request), device)
    except SignInRefused as refused:
        page = SignInPage(
            title="Sign in", name=name, wrong=str(refused.what), next=_safe(next), accounts=True
        )
        return show_refused(request, page, refused)
    return _start_session(request, site, person, _safe(next))


@ROUTER.get("/link/{token}")
def link(request: Request, site: TheState, _asking: OptionalUser, token: str) -> Response:
    """Follow the one-time link that ``karat serve`` printed."""
    person = None if site.settings.accounts else site.accounts.follow(token)
    if person is None:
        raise NotFound(
            "the link was used already, or is of an earlier start of the server",
            fix="restart karat serve, which prints a new one",
        )
    return _start_session(request, site, person, "/")


@ROUTER.get("/invited/{token}")
def invited_page(request: Request, site: TheState, _asking: OptionalUser, token: str) -> Response:
    """The form to choose a password."""
    page = InvitedPage(
        title="Welcome to karat", token=token, invitation=_invitation(site, token), wrong=None
    )
    return show(request, page)


@ROUTER.post("/invited/{token}")
def invited(
    request: Request,
    site: TheState,
    _asking: OptionalUser,
    token: str,
    password: Annotated[str, Form()],
    again: Annotated[str, Form()],
) -> Response:
    """Create the account and sign in."""
    _from_our_page(request)
    invitation = _invitation(site, token)
    try:
        if password != again:
            raise UsageError("the two passwords differ")
        person = site.accounts.accept(token, password)
    except UsageError as error:
        page = InvitedPage(
            title="Welcome to karat", token=token, invitation=invitation, wrong=error.what
        )
        busy = isinstance(error, SignInRefused) and error.wait_s
        return show(request, page, 429 if busy else 400)
    return _start_session(request, site, person, "/")


@ROUTER.post("/sign-out")
def sign_out(
    site: TheState,
    principal: SessionUser,
    everywhere: Annotated[bool, Form()] = False,
    tokens: Annotated[bool, Form()] = False,
) -> Response:
    """End this session, or all sessions of the user, and optionally revoke the API tokens."""
    if everywhere:
        site.accounts.end_all(principal.person, tokens=tokens)
    elif principal.session is not None:
        site.accounts.end_session(principal.session)
    response = redirect(site, "/sign-in")
    response.delete_cookie(site.cookie, path=site.settings.base or "/")
    return response


def show_refused(request: Request, page: Page, refused: SignInRefused) -> Response:
    """A page after a wrong password (403) or too many attempts (429)."""
    response = show(request, page, 429 if refused.wait_s else 403)
    if refused.wait_s:
        response.headers["retry-after"] = str(refused.wait_s)
    return response


def _start_session(request: Request, site: AppState, person: Person, then: str) -> Response:
    """Start a new session whatever cookie was sent, against session fixation."""
    old = request.cookies.get(site.cookie)
    if old:
        site.accounts.end_session(old)
    secret = site.accounts.start_session(person, request.headers.get("user-agent", ""))
    response = redirect(site, then)
    cookies = [(site.cookie, secret, LONGEST_US, site.settings.base or "/")]
    device = site.accounts.device(person) if site.settings.accounts else None
    if device is not None:
        cookies.append((_device(site), device, DEVICE_US, f"{site.settings.base}/sign-in"))
    for name, value, lasts_us, path in cookies:
        response.set_cookie(
            name,
            value,
            max_age=lasts_us // 1_000_000,
            path=path,
            secure=site.settings.secure or request.url.scheme == "https",
            httponly=True,
            samesite="lax",
        )
    return response


def _device(site: AppState) -> str:
    """Name of the cookie that identifies a browser with an earlier sign-in."""
    return f"{site.cookie}_device"


def _safe(where: str) -> str:
    """The path if it is on this server, else ``/``: no open redirects."""
    inside = where.startswith("/") and not where.startswith(("//", "/\\")) and where.isprintable()
    return where if inside and "\\" not in where else "/"


def _from_our_page(request: Request) -> None:
    """Reject cross-site forms of users who are not signed in."""
    if is_cross_site(request):
        raise Refused(403, "the request did not come from a page of karat")


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _invitation(site: AppState, token: str) -> Invitation:
    invitation = site.accounts.invitation(token) if site.settings.accounts else None
    if invitation is None:
        raise NotFound("the invitation was used, withdrawn or has expired", fix="ask for a new one")
    return invitation
