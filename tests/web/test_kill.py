"""kill -9 of the server while raters judge: what it acknowledged is there, and sessions go on.

The benchmark benchmarks/web_judging.py does the same twenty times on each engine.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


@pytest.mark.deep  # tests/contracts/test_store_contention.py kills those who judge, too
@pytest.mark.parametrize("store_url", ["sqlite", "postgresql"], indirect=True)
def test_what_was_acknowledged_survives(
    bench: ModuleType, tmp_path: Path, store_url: str, deep: bool
) -> None:
    """Nobody signs in again: each rater's requests hold the session of the beginning.

    A rater is shown the pair they held when the server died, so that all leases end in judgments.
    """
    workers, kills = (1, 2 if deep else 1) if store_url.startswith("sqlite") else (2, 1)
    pairs = 40 if deep else 16  # four for each rater: the first kill comes after one or two
    team = bench.gathered(tmp_path / "web", store_url, raters=8, pairs=pairs)
    server = bench.Server(team, workers, tmp_path / "log")
    try:
        done = bench.judged(team, server, pause=0.3, kills=kills, every=0.5)
        assert server.stop() == 0
    finally:
        server.kill()
    bench.check(team, done)
    assert '"status": 5' not in (tmp_path / "log").read_text()
