"""Event stores for tests of what reads them."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import polars as pl

from karat.store.events.log import read_event_log
from karat.tables.online.events import EventLog
from karat.workflows.online.import_events import import_events

_LATER = 4_000_000_000_000_000  # 2096: no event is later


def keep_events(folder: Path, frame: pl.DataFrame, *, simulated: bool = False) -> EventLog:
    """Import events as anybody would, from a Parquet file; the same events once, and then copied.

    Args:
        folder: The store; made if absent.
        frame: ``user_id``, ``time_us`` and ``kind`` of each event, and other columns of ``EVENTS``.
        simulated: Whether they are.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    file = folder.with_name(f"{folder.name}.parquet")
    made = _made() / f"{abs(hash((frame.serialize(), simulated)))}"
    if not folder.exists() and made.exists():
        shutil.copytree(made, folder)
        return read_event_log(folder)
    new = not folder.exists()
    frame.write_parquet(file)
    import_events(folder, [file], now=_LATER, simulated=simulated)
    if new:
        shutil.copytree(folder, made, dirs_exist_ok=True)
    return read_event_log(folder)


@cache
def _made() -> Path:
    """A folder for the stores that are copied."""
    folder = tempfile.mkdtemp(prefix="karat-events-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
