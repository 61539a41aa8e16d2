"""Lines of fields separated by white space or tabs, to frames.

The fast way is Polars' CSV parser. Chunks that it cannot read, or would read differently from the C
tools (runs of spaces, comments, odd numbers), are parsed line by line in Python, which reports the
line that is wrong.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import InputError
from karat.formats.tables.format import Place
from karat.formats.tables.source import BOM, Chunk, Source, text_of

Item = TypeVar("Item")
Done = TypeVar("Done")

_THREADS = 2
_AHEAD = 3
_STEP = 1 << 18

# Polars loads its NumPy at the first use, which fails if two threads do so at once.
pl.Series(np.zeros(1))


def ahead(work: Callable[[Item], Done], items: Iterable[Item]) -> Iterator[Done]:
    """``map(work, items)``, in order, computed a few items ahead."""
    with ThreadPoolExecutor(_THREADS) as pool:
        waiting: deque[Future[Done]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


WITHIN = "a carriage return (CR) within the line, where only LF and CR LF end lines"


def only_crlf(data: bytes) -> bool:
    """Whether every carriage return is followed by a newline."""
    return b"\r" not in data or data.count(b"\r") == data.count(b"\r\n")


def return_within(raw: bytes) -> bool:
    r"""Whether a line has a carriage return that is not at its end.

    Several at the end are accepted: on Windows, ``\r\n`` written in text mode becomes ``\r\r\n``.
    """
    return b"\r" in raw and b"\r" in raw.rstrip(b"\r\n")


def refuse_return(raw: bytes, name: str, line: int) -> None:
    """Raise InputError for a line with a carriage return that is not at its end."""
    if return_within(raw):
        raise within(name, line)


def within(name: str, line: int) -> InputError:
    return InputError(
        WITHIN,
        file=name,
        line=line,
        fix="start a new line there, or delete it",
        command=f"tr '\\r' '\\n' < {name}",
    )


_BLANKS = re.compile(rb"[ \t\r\v\f]+")
FAULTS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError)
"""Errors of Polars' parsers on invalid text."""
_SPACE = b" \t\r\v\f"
JOINED = "another line begins within the line"
_NUMBERS: dict[type[pl.DataType], Callable[[str], float | int]] = {
    pl.Float64: float,
    pl.Int64: int,
}


@dataclass(frozen=True, slots=True)
class Further:
    """Rules for further fields of a line, which are ignored unless another line begins in them."""

    joined: Callable[[Sequence[str]], bool]
    like: re.Pattern[bytes]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the fields of a line become columns."""

    what: str
    fields: tuple[str, ...]
    keep: dict[int, tuple[str, type[pl.DataType]]]
    optional: frozenset[str] = frozenset()
    more: Further | None = None
    tabs: bool = False
    comments: bool = True
    blank: frozenset[str] = frozenset()


def frames(source: Source, layout: Layout) -> Iterator[pl.DataFrame]:
    """The file as frames, in order; chunks are parsed ahead in threads."""
    yield from ahead(lambda chunk: parse(chunk, layout, source.name), source.chunks())


def parse(chunk: Chunk, layout: Layout, name: str) -> pl.DataFrame:
    """One chunk as a frame; raises InputError for a line that does not fit the layout."""
    data = _plain(chunk.data, layout)
    if data is not None:
        for without in ((), layout.optional) if layout.optional else ((),):
            frame = _fast(data, layout, frozenset(without))
            if frame is not None:
                return frame
    return _careful(chunk, layout, name)


def _plain(data: bytes, layout: Layout) -> bytes | None:
    """The data with single separators; None if it must be parsed line by line."""
    if b"\x00" in data or data.startswith(BOM) or not only_crlf(data):
        return None
    if layout.tabs:
        return data.replace(b"\r\n", b"\n") if b"\r" in data else data
    if b"\t" in data or b"\r" in data or b"\v" in data or b"\f" in data:
        data = _BLANKS.sub(b" ", data)
    if _blanks_meet(np.frombuffer(data, np.uint8)):
        data = _BLANKS.sub(b" ", data).replace(b"\n ", b"\n").replace(b" \n", b"\n").lstrip()
        data = re.sub(rb"\n\n+", b"\n", data)
    return data or None


def _blanks_meet(data: NDArray[np.uint8]) -> bool:
    """Whether two blanks follow each other, or one begins the data.

    These are a doubled separator, one at an end of a line, or a blank line. Steps that fit the
    cache are ten times faster than the whole.
    """
    for start in range(0, len(data), _STEP):
        blank = data[start : start + _STEP + 1] <= ord(" ")
        if (blank[1:] & blank[:-1]).any():
            return True
    return bool(data[0] <= ord(" "))


def _fast(data: bytes, layout: Layout, without: frozenset[str]) -> pl.DataFrame | None:
    schema: dict[str, type[pl.DataType]] = {}
    kept: list[str] = []
    for at, field in enumerate(layout.fields):
        name, dtype = layout.keep.get(at, ("", pl.String))
        if name and name not in without:
            kept.append(name)
        else:
            name, dtype = f"_{at}_{field}", pl.String
        schema[name] = dtype
    # If further fields are allowed, read the last one to see that no line lacks it.
    read = list(schema) if layout.more is None else list(dict.fromkeys((*kept, name)))
    try:
        frame = (
            pl.scan_csv(
                data,
                separator="\t" if layout.tabs else " ",
                has_header=False,
                quote_char=None,
                schema=schema,
                comment_prefix="#" if layout.comments and b"#" in data else None,
                extra_columns="raise" if layout.more is None else "ignore",
                missing_columns="raise",
            )
            .select(read)
            .collect(engine="in-memory")  # twice as fast as streaming for a chunk
        )
    except FAULTS:
        return None
    # Short lines end in nulls: the careful way reports which line it is.
    if sum(sum(row) for row in frame.null_count().iter_rows()):
        return None
    if layout.more is not None and _joined(data, frame.height, layout):
        return None
    # Columns left out because they do not parse are null, so all chunks have the same columns.
    nulls = [
        pl.lit(None, dtype).alias(name) for name, dtype in layout.keep.values() if name in without
    ]
    return frame.with_columns(nulls).select([name for name, _ in layout.keep.values()])


def _joined(data: bytes, lines: int, layout: Layout) -> bool:
    """Whether two lines may be joined into one; no line lacks a field."""
    assert layout.more is not None
    blanks = np.count_nonzero(np.frombuffer(data, np.uint8) == ord(" "))
    further = blanks > lines * (len(layout.fields) - 1)
    return bool(further) and layout.more.like.search(data) is not None


def _careful(chunk: Chunk, layout: Layout, name: str) -> pl.DataFrame:
    columns: dict[str, list[object]] = {column: [] for column, _ in layout.keep.values()}
    for number, raw in chunk.lines():
        fields = split(raw, layout, name, number)
        if fields is None:
            continue
        expected = len(layout.fields)
        if len(fields) > expected and layout.more is not None:
            refuse_joined(fields, raw, layout, name, number)
        elif len(fields) != expected:
            raise InputError(
                f"{_count(len(fields))} where {layout.what} has {expected} "
                f"({' '.join(layout.fields)}): {_shown(raw)}",
                file=name,
                line=number,
                fix=_separator_hint(raw, layout),
            )
        for at, (column, _) in layout.keep.items():
            columns[column].append(_value(fields[at], at, layout, name, number))
    schema = dict(layout.keep.values())
    return pl.DataFrame(columns, schema=schema)


def refuse_joined(
    fields: Sequence[str], raw: bytes, layout: Layout, name: str, number: int
) -> None:
    """Raise InputError if another line begins within a line: its row would be lost."""
    if layout.more is not None and layout.more.joined(fields):
        raise InputError(
            f"{JOINED}: {_shown(raw)}",
            file=name,
            line=number,
            fix="start a new line there; was a line end lost when files were concatenated?",
        )


def split(raw: bytes, layout: Layout, name: str, number: int) -> list[str] | None:
    """The fields of a line, or None for a blank line or a comment."""
    refuse_return(raw, name, number)
    if layout.comments and b"\x00" not in raw and raw.lstrip(_SPACE).startswith(b"#"):
        return None
    text = text_of(raw, name, number)
    if layout.tabs:
        text = text.rstrip("\r")
        return text.split("\t") if text.strip() else None
    # Only ASCII white space separates, as in the C tools: ids may contain non-breaking spaces.
    return re.split(r"[ \t\r\v\f]+", stripped) if (stripped := text.strip(" \t\r\v\f")) else None


def _value(text: str, at: int, layout: Layout, name: str, number: int) -> object:
    column, dtype = layout.keep[at]
    read = _NUMBERS.get(dtype)
    if read is None:
        if text == "" and column not in layout.blank:
            raise InputError(f"the {column} is empty", file=name, line=number)
        return text
    try:
        if "_" in text or not text.isascii():
            raise ValueError
        return read(text)
    except ValueError:
        if column in layout.optional:
            return None
        raise InputError(
            f"the {column} {text!r} is not a number",
            file=name,
            line=number,
            fix="correct it, and check for others",
            command="karat lint lists all such lines",
        ) from None


def places(source: Source, layout: Layout, ids: tuple[int, ...]) -> Iterator[Place]:
    """Every line with its ids, slowly; lines that do not fit the layout are skipped."""
    for number, raw in source.lines():
        fields = split(raw, layout, source.name, number)
        if fields is not None and len(fields) > max(ids):
            yield Place(number, tuple(fields[at] for at in ids))


def _count(fields: int) -> str:
    return "1 field" if fields == 1 else f"{fields} fields"


def _shown(raw: bytes) -> str:
    text = raw[:60].decode("utf-8", "replace").rstrip("\r")
    return repr(text + "…" if len(raw) > 60 else text)


def _separator_hint(raw: bytes, layout: Layout) -> str | None:
    if raw.count(b",") >= len(layout.fields) - 1:
        return "it looks comma-separated: name the format csv, or add a header line"
    if raw.count(b";") >= len(layout.fields) - 1:
        return "it looks separated by semicolons: add a header line to have it read as CSV"
    if layout.tabs and raw.count(b"\t") == 0 and len(raw.split()) >= len(layout.fields):
        return "separate the fields by tabs, not spaces"
    return None
