"""Pages of online metrics wait for their numbers, however slow the machine, and have them once."""

from __future__ import annotations

import pytest
from tests.web.online_log import compute_once

from karat.web.online import log


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "WAIT_S", 60.0)
    monkeypatch.setattr(log, "LONGEST_S", 60.0)


@pytest.fixture
def anew() -> None:
    """Compute numbers although another test has."""


@pytest.fixture(autouse=True)
def _once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "anew" not in request.fixturenames:
        compute_once(monkeypatch)
