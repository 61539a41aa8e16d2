"""Raters who judge at once over real HTTP: nothing lost, nothing twice, on both engines.

The benchmark benchmarks/web_judging.py does the same with more of everything, and tells how long
an answer takes; here only that it is kept.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


@pytest.mark.deep  # raters at once are in tests/contracts/test_store_contention.py, too
@pytest.mark.parametrize("store_url", ["sqlite", "postgresql"], indirect=True)
def test_twenty_raters_at_once(bench: ModuleType, tmp_path: Path, store_url: str) -> None:
    workers = 1 if store_url.startswith("sqlite") else 2
    team = bench.gathered(tmp_path / "web", store_url, raters=20, pairs=20)
    server = bench.Server(team, workers, tmp_path / "log")
    try:
        done = bench.judged(team, server, pause=0.05)
        assert server.stop() == 0
    finally:
        server.kill()
    bench.check(team, done)
    assert len(done.kept) == 40  # each was acknowledged to somebody
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log
    assert '"status": 5' not in log
