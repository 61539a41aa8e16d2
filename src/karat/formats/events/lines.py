"""The lines of a log in chunks; lines longer than any event are skipped without loading them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from karat.errors import InputError
from karat.formats.tables.source import Source

LONGEST = 1 << 20  # 1 MiB, the longest event. A search with 1,000 documents takes 40 KB.
CHUNK = 12 << 20
NO_TEXT = "not UTF-8"
_ENCODINGS = (("latin1", "Latin-1"), ("cp1252", "Windows-1252"))


@dataclass(frozen=True, slots=True)
class Lines:
    data: bytes
    first: int
    long: tuple[int, ...] = ()


def encoding_of(raw: bytes) -> tuple[str, str]:
    """The likely encoding of text that is not UTF-8: name for iconv, display name.

    From 0x80 to 0x9F, Latin-1 has control characters and Windows-1252 dashes, quotes and €.
    """
    return _ENCODINGS[any(0x80 <= byte < 0xA0 for byte in raw)]


def not_utf8(raw: bytes, file: str, line: int | None = None) -> InputError:
    """The error for a log in another encoding; ``raw`` are the bytes that are not UTF-8."""
    code, name = encoding_of(raw)
    return InputError(
        f"not UTF-8; it looks like {name}",
        file=file,
        line=line,
        fix="save the file as UTF-8",
        command=in_utf8(code, file),
    )


def in_utf8(code: str, file: str) -> str:
    """The command that converts a file to UTF-8; ``code`` is iconv's name of its encoding."""
    return f"iconv -f {code} -t UTF-8 {file} > utf8-{file.rpartition('/')[2]}, and import that"


def lines(source: Source, size: int | None = None) -> Iterator[Lines]:
    """The lines of a file, in chunks of about ``size`` bytes (12 MiB); may be called once.

    A line that is too long ends a chunk: the lines after it are in the next.
    """
    size = size or CHUNK
    number, buffer, skipping = 1, bytearray(), False
    long: tuple[int, ...] = ()
    pieces = source.pieces()
    while True:
        try:
            piece = next(pieces, b"")
        except InputError:
            # Yield the complete lines before the damage first.
            complete = bytes(buffer[: buffer.rfind(b"\n") + 1])
            if complete or long:
                yield from _cut(complete, number, long)
            raise
        if not piece:
            break
        source.watch(len(piece))
        if skipping:
            end = piece.find(b"\n")
            if end < 0:
                continue
            skipping, long = False, (*long, number)
            number += 1
            piece = piece[end + 1 :]
        buffer += piece
        end = buffer.rfind(b"\n") + 1
        if len(buffer) - end > LONGEST:
            skipping = True
        elif end < size:
            continue
        if end:
            data = bytes(buffer[:end])
            yield from _cut(data, number, long)
            number, long = number + data.count(b"\n"), ()
        del buffer[: len(buffer) if skipping else end]
    if skipping:
        yield Lines(b"", number, (*long, number))
    elif buffer or long:
        yield from _cut(bytes(buffer), number, long)


def _cut(data: bytes, number: int, long: tuple[int, ...]) -> Iterator[Lines]:
    """Lines, without those that are too long."""
    start = 0
    while True:
        found = _long(data, start)
        if found is None:
            rest = data[start:] if start else data
            yield Lines(rest, number, long)
            return
        begin, end = found
        if begin > start:
            yield Lines(data[start:begin], number, long)
            number, long = number + data.count(b"\n", start, begin), ()
        long = (*long, number)
        number += 1
        start = end


def _long(data: bytes, start: int) -> tuple[int, int] | None:
    """Start and end of the next line that is too long; jumps from line end to line end."""
    begin = start
    while len(data) - begin > LONGEST:
        # If there is a line end within LONGEST bytes, all lines up to it are short enough.
        end = data.rfind(b"\n", begin, begin + LONGEST + 1)
        if end < 0:
            end = data.find(b"\n", begin)
            return begin, len(data) if end < 0 else end + 1
        begin = end + 1
    return None
