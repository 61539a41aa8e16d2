"""The folder of expected texts, as a fixture."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.net.commands import build_demo
from tests.net.snapshots import EXPECTED, Snapshots


@pytest.fixture(scope="session")
def snapshots(request: pytest.FixtureRequest) -> Callable[[str], Snapshots]:
    """``snapshots(folder)``: the expected texts below this folder of ``expected/``."""
    approve = bool(request.config.getoption("approve"))
    return lambda folder: Snapshots(EXPECTED / folder, approve=approve)


@pytest.fixture(scope="session")
def deep(request: pytest.FixtureRequest) -> bool:
    """Whether all texts are compared; ``--approve`` writes them all."""
    return bool(request.config.getoption("deep") or request.config.getoption("approve"))


@pytest.fixture(scope="session")
def demo(made_once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """A folder with ``demo/`` in it, and what ``karat demo`` printed; not to be written to."""
    return made_once("net-demo", build_demo)


@pytest.fixture
def copied(demo: Path, tmp_path: Path) -> Path:
    """A folder with a copy of the demo."""
    shutil.copytree(demo / "demo", tmp_path / "demo")
    return tmp_path
