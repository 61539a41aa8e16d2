"""The folder of expected texts, as a fixture."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.net.snapshots import EXPECTED, Snapshots


@pytest.fixture(scope="session")
def snapshots(request: pytest.FixtureRequest) -> Callable[[str], Snapshots]:
    """``snapshots(folder)``: the expected texts below this folder of ``expected/``."""
    approve = bool(request.config.getoption("approve"))
    return lambda folder: Snapshots(EXPECTED / folder, approve=approve)
