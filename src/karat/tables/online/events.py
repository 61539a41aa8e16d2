"""Events: what users did, as an event store holds it; and what an import of a log did."""

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
"""What the names of attributes begin with among the columns of a store."""
_RARE = 0.05


@dataclass(frozen=True, slots=True)
class EventFile:
    """One Parquet file of an event store, sorted by user_bucket, user_key, time_us and tie.

    Attributes:
        path: Where it lies.
        low: Its lowest ``user_bucket``.
        high: One more than its highest.
        rows: Events in it.
    """

    path: str
    low: int
    high: int
    rows: int


@dataclass(frozen=True)
class EventLog:
    """What an event store holds.

    Attributes:
        folder: Where it lies.
        files: Its files.
        rows: Events, robots' among them.
        bots: Events of robots.
        kinds: Events of each kind that occurs, robots' left out.
        attributes: Names of attributes, without ``attribute_``, sorted.
        arms: Arms that occur, sorted.
        known: Columns of ``EVENTS`` that hold a value anywhere: what was logged at all.
        first_us: Time of the first event; None if there is none.
        last_us: Of the last; None likewise.
        first_day: Its ``local_day``; None likewise.
        last_day: Of the last; None likewise.
        timezone: That of ``local_day`` and ``local_hour``.
        simulated: Whether any of it was simulated.
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
    """Searches of an import that do not say what they found, in a log whose others do.

    Attributes:
        columns: What the log calls the columns that are empty there.
        searches: Those searches, without any that failed.
        of: Searches that were read.
        clicked: Those of ``searches`` that were clicked.
        others_clicked: Those of the others.
        taken_as: What that is taken for: ``nothing`` was found | ``unknown``.
        by: Who says so: ``mapping`` | ``answer`` (to a question) | ``earlier`` (an answer, in an
            earlier import) | ``default``.
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
        """Whether so many without a click would be rare, were they clicked as the others are."""
        others = self.of - self.searches
        if self.clicked or not others:
            return False
        return (1 - self.others_clicked / others) ** self.searches < _RARE


@dataclass(frozen=True)
class Imported:
    """What an import did.

    Attributes:
        number: Of the import in its store; None if nothing was new, or nothing was to be kept
            (``--check``; then ``files`` is not empty).
        files: Names of the files read.
        skipped: Names of files whose content was imported before.
        rows: Rows read.
        kept: Events that were added.
        kinds: Those, by kind.
        dropped: Rows that were left out, by reason in words.
        assumed: What was assumed, each in a sentence.
        examples: Of each reason up to a few places, as ``file, line 12: …``.
        unknown: Actions that are none of karat's kinds, with their number; kept as ``other``.
        warnings: What bends numbers until it is settled, each in a sentence.
        empty_hits: Searches that do not say what they found; None if there are none.
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
