"""Logs of events, in whatever form they come: told by content, read in chunks, nothing left unsaid.

UBI 1.0 to 1.3 and what OpenSearch stores of it, JSON Lines, arrays, Parquet, CSV and TSV, plain or
compressed; and by a mapping what else there is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Literal

import polars as pl

from karat.errors import InputError
from karat.formats.events import _table, json
from karat.formats.events.fields import WRAPPED
from karat.formats.events.flatten import Reading
from karat.formats.events.kinds import snake
from karat.formats.events.mapping import Mapped
from karat.formats.events.rows import rows
from karat.formats.events.stream import is_answer
from karat.formats.events.tally import Tally
from karat.formats.tables.detect import refuse_binary
from karat.formats.tables.source import NothingIn, Source

SAID = {
    "naive": "times that do not say their zone: {}; {zone} was assumed",
    "number s": "times that are numbers: {}; by their size seconds since 1970",
    "number ms": "times that are numbers: {}; by their size milliseconds since 1970",
    "number us": "times that are numbers: {}; by their size microseconds since 1970",
    "number ns": "times that are numbers: {}; by their size nanoseconds since 1970",
    "clock twice": "times at which clocks are put back, which they showed twice: {}; the earlier "
    "was assumed",
    "clock never": "times at which clocks are put forward, which they never showed: {}; an hour "
    "later was assumed",
    "latency": "latencies that do not say their unit: {}; milliseconds were assumed",
}
"""What a tally's ``assumed`` says, in words."""


def read_events(
    path: str | Path,
    reading: Reading,
    tally: Tally,
    *,
    watch: Callable[[int], None] = lambda _size: None,
) -> Iterator[pl.DataFrame]:
    """Read a log.

    Args:
        path: The file.
        reading: The rules, which take note of attributes as they turn up.
        tally: Gets what became of the rows.
        watch: Told the size of each piece as it is read.

    Returns:
        Chunks of events, in order, as ``event_rows.rows`` has them.

    Raises:
        InputError: no such file, damaged compression, or no log of events.
    """
    try:
        source = Source(path)
    except NothingIn:
        return
    with source:
        source.watch = watch
        for frame in _frames(source, tally, reading.mapped):
            if frame.height:
                yield rows(frame, reading, tally)


def _frames(source: Source, tally: Tally, mapped: Mapped) -> Iterator[pl.DataFrame]:
    form = _form(source)
    if form == "parquet":
        return _table.read_parquet(source, tally)
    if form == "cells":
        refuse_binary(source)
        return _table.read_cells(source, tally)
    names = json.Names(column for _, column in mapped.named())
    if form == "array":
        return json.read_array(source, tally, names)
    first, end, _ = source.head.lstrip().partition(b"\n")
    if end and first.strip() == b"{":
        raise InputError(
            "JSON over several lines",
            file=source.name,
            fix=f"jq -c . {source.name} > events.ndjson puts each object on a line",
        )
    return json.read_lines(source, tally, names)


def _form(source: Source) -> Literal["parquet", "cells", "array", "lines"]:
    if source.head.startswith(b"PAR1"):
        return "parquet"
    start = source.head.lstrip()[:1]
    if start not in (b"{", b"["):
        return "cells"
    if start == b"[" or is_answer(source.head.decode("utf-8", "ignore")):
        return "array"
    return "lines"


def columns_of(path: str | Path) -> list[str] | None:
    """What a table calls its columns; None of JSON, whose objects may have any field.

    Args:
        path: The file.

    Raises:
        InputError: no such file, damaged compression, or no log of events.
    """
    try:
        source = Source(path)
    except NothingIn:
        return []
    with source:
        form = _form(source)
        if form in ("array", "lines"):
            return None
        if form == "cells":
            refuse_binary(source)
            return _table.names_of(source)
        return _table.columns_of(source)


def holds(columns: Collection[str], name: str) -> bool:
    """Whether columns of a log are, or may hold, one that a mapping names.

    Args:
        columns: As the log calls them, or as karat does.
        name: As the mapping does; ``a.b`` may stand in the objects of ``a``.
    """
    ours = {each for column in columns for each in (column, snake(column))}
    tops = {*WRAPPED, name.split(".", 1)[0], snake(name).split(".", 1)[0]}
    return name in ours or snake(name) in ours or bool(ours & (tops - {name, snake(name)}))


def peek(path: str | Path, reading: Reading) -> pl.DataFrame | None:
    """The first chunk of a log, read to decide by; None if it cannot be read or holds no event."""
    frames = read_events(path, reading, Tally(str(path)))
    try:
        first = next(frames, None)
        return first if first is not None and first.height else None
    except InputError:
        return None
    finally:
        frames.close()  # type: ignore[attr-defined]
