"""Events: the content of an event store, and the outcome of an import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal[
    "search", "impression", "click", "hide", "heartbeat", "cart", "purchase", "answer", "other"
]
KINDS: tuple[Kind, ...] = (
    "search",
    "impression",
    "click",
    "hide",
    "heartbeat",
    "cart",
    "purchase",
    "answer",
    "other",
)
BUCKETS = 256
"""Values of ``user_bucket``."""
ATTRIBUTE = "attribute_"
"""Prefix of the columns of attributes."""
_RARE = 0.05  # probability


@dataclass(frozen=True, slots=True)
class EventFile:
    """One Parquet file of an event store, sorted by user_bucket, user_key, time_us and tie.

    Attributes:
        path: Its path.
        low: Its lowest ``user_bucket``.
        high: Its highest ``user_bucket`` plus 1.
        rows: Number of events.
    """

    path: str
    low: int
    high: int
    rows: int


@dataclass(frozen=True)
class EventLog:
    """The content of an event store.

    Attributes:
        folder: Its folder.
        files: Its files.
        rows: Number of events, including bots.
        bots: Number of events of bots.
        kinds: Number of events of each kind, without bots.
        attributes: Names of attributes, without ``attribute_``, sorted.
        arms: Arms of experiments, sorted.
        known: Columns of ``EVENTS`` that have any value: what was logged.
        first_us: Time of the first event, in microseconds UTC; None without events.
        last_us: Time of the last event; None without events.
        first_day: ``local_day`` of the first event; None without events.
        last_day: ``local_day`` of the last event; None without events.
        timezone: Time zone of ``local_day`` and ``local_hour``.
        simulated: Whether any of the events are simulated.
        version: Changes whenever the content does.
    """

    folder: Path
    files: Sequence[EventFile] = field(repr=False)
    rows: int
    bots: int
    kinds: Mapping[str, int]
    attributes: tuple[str, ...]
    arms: tuple[str, ...]
    known: frozenset[str]
    first_us: int | None
    last_us: int | None
    first_day: int | None
    last_day: int | None
    timezone: str
    simulated: bool
    version: str


@dataclass(frozen=True, slots=True)
class EmptyHits:
    """Searches of an import without results in the log, while other searches have them.

    Attributes:
        columns: The columns of the log that are empty.
        searches: Number of these searches, without failed ones.
        of: Number of searches read.
        clicked: Searches with a click, among ``searches``.
        others_clicked: Searches with a click, among the others.
        taken_as: How they are interpreted: ``nothing`` (zero results) | ``unknown``.
        by: What decided that: ``mapping`` | ``answer`` (to a question) | ``earlier`` (an answer, in
            an earlier import) | ``default``.
    """

    columns: Sequence[str]
    searches: int
    of: int
    clicked: int
    others_clicked: int
    taken_as: Literal["nothing", "unknown"]
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
    """The outcome of an import.

    Attributes:
        number: Number of the import in its store; None if nothing was new, or with ``--check``
            (then ``files`` is not empty).
        files: Names of the files read.
        skipped: Names of files whose content was imported before.
        rows: Number of rows read.
        kept: Number of events added.
        kinds: Number of events added, by kind.
        dropped: Number of rows left out, by reason in words.
        assumed: Assumptions, in sentences.
        examples: A few examples of each reason, as ``file, line 12: …``.
        unknown: Unknown actions, with counts; imported as ``other``.
        warnings: Problems that bias metrics until they are resolved, in sentences.
        empty_hits: Searches without results in the log; None without any.
    """

    number: int | None
    files: Sequence[str]
    skipped: Sequence[str]
    rows: int
    kept: int
    kinds: Mapping[str, int]
    dropped: Mapping[str, int]
    assumed: Sequence[str]
    examples: Mapping[str, Sequence[str]]
    unknown: Mapping[str, int]
    warnings: Sequence[str] = ()
    empty_hits: EmptyHits | None = None
