"""Events: the content of an event store, and the outcome of an import."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import unquote, urlsplit

from karat.errors import UsageError

Kind = Literal[
    "search", "impression", "click", "hide", "heartbeat", "cart", "purchase", "answer", "other"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
BUCKETS = 256  # values of `user_bucket`
ATTRIBUTE = "attribute_"  # prefix of the columns of attributes
S3 = "s3://"
_RARE = 0.05  # probability
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)


def place(name: str | Path) -> str | Path:
    """Where events are: a path, also of a ``file://`` address, or an ``s3://`` address as text.

    Raises:
        UsageError: an address of another kind.
    """
    scheme = _SCHEME.match(str(name))
    if isinstance(name, Path) or scheme is None:
        return Path(name)
    if name.startswith(S3):
        return name.rstrip("/")
    url = urlsplit(name)
    if scheme[1].lower() == "file" and url.netloc in ("", "localhost"):
        return Path(unquote(url.path))
    raise UsageError(
        f"{scheme[0]} is not supported", fix=f"a path, a file:///path, or {S3}BUCKET/PATH"
    )


@dataclass(frozen=True, slots=True)
class EventFile:
    """One Parquet file of an event store, sorted by user_bucket, user_key, time_us and tie."""

    path: str  # or its `s3://` address
    low: int  # its lowest `user_bucket`
    high: int  # its highest `user_bucket` plus 1
    rows: int


@dataclass(frozen=True)
class EventLog:
    """The content of an event store."""

    folder: str | Path  # text for an `s3://` address
    files: Sequence[EventFile] = field(repr=False)
    rows: int  # number of events, including bots
    bots: int
    kinds: Mapping[str, int]  # number of events of each kind, without bots
    attributes: tuple[str, ...]  # names of attributes, without `attribute_`, sorted
    arms: tuple[str, ...]  # arms of experiments, sorted
    known: frozenset[str]  # columns of `EVENTS` that have any value: what was logged
    first_us: int | None  # time of the first event, in microseconds UTC; None without events
    last_us: int | None  # time of the last event; None without events
    first_day: int | None  # `local_day` of the first event; None without events
    last_day: int | None  # `local_day` of the last event; None without events
    timezone: str  # time zone of `local_day` and `local_hour`
    simulated: bool  # whether any of the events are simulated
    version: str  # changes whenever the content does


@dataclass(frozen=True, slots=True)
class EmptyHits:
    """Searches of an import without results in the log, while other searches have them."""

    columns: Sequence[str]  # the columns of the log that are empty
    searches: int  # number of these searches, without failed ones
    of: int  # number of searches read
    clicked: int  # searches with a click, among `searches`
    others_clicked: int  # searches with a click, among the others
    # How they are interpreted: `nothing` (zero results) | `unknown`
    taken_as: Literal["nothing", "unknown"]
    # What decided that: `mapping` | `answer` (to a question) | `earlier` (an answer, in an earlier
    # import) | `default`
    by: Literal["mapping", "answer", "earlier", "default"]

    @property
    def likely_nothing(self) -> bool:
        """Whether zero clicks would be improbable if they were clicked as often as the others."""
        others = self.of - self.searches
        if self.clicked or not others:
            return False
        return (1 - self.others_clicked / others) ** self.searches < _RARE


@dataclass(frozen=True)
class Imported:
    """The outcome of an import."""

    # Number of the import in its store; None if nothing was new, or with `--check` (then `files` is
    # not empty)
    number: int | None
    files: Sequence[str]  # names of the files read
    skipped: Sequence[str]  # names of files whose content was imported before
    rows: int  # number of rows read
    kept: int  # number of events added
    kinds: Mapping[str, int]  # number of events added, by kind
    dropped: Mapping[str, int]  # number of rows left out, by reason in words
    assumed: Sequence[str]  # assumptions, in sentences
    examples: Mapping[str, Sequence[str]]  # a few examples of each reason, as `file, line 12: …`
    unknown: Mapping[str, int]  # unknown actions, with counts; imported as `other`
    warnings: Sequence[str] = ()  # problems that bias metrics until they are resolved, in sentences
    empty_hits: EmptyHits | None = None  # searches without results in the log; None without any


@dataclass(frozen=True)
class StoredImport:
    """An import of an event store."""

    number: int  # its number, from 1
    time_us: int  # when, microseconds UTC
    files: Mapping[str, str]  # SHA-256 of each file that was read, by name
    rows: int  # number of rows read
    kept: int  # number of events added
    dropped: Mapping[str, int]  # number of rows left out, by reason
    assumed: Sequence[str]  # assumptions, in sentences
    settings: Mapping[str, Any]  # how the log was read: columns of user ids, first position


@dataclass(frozen=True)
class LogStatus:
    """The content of the event log."""

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
    files: int  # number of files
    size: int  # their size in bytes
    imports: Sequence[StoredImport]  # the imports, in order
