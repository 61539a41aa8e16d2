"""What an event store holds, as facts: events, days, columns that are filled, imports."""

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
    """What an event store holds.

    Attributes:
        folder: Where it lies.
        rows: Events.
        bots: Events of robots among them, which count nowhere.
        kinds: Events of each kind, robots' left out.
        first_day: Day of the first event, as ``2026-11-01``, in the store's time zone.
        last_day: Of the last.
        timezone: Where a day begins.
        arms: Arms of experiments.
        attributes: Attributes.
        known: Columns that hold a value somewhere.
        unknown: Columns that hold none: what was never logged.
        simulated: Whether any of it was simulated.
        files: Files of the store.
        size: Their bytes.
        imports: What was imported, in order.
    """

    folder: str
    rows: int
    bots: int
    kinds: Mapping[str, int]
    first_day: str
    last_day: str
    timezone: str
    arms: Sequence[str]
    attributes: Sequence[str]
    known: Sequence[str]
    unknown: Sequence[str]
    simulated: bool
    files: int
    size: int
    imports: Sequence[StoredImport]


def held(folder: Path) -> Held:
    """What an event store holds.

    Args:
        folder: The store.

    Raises:
        InputError: there are no events in it, or it is damaged.
    """
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
