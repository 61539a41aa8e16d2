"""People: who may use a karat that is served, and what for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Role = Literal["rater", "engineer", "owner"]
ROLES: tuple[Role, ...] = ("rater", "engineer", "owner")
"""Each may do what those before it may. Raters judge; engineers do all but accounts."""
Scope = Literal["judge", "read", "write", "admin"]
SCOPES: tuple[Scope, ...] = ("judge", "read", "write", "admin")
"""What an API token may be good for, within its owner's role."""
SCOPES_OF: Mapping[Role, tuple[Scope, ...]] = {
    "rater": ("judge",),
    "engineer": ("judge", "read", "write"),
    "owner": SCOPES,
}
"""What somebody's tokens may be good for: nothing that would wait for a higher role."""


@dataclass(frozen=True)
class Person:
    """Somebody with an account.

    Attributes:
        id: Number in the store.
        name: By which they sign in, and judge.
        role: ``rater`` | ``engineer`` | ``owner``.
    """

    id: int
    name: str
    role: Role
