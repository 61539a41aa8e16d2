"""What a format is: one file of this folder, one entry in ``catalogue.FORMATS``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import polars as pl

from karat.errors import UsageError, nearest
from karat.formats.tables.source import Source

ROLES = ("qrels", "run", "queries", "documents")
"""What a file may be wanted as."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a reader hands over: rows in file order.

    Attributes:
        batches: Frames with the columns of the table; may be read once.
        answers: For a run, how queries were answered (``schema.ANSWERS``), where the format says.
        about: What else the file says of the run; asked when all batches are read.
    """

    batches: Iterable[pl.DataFrame]
    answers: pl.DataFrame | None = None
    about: Callable[[], dict[str, str]] = dict


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands in a text file.

    Attributes:
        line: From 1; the first line of a record that spans several.
        ids: The ids on it: query and document, or the one there is.
    """

    line: int
    ids: tuple[str, ...]


Reader = Callable[[Source], Rows]
Writer = Callable[[Any, IO[bytes]], None]
Places = Callable[[Source, str], Iterator[Place]]


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    Attributes:
        name: What ``--input-format`` calls it.
        what: What it is, for people.
        extensions: File names that end so are written in this format.
        readers: Role to reader.
        writers: Role to writer of that table.
        places: Lists rows with their lines, to say where a fault is; None for binary formats.
        keeps: What its files keep of a run besides rankings: ``about``, and ``answers`` (states,
            times, errors). A sidecar keeps the rest (``karat.formats.tables.sidecar``).
    """

    name: str
    what: str
    extensions: tuple[str, ...] = ()
    readers: Mapping[str, Reader] = field(default_factory=dict)
    writers: Mapping[str, Writer] = field(default_factory=dict)
    places: Places | None = None
    keeps: frozenset[str] = frozenset()

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles it reads."""
        return tuple(role for role in ROLES if role in self.readers)


def format_of(
    formats: Mapping[str, Format], name: str, role: str, *, writes: bool = False
) -> Format:
    """The format of that name, which must read (or write) the role.

    Raises:
        UsageError: there is none, or it does not hold such tables.
    """
    can = [
        each.name for each in formats.values() if role in (each.writers if writes else each.readers)
    ]
    fix = f"formats of {role}: {', '.join(can)}"
    if name not in formats:
        raise UsageError(
            f"there is no format called {name!r}", nearest=nearest(name, formats, 1), fix=fix
        )
    if name not in can:
        raise UsageError(f"{name} files hold no {role}", fix=fix)
    return formats[name]
