"""Users of a karat server, their roles, and the scopes of their tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Role = Literal["rater", "engineer", "owner"]
ROLES: tuple[Role, ...] = ("rater", "engineer", "owner")
"""Each includes the ones before. Raters judge; engineers do everything but manage accounts."""
Scope = Literal["judge", "read", "write", "admin"]
SCOPES: tuple[Scope, ...] = ("judge", "read", "write", "admin")  # scopes of API tokens
SCOPES_OF: Mapping[Role, tuple[Scope, ...]] = {
    "rater": ("judge",),
    "engineer": ("judge", "read", "write"),
    "owner": SCOPES,
}
"""Allowed scopes of a user's tokens, by role: none that require a higher role."""


@dataclass(frozen=True)
class Person:
    """A user with an account."""

    id: int  # number in the store
    name: str  # user name, also the name of the rater
    role: Role  # `rater` | `engineer` | `owner`


@dataclass(frozen=True)
class PersonRow:
    """A user with their state, without the password."""

    person: Person  # id, name and role
    created_us: int  # when the account was created, microseconds UTC
    disabled_us: int | None  # when it was disabled; None if it is active
    seen_us: int | None  # when an active session was last used; None without one
    sessions: int  # number of active sessions
    tokens: int  # number of active tokens


@dataclass(frozen=True)
class Invitation:
    """An invitation to create an account, or to set a new password."""

    id: int  # number in the store
    name: str  # name of the user
    role: Role  # role of the user
    made_by: str | None  # user who made it; None for the server itself
    ends_us: int  # when it expires, microseconds UTC
    renews: bool  # whether it is for an existing account, older than the invitation


@dataclass(frozen=True)
class SessionRow:
    """A browser session."""

    id: int  # number in the store
    created_us: int  # when it began, microseconds UTC
    seen_us: int  # when it was last used, to a few minutes
    agent: str  # user agent of the browser
    here: bool = False  # whether it is the session of the current request


@dataclass(frozen=True)
class TokenRow:
    """An API token; its secret is not stored."""

    id: int  # number in the store
    name: str  # its purpose
    scopes: tuple[Scope, ...]
    created_us: int  # when it was created, microseconds UTC
    used_us: int | None  # when it was last used, to a few minutes; None if never
    ends_us: int | None  # when it expires; None if never
