"""An import into a disk that is full: one sentence, and the store as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from karat.workflows.online.import_events import import_events

pytest.importorskip("resource", reason="limits of a file's size are of POSIX")

LIMITED = """
import resource, signal, sys
sys.dont_write_bytecode = True  # a module that is compiled here would be cut off as well
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
import karat.workflows.online._import_ranges as stage
stage._FLUSH = int(sys.argv[2])
sys.argv[1:] = ["online", "import", *sys.argv[3:]]
from karat.cli.main import main
main()
"""


@pytest.mark.parametrize(
    ("limit", "flush"),
    [
        pytest.param(20_000, 250_000, id="file of the store"),
        pytest.param(20_000, 1_000, id="staged file", marks=pytest.mark.deep),
        pytest.param(500, 250_000, id="manifest", marks=pytest.mark.deep),
    ],
)
def test_a_full_disk_is_said_and_nothing_is_imported(
    limit: int, flush: int, tmp_path: Path
) -> None:
    count = 5_000 if limit > 500 else 1
    rows = (
        {
            "query_id": f"q{at * 7_919}",
            "client_id": f"c{at * 104_729}",
            "timestamp": 1_795_168_800_000_000 + at * 1_299_709,
            "user_query": "shoes",
        }
        for at in range(count)
    )
    log, store = tmp_path / "log.ndjson", tmp_path / "events"
    log.write_text("".join(json.dumps(each) + "\n" for each in rows))

    said = [sys.executable, "-c", LIMITED, str(limit), str(flush), str(log)]
    failed = subprocess.run(
        [*said, "--events", str(store)], capture_output=True, text=True, check=False, timeout=120
    )
    assert failed.returncode == 2, failed.stderr
    assert "Traceback" not in failed.stderr
    assert "cannot be written: " in failed.stderr
    assert "File too large" in failed.stderr
    assert "nothing was imported" in failed.stderr
    # With room again it is as if nothing had been.
    assert import_events(store, [log], now=1_795_305_600_000_000).kept == count
