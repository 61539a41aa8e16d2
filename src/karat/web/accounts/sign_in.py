"""Coming in and going out: by account, by invitation, by the one-time link of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse

from karat.errors import UsageError
from karat.store.sql.people import Invitation
from karat.tables.accounts.people import Person
from karat.web.framework.auth import MaybeSomebody, Refused, SessionUser, from_elsewhere
from karat.web.framework.errors import NotFound
from karat.web.framework.pages import Page, show
from karat.web.framework.state import AppState, TheState
from karat.workflows.accounts.accounts import DEVICE_US, LONGEST_US, SignInRefused

ROUTER = APIRouter()


@dataclass(frozen=True, kw_only=True)
class SignInPage(Page):
    """Name and password.

    Attributes:
        name: As it was typed.
        wrong: Why one could not come in; None before the first try.
        next: Where to go then.
        accounts: Whether there are accounts; else it says to use the link that was printed.
    """

    template: ClassVar[str] = "sign_in.html.j2"
    name: str
    wrong: str | None
    next: str
    accounts: bool


@dataclass(frozen=True, kw_only=True)
class InvitedPage(Page):
    """Choosing a password, by an invitation.

    Attributes:
        token: The invitation's secret.
        invitation: For whom it is, in which role, and until when.
        wrong: Why it did not work; None before the first try.
    """

    template: ClassVar[str] = "invited.html.j2"
    token: str
    invitation: Invitation
    wrong: str | None


@ROUTER.get("/sign-in")
def sign_in_page(
    request: Request,
    site: TheState,
    asking: MaybeSomebody,
    next: str = "/",  # noqa: A002 - as it stands in the address
) -> Response:
    """Ask for name and password."""
    if asking is not None:
        return _go(site, _safe(next))
    page = SignInPage(
        title="Sign in", name="", wrong=None, next=_safe(next), accounts=site.settings.accounts
    )
    return show(request, page)


@ROUTER.post("/sign-in")
def sign_in(
    request: Request,
    site: TheState,
    _asking: MaybeSomebody,
    name: Annotated[str, Form()],
    password: Annotated[str, Form()],
    next: Annotated[str, Form()] = "/",  # noqa: A002
) -> Response:
    """Let them in, or say that name or password is wrong, never which."""
    _from_our_page(request)
    if not site.settings.accounts:
        raise NotFound("there are no accounts here", fix="open the link that karat serve printed")
    try:
        device = request.cookies.get(_device(site))
        person = site.accounts.sign_in(name, password, _address(request), device)
    except SignInRefused as refused:
        page = SignInPage(
            title="Sign in", name=name, wrong=str(refused.what), next=_safe(next), accounts=True
        )
        response = show(request, page, 429 if refused.wait_s else 403)
        if refused.wait_s:
            response.headers["retry-after"] = str(refused.wait_s)
        return response
    return _let_in(request, site, person, _safe(next))


@ROUTER.get("/link/{token}")
def link(request: Request, site: TheState, _asking: MaybeSomebody, token: str) -> Response:
    """Follow the one-time link that ``karat serve`` printed."""
    person = None if site.settings.accounts else site.accounts.follow(token)
    if person is None:
        raise NotFound(
            "the link was used before, or is of another start of the server",
            fix="karat serve prints a new one",
        )
    return _let_in(request, site, person, "/")


@ROUTER.get("/invited/{token}")
def invited_page(request: Request, site: TheState, _asking: MaybeSomebody, token: str) -> Response:
    """Ask who was invited for a password."""
    page = InvitedPage(
        title="Welcome to karat", token=token, invitation=_invitation(site, token), wrong=None
    )
    return show(request, page)


@ROUTER.post("/invited/{token}")
def invited(
    request: Request,
    site: TheState,
    _asking: MaybeSomebody,
    token: str,
    password: Annotated[str, Form()],
    again: Annotated[str, Form()],
) -> Response:
    """Make the account, and let them in."""
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
    return _let_in(request, site, person, "/")


@ROUTER.post("/sign-out")
def sign_out(
    site: TheState,
    asking: SessionUser,
    everywhere: Annotated[bool, Form()] = False,
    tokens: Annotated[bool, Form()] = False,
) -> Response:
    """End this session, or all of theirs, perhaps with their API tokens."""
    if everywhere:
        site.accounts.end_all(asking.person, tokens=tokens)
    elif asking.session is not None:
        site.accounts.end_session(asking.session)
    response = _go(site, "/sign-in")
    response.delete_cookie(site.cookie, path=site.settings.base or "/")
    return response


def _let_in(request: Request, site: AppState, person: Person, then: str) -> Response:
    """Begin a new session, whatever cookie came with the request: none can be fixed beforehand."""
    old = request.cookies.get(site.cookie)
    if old:
        site.accounts.end_session(old)
    secret = site.accounts.start_session(person, request.headers.get("user-agent", ""))
    response = _go(site, then)
    kept = [(site.cookie, secret, LONGEST_US, site.settings.base or "/")]
    device = site.accounts.device(person) if site.settings.accounts else None
    if device is not None:
        kept.append((_device(site), device, DEVICE_US, f"{site.settings.base}/sign-in"))
    for name, value, lasts_us, path in kept:
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
    """Name of the cookie by which a browser is known in which somebody has come in."""
    return f"{site.cookie}_device"


def _go(site: AppState, where: str) -> Response:
    return RedirectResponse(f"{site.settings.base}{where}", 303)


def _safe(where: str) -> str:
    """A path of ours; never another host, whatever the address said."""
    inside = where.startswith("/") and not where.startswith(("//", "/\\")) and where.isprintable()
    return where if inside and "\\" not in where else "/"


def _from_our_page(request: Request) -> None:
    """A form that nobody signed in to sends must come from our own page all the same."""
    if from_elsewhere(request):
        raise Refused(403, "the request did not come from a page of karat")


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _invitation(site: AppState, token: str) -> Invitation:
    found = site.accounts.invitation(token) if site.settings.accounts else None
    if found is None:
        raise NotFound("the invitation was used, withdrawn, or has ended", fix="ask for a new one")
    return found
