"""The manifest of an event store: its files, its imports, and a summary of its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from karat.store.events import files as event_files
from karat.tables.online.events import ATTRIBUTE, StoredImport
from karat.tables.schema import EVENTS


@dataclass(frozen=True)
class StoredFile:
    name: str  # name within the folder
    low: int  # its lowest bucket
    high: int  # its highest bucket plus 1
    rows: int  # number of events
    first_us: int  # time of its first event, microseconds UTC
    last_us: int  # time of its last event, microseconds UTC
    sha256: str  # SHA-256 of the file
    bytes: int | None = None  # size of the file; None if an older karat wrote it


@dataclass(frozen=True)
class Manifest:
    timezone: str = "UTC"  # time zone of `local_day` and `local_hour`
    # Fingerprint of the hash function of `tie`; 0 if there were several
    hashing: int = field(default_factory=event_files.hashing)
    files: Sequence[StoredFile] = ()
    imports: Sequence[StoredImport] = ()  # its imports, in order
    bots: int = 0  # number of events of bots
    # Number of events of each kind, without bots
    kinds: Mapping[str, int] = field(default_factory=dict)
    attributes: Sequence[str] = ()  # names of attributes, without `attribute_`
    arms: Sequence[str] = ()  # arms of experiments
    known: Sequence[str] = ()  # columns that have any value, without bots
    first_us: int | None = None  # time of the first event, microseconds UTC
    last_us: int | None = None  # time of the last event
    first_day: int | None = None  # `local_day` of the first event
    last_day: int | None = None  # `local_day` of the last event
    simulated: bool = False  # whether any of the events are simulated


@dataclass(frozen=True)
class Summary:
    """Summary of a frame of events; fields as in ``Manifest``."""

    kinds: Mapping[str, int]
    bots: int
    attributes: frozenset[str]
    arms: frozenset[str]
    known: frozenset[str]
    times: tuple[int | None, int | None]
    days: tuple[int | None, int | None]


def summary(frame: pl.DataFrame) -> Summary:
    people = frame.filter(~pl.col("bot"))
    filled = frozenset(name for name in people.columns if people[name].null_count() < people.height)
    return Summary(
        kinds=dict(people["kind"].value_counts().iter_rows()),
        bots=frame.height - people.height,
        attributes=frozenset(
            name.removeprefix(ATTRIBUTE)
            for name in frame.columns
            if name.startswith(ATTRIBUTE) and frame[name].null_count() < frame.height
        ),
        arms=frozenset(people["arm"].drop_nulls().unique()),
        known=filled & {column.name for column in EVENTS},
        times=(frame["time_us"].min(), frame["time_us"].max()),  # type: ignore[arg-type]
        days=(frame["local_day"].min(), frame["local_day"].max()),  # type: ignore[arg-type]
    )


def added(manifest: Manifest, files: Sequence[StoredFile], frames: Sequence[Summary]) -> Manifest:
    """The manifest with more files, and the summaries of their events."""
    kinds, bots = Counter(manifest.kinds), manifest.bots
    attributes, arms, known = map(set, (manifest.attributes, manifest.arms, manifest.known))
    times = [manifest.first_us, manifest.last_us]
    days = [manifest.first_day, manifest.last_day]
    for events in frames:
        kinds.update(events.kinds)
        bots += events.bots
        attributes |= events.attributes
        arms |= events.arms
        known |= events.known
        times += events.times
        days += events.days
    when = [time for time in times if time is not None]
    on = [day for day in days if day is not None]
    return replace(
        manifest,
        files=[*manifest.files, *files],
        kinds=dict(sorted(kinds.items())),
        bots=bots,
        attributes=sorted(attributes),
        arms=sorted(arms),
        known=sorted(known),
        first_us=min(when, default=None),
        last_us=max(when, default=None),
        first_day=min(on, default=None),
        last_day=max(on, default=None),
    )
