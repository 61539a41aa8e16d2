"""Reads lines of fields: TREC qrels and runs, MS MARCO runs.

Each chunk goes through the fast parser of the readers first. Only a chunk that it refuses is read
line by line, and every faulty line is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import InputError
from karat.formats.tables import msmarco, trec
from karat.formats.tables.lines import Further, Layout, ahead, parse
from karat.formats.tables.source import Chunk, Source
from karat.workflows.lint.tally import KEPT, Tally

_WHITE = np.zeros(256, np.bool_)
_WHITE[list(b" \t\r\n\v\f")] = True
_TO_SPACE = bytes.maketrans(b"\t\v\f", b"   ")
_ENDS = re.compile(rb"\r+(?=\n|\Z)")
_NEWLINE, _RETURN, _HASH = ord("\n"), ord("\r"), ord("#")


@dataclass(slots=True)
class LineEnds:
    """The line ends of a file: count and first lines of each kind."""

    counts: dict[str, int] = field(default_factory=lambda: {"crlf": 0, "lf": 0})
    first: dict[str, list[int]] = field(default_factory=lambda: {"crlf": [], "lf": []})

    def see(self, chunk: Chunk) -> None:
        lines = chunk.data.count(b"\n")
        crlf = chunk.data.count(b"\r\n") if b"\r" in chunk.data else 0
        for kind, count in (("crlf", crlf), ("lf", lines - crlf)):
            self.counts[kind] += count
            if count and len(self.first[kind]) < KEPT:
                self.first[kind] += self._where(chunk, kind, lines == count)

    def report(self, tally: Tally) -> None:
        crlf, lf = self.counts["crlf"], self.counts["lf"]
        if crlf and lf:
            fewer, other = ("crlf", "LF") if crlf <= lf else ("lf", "CR LF")
            name = "CR LF" if fewer == "crlf" else "LF"
            says = f"these lines end in {name}, the others in {other}"
            tally.add("mixed-line-ends", self.first[fewer][:KEPT], count=min(crlf, lf), says=says)
        elif crlf:
            tally.add("crlf", self.first["crlf"][:KEPT], count=crlf)

    @staticmethod
    def _where(chunk: Chunk, kind: str, every: bool) -> list[int]:
        if every:
            most = min(KEPT, chunk.data.count(b"\n"))
            return list(range(chunk.first_line, chunk.first_line + most))
        data = np.frombuffer(chunk.data, np.uint8)
        ends = np.flatnonzero(data == _NEWLINE)
        is_crlf = (ends > 0) & (data[ends - 1] == ord("\r"))
        mask = is_crlf if kind == "crlf" else ~is_crlf
        lines: list[int] = (np.flatnonzero(mask)[:KEPT] + chunk.first_line).tolist()
        return lines


@dataclass(frozen=True, slots=True)
class Looked:
    chunk: Chunk
    lines: NDArray[np.int64]
    short: NDArray[np.int64]


def look(
    chunk: Chunk,
    tally: Tally,
    *,
    spaces: bool,
    comments: bool,
    fields: int = 0,
    more: Further | None = None,
) -> Looked:
    """Count blank lines, comments, doubled separators, extra fields and joined lines."""
    data = chunk.data.replace(b"\r\n", b"\n") if b"\r" in chunk.data else chunk.data
    if b"\r" in data:
        data = _ENDS.sub(b"", data)
    if spaces:
        data = data.translate(_TO_SPACE)
    if not data.endswith(b"\n"):
        last = chunk.first_line + data.count(b"\n")
        tally.add("no-final-newline", [last], example=_line(chunk, last))
    letters = np.frombuffer(data, np.uint8)
    white = _WHITE[letters]
    ends = np.flatnonzero(letters == _NEWLINE)
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.concatenate(([0], ends[:-1] + 1))
    skipped = np.zeros(len(starts), np.bool_)

    pairs = white[1:] & white[:-1]
    if pairs.any() or white[0]:
        blank = np.add.reduceat(~white, starts) == 0
        skipped |= blank
        _count(tally, "blank-line", blank, chunk)
        if spaces:
            at = np.flatnonzero(pairs)
            at = at[(letters[at] != _NEWLINE) | (letters[at + 1] != _NEWLINE)]
            # Blanks at the end of a line belong to it; blanks after the newline to the next.
            at += letters[at] == _NEWLINE
            doubled = np.zeros(len(starts), np.bool_)
            doubled[np.searchsorted(ends, at)] = True
            doubled[0] |= bool(white[0])
            _count(tally, "doubled-separator", doubled & ~blank, chunk)
    if b"\r" in data:
        within = np.add.reduceat(letters == _RETURN, starts) > 0
        skipped |= within
        _count(tally, "carriage-return", within, chunk)
    if comments and b"#" in data:
        comment = letters[np.minimum(starts, len(letters) - 1)] == _HASH
        skipped |= comment
        _count(tally, "comment-line", comment, chunk)
    short = np.empty(0, np.int64)
    if fields and int(np.count_nonzero(white)) != fields * len(starts):
        begins = ~white
        begins[1:] &= white[:-1]
        field_counts = np.add.reduceat(begins, starts, dtype=np.int64)
        over = (field_counts > fields) & ~skipped
        if more is not None and over.any() and more.like.search(data):
            joined = _joined(data, over, starts, ends, more)
            _count(tally, "joined-lines", joined, chunk)
            skipped |= joined
        _count(tally, "extra-fields", over & ~skipped, chunk)
        short = np.flatnonzero((field_counts < fields) & ~skipped) + chunk.first_line
    lines = np.flatnonzero(~skipped) + chunk.first_line
    return Looked(Chunk(data, chunk.first_line), lines, short)


def _joined(
    data: bytes,
    over: NDArray[np.bool_],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    more: Further,
) -> NDArray[np.bool_]:
    """Which of the lines with extra fields contain another line."""
    joined = np.zeros_like(over)
    for at in np.flatnonzero(over).tolist():
        fields = data[starts[at] : ends[at]].decode("utf-8", "replace").split(" ")
        joined[at] = more.joined([field for field in fields if field])
    return joined


def _count(tally: Tally, code: str, mask: NDArray[np.bool_], chunk: Chunk) -> None:
    lines = np.flatnonzero(mask) + chunk.first_line
    if len(lines):
        tally.add(code, lines, example=_line(chunk, int(lines[0])) or None)


def _line(chunk: Chunk, line: int) -> str:
    start = 0
    for _ in range(line - chunk.first_line):
        start = chunk.data.index(b"\n", start) + 1
    end = chunk.data.find(b"\n", start)
    raw = chunk.data[start : None if end < 0 else end]
    return raw[:300].decode("utf-8", "backslashreplace").rstrip("\r")


_BLOCK = 1000  # lines
_BLANKS = re.compile(r"[ \t\r\v\f]+")
_ODD = r"[\s\p{Cc}\p{Cf}]"

LAYOUTS = {
    ("trec", "qrels"): trec.QRELS,
    ("trec", "run"): trec.RUN,
    ("msmarco", "qrels"): trec.QRELS,
    ("msmarco", "run"): msmarco.RUN,
}


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a file: ``line`` (0 if there is none) and the columns of the role."""

    rows: pl.DataFrame
    tally: Tally
    size: int


def pieces(source: Source, layout: Layout, ends: LineEnds) -> Iterator[Piece]:
    def seen() -> Iterator[Chunk]:
        for chunk in source.chunks():
            ends.see(chunk)
            yield chunk

    yield from ahead(lambda chunk: _piece(chunk, layout, source.name), seen())


def odd_ids(rows: pl.DataFrame, tally: Tally, *columns: str) -> None:
    for column in columns:
        marked = rows.filter(rows[column].str.starts_with("\ufeff").fill_null(value=False))
        if marked.height:
            lines = marked["line"].to_numpy()
            tally.add("bom-within", lines, example=marked[column][0])
        odd = rows.filter(rows[column].str.contains(_ODD).fill_null(value=False))
        if odd.height:
            tally.add("id-with-odd-space", odd["line"].to_numpy(), example=odd[column][0])


def _piece(chunk: Chunk, layout: Layout, name: str) -> Piece:
    tally = Tally()
    looked = look(
        chunk,
        tally,
        spaces=not layout.tabs,
        comments=layout.comments,
        fields=0 if layout.more is None else len(layout.fields),
        more=layout.more,
    )
    plain = chunk.data.isascii()
    rows = _fast(looked, layout, name)
    if rows is None:
        # Usually few lines are faulty: blocks without them are still parsed fast.
        blocks = []
        for block in _blocks(looked):
            fast = _fast(block, layout, name)
            blocks.append(_line_by_line(block.chunk, layout, tally) if fast is None else fast)
        rows = pl.concat(blocks, how="diagonal")
    if layout is msmarco.RUN:
        rows = rows.with_columns(score=-pl.col("rank").cast(pl.Float64))
    elif layout.more:
        _ranks(rows, tally, looked.chunk)
    if layout.tabs or not plain:
        odd_ids(rows, tally, "query_id", "doc_id")
    return Piece(rows, tally, len(chunk.data))


def _fast(looked: Looked, layout: Layout, name: str) -> pl.DataFrame | None:
    """The rows, by the parser of the readers; None if it refuses a line."""
    if len(looked.short) or not _is_utf8(looked.chunk.data):
        return None
    try:
        rows = parse(looked.chunk, layout, name)
    except (InputError, pl.exceptions.PanicException):
        return None
    if rows.height != len(looked.lines):
        return None
    return rows.with_columns(pl.Series("line", looked.lines, dtype=pl.Int64))


def _blocks(looked: Looked) -> Iterator[Looked]:
    data, line, start = looked.chunk.data, looked.chunk.first_line, 0
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))[_BLOCK - 1 :: _BLOCK] + 1
    for end in (*ends.tolist(), len(data)):
        if end > start:
            block = Chunk(data[start:end], line)
            after = line + _BLOCK
            inside = (looked.lines >= line) & (looked.lines < after)
            short = (looked.short >= line) & (looked.short < after)
            yield Looked(block, looked.lines[inside], looked.short[short])
            line, start = after, end


def _ranks(rows: pl.DataFrame, tally: Tally, chunk: Chunk) -> None:
    if "rank" in rows.columns and not rows["rank"].null_count():
        return
    lines = chunk.data.split(b"\n")
    wrong, example = [], None
    for line in rows["line"].to_list():
        fields = lines[line - chunk.first_line].split()
        if len(fields) > 3 and not re.fullmatch(rb"[-+]?\d+", fields[3]):
            wrong.append(line)
            example = example or b" ".join(fields).decode("utf-8", "backslashreplace")
    tally.add("rank-not-a-number", wrong, example=example)


def _line_by_line(chunk: Chunk, layout: Layout, tally: Tally) -> pl.DataFrame:
    """The rows of the valid lines; the others are counted."""
    columns: dict[str, list[object]] = {column: [] for column, _ in layout.keep.values()}
    numbers: list[int] = []
    for number, raw in enumerate(chunk.data.split(b"\n"), chunk.first_line):
        fields = _fields(raw, layout, tally, number)
        if fields is None or not _whole(fields, raw, layout, tally, number):
            continue
        values = {column: _value(fields[at], dtype) for at, (column, dtype) in layout.keep.items()}
        if _faulty(values, layout, raw, tally, number):
            continue
        for column, value in values.items():
            columns[column].append(value)
        numbers.append(number)
    schema = dict(layout.keep.values())
    return pl.DataFrame(columns, schema=schema).with_columns(
        pl.Series("line", np.array(numbers, np.int64))
    )


def _fields(raw: bytes, layout: Layout, tally: Tally, number: int) -> list[str] | None:
    if not raw.strip() or (layout.comments and raw.startswith(b"#")):
        return None
    if b"\r" in raw:  # already counted as joined lines
        return None
    text = text_of(raw, tally, number)
    return text.split("\t") if layout.tabs else _BLANKS.split(text.strip(" \t\r\v\f"))


def text_of(raw: bytes, tally: Tally, number: int) -> str:
    """A line as text; bytes that are not UTF-8 are reported and escaped."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        text = raw.decode("utf-8", "backslashreplace")
        says = f"byte {error.start + 1} of the line is not UTF-8"
        tally.add("not-utf8", [number], example=text, says=says)
    if "\x00" in text:
        tally.add("nul-byte", [number], example=text)
    return text


def _whole(fields: list[str], raw: bytes, layout: Layout, tally: Tally, number: int) -> bool:
    """Whether the line has the expected fields; reports it if not."""
    expected = len(layout.fields)
    if len(fields) > expected and layout.more is not None:
        return not layout.more.joined(fields)
    if len(fields) == expected:
        return True
    example = raw.decode("utf-8", "backslashreplace")
    if len(fields) == expected - 1 and layout.fields[-1] == "grade":
        what = f"no grade: {expected - 1} fields where {layout.what} has {expected}"
        says = f"{what} ({' '.join(layout.fields)})"
        tally.add("missing-grade", [number], example=example, says=says)
        return False
    count = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
    says = f"{count} where {layout.what} has {expected} ({' '.join(layout.fields)})"
    fix = None
    if raw.count(b",") >= expected - 1:
        fix = "it looks comma-separated: add a header line with column names, as in CSV"
    elif layout.tabs and b"\t" not in raw:
        fix = "separate the fields by tabs, not spaces"
    tally.add("wrong-field-count", [number], example=example, says=says, fix=fix)
    return False


def _value(text: str, dtype: type[pl.DataType]) -> object:
    """The value of a field; None if it has another type."""
    if dtype is pl.String:
        return text
    if dtype is pl.Int64:
        return int(text) if re.fullmatch(r"[-+]?[0-9]{1,18}", text) else None
    return number_of(text)


def _faulty(
    values: dict[str, object], layout: Layout, raw: bytes, tally: Tally, number: int
) -> bool:
    example = raw.decode("utf-8", "backslashreplace")
    for column, value in values.items():
        if value == "":
            tally.add("missing-id", [number], example=example)
            return True
        if value is None and column not in layout.optional:
            code = "grade-not-a-number" if column == "grade" else "score-not-a-number"
            says = "the rank is not a whole number" if column == "rank" else None
            tally.add(code, [number], example=example, says=says)
            return True
    return False


def number_of(value: Any) -> float | None:
    """A number, of any type that a file can have; None if it is not one."""
    if isinstance(value, bool) or "_" in str(value) or not str(value).isascii():
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
