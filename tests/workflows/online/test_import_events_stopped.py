"""An import that is killed at any moment, and run again, leaves the same store."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from karat.formats.events import lines as event_lines
from karat.store.events import files as event_files
from karat.store.events.log import MANIFEST, STAGING, read_event_log
from karat.workflows.online import _import_ranges
from karat.workflows.online.import_events import import_events

if os.name == "nt":
    pytest.skip("needs SIGKILL", allow_module_level=True)

KILLS = 6
TEN = 1_795_168_800_000_000  # 2026-11-20T10:00:00Z
# Limits so low that a small import is staged in many pieces and stored in many files.
SCRIPT = """
import sys
from pathlib import Path
from karat.formats.events import lines as event_lines
from karat.store.events import files as event_files
from karat.workflows.online import _import_ranges as importing_stage
event_lines.CHUNK, event_files.FILE = 1 << 16, 150
importing_stage._FLUSH = importing_stage._HOLD = 400
from karat.workflows.online.import_events import import_events
folder, *logs = map(Path, sys.argv[1:])
print(import_events(folder, logs, now=1_795_305_600_000_000).kept)
"""


def staging(folder: Path) -> bool:
    """While it reads."""
    return any(folder.joinpath(STAGING).glob("*"))


def half_a_file(folder: Path) -> bool:
    """While a file of the store is written."""
    return any(folder.glob(".000002*.part"))


def files_without_a_manifest(folder: Path) -> bool:
    """Files of the new import are there, and do not count."""
    return len(list(folder.glob("000002*.parquet"))) > 3


MOMENTS: list[Callable[[Path], bool]] = [staging, half_a_file, files_without_a_manifest]


def started(folder: Path, *logs: Path) -> subprocess.Popen[str]:
    """An import in a process of its own."""
    command = [sys.executable, "-c", SCRIPT, str(folder), *map(str, logs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def done(folder: Path, *logs: Path) -> int:
    """An import that nobody stops, in this process: events kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_lines, "CHUNK", 1 << 16)
        patch.setattr(event_files, "FILE", 150)
        patch.setattr(_import_ranges, "_FLUSH", 400)
        patch.setattr(_import_ranges, "_HOLD", 400)
        return import_events(folder, logs, now=1_795_305_600_000_000).kept


def content(folder: Path) -> tuple[object, pl.DataFrame]:
    """The manifest, and all events; files that are not listed are none of it."""
    frames = [pl.read_parquet(each.path) for each in read_event_log(folder).files]
    order = ("user_bucket", "user_key", "time_us", "tie")
    return json.loads((folder / MANIFEST).read_bytes()), pl.concat(frames).sort(order)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small log, and a larger one that holds it too."""
    draw = random.Random(7)
    folder = tmp_path_factory.mktemp("logs")
    rows = []
    for at in range(3000):
        user = draw.randrange(600)
        stamp = TEN + draw.randrange(36_000) * 1_000_000
        row = {"client_id": f"u{user}", "query_id": f"q{at // 3}", "timestamp": stamp}
        rows.append(
            json.dumps(
                {**row, "user_query": f"query {at % 50}"}
                if at % 3 == 0
                else {**row, "action_name": "click", "doc_id": f"d{at % 99}"}
            )
        )
    (folder / "a.ndjson").write_text("\n".join(rows[:300]))
    (folder / "b.ndjson").write_text("\n".join(rows))
    return folder / "a.ndjson", folder / "b.ndjson"


@pytest.fixture(scope="module")
def begun(logs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that holds the small log."""
    folder = tmp_path_factory.mktemp("begun") / "s"
    assert done(folder, logs[0]) == 300
    return folder


@pytest.fixture(scope="module")
def expected(
    begun: Path, logs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[object, pl.DataFrame]:
    """What the store is if nobody stops anything."""
    folder = tmp_path_factory.mktemp("expected") / "s"
    shutil.copytree(begun, folder)
    assert done(folder, logs[1]) == 2700
    return content(folder)


@pytest.mark.deep  # an import that ends early otherwise: test_import_events_no_room.py
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)
def test_killed_and_run_again_it_is_the_same_store(
    moment: Callable[[Path], bool],
    begun: Path,
    logs: tuple[Path, Path],
    expected: tuple[object, pl.DataFrame],
    tmp_path: Path,
) -> None:
    store = tmp_path / "s"
    shutil.copytree(begun, store)
    before = content(store)
    killed = 0
    for _ in range(KILLS):
        with started(store, logs[1]) as process:
            while process.poll() is None and not moment(store):
                time.sleep(0.0005)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        if process.returncode == -signal.SIGKILL:
            killed += 1
            # It is as it was, and whoever reads meanwhile sees just that.
            now = content(store)
            assert now[0] == before[0]
            assert now[1].equals(before[1])
        else:
            break
    assert killed, "the import ended before it could be killed"
    if killed == KILLS:
        assert done(store, logs[1]) == 2700
    manifest, events = content(store)
    assert manifest == expected[0]
    assert events.equals(expected[1])
    listed = {path.name for path in store.glob("*.parquet")}
    assert listed == {Path(each.path).name for each in read_event_log(store).files}
    assert not (store / STAGING).exists()
    assert not list(store.glob(".*.part"))


@pytest.mark.deep  # in one process: test_import_events.py
def test_two_at_once_one_is_refused(logs: tuple[Path, Path], tmp_path: Path) -> None:
    """Both are started together: one imports, the other does so behind it, or says why not."""
    store = tmp_path / "s"
    both = [started(store, logs[1]) for _ in range(2)]
    ended = [process.communicate() for process in both]
    codes = sorted(process.returncode for process in both)
    refused = [err for (_, err), process in zip(ended, both, strict=True) if process.returncode]
    assert codes in ([0, 0], [0, 1])  # the script has no karat around it, which would exit with 2
    assert all("another import into this event store is running" in err for err in refused)
    kept = sorted(int(out) for out, err in ended if out)
    assert kept in ([3000], [0, 3000])
    assert read_event_log(store).rows == 3000
