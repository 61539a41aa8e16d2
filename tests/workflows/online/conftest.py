"""Event stores for the verbs that read them: made by hand, or imported as anybody would."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

from karat.formats.events.ubi import write_events
from karat.store.events.log import read_event_log
from karat.tables.online.events import EventLog
from karat.tables.schema import EVENTS
from karat.workflows.online.import_events import import_events

LogOf = Callable[..., EventLog]
_LATER = 4_000_000_000_000_000  # 2096: no event is later


@pytest.fixture(scope="session")
def stored() -> ModuleType:
    """The module that makes event stores by hand; tests are no package, so it is loaded by path."""
    path = Path(__file__).parents[2] / "online" / "golden_log" / "stored.py"
    spec = importlib.util.spec_from_file_location("golden_log_stored", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def log_of(tmp_path_factory: pytest.TempPathFactory) -> LogOf:
    """Imports hand-made events, in columns of EVENTS, as UBI into a store of their own."""

    def made(rows: Sequence[dict[str, Any]], **how: Any) -> EventLog:
        folder: Path = tmp_path_factory.mktemp("log")
        names = dict.fromkeys(name for row in rows for name in row)
        known = {column.name: column.dtype for column in EVENTS}
        frame = pl.DataFrame(rows, {name: known.get(name, pl.String()) for name in names})
        write_events(folder / "log.ndjson", frame)
        import_events(folder / "events", [folder / "log.ndjson"], now=_LATER, **how)
        return read_event_log(folder / "events")

    return made
