"""Notes: sentences a reader of results must know, and their order of importance."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Self

SHOWN = 3  # how many notes are printed under a table


class Concern(IntEnum):
    """Topics of notes, the most important first: what could change a conclusion comes before
    what only explains it.
    """

    INPUT = 0  # the files may be the wrong ones: unknown document ids, the same run twice
    QUERIES = 1  # queries that count are failed, missing or empty, or some queries do not count
    ORDER = 2  # ranks contradict scores, or the order of ties changes a number or a verdict
    UNJUDGED = 3  # unjudged documents could change a number
    FEW = 4  # too few queries for an interval or a test
    EXPLAINS = 5  # everything else


class Note(str):
    """A sentence and its topic; plain strings have the topic ``EXPLAINS``."""

    __slots__ = ("concern",)
    concern: Concern  # the topic

    def __new__(cls, text: str, concern: Concern = Concern.EXPLAINS) -> Self:
        note = super().__new__(cls, text)
        note.concern = concern
        return note


def prefixed(prefix: str, note: str) -> Note:
    """The same note after a prefix, such as the name of a run."""
    return Note(prefix + note, _concern(note))


def in_order(notes: Iterable[str]) -> list[str]:
    """Distinct notes, the most important first; within a topic in the order given."""
    return sorted(dict.fromkeys(notes), key=_concern)


def first_notes(notes: Iterable[str], most: int = SHOWN) -> tuple[list[str], int]:
    """The most important notes, and the number of others."""
    ordered = in_order(notes)
    return ordered[:most], max(0, len(ordered) - most)


def as_lines(notes: Iterable[str]) -> list[str]:
    """The most important notes as lines for ``repr``, and where the others are."""
    shown, more = first_notes(notes)
    return [*(f"· {note}" for note in shown), *([f"{others(more)}: .notes"] if more else [])]


def others(count: int) -> str:
    """The number of notes not shown, in words."""
    return "1 more note" if count == 1 else f"{count:,} more notes"


def _concern(note: str) -> Concern:
    return note.concern if isinstance(note, Note) else Concern.EXPLAINS
