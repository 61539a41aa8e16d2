"""Tokens by which programs come in, in somebody's name. Secrets are kept as hashes only."""

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
from karat.store.sql.sessions import TokenRow
from karat.tables.accounts.people import SCOPES, SCOPES_OF, Person, Scope
from karat.tables.names import check_name

MOST_DAYS = 3650
"""Days that a token is good for, at most, unless it is good for ever."""
STEP_US = 300_000_000
"""How often the last use of a session or token is written: not at each request."""


@dataclass(frozen=True)
class Secret:
    """A secret that is shown once.

    Attributes:
        text: The secret.
        id: Number of what it opens.
        replaced: Whether an earlier link for the same person stopped working.
    """

    text: str
    id: int
    replaced: bool = False


class Tokens:
    """Tokens for programs, of one store.

    Args:
        store: The store.
        clock: Gives microseconds UTC, now.
    """

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
        """A token for programs; the secret is shown once.

        Args:
            person: Whose.
            name: What it is for.
            scopes: What it is good for.
            days: For how long; None for ever.
            secret: The one to use after ``karat_``, for one wish; a second time the token is there
                already. None for any.

        Raises:
            UsageError: no name, no scope, one that there is not or that is beyond the person's
                role, or days that are not 1 to 3,650.
        """
        name = named(name, "a token")
        unknown = next((scope for scope in scopes if scope not in SCOPES), None)
        if unknown is not None or not scopes:
            raise UsageError(
                f"there is no scope {unknown!r}"
                if unknown
                else "nothing says what the token is good for",
                fix=f"some of {', '.join(SCOPES)}",
            )
        beyond = next((scope for scope in scopes if scope not in SCOPES_OF[person.role]), None)
        if beyond is not None:
            raise UsageError(f"a token of {person.role}s is not good for {beyond!r}")
        if days is not None and not 1 <= days <= MOST_DAYS:
            raise UsageError(f"a token is good for 1 to {MOST_DAYS:,} days, or for ever")
        text, now = f"karat_{secret or secrets.token_urlsafe(32)}", self.clock()
        ends = None if days is None else now + days * 86_400_000_000
        with self.store.begin() as c:
            sessions.in_turn(c)
            there = sessions.token(c, hashed(text), now)
            if there is not None:
                return Secret(text, there[1].id)
            kept = [scope for scope in SCOPES if scope in scopes]
            made = sessions.add_token(c, hashed(text), person.id, name, kept, now, ends)
            self.note(c, person.name, "make token", name, {"scopes": " ".join(kept)})
        return Secret(text, made)

    def by_token(self, secret: str) -> tuple[Person, tuple[Scope, ...]] | None:
        """Whose token it is and what it is good for; None if it is not good."""
        now = self.clock()
        with self.store.read() as c:
            found = sessions.token(c, hashed(secret), now)
        if found is None:
            return None
        person, row = found
        if now - (row.used_us or 0) > STEP_US:
            with suppress(KaratError), self.store.begin() as c:
                sessions.token_used(c, row.id, now)
        return person, row.scopes

    def tokens(self, person: Person) -> list[TokenRow]:
        """Tokens of somebody."""
        with self.store.read() as c:
            return sessions.tokens(c, person.id, self.clock())

    def revoke(self, person: Person, token_id: int) -> None:
        """Revoke a token of one's own.

        Raises:
            UsageError: there is none of this number.
        """
        with self.store.begin() as c:
            name = sessions.revoke(c, person.id, token_id, self.clock())
            if name is None:
                raise UsageError(f"there is no token {token_id} of yours")
            self.note(c, person.name, "revoke token", name)

    def note(
        self,
        c: sa.Connection,
        by: str,
        action: str,
        subject: str,
        about: dict[str, str] | None = None,
    ) -> None:
        """Note what somebody did, in the transaction in which they do it."""
        audit.note(c, by, action, subject, self.clock(), about)


def hashed(secret: str) -> str:
    """What is kept of a secret: it is random, so that one round of SHA-256 is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def named(name: str, of: str = "a person") -> str:
    """A name in the one form that is kept.

    Raises:
        UsageError: as ``check_name``.
    """
    name = unicodedata.normalize("NFC", name).strip()
    check_name(name, of, longest=100)
    return name
