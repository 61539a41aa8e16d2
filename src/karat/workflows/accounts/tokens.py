"""API tokens, with which programs act for a user. Secrets are stored as hashes only."""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import sqlalchemy as sa

from karat.errors import KaratError, UsageError
from karat.store.sql import audit, sessions
from karat.store.sql.opening import Store
from karat.tables.accounts.people import SCOPES, SCOPES_OF, Person, Scope, TokenRow
from karat.tables.names import check_name

MOST_DAYS = 3650  # maximum days until a token expires, if it does
STEP_US = 300_000_000  # the last use of a session or token is updated at most this often


@dataclass(frozen=True)
class Secret:
    """A secret that is shown once."""

    text: str
    id: int
    replaced: bool = False


class Tokens:
    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self.store, self.clock = store, clock

    def make_token(
        self,
        person: Person,
        name: str,
        scopes: Sequence[Scope],
        days: int | None = 90,
        secret: str | None = None,
    ) -> Secret:
        name = named(name, "a token")
        unknown = next((scope for scope in scopes if scope not in SCOPES), None)
        if unknown is not None or not scopes:
            raise UsageError(
                f"unknown scope {unknown!r}" if unknown else "the token has no scopes",
                fix=f"one or more of {', '.join(SCOPES)}",
            )
        beyond = next((scope for scope in scopes if scope not in SCOPES_OF[person.role]), None)
        if beyond is not None:
            raise UsageError(f"the role {person.role} does not allow the scope {beyond!r}")
        if days is not None and not 1 <= days <= MOST_DAYS:
            raise UsageError(f"a token is valid for 1 to {MOST_DAYS:,} days, or for ever")
        text, now = f"karat_{secret or secrets.token_urlsafe(32)}", self.clock()
        ends = None if days is None else now + days * 86_400_000_000
        with self.store.begin() as c:
            sessions.in_turn(c)
            repeated = sessions.token(c, hashed(text), now)
            if repeated is not None:
                return Secret(text, repeated[1].id)
            granted = [scope for scope in SCOPES if scope in scopes]
            token_id = sessions.add_token(c, hashed(text), person.id, name, granted, now, ends)
            self.note(c, person.name, "make token", name, {"scopes": " ".join(granted)})
        return Secret(text, token_id)

    def by_token(self, secret: str) -> tuple[Person, tuple[Scope, ...]] | None:
        """The owner and the scopes of a token; None if it is not valid."""
        now = self.clock()
        with self.store.read() as c:
            match = sessions.token(c, hashed(secret), now)
        if match is None:
            return None
        person, row = match
        if now - (row.used_us or 0) > STEP_US:
            with suppress(KaratError), self.store.begin() as c:
                sessions.token_used(c, row.id, now)
        return person, row.scopes

    def tokens(self, person: Person) -> list[TokenRow]:
        with self.store.read() as c:
            return sessions.tokens(c, person.id, self.clock())

    def revoke(self, person: Person, token_id: int) -> None:
        with self.store.begin() as c:
            name = sessions.revoke(c, person.id, token_id, self.clock())
            if name is None:
                raise UsageError(f"you have no token {token_id}")
            self.note(c, person.name, "revoke token", name)

    def note(
        self,
        c: sa.Connection,
        by: str,
        action: str,
        subject: str,
        about: dict[str, str] | None = None,
    ) -> None:
        """Add an entry to the audit log, in the transaction of what it records."""
        audit.note(c, by, action, subject, self.clock(), about)


def hashed(secret: str) -> str:
    """The stored hash of a secret. Secrets are random, so one round of SHA-256 is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def named(name: str, of: str = "a person") -> str:
    """A name in the form that is stored."""
    name = unicodedata.normalize("NFC", name).strip()
    check_name(name, of, longest=100)
    return name
