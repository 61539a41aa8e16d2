"""Users with accounts, invitations and one-time links."""

from __future__ import annotations

import unicodedata

import sqlalchemy as sa

from karat.errors import UsageError
from karat.store.sql.schema import api_token, invitation, person, web_session
from karat.store.sql.upsert import insert
from karat.tables.accounts.people import Invitation, Person, PersonRow, Role


def add(c: sa.Connection, name: str, role: Role, password: str | None, now: int) -> Person:
    """Create an account; ``password`` is an Argon2 hash, None for no sign-in by password."""
    taken = looks_like(c, name)
    if taken is not None:
        raise UsageError(f"there is an account called {taken!r}", fix="choose another name")
    values = {"name": name, "role": role, "password": password, "created_us": now}
    return Person(insert(c, person, **values), name, role)


def find(c: sa.Connection, name: str) -> Person | None:
    """A user by name, active or disabled."""
    row = c.execute(sa.select(person).where(person.c.name == name)).one_or_none()
    return None if row is None else Person(row.id, row.name, row.role)


def looks_like(c: sa.Connection, name: str) -> str | None:
    """An existing name that differs at most in case or Unicode form; None without one."""
    folded = _folded(name)
    existing = c.execute(sa.select(person.c.name)).scalars()
    return next((other for other in existing if _folded(other) == folded), None)


def password_of(c: sa.Connection, name: str) -> tuple[Person, str] | None:
    """An active user with the hash of their password; None if unknown, disabled or without."""
    row = c.execute(
        sa.select(person).where(
            person.c.name == name, person.c.disabled_us.is_(None), person.c.password.is_not(None)
        )
    ).one_or_none()
    return None if row is None else (Person(row.id, row.name, row.role), row.password)


def all_users(c: sa.Connection, now: int) -> list[PersonRow]:
    """All users, by name."""
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


def is_disabled(c: sa.Connection, person_id: int) -> bool:
    disabled_us = c.execute(sa.select(person.c.disabled_us).where(person.c.id == person_id))
    return disabled_us.scalar_one() is not None


def set_password(c: sa.Connection, person_id: int, password: str) -> None:
    """Set a user's password, an Argon2 hash."""
    c.execute(sa.update(person).where(person.c.id == person_id).values(password=password))


def set_role(c: sa.Connection, person_id: int, role: Role) -> None:
    if role != "owner":
        _keep_an_owner(c, person_id)
    c.execute(sa.update(person).where(person.c.id == person_id).values(role=role))


def disable(c: sa.Connection, person_id: int, now: int | None) -> None:
    """Disable an account (at ``now``), with its sessions and tokens; or enable it again (None)."""
    if now is not None:
        _keep_an_owner(c, person_id)
    # Comes first: concurrent sign-ins and new tokens wait for this row, and are then rejected.
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
    """Store an invitation (``account``) or a one-time link (``link``); returns its id.

    Earlier ones of the same kind and name become invalid.
    """
    same = sa.select(invitation.c.id).where(invitation.c.token_sha256 == token_sha256)
    if c.execute(same).one_or_none() is not None:
        raise UsageError(
            "this link was made before and is not valid any more",
            fix="reload the page and make another link",
        )
    earlier = (invitation.c.kind == kind) & (invitation.c.name == name)
    c.execute(sa.update(invitation).where(earlier, *_valid(now)).values(used_us=now))
    values = {"token_sha256": token_sha256, "kind": kind, "name": name, "role": role}
    return insert(c, invitation, **values, made_by=made_by, created_us=now, ends_us=ends_us)


def invited(c: sa.Connection, kind: str, token_sha256: str, now: int) -> Invitation | None:
    """The invitation of a token; None if there is none, or it was used or has expired."""
    chosen = _invitations(kind, now).where(invitation.c.token_sha256 == token_sha256)
    row = c.execute(chosen).one_or_none()
    return None if row is None else _invitation(row)


def invitations(c: sa.Connection, now: int) -> list[Invitation]:
    """Pending invitations, the newest first."""
    chosen = _invitations("account", now).order_by(invitation.c.id.desc())
    return [_invitation(row) for row in c.execute(chosen)]


def use(c: sa.Connection, invitation_id: int, now: int) -> bool:
    """Mark an invitation or a link as used; False if it was not valid."""
    update = sa.update(invitation).where(invitation.c.id == invitation_id, *_valid(now))
    return c.execute(update.values(used_us=now)).rowcount == 1


def withdraw(c: sa.Connection, invitation_id: int, now: int) -> str | None:
    """Withdraw an invitation; returns the name it was for, None if it was not valid."""
    update = sa.update(invitation).where(
        invitation.c.id == invitation_id, invitation.c.kind == "account", *_valid(now)
    )
    updated = c.execute(update.values(used_us=now).returning(invitation.c.name))
    name: str | None = updated.scalar_one_or_none()
    return name


def withdraw_all(c: sa.Connection, name: str, now: int) -> int:
    """Withdraw all invitations and links made by or for a user; returns their number."""
    theirs = (invitation.c.made_by == name) | (invitation.c.name == name)
    return c.execute(sa.update(invitation).where(theirs, *_valid(now)).values(used_us=now)).rowcount


def may_invite(c: sa.Connection, made_by: str | None) -> bool:
    """Whether the maker of an invitation may invite: an active owner, or the command line.

    On the command line, names need no account. Accounts are never deleted.
    """
    row = c.execute(sa.select(person).where(person.c.name == made_by)).one_or_none()
    return row is None or (row.role == "owner" and row.disabled_us is None)


def _valid(now: int) -> tuple[sa.ColumnElement[bool], ...]:
    return invitation.c.used_us.is_(None), invitation.c.ends_us > now


def _invitation(row: sa.Row[tuple[object, ...]]) -> Invitation:
    return Invitation(row.id, row.name, row.role, row.made_by, row.ends_us, row.renews)


def _invitations(kind: str, now: int) -> sa.Select[tuple[object, ...]]:
    # An account newer than the invitation belongs to another person.
    older = sa.exists().where(
        person.c.name == invitation.c.name, person.c.created_us < invitation.c.created_us
    )
    chosen = sa.select(invitation, older.label("renews"))
    return chosen.where(invitation.c.kind == kind, *_valid(now))


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _keep_an_owner(c: sa.Connection, person_id: int) -> None:
    owners = sa.select(person.c.id).where(person.c.role == "owner", person.c.disabled_us.is_(None))
    # Row locks, in case two owners disable each other; in a fixed order, against deadlocks.
    owner_ids = c.execute(owners.order_by(person.c.id).with_for_update()).scalars().all()
    if owner_ids == [person_id]:
        raise UsageError("this is the last owner", fix="make another user an owner first")
