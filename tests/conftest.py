"""What every test may ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

# A deadline measures the machine, and two workers share it. A failure prints how to repeat it.
settings.register_profile("karat", deadline=None, print_blob=True)
settings.load_profile("karat")


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the project."""
    return ROOT


@pytest.fixture(scope="session")
def field_data() -> Path:
    """Real data of the field, beside the project; the test is skipped where there is none."""
    data = ROOT.parent / "shared" / "data"
    if not data.is_dir():
        pytest.skip("needs ../shared/data, which is not on this machine")
    return data
