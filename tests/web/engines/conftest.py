"""The small shop with engines: shop (SQLite), titles (Python), away (down)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.searchable_shop import declare


@pytest.fixture
def workspace(workspace: Path) -> Path:
    declare(workspace)
    return workspace
