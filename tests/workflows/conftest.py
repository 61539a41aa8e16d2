"""A workspace with a golden set, and a clock that goes on by a second each time it is read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from karat.workflows.workspace import workspace
from karat.workflows.workspace.workspace import Workspace, make_workspace, open_workspace

NOW = 1_800_000_000_000_000
# The same each time, so that orders, samples and hidden repeats are the same.
SALT = SimpleNamespace(token_hex=lambda _: "00ff00ff")


@pytest.fixture
def tick() -> Callable[[], int]:
    """Microseconds UTC, a second later each time."""
    times = count(NOW, 1_000_000)
    return lambda: next(times)


@pytest.fixture(scope="session")
def made_shop(tmp_path_factory: pytest.TempPathFactory, new_sqlite: Callable[[Path], str]) -> Path:
    """The workspace of ``shop``, to copy."""
    folder = tmp_path_factory.mktemp("made") / "shop"
    folder.mkdir()
    new_sqlite(folder / "karat.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KARAT_STORE", raising=False)
        patch.setattr(workspace, "secrets", SALT)
        make_workspace(folder, now=NOW, name="shop")
    return folder


@pytest.fixture
def shop(made_shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """The golden set "shop", two raters, grades 0 to 3; nothing in it."""
    monkeypatch.delenv("KARAT_STORE", raising=False)
    monkeypatch.setattr(workspace, "secrets", SALT)
    shutil.copytree(made_shop, tmp_path / "shop")
    with open_workspace(tmp_path / "shop", now=NOW) as opened:
        yield opened
