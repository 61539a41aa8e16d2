"""Sign-in and sign-out: with an account, an invitation, or the one-time link."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Response

from karat.errors import UsageError
from karat.tables.accounts.people import Invitation, Person
from karat.web.framework.auth import OptionalUser, Refused, SessionUser, is_cross_site
from karat.web.framework.call import Call
from karat.web.framework.errors import NotFound
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.web.framework.state import AppState
from karat.workflows.accounts.accounts import DEVICE_US, LONGEST_US, SignInRefused

ROUTER = APIRouter()


@ROUTER.get("/sign-in")
def sign_in_page(
    call: OptionalUser,
    next: str = "/",  # noqa: A002 - as in the address
) -> Response:
    if call.user is not None:
        return redirect(call, _safe(next))
    return show(call, _page(call, next))


def _page(call: Call, where: str, name: str = "", wrong: str | None = None) -> PlainPage:
    return PlainPage(
        "sign_in.html.j2",
        "Sign in",
        name=name,
        wrong=wrong,
        next=_safe(where),
        accounts=call.site.settings.accounts,
    )


@ROUTER.post("/sign-in")
def sign_in(
    call: OptionalUser,
    name: Annotated[str, Form()],
    password: Annotated[str, Form()],
    next: Annotated[str, Form()] = "/",  # noqa: A002
) -> Response:
    """Sign in; an error does not say whether the name or the password is wrong."""
    _from_our_page(call)
    if not call.site.settings.accounts:
        raise NotFound("this server has no accounts", fix="open the link that karat serve printed")
    try:
        device = call.request.cookies.get(_device(call.site))
        person = call.site.accounts.sign_in(name, password, _address(call), device)
    except SignInRefused as refused:
        return show_refused(call, _page(call, next, name, refused.what), refused)
    return _start_session(call, person, _safe(next))


@ROUTER.get("/link/{token}")
def link(call: OptionalUser, token: str) -> Response:
    """Follow the one-time link that ``karat serve`` printed."""
    person = None if call.site.settings.accounts else call.site.accounts.follow(token)
    if person is None:
        raise NotFound(
            "the link was used already, or is of an earlier start of the server",
            fix="restart karat serve, which prints a new one",
        )
    return _start_session(call, person, "/")


@ROUTER.get("/invited/{token}")
def invited_page(call: OptionalUser, token: str) -> Response:
    return show(call, _invited(token, _invitation(call.site, token)))


@ROUTER.post("/invited/{token}")
def invited(
    call: OptionalUser, token: str, password: Annotated[str, Form()], again: Annotated[str, Form()]
) -> Response:
    _from_our_page(call)
    invitation = _invitation(call.site, token)
    try:
        if password != again:
            raise UsageError("the two passwords differ")
        person = call.site.accounts.accept(token, password)
    except UsageError as error:
        busy = isinstance(error, SignInRefused) and error.wait_s
        return show(call, _invited(token, invitation, error.what), 429 if busy else 400)
    return _start_session(call, person, "/")


@ROUTER.post("/sign-out")
def sign_out(
    call: SessionUser,
    everywhere: Annotated[bool, Form()] = False,
    tokens: Annotated[bool, Form()] = False,
) -> Response:
    """End this session, or all sessions of the user, and optionally revoke the API tokens."""
    if everywhere:
        call.site.accounts.end_all(call.principal.person, tokens=tokens)
    elif call.principal.session is not None:
        call.site.accounts.end_session(call.principal.session)
    response = redirect(call, "/sign-in")
    response.delete_cookie(call.site.cookie, path=call.site.settings.base or "/")
    return response


def show_refused(call: Call, page: Page, refused: SignInRefused) -> Response:
    """A page after a wrong password (403) or too many attempts (429)."""
    response = show(call, page, 429 if refused.wait_s else 403)
    if refused.wait_s:
        response.headers["retry-after"] = str(refused.wait_s)
    return response


def _invited(token: str, invitation: Invitation, wrong: str | None = None) -> Page:
    return PlainPage(
        "invited.html.j2", "Welcome to karat", token=token, invitation=invitation, wrong=wrong
    )


def _start_session(call: Call, person: Person, then: str) -> Response:
    """Start a new session whatever cookie was sent, against session fixation."""
    old = call.request.cookies.get(call.site.cookie)
    if old:
        call.site.accounts.end_session(old)
    secret = call.site.accounts.start_session(person, call.request.headers.get("user-agent", ""))
    response = redirect(call, then)
    cookies = [(call.site.cookie, secret, LONGEST_US, call.site.settings.base or "/")]
    device = call.site.accounts.device(person) if call.site.settings.accounts else None
    if device is not None:
        cookies.append(
            (_device(call.site), device, DEVICE_US, f"{call.site.settings.base}/sign-in")
        )
    for name, value, lasts_us, path in cookies:
        response.set_cookie(
            name,
            value,
            max_age=lasts_us // 1_000_000,
            path=path,
            secure=call.site.settings.secure or call.request.url.scheme == "https",
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


def _from_our_page(call: Call) -> None:
    """Reject cross-site forms of users who are not signed in."""
    if is_cross_site(call.request):
        raise Refused(403, "the request did not come from a page of karat")


def _address(call: Call) -> str:
    return call.request.client.host if call.request.client else ""


def _invitation(site: AppState, token: str) -> Invitation:
    invitation = site.accounts.invitation(token) if site.settings.accounts else None
    if invitation is None:
        raise NotFound("the invitation was used, withdrawn or has expired", fix="ask for a new one")
    return invitation
