"""State of a running app: settings, workspace with its store, accounts, clock."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from karat.tables.golden.golden_sets import GoldenSetRow
from karat.web.framework.settings import Settings
from karat.workflows.accounts.accounts import Accounts
from karat.workflows.workspace.workspace import Workspace


@dataclass(frozen=True)
class AppState:
    settings: Settings
    workspace: Workspace
    accounts: Accounts
    clock: Callable[[], int]  # the current time, microseconds UTC

    @property
    def cookie(self) -> str:
        """Name of the session cookie, which servers on one machine must not share."""
        where = f"{self.workspace.workspace.root}{self.settings.base}"
        return f"karat_{hashlib.sha256(where.encode()).hexdigest()[:8]}"

    def golden_sets(self) -> list[GoldenSetRow]:
        return self.workspace.golden_sets()

    def opened(self, name: str) -> Workspace:
        return self.workspace.with_golden_set(name)
