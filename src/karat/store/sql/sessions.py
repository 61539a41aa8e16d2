"""Browser sessions, API tokens, and failed sign-in attempts."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from karat.errors import UsageError
from karat.store.sql.schema import api_token, person, sign_in_attempt, web_session
from karat.store.sql.upsert import insert
from karat.tables.accounts.people import Person, Scope, SessionRow, TokenRow

_COUNTING = 0x7472696573  # "tries"


def begin(
    c: sa.Connection, token_sha256: str, person_id: int, agent: str, now: int, ends_us: int
) -> None:
    """Store a session, and delete expired ones."""
    _check_active(c, person_id)
    c.execute(sa.delete(web_session).where(web_session.c.ends_us <= now))
    values = {"token_sha256": token_sha256, "person_id": person_id, "agent": agent}
    values |= {"created_us": now, "seen_us": now, "ends_us": ends_us}
    c.execute(sa.insert(web_session).values(values))


def by_token(c: sa.Connection, token_sha256: str, now: int) -> tuple[Person, SessionRow] | None:
    """The user of a session, and the session; None if unknown, expired or disabled."""
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
    """Log that a session was used, and extend it."""
    mine = sa.update(web_session).where(web_session.c.id == session_id)
    c.execute(mine.values(seen_us=now, ends_us=ends_us))


def of_person(
    c: sa.Connection, person_id: int, now: int, token_sha256: str | None = None
) -> list[SessionRow]:
    """Sessions of a user, last used first; the session of the token is ``here``."""
    chosen = sa.select(web_session).where(
        web_session.c.person_id == person_id, web_session.c.ends_us > now
    )
    rows = c.execute(chosen.order_by(web_session.c.seen_us.desc()))
    return [
        SessionRow(row.id, row.created_us, row.seen_us, row.agent, row.token_sha256 == token_sha256)
        for row in rows
    ]


def end(c: sa.Connection, token_sha256: str) -> None:
    c.execute(sa.delete(web_session).where(web_session.c.token_sha256 == token_sha256))


def end_all(c: sa.Connection, person_id: int, but: str | None = None) -> None:
    """End all sessions of a user, except the one of the token ``but``."""
    theirs = web_session.c.person_id == person_id
    others = sa.true() if but is None else web_session.c.token_sha256 != but
    c.execute(sa.delete(web_session).where(theirs, others))


def add_token(
    c: sa.Connection,
    token_sha256: str,
    person_id: int,
    name: str,
    scopes: Sequence[Scope],
    now: int,
    ends_us: int | None,
) -> int:
    _check_active(c, person_id)
    same = sa.select(api_token.c.id).where(api_token.c.token_sha256 == token_sha256)
    if c.execute(same).one_or_none() is not None:
        raise UsageError(
            "this token was made before and is not valid any more",
            fix="reload the page and make another token",
        )
    values = {"token_sha256": token_sha256, "person_id": person_id, "name": name}
    values |= {"scopes": list(scopes), "created_us": now, "ends_us": ends_us}
    return insert(c, api_token, **values)


def token(c: sa.Connection, token_sha256: str, now: int) -> tuple[Person, TokenRow] | None:
    """The user of a token, and the token; None if unknown, revoked, expired or disabled."""
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
    """Valid tokens of a user, the newest first."""
    chosen = sa.select(api_token).where(api_token.c.person_id == person_id, *_good(now))
    return [_token(row) for row in c.execute(chosen.order_by(api_token.c.id.desc()))]


def token_used(c: sa.Connection, token_id: int, now: int) -> None:
    c.execute(sa.update(api_token).where(api_token.c.id == token_id).values(used_us=now))


def revoke(c: sa.Connection, person_id: int, token_id: int, now: int) -> str | None:
    """Revoke a token of a user; returns its name, None if there was none."""
    mine = sa.update(api_token).where(
        api_token.c.id == token_id, api_token.c.person_id == person_id, *_good(now)
    )
    updated = c.execute(mine.values(revoked_us=now).returning(api_token.c.name))
    name: str | None = updated.scalar_one_or_none()
    return name


def revoke_all(c: sa.Connection, person_id: int, now: int) -> int:
    """Revoke all tokens of a user; returns their number."""
    mine = sa.update(api_token).where(api_token.c.person_id == person_id, *_good(now))
    return c.execute(mine.values(revoked_us=now)).rowcount


def in_turn(c: sa.Connection) -> None:
    """Serialise transactions that count attempts or create secrets; SQLite always does."""
    if c.dialect.name == "postgresql":
        c.execute(sa.select(sa.func.pg_advisory_xact_lock(_COUNTING)))


def failed(c: sa.Connection, keys: Sequence[str], now: int) -> None:
    c.execute(sa.insert(sign_in_attempt), [{"key": key, "time_us": now} for key in keys])


def failures(c: sa.Connection, key: str, since: int) -> tuple[int, int]:
    """Number of failed attempts of a key since a time, and time of the last (0 without any)."""
    row = c.execute(
        sa.select(sa.func.count(), sa.func.max(sign_in_attempt.c.time_us)).where(
            sign_in_attempt.c.key == key, sign_in_attempt.c.time_us > since
        )
    ).one()
    return int(row[0]), int(row[1] or 0)


def forget(c: sa.Connection, keys: Sequence[str], time_us: int, before: int) -> None:
    """Delete the attempts of these keys at a time, all of the first key, and all before a time."""
    at = sign_in_attempt.c.time_us
    own = sign_in_attempt.c.key.in_(keys) & (at == time_us)
    first = sign_in_attempt.c.key == keys[0]
    c.execute(sa.delete(sign_in_attempt).where(own | first | (at < before)))


def take_back(c: sa.Connection, keys: Sequence[str], time_us: int) -> None:
    """Delete the attempts of these keys at a time."""
    mine = sign_in_attempt.c.key.in_(keys) & (sign_in_attempt.c.time_us == time_us)
    c.execute(sa.delete(sign_in_attempt).where(mine))


def _check_active(c: sa.Connection, person_id: int) -> None:
    """Check that an account is not disabled, and lock it against that until the commit."""
    mine = sa.select(person.c.id).where(person.c.id == person_id, person.c.disabled_us.is_(None))
    if c.execute(mine.with_for_update(read=True)).one_or_none() is None:
        raise UsageError("this account is disabled")


def _good(now: int) -> tuple[sa.ColumnElement[bool], ...]:
    forever = api_token.c.ends_us.is_(None)
    return api_token.c.revoked_us.is_(None), forever | (api_token.c.ends_us > now)


def _token(row: sa.Row[tuple[object, ...]]) -> TokenRow:
    return TokenRow(row.id, row.name, tuple(row.scopes), row.created_us, row.used_us, row.ends_us)
