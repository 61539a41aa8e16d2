"""A workspace with a golden set, and a clock that goes on by a second each time it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from karat.workflows.workspace import workspace
from karat.workflows.workspace.workspace import Workspace, make_workspace, open_workspace

NOW = 1_800_000_000_000_000


@pytest.fixture
def tick() -> Callable[[], int]:
    """Microseconds UTC, a second later each time."""
    times = count(NOW, 1_000_000)
    return lambda: next(times)


@pytest.fixture
def shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_sqlite: Callable[[Path], str]
) -> Iterator[Workspace]:
    """The golden set "shop", two raters, grades 0 to 3; nothing in it."""
    monkeypatch.delenv("KARAT_STORE", raising=False)
    # The same salt each time, so that orders, samples and hidden repeats are the same.
    monkeypatch.setattr(workspace, "secrets", SimpleNamespace(token_hex=lambda _: "00ff00ff"))
    (tmp_path / "shop").mkdir()
    new_sqlite(tmp_path / "shop" / "karat.db")
    make_workspace(tmp_path / "shop", now=NOW, name="shop")
    with open_workspace(tmp_path / "shop", now=NOW) as opened:
        yield opened
