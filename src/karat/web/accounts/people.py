"""Users and invitations, for owners."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Form, Request, Response

from karat.errors import UsageError
from karat.reports.table import Column
from karat.tables.accounts.people import ROLES, PersonRow, Role
from karat.web.framework.auth import AnOwner
from karat.web.framework.call import Call
from karat.web.framework.errors import NotFound
from karat.web.framework.form_values import Id
from karat.web.framework.idempotency import Once, redirect_with, secret_of, show_with
from karat.web.framework.lists import frame_of, listed
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.web.framework.settings import LOCAL
from karat.web.framework.state import AppState
from karat.workflows.accounts.accounts import AlreadyInvited


async def _with_accounts(request: Request) -> None:
    if not Call(request).site.settings.accounts:
        raise NotFound(
            "this server has no accounts: it is for the user who started it",
            fix="see karat serve --help on how to serve it to others",
        )


_PLACE = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?", re.ASCII)
ROUTER = APIRouter(dependencies=[Depends(_with_accounts)])
_COLUMNS = (
    Column("name", "Name", link=lambda row: f"/people/{row['id']}"),
    Column("role", "Role", choices=True),
    Column("state", "State", choices=True),
    Column("last_seen", "Last seen", "time"),
    Column("sessions", "Sessions", "count"),
    Column("tokens", "API tokens", "count"),
    Column("since", "Since", "time"),
)


@dataclass(frozen=True)
class Link:
    """A link to pass on to a user; shown once."""

    name: str
    address: str
    renews: bool
    ends_us: int  # when it expires, microseconds UTC

    @property
    def is_url(self) -> bool:
        return not self.address.startswith("/")


@ROUTER.get("/people")
def people(call: AnOwner) -> Response:
    return show_with(call, "/people", lambda flash: _page(call, link=_link(call, flash.secret)))


@ROUTER.post("/people/invitations")
def invite(
    call: AnOwner,
    name: Annotated[str, Form()],
    role: Annotated[str, Form()] = "rater",
    replace: Annotated[bool, Form()] = False,
    once: Once = "",
) -> Response:
    """Create an invitation and show its link once; replace a pending one only if asked to."""
    drawn, by = secret_of(call.principal, once, "invite", name, role), call.who
    try:
        secret = call.site.accounts.invite(name, cast(Role, role), by, drawn, replace=replace)
    except AlreadyInvited as error:
        page = _page(call, name=name, role=role, wrong=error.what, open=error.there)
        return show(call, page, 409)
    except UsageError as error:
        return show(call, _page(call, name=name, role=role, wrong=error.what), 400)
    if call.principal.session is not None:
        return redirect_with(call, "/people", secret=secret.text)
    return show(call, _page(call, link=_link(call, secret.text)))


@ROUTER.post("/people/invitations/{invitation_id}/withdraw")
def withdraw(call: AnOwner, invitation_id: Id) -> Response:
    call.site.accounts.withdraw(invitation_id, call.who)
    return redirect(call, "/people")


@ROUTER.get("/people/{person_id}")
def person(call: AnOwner, person_id: Id) -> Response:
    return show_with(
        call,
        f"/people/{person_id}",
        lambda flash: _person(call.site, person_id, _link(call, flash.secret)),
    )


@ROUTER.post("/people/{person_id}/role")
def set_role(call: AnOwner, person_id: Id, role: Annotated[str, Form()]) -> Response:
    """Change the role of a user, who has to sign in again."""
    row = _row(call.site.accounts.all_users(), person_id)
    call.site.accounts.set_role(row.person.name, cast(Role, role), call.who)
    return redirect(call, f"/people/{person_id}")


@ROUTER.post("/people/{person_id}/shut-out")
def shut_out(call: AnOwner, person_id: Id) -> Response:
    row = _row(call.site.accounts.all_users(), person_id)
    call.site.accounts.disable(row.person.name, call.who)
    return redirect(call, f"/people/{person_id}")


@ROUTER.post("/people/{person_id}/let-in")
def let_in(call: AnOwner, person_id: Id) -> Response:
    row = _row(call.site.accounts.all_users(), person_id)
    call.site.accounts.enable(row.person.name, call.who)
    return redirect(call, f"/people/{person_id}")


@ROUTER.post("/people/{person_id}/new-password")
def new_password(call: AnOwner, person_id: Id, once: Once = "") -> Response:
    row = _row(call.site.accounts.all_users(), person_id)
    drawn = secret_of(call.principal, once, "password", person_id)
    secret = call.site.accounts.renew(row.person.name, call.who, drawn)
    if call.principal.session is not None:
        return redirect_with(call, f"/people/{person_id}", secret=secret.text)
    return show(call, _person(call.site, person_id, _link(call, secret.text)))


def _page(call: Call, **more: Any) -> Page:
    frame = frame_of(
        (
            (
                row,
                {
                    **vars(row.person),
                    "state": "active" if row.disabled_us is None else "disabled",
                    "last_seen": row.seen_us,
                    "since": row.created_us,
                },
            )
            for row in call.site.accounts.all_users()
        ),
        _COLUMNS,
        whole="id",
    )
    return PlainPage(
        "people.html.j2",
        "People",
        people=listed(frame, _COLUMNS, call.ask, search=["name"]),
        invitations=call.site.accounts.invitations(),
        roles=ROLES,
        **{"link": None, "name": "", "role": "rater", "wrong": None, "open": None, **more},
    )


def _person(site: AppState, person_id: int, link: Link | None = None) -> Page:
    all_users = site.accounts.all_users()
    row = _row(all_users, person_id)
    owners = [
        row.person.id for row in all_users if row.person.role == "owner" and row.disabled_us is None
    ]
    return PlainPage(
        "person.html.j2",
        row.person.name,
        [("People", "/people")],
        row=row,
        roles=ROLES,
        last_owner=owners == [person_id],
        link=link,
        open=next(
            (
                invitation
                for invitation in site.accounts.invitations()
                if invitation.renews and invitation.name == row.person.name
            ),
            None,
        ),
    )


def _row(all_users: Sequence[PersonRow], person_id: int) -> PersonRow:
    row = next((row for row in all_users if row.person.id == person_id), None)
    if row is None:
        raise NotFound("there is no such user")
    return row


def _link(call: Call, secret: str | None) -> Link | None:
    """The link of a secret; None without one, or if it was withdrawn or used in the meantime."""
    invitation = None if secret is None else call.site.accounts.invitation(secret)
    if invitation is None:
        return None
    address = f"{_origin(call)}{call.site.settings.base}/invited/{secret}"
    return Link(invitation.name, address, invitation.renews, invitation.ends_us)


def _origin(call: Call) -> str:
    """The configured origin of this server; empty if none is configured.

    Not taken from the request, which may be forged: a wrong link would leak the secret.
    """
    hosts = call.site.settings.hosts
    if not hosts:
        return ""
    scheme = "https" if call.site.settings.secure else call.request.url.scheme
    public = next((host for host in hosts if host not in LOCAL), None)
    # Only configured names pass the middleware; take the port from the request.
    asked = _PLACE.fullmatch(call.request.headers.get("host", ""))
    if asked is not None and (public is None or asked[1].casefold() == public):
        return f"{scheme}://{asked[0]}"
    return "" if public is None else f"{scheme}://{public}"
