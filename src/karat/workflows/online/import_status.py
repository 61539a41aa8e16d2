"""The content of an event store: events, days, filled columns, imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from karat.store.events.log import read_event_log, read_manifest
from karat.store.events.manifest import StoredImport
from karat.tables.days import day_text
from karat.tables.schema import EVENTS

_OURS = ("user_bucket", "user_key", "tie", "local_day", "local_hour", "import", "query_key")


@dataclass(frozen=True)
class Held:
    folder: str
    rows: int  # number of events
    bots: int  # number of these that are events of bots, which no metric counts
    kinds: Mapping[str, int]  # number of events of each kind, without bots
    first_day: str  # day of the first event, such as `2026-11-01`, in the store's time zone
    last_day: str  # day of the last event
    timezone: str  # time zone in which days begin
    arms: Sequence[str]  # arms of experiments
    attributes: Sequence[str]
    known: Sequence[str]  # columns with any value
    unknown: Sequence[str]  # columns without values: never logged
    simulated: bool  # whether any events were simulated
    files: int
    size: int  # their size in bytes
    imports: Sequence[StoredImport]  # the imports, in order


def held(folder: Path) -> Held:
    """The content of an event store."""
    log, manifest = read_event_log(folder), read_manifest(folder)
    columns = [column.name for column in EVENTS if column.name not in _OURS]
    size = 0
    for each in log.files:
        with suppress(OSError):
            size += Path(each.path).stat().st_size
    return Held(
        folder=str(folder),
        rows=log.rows,
        bots=log.bots,
        kinds=log.kinds,
        first_day=_day(log.first_day),
        last_day=_day(log.last_day),
        timezone=log.timezone,
        arms=log.arms,
        attributes=log.attributes,
        known=[name for name in columns if name in log.known],
        unknown=[name for name in columns if name not in log.known],
        simulated=log.simulated,
        files=len(log.files),
        size=size,
        imports=manifest.imports if manifest else (),
    )


def _day(day: int | None) -> str:
    return "" if day is None else day_text(day)
