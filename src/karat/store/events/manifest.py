"""What the manifest of an event store says: its files, its imports, and what is in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from karat.store.events import files as event_files
from karat.tables.online.events import ATTRIBUTE
from karat.tables.schema import EVENTS


@dataclass(frozen=True)
class StoredFile:
    """A file of the store, as the manifest lists it.

    Attributes:
        name: Within the folder.
        low: Its lowest bucket.
        high: One more than its highest.
        rows: Events in it.
        first_us: Time of its first event.
        last_us: Of its last.
        sha256: Of its bytes.
        bytes: How many there are; None if an earlier karat wrote it.
    """

    name: str
    low: int
    high: int
    rows: int
    first_us: int
    last_us: int
    sha256: str
    bytes: int | None = None


@dataclass(frozen=True)
class StoredImport:
    """An import, as the manifest keeps it.

    Attributes:
        number: From 1.
        time_us: When, microseconds UTC.
        files: Name to SHA-256 of each file that was read.
        rows: Rows read.
        kept: Events added.
        dropped: Rows left out, by reason.
        assumed: In sentences.
        settings: What it was read by: whose ids users are, where positions begin.
    """

    number: int
    time_us: int
    files: Mapping[str, str]
    rows: int
    kept: int
    dropped: Mapping[str, int]
    assumed: Sequence[str]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Manifest:
    """What a store holds.

    Attributes:
        timezone: Of ``local_day`` and ``local_hour``.
        files: Its files.
        imports: What was imported, in order.
        bots: Events of robots.
        kinds: Events of each kind, robots' left out.
        attributes: Their names, without ``attribute_``.
        arms: Arms that occur.
        known: Columns that hold a value, of an event that is no robot's.
        first_us: Time of the first event.
        last_us: Of the last.
        first_day: Its day.
        last_day: Of the last.
        simulated: Whether any of it was.
        hashing: The way in which ``tie`` hashes; 0: several ways.
    """

    timezone: str = "UTC"
    hashing: int = field(default_factory=event_files.hashing)
    files: Sequence[StoredFile] = ()
    imports: Sequence[StoredImport] = ()
    bots: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    attributes: Sequence[str] = ()
    arms: Sequence[str] = ()
    known: Sequence[str] = ()
    first_us: int | None = None
    last_us: int | None = None
    first_day: int | None = None
    last_day: int | None = None
    simulated: bool = False


@dataclass(frozen=True)
class Summary:
    """What a frame of events adds to a manifest; fields as there."""

    kinds: Mapping[str, int]
    bots: int
    attributes: frozenset[str]
    arms: frozenset[str]
    known: frozenset[str]
    times: tuple[int | None, int | None]
    days: tuple[int | None, int | None]


def summary(frame: pl.DataFrame) -> Summary:
    """What a frame of events adds to a manifest.

    Args:
        frame: In form.
    """
    people = frame.filter(~pl.col("bot"))
    held = frozenset(name for name in people.columns if people[name].null_count() < people.height)
    return Summary(
        kinds=dict(people["kind"].value_counts().iter_rows()),
        bots=frame.height - people.height,
        attributes=frozenset(
            name.removeprefix(ATTRIBUTE)
            for name in frame.columns
            if name.startswith(ATTRIBUTE) and frame[name].null_count() < frame.height
        ),
        arms=frozenset(people["arm"].drop_nulls().unique()),
        known=held & {column.name for column in EVENTS},
        times=(frame["time_us"].min(), frame["time_us"].max()),  # type: ignore[arg-type]
        days=(frame["local_day"].min(), frame["local_day"].max()),  # type: ignore[arg-type]
    )


def added(manifest: Manifest, files: Sequence[StoredFile], frames: Sequence[Summary]) -> Manifest:
    """A manifest with further files, and what their events add to it.

    Args:
        manifest: Before.
        files: What was written.
        frames: What is in them.
    """
    kinds, bots = Counter(manifest.kinds), manifest.bots
    attributes, arms, known = map(set, (manifest.attributes, manifest.arms, manifest.known))
    times = [manifest.first_us, manifest.last_us]
    days = [manifest.first_day, manifest.last_day]
    for each in frames:
        kinds.update(each.kinds)
        bots += each.bots
        attributes |= each.attributes
        arms |= each.arms
        known |= each.known
        times += each.times
        days += each.days
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
