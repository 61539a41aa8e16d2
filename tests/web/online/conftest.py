"""Pages of online metrics wait for their numbers, however slow the machine."""

from __future__ import annotations

import pytest

from karat.web.online import log


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "WAIT_S", 60.0)
    monkeypatch.setattr(log, "LONGEST_S", 60.0)
