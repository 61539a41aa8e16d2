"""Logs evaluated without an event store: imported into a temporary one."""

from __future__ import annotations

import glob
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import InputError, UsageError
from karat.formats.tables.source import shown
from karat.reports.online.import_ import imported_notes
from karat.store.events.log import read_event_log
from karat.tables.incoming import to_polars
from karat.tables.online.events import EventLog
from karat.workflows.online.import_events import import_events

_FRAME = "the data frame"


@contextmanager
def event_log(
    events: Any, *, mapping: str | Path | None = None, timezone: str | None = None
) -> Iterator[tuple[EventLog, list[str]]]:
    """The events of anything that ``evaluate_online`` takes, until the block ends."""
    if isinstance(events, list) and events and all(isinstance(row, dict) for row in events):
        events = pl.DataFrame(events, infer_schema_length=None)
    files = _files(events)
    if files is None and (isinstance(events, EventLog | str | Path)):
        if mapping is not None or timezone is not None:
            name = "a mapping" if mapping is not None else "a time zone"
            raise UsageError(
                f"{name} applies to the import of a log, and these events are imported already",
                fix="leave it out, or give the log itself",
            )
        yield events if isinstance(events, EventLog) else read_event_log(Path(events)), []
        return
    with tempfile.TemporaryDirectory(prefix="karat-") as folder:
        path = Path(folder) / "log.parquet"
        if files is None:
            _write(to_polars(events, "events"), path)
        store = Path(folder) / "events"
        try:
            imported = import_events(
                store,
                [path] if files is None else files,
                now=time.time_ns() // 1000,
                mapping=None if mapping is None else Path(mapping),
                timezone=timezone,
            )
        except InputError as error:
            raise InputError(
                error.what,
                file=_FRAME if error.file == shown(str(path)) else error.file,
                line=error.line,
                fix=error.fix and error.fix.replace("--mapping FILE", "mapping=FILE"),
            ) from None
        if not imported.kept:
            raise InputError("there are no events in the log")
        notes = [note.replace(shown(str(path)), _FRAME) for note in imported_notes(imported)]
        yield read_event_log(store), notes


def _files(events: Any) -> list[str | Path] | None:
    """The files of a log; None for anything else, such as the folder of an event store."""
    if isinstance(events, list | tuple):
        if events and all(isinstance(each, str | Path) for each in events):
            return list(events)
        raise InputError(
            f"a {type(events).__name__} that does not hold paths is not a log of events",
            fix="give a data frame, or paths of log files",
        )
    if not isinstance(events, str | Path):
        return None
    path = Path(events)
    log = path.is_file() or glob.has_magic(str(events)) or (bool(path.suffix) and not path.exists())
    return [events] if log else None


def _write(frame: pl.DataFrame, path: Path) -> None:
    try:
        frame.write_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(
            f"the data frame cannot be written as Parquet: {error}",
            fix="use columns of numbers, text, times, or lists of these",
        ) from None
