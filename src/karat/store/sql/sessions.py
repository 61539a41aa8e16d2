"""Sessions of browsers, tokens for programs, and tries to come in that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from karat.errors import UsageError
from karat.store.sql.schema import api_token, person, sign_in_attempt, web_session
from karat.tables.accounts.people import Person, Scope

_COUNTING = 0x7472696573  # "tries"


@dataclass(frozen=True)
class SessionRow:
    """A browser somebody is signed in with.

    Attributes:
        id: Number in the store.
        created_us: Since when, microseconds UTC.
        seen_us: Last seen, to a few minutes.
        agent: What the browser calls itself.
        here: Whether it is the one that asks.
    """

    id: int
    created_us: int
    seen_us: int
    agent: str
    here: bool = False


@dataclass(frozen=True)
class TokenRow:
    """A token for programs; its secret is not kept.

    Attributes:
        id: Number in the store.
        name: What it is for.
        scopes: What it is good for.
        created_us: When it was made, microseconds UTC.
        used_us: Last used, to a few minutes; None if never.
        ends_us: Until when it is good; None for ever.
    """

    id: int
    name: str
    scopes: tuple[Scope, ...]
    created_us: int
    used_us: int | None
    ends_us: int | None


def begin(
    c: sa.Connection, token_sha256: str, person_id: int, agent: str, now: int, ends_us: int
) -> None:
    """Keep a session; those that have ended go.

    Raises:
        UsageError: they were shut out.
    """
    _may_come_in(c, person_id)
    c.execute(sa.delete(web_session).where(web_session.c.ends_us <= now))
    values = {"token_sha256": token_sha256, "person_id": person_id, "agent": agent}
    values |= {"created_us": now, "seen_us": now, "ends_us": ends_us}
    c.execute(sa.insert(web_session).values(values))


def by_token(c: sa.Connection, token_sha256: str, now: int) -> tuple[Person, SessionRow] | None:
    """Whose session it is, and the session; None if it is none, or has ended."""
    row = c.execute(
        sa.select(
            person.c.id,
            person.c.name,
            person.c.role,
            web_session.c.id.label("session"),
            web_session.c.created_us,
            web_session.c.seen_us,
            web_session.c.agent,
        )
        .join(web_session, web_session.c.person_id == person.c.id)
        .where(
            web_session.c.token_sha256 == token_sha256,
            web_session.c.ends_us > now,
            person.c.disabled_us.is_(None),
        )
    ).one_or_none()
    if row is None:
        return None
    session = SessionRow(row.session, row.created_us, row.seen_us, row.agent, here=True)
    return Person(row.id, row.name, row.role), session


def seen(c: sa.Connection, session_id: int, now: int, ends_us: int) -> None:
    """A session was used, and lasts so much longer."""
    mine = sa.update(web_session).where(web_session.c.id == session_id)
    c.execute(mine.values(seen_us=now, ends_us=ends_us))


def of_person(
    c: sa.Connection, person_id: int, now: int, token_sha256: str | None = None
) -> list[SessionRow]:
    """Sessions of somebody, the one last seen first; that of a token is ``here``."""
    chosen = sa.select(web_session).where(
        web_session.c.person_id == person_id, web_session.c.ends_us > now
    )
    rows = c.execute(chosen.order_by(web_session.c.seen_us.desc()))
    return [
        SessionRow(row.id, row.created_us, row.seen_us, row.agent, row.token_sha256 == token_sha256)
        for row in rows
    ]


def end(c: sa.Connection, token_sha256: str) -> None:
    """End a session."""
    c.execute(sa.delete(web_session).where(web_session.c.token_sha256 == token_sha256))


def end_all(c: sa.Connection, person_id: int, but: str | None = None) -> None:
    """End every session of somebody, perhaps but the one of a token."""
    theirs = web_session.c.person_id == person_id
    kept = sa.true() if but is None else web_session.c.token_sha256 != but
    c.execute(sa.delete(web_session).where(theirs, kept))


def add_token(
    c: sa.Connection,
    token_sha256: str,
    person_id: int,
    name: str,
    scopes: Sequence[Scope],
    now: int,
    ends_us: int | None,
) -> int:
    """Keep a token for programs; its number.

    Raises:
        UsageError: they were shut out; or this one was made before, and is good no more.
    """
    _may_come_in(c, person_id)
    same = sa.select(api_token.c.id).where(api_token.c.token_sha256 == token_sha256)
    if c.execute(same).one_or_none() is not None:
        raise UsageError(
            "this token was made before, and is good no more", fix="reload the page, make another"
        )
    values = {"token_sha256": token_sha256, "person_id": person_id, "name": name}
    values |= {"scopes": list(scopes), "created_us": now, "ends_us": ends_us}
    made = c.execute(sa.insert(api_token).values(values).returning(api_token.c.id))
    return int(made.scalar_one())


def token(c: sa.Connection, token_sha256: str, now: int) -> tuple[Person, TokenRow] | None:
    """Whose token it is; None if it is none, was revoked, or has ended."""
    row = c.execute(
        sa.select(
            person.c.id.label("person"),
            person.c.name.label("called"),
            person.c.role,
            *api_token.c,
        )
        .join(api_token, api_token.c.person_id == person.c.id)
        .where(
            api_token.c.token_sha256 == token_sha256, person.c.disabled_us.is_(None), *_good(now)
        )
    ).one_or_none()
    return None if row is None else (Person(row.person, row.called, row.role), _token(row))


def tokens(c: sa.Connection, person_id: int, now: int) -> list[TokenRow]:
    """Tokens of somebody that are good, the newest first."""
    chosen = sa.select(api_token).where(api_token.c.person_id == person_id, *_good(now))
    return [_token(row) for row in c.execute(chosen.order_by(api_token.c.id.desc()))]


def token_used(c: sa.Connection, token_id: int, now: int) -> None:
    """A token was used."""
    c.execute(sa.update(api_token).where(api_token.c.id == token_id).values(used_us=now))


def revoke(c: sa.Connection, person_id: int, token_id: int, now: int) -> str | None:
    """Revoke a token of somebody; what it was called, None if there was none."""
    mine = sa.update(api_token).where(
        api_token.c.id == token_id, api_token.c.person_id == person_id, *_good(now)
    )
    made = c.execute(mine.values(revoked_us=now).returning(api_token.c.name))
    found: str | None = made.scalar_one_or_none()
    return found


def revoke_all(c: sa.Connection, person_id: int, now: int) -> int:
    """Revoke every token of somebody; how many there were."""
    mine = sa.update(api_token).where(api_token.c.person_id == person_id, *_good(now))
    return c.execute(mine.values(revoked_us=now)).rowcount


def in_turn(c: sa.Connection) -> None:
    """Wait until no other transaction counts tries or makes a secret: many at once are many.

    SQLite lets one write at a time as it is.
    """
    if c.dialect.name == "postgresql":
        c.execute(sa.select(sa.func.pg_advisory_xact_lock(_COUNTING)))


def failed(c: sa.Connection, keys: Sequence[str], now: int) -> None:
    """Somebody tried to come in and failed."""
    c.execute(sa.insert(sign_in_attempt), [{"key": key, "time_us": now} for key in keys])


def failures(c: sa.Connection, key: str, since: int) -> tuple[int, int]:
    """How many failed under a key since then, and when the last one did (0 if none did)."""
    row = c.execute(
        sa.select(sa.func.count(), sa.func.max(sign_in_attempt.c.time_us)).where(
            sign_in_attempt.c.key == key, sign_in_attempt.c.time_us > since
        )
    ).one()
    return int(row[0]), int(row[1] or 0)


def forget(c: sa.Connection, keys: Sequence[str], time_us: int, before: int) -> None:
    """Forget the tries of a time under these keys (the one that came in), and all older ones.

    The first key's are forgotten whatever their time.
    """
    at = sign_in_attempt.c.time_us
    own = sign_in_attempt.c.key.in_(keys) & (at == time_us)
    first = sign_in_attempt.c.key == keys[0]
    c.execute(sa.delete(sign_in_attempt).where(own | first | (at < before)))


def take_back(c: sa.Connection, keys: Sequence[str], time_us: int) -> None:
    """Forget the tries of a time under these keys, and no other."""
    mine = sign_in_attempt.c.key.in_(keys) & (sign_in_attempt.c.time_us == time_us)
    c.execute(sa.delete(sign_in_attempt).where(mine))


def _may_come_in(c: sa.Connection, person_id: int) -> None:
    """See that they were not shut out, and hold whoever would do it until this is kept."""
    mine = sa.select(person.c.id).where(person.c.id == person_id, person.c.disabled_us.is_(None))
    if c.execute(mine.with_for_update(read=True)).one_or_none() is None:
        raise UsageError("this account was shut out")


def _good(now: int) -> tuple[sa.ColumnElement[bool], ...]:
    forever = api_token.c.ends_us.is_(None)
    return api_token.c.revoked_us.is_(None), forever | (api_token.c.ends_us > now)


def _token(row: sa.Row[tuple[object, ...]]) -> TokenRow:
    return TokenRow(row.id, row.name, tuple(row.scopes), row.created_us, row.used_us, row.ends_us)
