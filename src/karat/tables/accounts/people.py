"""Users of a karat server, their roles, and the scopes of their tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Role = Literal["rater", "engineer", "owner"]
ROLES: tuple[Role, ...] = ("rater", "engineer", "owner")
"""Each includes the ones before. Raters judge; engineers do everything but manage accounts."""
Scope = Literal["judge", "read", "write", "admin"]
SCOPES: tuple[Scope, ...] = ("judge", "read", "write", "admin")
"""Scopes of API tokens."""
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
