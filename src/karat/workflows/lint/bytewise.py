"""Bytewise checks, before fields are parsed: line ends, blanks, comments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from karat.formats.tables.lines import Further
from karat.formats.tables.source import Chunk
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
