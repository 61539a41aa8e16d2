"""A request to a route: which app it reached, and who sent it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import Request

from karat.tables.accounts.people import Person
from karat.web.framework.lists import Ask
from karat.web.framework.state import AppState
from karat.workflows.workspace.workspace import Workspace


@dataclass(frozen=True)
class Principal:
    """The authenticated user of a request."""

    person: Person
    session: str | None = None
    csrf: str = ""
    writes: bool = True  # whether it may store something; an API token may lack the scope


@dataclass(frozen=True)
class Call:
    """A request, and what its route needs to know of it."""

    request: Request

    @property
    def site(self) -> AppState:
        state: AppState = self.request.app.state.site
        return state

    @property
    def workspace(self) -> Workspace:
        """The workspace with its own golden set, as it is now."""
        return self.site.opened(self.site.workspace.golden.name)

    @property
    def user(self) -> Principal | None:
        """Who sent it; None on a public route without a session."""
        principal: Principal | None = getattr(self.request.state, "principal", None)
        return principal

    @property
    def principal(self) -> Principal:
        assert self.user is not None, "the route requires no user"
        return self.user

    @property
    def who(self) -> str:
        return self.principal.person.name

    @property
    def now(self) -> int:
        return self.site.clock()

    @property
    def by(self) -> dict[str, Any]:
        """Who does something, and when, as workflows take it."""
        return {"person": self.who, "now": self.now}

    @property
    def ask(self) -> Ask:
        """The query of the list on the page."""
        return Ask.of(self.request)
