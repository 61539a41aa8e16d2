"""People: who has an account, and who is invited; an owner's page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, cast

import polars as pl
from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from karat.errors import UsageError
from karat.store.sql.people import Invitation, PersonRow
from karat.tables.accounts.people import ROLES, Role
from karat.web.framework.auth import AnOwner
from karat.web.framework.errors import NotFound
from karat.web.framework.form_values import Id
from karat.web.framework.idempotency import Once, lead_to, secret_of, show_once
from karat.web.framework.lists import Ask, Column, Listed, listed
from karat.web.framework.pages import Page, show
from karat.web.framework.state import AppState, TheState
from karat.web.server import LOCAL
from karat.workflows.accounts.accounts import AlreadyInvited


def _with_accounts(site: TheState) -> None:
    if not site.settings.accounts:
        raise NotFound(
            "there are no accounts where karat is for whoever started it",
            fix="karat serve says how to serve it to others",
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
    """A link to hand on; it is shown once.

    Attributes:
        name: For whom.
        address: The whole of it; its path alone where nobody said how this karat is called.
        renews: Whether they have an account, and choose a new password by it.
        ends_us: Until when it is good, microseconds UTC.
    """

    name: str
    address: str
    renews: bool
    ends_us: int

    @property
    def whole(self) -> bool:
        """Whether the address is the whole of it."""
        return not self.address.startswith("/")


@dataclass(frozen=True, kw_only=True)
class PeoplePage(Page):
    """Everybody with an account, and who is invited.

    Attributes:
        people: Everybody: name, role, state, when they were last seen, sessions and tokens.
        invitations: Links that nobody has followed yet, the newest first.
        link: The link that was just made; None if none was.
        roles: What one may be invited as.
        name: As it was typed, if it was wrong.
        role: Likewise.
        wrong: What was wrong with it; None if nothing was.
        open: The open invitation of whom was invited again; None if they have none.
    """

    template: ClassVar[str] = "people.html.j2"
    section: ClassVar[str] = "people"
    people: Listed
    invitations: Sequence[Invitation]
    link: Link | None = None
    roles: Sequence[Role] = ROLES
    name: str = ""
    role: str = "rater"
    wrong: str | None = None
    open: Invitation | None = None


@dataclass(frozen=True, kw_only=True)
class PersonPage(Page):
    """One person with an account.

    Attributes:
        row: What is known of them.
        roles: What they may become.
        last_owner: Whether nobody else is an owner who may come in: they stay one.
        link: The link for a new password that was just made; None if none was.
        open: Their open link for a new password, which another would replace; None without.
    """

    template: ClassVar[str] = "person.html.j2"
    section: ClassVar[str] = "people"
    row: PersonRow
    roles: Sequence[Role] = ROLES
    last_owner: bool
    link: Link | None = None
    open: Invitation | None = None


@ROUTER.get("/people")
def people(request: Request, site: TheState, asking: AnOwner) -> Response:
    """Everybody, who is invited, and a form to invite somebody."""
    return show_once(
        request,
        site,
        asking,
        "/people",
        lambda secret: _page(request, site, link=_link(request, site, secret)),
    )


@ROUTER.post("/people/invitations")
def invite(
    request: Request,
    site: TheState,
    asking: AnOwner,
    name: Annotated[str, Form()],
    role: Annotated[str, Form()] = "rater",
    replace: Annotated[bool, Form()] = False,
    once: Once = "",
) -> Response:
    """Invite somebody, and show their link once; an open invitation is replaced only if asked."""
    drawn, by = secret_of(asking, once, "invite", name, role), asking.person.name
    try:
        secret = site.accounts.invite(name, cast(Role, role), by, drawn, replace=replace)
    except AlreadyInvited as error:
        page = _page(request, site, name=name, role=role, wrong=error.what, open=error.there)
        return show(request, page, 409)
    except UsageError as error:
        return show(request, _page(request, site, name=name, role=role, wrong=error.what), 400)
    if asking.session is not None:
        return lead_to(request, site, asking, "/people", secret.text)
    return show(request, _page(request, site, link=_link(request, site, secret.text)))


@ROUTER.post("/people/invitations/{invitation_id}/withdraw")
def withdraw(site: TheState, asking: AnOwner, invitation_id: Id) -> Response:
    """Make a link good no more."""
    site.accounts.withdraw(invitation_id, asking.person.name)
    return _back(site, "/people")


@ROUTER.get("/people/{person_id}")
def person(request: Request, site: TheState, asking: AnOwner, person_id: Id) -> Response:
    """One person, and what an owner can do about them."""
    return show_once(
        request,
        site,
        asking,
        f"/people/{person_id}",
        lambda secret: _person(site, person_id, _link(request, site, secret)),
    )


@ROUTER.post("/people/{person_id}/role")
def set_role(
    site: TheState, asking: AnOwner, person_id: Id, role: Annotated[str, Form()]
) -> Response:
    """Give somebody another role; they have to sign in again."""
    row = _row(site.accounts.everybody(), person_id)
    site.accounts.set_role(row.person.name, cast(Role, role), asking.person.name)
    return _back(site, f"/people/{person_id}")


@ROUTER.post("/people/{person_id}/shut-out")
def shut_out(site: TheState, asking: AnOwner, person_id: Id) -> Response:
    """Shut somebody out at once."""
    row = _row(site.accounts.everybody(), person_id)
    site.accounts.disable(row.person.name, asking.person.name)
    return _back(site, f"/people/{person_id}")


@ROUTER.post("/people/{person_id}/let-in")
def let_in(site: TheState, asking: AnOwner, person_id: Id) -> Response:
    """Let somebody in again."""
    row = _row(site.accounts.everybody(), person_id)
    site.accounts.enable(row.person.name, asking.person.name)
    return _back(site, f"/people/{person_id}")


@ROUTER.post("/people/{person_id}/new-password")
def new_password(
    request: Request, site: TheState, asking: AnOwner, person_id: Id, once: Once = ""
) -> Response:
    """Make a link by which they choose a password, and show it once."""
    row = _row(site.accounts.everybody(), person_id)
    drawn = secret_of(asking, once, "password", person_id)
    secret = site.accounts.renew(row.person.name, asking.person.name, drawn)
    if asking.session is not None:
        return lead_to(request, site, asking, f"/people/{person_id}", secret.text)
    return show(request, _person(site, person_id, _link(request, site, secret.text)))


def _page(
    request: Request,
    site: AppState,
    link: Link | None = None,
    name: str = "",
    role: str = "rater",
    wrong: str | None = None,
    open: Invitation | None = None,  # noqa: A002 - as the page calls it
) -> PeoplePage:
    rows = [
        {
            "id": row.person.id,
            "name": row.person.name,
            "role": row.person.role,
            "state": "may come in" if row.disabled_us is None else "shut out",
            "last_seen": row.seen_us,
            "sessions": row.sessions,
            "tokens": row.tokens,
            "since": row.created_us,
        }
        for row in site.accounts.everybody()
    ]
    schema = {column.name: _TYPES[column.kind] for column in _COLUMNS}
    frame = pl.DataFrame(rows, schema={"id": pl.Int64(), **schema})
    return PeoplePage(
        title="People",
        people=listed(frame, _COLUMNS, Ask.of(request), search=["name"]),
        invitations=site.accounts.invitations(),
        link=link,
        name=name,
        role=role,
        wrong=wrong,
        open=open,
    )


_TYPES: dict[str, pl.DataType] = {"text": pl.String(), "time": pl.Int64(), "count": pl.Int64()}


def _person(site: AppState, person_id: int, link: Link | None = None) -> PersonPage:
    everybody = site.accounts.everybody()
    row = _row(everybody, person_id)
    owners = [
        each.person.id
        for each in everybody
        if each.person.role == "owner" and each.disabled_us is None
    ]
    return PersonPage(
        title=row.person.name,
        crumbs=[("People", "/people")],
        row=row,
        last_owner=owners == [person_id],
        link=link,
        open=next(
            (
                each
                for each in site.accounts.invitations()
                if each.renews and each.name == row.person.name
            ),
            None,
        ),
    )


def _row(everybody: Sequence[PersonRow], person_id: int) -> PersonRow:
    found = next((row for row in everybody if row.person.id == person_id), None)
    if found is None:
        raise NotFound("there is no such person")
    return found


def _link(request: Request, site: AppState, secret: str | None) -> Link | None:
    """The link of a secret; None if there is none, or it was withdrawn or used meanwhile."""
    made = None if secret is None else site.accounts.invitation(secret)
    if made is None:
        return None
    address = f"{_origin(request, site)}{site.settings.base}/invited/{secret}"
    return Link(made.name, address, made.renews, made.ends_us)


def _origin(request: Request, site: AppState) -> str:
    """Where this karat is, as it was told; empty if it was not.

    What a request says of it is anybody's word: a link that is not ours would carry the secret
    there.
    """
    hosts = site.settings.hosts
    if not hosts:
        return ""
    scheme = "https" if site.settings.secure else request.url.scheme
    public = next((host for host in hosts if host not in LOCAL), None)
    # The guards let in none but our names; with the one that is meant comes the port.
    asked = _PLACE.fullmatch(request.headers.get("host", ""))
    if asked is not None and (public is None or asked[1].casefold() == public):
        return f"{scheme}://{asked[0]}"
    return "" if public is None else f"{scheme}://{public}"


def _back(site: AppState, where: str) -> Response:
    return RedirectResponse(f"{site.settings.base}{where}", 303)
