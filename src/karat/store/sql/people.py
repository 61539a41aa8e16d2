"""People with accounts, and the invitations and one-time links by which they come."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import sqlalchemy as sa

from karat.errors import UsageError
from karat.store.sql.schema import api_token, invitation, person, web_session
from karat.tables.accounts.people import Person, Role


@dataclass(frozen=True)
class PersonRow:
    """All that is known of somebody, but their password.

    Attributes:
        person: Number, name and role.
        created_us: When they came, microseconds UTC.
        disabled_us: When they were shut out; None if they may come in.
        seen_us: When they were last seen in a session that has not ended; None if there is none.
        sessions: Browsers they are signed in with.
        tokens: Tokens of theirs that are good.
    """

    person: Person
    created_us: int
    disabled_us: int | None
    seen_us: int | None
    sessions: int
    tokens: int


@dataclass(frozen=True)
class Invitation:
    """Somebody is to come, or to choose a new password.

    Attributes:
        id: Number in the store.
        name: Who.
        role: As what.
        made_by: Who invites; None for the server itself.
        ends_us: Until when it is good, microseconds UTC.
        renews: Whether they have an account, older than this, that gets a new password.
    """

    id: int
    name: str
    role: Role
    made_by: str | None
    ends_us: int
    renews: bool


def add(c: sa.Connection, name: str, role: Role, password: str | None, now: int) -> Person:
    """Make an account.

    Args:
        c: A write transaction.
        name: Nobody else's.
        role: What they may.
        password: Its Argon2 hash; None for no sign-in by password.
        now: Microseconds UTC.

    Raises:
        UsageError: the name is taken, or looks like one that is.
    """
    taken = looks_like(c, name)
    if taken is not None:
        raise UsageError(f"there is an account called {taken!r}", fix="choose another name")
    values = {"name": name, "role": role, "password": password, "created_us": now}
    made = c.execute(sa.insert(person).values(values).returning(person.c.id)).scalar_one()
    return Person(int(made), name, role)


def find(c: sa.Connection, name: str) -> Person | None:
    """Who has this name, shut out or not."""
    row = c.execute(sa.select(person).where(person.c.name == name)).one_or_none()
    return None if row is None else Person(row.id, row.name, row.role)


def looks_like(c: sa.Connection, name: str) -> str | None:
    """A name that is taken, and is this one but for case, or how it is coded."""
    wanted = _folded(name)
    taken = c.execute(sa.select(person.c.name)).scalars()
    return next((each for each in taken if _folded(each) == wanted), None)


def password_of(c: sa.Connection, name: str) -> tuple[Person, str] | None:
    """Somebody and the hash of their password; None if they are nobody, shut out, or have none."""
    row = c.execute(
        sa.select(person).where(
            person.c.name == name, person.c.disabled_us.is_(None), person.c.password.is_not(None)
        )
    ).one_or_none()
    return None if row is None else (Person(row.id, row.name, row.role), row.password)


def everybody(c: sa.Connection, now: int) -> list[PersonRow]:
    """Everybody, by name."""
    theirs = (web_session.c.person_id == person.c.id) & (web_session.c.ends_us > now)
    seen = sa.select(sa.func.max(web_session.c.seen_us)).where(theirs).scalar_subquery()
    count = sa.select(sa.func.count()).select_from(web_session).where(theirs).scalar_subquery()
    good = (api_token.c.person_id == person.c.id) & api_token.c.revoked_us.is_(None)
    good &= api_token.c.ends_us.is_(None) | (api_token.c.ends_us > now)
    tokens = sa.select(sa.func.count()).select_from(api_token).where(good).scalar_subquery()
    chosen = sa.select(
        person, seen.label("seen"), count.label("sessions"), tokens.label("tokens")
    ).order_by(person.c.name)
    return [
        PersonRow(
            Person(row.id, row.name, row.role),
            row.created_us,
            row.disabled_us,
            row.seen,
            row.sessions,
            row.tokens,
        )
        for row in c.execute(chosen)
    ]


def shut_out(c: sa.Connection, person_id: int) -> bool:
    """Whether somebody was shut out."""
    held = c.execute(sa.select(person.c.disabled_us).where(person.c.id == person_id))
    return held.scalar_one() is not None


def set_password(c: sa.Connection, person_id: int, password: str) -> None:
    """Give somebody a new password: its Argon2 hash."""
    c.execute(sa.update(person).where(person.c.id == person_id).values(password=password))


def set_role(c: sa.Connection, person_id: int, role: Role) -> None:
    """Give somebody a role.

    Raises:
        UsageError: they are the last owner.
    """
    if role != "owner":
        _keep_an_owner(c, person_id)
    c.execute(sa.update(person).where(person.c.id == person_id).values(role=role))


def disable(c: sa.Connection, person_id: int, now: int | None) -> None:
    """Shut somebody out (``now``), with their sessions and tokens; or let them in again (None).

    Raises:
        UsageError: they are the last owner.
    """
    if now is not None:
        _keep_an_owner(c, person_id)
    # First of all: whoever begins a session or makes a token meanwhile waits, and is refused.
    c.execute(sa.update(person).where(person.c.id == person_id).values(disabled_us=now))
    if now is not None:
        c.execute(sa.delete(web_session).where(web_session.c.person_id == person_id))
        mine = (api_token.c.person_id == person_id) & api_token.c.revoked_us.is_(None)
        c.execute(sa.update(api_token).where(mine).values(revoked_us=now))


def invite(
    c: sa.Connection,
    kind: str,
    token_sha256: str,
    name: str,
    role: Role,
    *,
    made_by: str | None,
    now: int,
    ends_us: int,
) -> int:
    """Keep an invitation (``account``) or a one-time link (``link``); its number.

    Earlier ones of the kind and name are good no more.

    Raises:
        UsageError: this one was made before, and was used, withdrawn, or has ended.
    """
    same = sa.select(invitation.c.id).where(invitation.c.token_sha256 == token_sha256)
    if c.execute(same).one_or_none() is not None:
        raise UsageError(
            "this link was made before, and is good no more", fix="reload the page, make another"
        )
    earlier = (invitation.c.kind == kind) & (invitation.c.name == name)
    c.execute(sa.update(invitation).where(earlier, *_good(now)).values(used_us=now))
    values = {
        "token_sha256": token_sha256,
        "kind": kind,
        "name": name,
        "role": role,
        "made_by": made_by,
        "created_us": now,
        "ends_us": ends_us,
    }
    made = c.execute(sa.insert(invitation).values(values).returning(invitation.c.id))
    return int(made.scalar_one())


def invited(c: sa.Connection, kind: str, token_sha256: str, now: int) -> Invitation | None:
    """The invitation of a token; None if there is none, or it was used or has ended."""
    chosen = _invitations(kind, now).where(invitation.c.token_sha256 == token_sha256)
    row = c.execute(chosen).one_or_none()
    return None if row is None else _invitation(row)


def invitations(c: sa.Connection, now: int) -> list[Invitation]:
    """Invitations that are good, the newest first."""
    chosen = _invitations("account", now).order_by(invitation.c.id.desc())
    return [_invitation(row) for row in c.execute(chosen)]


def use(c: sa.Connection, invitation_id: int, now: int) -> bool:
    """Use an invitation or a link up; whether it was good until now."""
    good = sa.update(invitation).where(invitation.c.id == invitation_id, *_good(now))
    return c.execute(good.values(used_us=now)).rowcount == 1


def withdraw(c: sa.Connection, invitation_id: int, now: int) -> str | None:
    """Withdraw an invitation; whose it was, None if there was none that was good."""
    good = sa.update(invitation).where(
        invitation.c.id == invitation_id, invitation.c.kind == "account", *_good(now)
    )
    made = c.execute(good.values(used_us=now).returning(invitation.c.name))
    found: str | None = made.scalar_one_or_none()
    return found


def withdraw_all(c: sa.Connection, name: str, now: int) -> int:
    """Use up every invitation and link that somebody made, or that is for them; how many."""
    theirs = (invitation.c.made_by == name) | (invitation.c.name == name)
    return c.execute(sa.update(invitation).where(theirs, *_good(now)).values(used_us=now)).rowcount


def may_invite(c: sa.Connection, made_by: str | None) -> bool:
    """Whether who made an invitation may still make one: the server, or an owner who may come in.

    Whoever types at the server has no account; accounts are never taken away.
    """
    row = c.execute(sa.select(person).where(person.c.name == made_by)).one_or_none()
    return row is None or (row.role == "owner" and row.disabled_us is None)


def _good(now: int) -> tuple[sa.ColumnElement[bool], ...]:
    return invitation.c.used_us.is_(None), invitation.c.ends_us > now


def _invitation(row: sa.Row[tuple[object, ...]]) -> Invitation:
    return Invitation(row.id, row.name, row.role, row.made_by, row.ends_us, row.renews)


def _invitations(kind: str, now: int) -> sa.Select[tuple[object, ...]]:
    # An account that came after the invitation is somebody else's: only an older one is renewed.
    older = sa.exists().where(
        person.c.name == invitation.c.name, person.c.created_us < invitation.c.created_us
    )
    chosen = sa.select(invitation, older.label("renews"))
    return chosen.where(invitation.c.kind == kind, *_good(now))


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _keep_an_owner(c: sa.Connection, person_id: int) -> None:
    owners = sa.select(person.c.id).where(person.c.role == "owner", person.c.disabled_us.is_(None))
    # Locked, so that two owners who shut each other out do not leave none; in one order, so that
    # neither waits for the other for ever.
    held = c.execute(owners.order_by(person.c.id).with_for_update()).scalars().all()
    if held == [person_id]:
        raise UsageError("this is the last owner", fix="make another person an owner first")
