"""Event logs: format detected by content, read in chunks, everything dropped or changed counted.

UBI 1.0 to 1.3 and OpenSearch's exports of it, JSON Lines, arrays, Parquet, CSV and TSV, plain or
compressed; other column names by a mapping.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Literal

import polars as pl

from karat.errors import InputError
from karat.formats.events import json
from karat.formats.events.fields import WRAPPED
from karat.formats.events.flatten import Reading
from karat.formats.events.json import LINE, TOO_LONG, is_answer
from karat.formats.events.lines import NO_TEXT, encoding_of, lines, not_utf8
from karat.formats.events.mapping import Mapped
from karat.formats.events.rows import rows
from karat.formats.events.tally import Tally
from karat.formats.events.vocabulary import snake
from karat.formats.tables.detect import refuse_binary
from karat.formats.tables.lines import only_crlf
from karat.formats.tables.parquet import BROKEN, damaged, sound_footer
from karat.formats.tables.source import EmptyFile, Source

SAID = {
    "naive": "times without a time zone: {}; assumed {zone}",
    "number s": "numeric times: {}; by their size assumed to be seconds since 1970",
    "number ms": "numeric times: {}; by their size assumed to be milliseconds since 1970",
    "number us": "numeric times: {}; by their size assumed to be microseconds since 1970",
    "number ns": "numeric times: {}; by their size assumed to be nanoseconds since 1970",
    "clock twice": "times in the hour that clocks repeat in autumn: {}; assumed the earlier",
    "clock never": "times in the hour that clocks skip in spring: {}; assumed an hour later",
    "latency": "latencies without a unit: {}; assumed milliseconds",
}
"""Messages for the keys of a tally's ``assumed``."""


def read_events(
    path: str | Path,
    reading: Reading,
    tally: Tally,
    *,
    watch: Callable[[int], None] = lambda _size: None,
) -> Iterator[pl.DataFrame]:
    """Chunks of events, in order, as ``rows.rows`` returns them."""
    try:
        source = Source(path, tally.file)
    except EmptyFile:
        return
    with source:
        source.watch = watch
        for frame in frames(source, tally, reading.mapped):
            if frame.height:
                yield rows(frame, reading, tally)


def frames(source: Source, tally: Tally, mapped: Mapped) -> Iterator[pl.DataFrame]:
    form = _form(source)
    if form == "parquet":
        return read_parquet(source, tally)
    if form == "cells":
        refuse_binary(source)
        return read_cells(source, tally)
    names = json.Names(column for _, column in mapped.named())
    if form == "array":
        return json.read_array(source, tally, names)
    first, end, _ = source.head.lstrip().partition(b"\n")
    if end and first.strip() == b"{":
        raise InputError(
            "JSON objects span several lines",
            file=source.name,
            fix=f"jq -c . {source.name} > events.ndjson puts each object on one line",
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
    """The column names of a table; None for JSON, whose objects may have any field.

    Raises as ``read_parquet`` and ``read_cells``.
    """
    try:
        source = Source(path)
    except EmptyFile:
        return []
    with source:
        form = _form(source)
        if form in ("array", "lines"):
            return None
        if form == "cells":
            refuse_binary(source)
            first = next(lines(source, 1), None)
            return [] if first is None else _header(first.data.partition(b"\n")[0], source.name)[1]
        try:
            return _plan(source).collect_schema().names()
        except BROKEN as error:
            raise damaged(error, source) from None


def holds(columns: Collection[str], name: str) -> bool:
    """Whether columns include, or may contain (``a`` for ``a.b``), a column of a mapping."""
    ours = {spelling for column in columns for spelling in (column, snake(column))}
    tops = {*WRAPPED, name.split(".", 1)[0], snake(name).split(".", 1)[0]}
    return name in ours or snake(name) in ours or bool(ours & (tops - {name, snake(name)}))


def peek(path: str | Path, reading: Reading) -> pl.DataFrame | None:
    """The first chunk of a log; None if it cannot be read or has no events."""
    frames = read_events(path, reading, Tally(str(path)))
    try:
        first = next(frames, None)
        return first if first is not None and first.height else None
    except InputError:
        return None
    finally:
        frames.close()  # type: ignore[attr-defined]


ROWS = 250_000
MOST_COLUMNS = 2_000
UNEVEN = "number of cells differs from the first line"


def read_parquet(source: Source, tally: Tally) -> Iterator[pl.DataFrame]:
    """Parquet as frames with ``LINE``."""
    tally.unit = "row"
    plan, row = _plan(source), 1
    try:
        for batch in plan.collect_batches(chunk_size=ROWS, maintain_order=True):
            for part in batch.iter_slices(ROWS):
                tally.rows += part.height
                source.watch(part.height)
                yield part.drop(LINE, strict=False).with_row_index(LINE, row)
                row += part.height
    except BROKEN as error:
        raise damaged(error, source) from None


def _plan(source: Source) -> pl.LazyFrame:
    if source.again is None or source.compressed is not None:
        raise InputError(
            "compressed Parquet files and Parquet from a pipe are not supported",
            file=source.name,
            fix="save it as an uncompressed file and give its name",
        )
    with source.again.open("rb") as stream:
        sound_footer(stream, source)
    return pl.scan_parquet(source.again, glob=False)


def read_cells(source: Source, tally: Tally) -> Iterator[pl.DataFrame]:
    """CSV or TSV with a header line, as frames of text with ``LINE``.

    One line is one row: line breaks within cells are not supported.
    """
    names: list[str] = []
    separator = ","
    for chunk in lines(source):
        tally.rows += len(chunk.long)
        tally.drop(TOO_LONG, chunk.long)
        data, first = chunk.data, chunk.first
        if not names:
            head, _, data = data.partition(b"\n")
            separator, names = _header(head, source.name)
            first += 1
        if data.strip():
            yield _cells(data, first, names, separator, tally)


def _header(raw: bytes, name: str) -> tuple[str, list[str]]:
    try:
        text = raw.decode().rstrip("\r")
    except UnicodeDecodeError:
        raise not_utf8(raw, name, 1) from None
    separator = max("\t,;", key=text.count)
    try:
        names = [cell.strip() for cell in next(csv.reader([text], delimiter=separator))]
    except csv.Error:  # a cell of more than 128 KiB
        names = []
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"the header has {len(names):,} columns; the maximum is {MOST_COLUMNS:,}",
            file=name,
            line=1,
            fix="remove columns that you do not need, or write JSON Lines",
        )
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError(
            f"no header in line 1: {text[:60]!r}",
            file=name,
            line=1,
            fix="karat reads events as JSON Lines, Parquet, or CSV with a header line of unique "
            "column names",
        )
    return separator, names


def _cells(data: bytes, first: int, names: list[str], separator: str, tally: Tally) -> pl.DataFrame:
    count = data.count(b"\n") + (not data.endswith(b"\n"))
    schema = dict.fromkeys(names, pl.String())
    if _even(data, names, separator, count):
        try:
            frame = pl.read_csv(
                io.BytesIO(data), has_header=False, schema=schema, separator=separator
            )
            if frame.height == count:
                tally.rows += count
                return frame.drop(LINE, strict=False).with_row_index(LINE, first)
        except BROKEN:
            pass
    return _cell_by_cell(data, first, names, separator, tally)


def _even(data: bytes, names: list[str], separator: str, count: int) -> bool:
    """Whether all lines have as many cells as the header, as far as that is cheap to check."""
    quotes = data.count(b'"')
    if not only_crlf(data):
        return False
    if not quotes:
        return data.count(separator.encode()) == count * (len(names) - 1)
    # An odd number of quotes means a cell spans chunks or a quote is not closed.
    last = data.rstrip(b"\r\n").rpartition(b"\n")[2].decode("utf-8", "replace")
    return quotes % 2 == 0 and len(next(csv.reader([last], delimiter=separator))) == len(names)


def _cell_by_cell(
    data: bytes, first: int, names: list[str], separator: str, tally: Tally
) -> pl.DataFrame:
    rows: list[list[str | None]] = []
    numbers: list[int] = []
    uneven: list[int] = []
    no_text: list[int] = []
    for number, raw in enumerate(data.split(b"\n"), first):
        if not raw.strip():
            continue
        tally.rows += 1
        try:
            cells = next(csv.reader([raw.decode().rstrip("\r")], delimiter=separator, strict=True))
        except UnicodeDecodeError:
            no_text.append(number)
            tally.encoding = tally.encoding or encoding_of(raw)
            continue
        except (csv.Error, StopIteration):
            cells = []
        if len(cells) != len(names):
            uneven.append(number)
            continue
        rows.append([cell or None for cell in cells])
        numbers.append(number)
    tally.drop(UNEVEN, uneven)
    tally.drop(NO_TEXT, no_text)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String()), orient="row")
    return frame.with_columns(pl.Series(LINE, numbers, dtype=pl.UInt32))
