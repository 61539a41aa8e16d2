"""Event stores made by hand, for the reducers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def stored() -> ModuleType:
    """The module golden_log/stored.py: tests are no package, so it is loaded by its path."""
    path = Path(__file__).parent / "golden_log" / "stored.py"
    spec = importlib.util.spec_from_file_location("golden_log_stored", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
