"""Files and standard input, plain or compressed, in chunks of whole lines.

Files are untrusted: compression is detected by content, not by name; line length and expansion are
limited; a damaged file raises one error that names it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

from karat.errors import InputError, nearest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHUNK = 1 << 22
HEAD = 1 << 16
TAIL = 1 << 12
LONGEST_LINE = 1 << 26  # 64 MiB, the longest line of a qrels, run, query or document file
_STEP = 1 << 16  # bytes decompressed at once: up to this much is lost before damaged data
_ALIKE = 0.65  # similarity of file names for "did you mean"
_BOMB_FROM = 1 << 26  # short lines take ten times as much memory
BOMB_RATIO = 250
"""The largest compression ratio accepted: real text compresses 4 to 40 times; gzip can reach 1,030
times, zstd and Parquet more than 10,000."""

BOM = b"\xef\xbb\xbf"
"""UTF-8's byte order mark. Polars drops one at the start of any piece it reads."""
_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd", "bzip2": b"BZh"}
_BROKEN = (EOFError, gzip.BadGzipFile, zlib.error, OSError, zstd.ZstdError)


class EmptyFile(InputError):
    """A file without content; the default fix is to write it again."""

    def __init__(self, what: str, *, file: str | None, fix: str | None = None) -> None:
        again = "write it again: the program that made it may have failed"
        super().__init__(what, file=file, fix=fix or again)


class Chunk:
    """Some whole lines of a file, read lazily.

    Args:
        data: The bytes, ending with a newline unless the file does not; or a function for them.
        first_line: Number of the first line, from 1; or a function for it.
    """

    def __init__(
        self, data: bytes | Callable[[], bytes], first_line: int | Callable[[], int]
    ) -> None:
        self._data, self._first_line = data, first_line

    @property
    def data(self) -> bytes:
        if callable(self._data):
            self._data = self._data()
        return self._data

    @property
    def first_line(self) -> int:
        """The number of the first line, from 1."""
        if callable(self._first_line):
            self._first_line = self._first_line()
        return self._first_line

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Every line with its number, without its line end; the last is empty if one ends it."""
        return enumerate(self.data.split(b"\n"), self.first_line)


def not_utf8(what: str, name: str, line: int) -> InputError:
    """The error for a line that is not UTF-8."""
    return InputError(
        what,
        file=name,
        line=line,
        fix="save the file as UTF-8",
        command=f"iconv -f latin1 -t UTF-8 {name} (if it is Latin-1)",
    )


def text_of(raw: bytes, name: str, line: int) -> str:
    """A line as text; raises InputError if it is binary or not UTF-8."""
    if b"\x00" in raw:
        raise InputError("binary data, not text", file=name, line=line)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"byte {error.start + 1} of the line is not UTF-8"
        raise not_utf8(what, name, line) from None


def shown(name: str) -> str:
    """A file name as printable text: bytes that are not UTF-8 become U+FFFD."""
    return re.sub("[\ud800-\udfff]", "\ufffd", name)


class Source:
    """A file opened for reading.

    Use it in a ``with`` statement, or close it.

    Args:
        path: The path; ``-`` for standard input.
        name: Its name in messages, if not the path.

    Attributes:
        path: The path; None for standard input.
        again: The path if it can be opened a second time; None for standard input and pipes.
        head: The first bytes, decompressed, up to 64 KiB.
        compressed: gzip | zstd | bzip2 | None.
        tail: The last bytes that ``chunks`` returned.
        watch: Called with the size of each chunk; may be set.
    """

    def __init__(self, path: str | Path, name: str | None = None) -> None:
        self.path = None if str(path) == "-" else Path(path)
        self.name = name or ("standard input" if self.path is None else shown(str(path)))
        self.again = self.path if self.path and self.path.is_file() else None
        self._produced = 0
        self._broken: Exception | None = None
        self.tail = b""
        self._size = 0
        self.watch: Callable[[int], None] = lambda _size: None
        self._raw = self._open_raw()
        try:
            self.compressed, self._stream = self._decompressed()
            self._look()
        except BaseException:
            self.close()
            raise

    def _look(self) -> None:
        head = self._read_full(HEAD)
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise self.wrong(
                "expected UTF-8, got UTF-16",
                fix="save the file as UTF-8",
                command=f"iconv -f UTF-16 -t UTF-8 {self.name}",
            )
        self.bom = head.startswith(BOM)
        self.head = head[3:] if self.bom else head
        if not self.head.strip():
            if self._broken is not None:
                raise self._damaged()
            empty = self.compressed and not self.head and not self._read(1)
            raise EmptyFile(
                f"the {self.compressed} file is empty" if empty else "the file is empty",
                file=self.name,
            )

    def wrong(self, what: str, **facts: Any) -> InputError:
        """An error in the file; ``facts`` are the arguments of ``InputError``."""
        return InputError(what, file=self.name, **facts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.path is not None:
            self._raw.close()

    def chunks(self, size: int | None = None) -> Iterator[Chunk]:
        """The whole file in chunks of whole lines; may be called once."""
        size = size or CHUNK
        if self._can_be_cut():
            yield from self._cut(size)
            return
        line, data = 1, self.head
        while data:
            if not data.endswith(b"\n"):
                data += self._rest_of_line(data, line)
            self.tail = data[-TAIL:]
            self.watch(len(data))
            yield Chunk(data, line)
            line += data.count(b"\n")
            data = self._read(size)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Every line with its number; may be called once, instead of ``chunks``."""
        for chunk in self.chunks():
            yield from chunk.lines()

    def _can_be_cut(self) -> bool:
        """Whether the file is on disk, not compressed, and large enough to read in parallel."""
        plain = self.again is not None and self.compressed is None and hasattr(os, "pread")
        if plain:
            self._size = os.fstat(self._raw.fileno()).st_size
        return plain and self._size > 2 * CHUNK

    def _cut(self, size: int) -> Iterator[Chunk]:
        """Lazy chunks: the threads that parse them read them too."""
        start, end = len(BOM) if self.bom else 0, self._size
        while start < end:
            stop = min(start + size, end)
            if stop < end:
                stop = self._line_end(stop)
            self.tail = self._piece(max(start, stop - TAIL), stop)
            self.watch(stop - start)
            yield Chunk(partial(self._piece, start, stop), partial(self._line_at, start))
            start = stop

    def _piece(self, start: int, stop: int) -> bytes:
        try:
            data = os.pread(self._raw.fileno(), stop - start, start)
        except OSError as error:
            raise self.wrong(f"cannot be read: {error.strerror}") from None
        if len(data) < stop - start and stop <= self._size:
            raise self.wrong("the file changed while it was being read")
        return data

    def _line_end(self, start: int) -> int:
        """The end of the line with this byte."""
        place = start
        while piece := self._piece(place, place + HEAD):
            found = piece.find(b"\n")
            if found >= 0:
                return place + found + 1
            place += len(piece)
            if place - start > LONGEST_LINE:
                raise _too_long(self.name, self._line_at(start))
        return place

    def _line_at(self, start: int) -> int:
        """The line number of a byte; counts from the start, as only errors need it."""
        return 1 + sum(
            self._piece(place, min(place + CHUNK, start)).count(b"\n")
            for place in range(0, start, CHUNK)
        )

    def _rest_of_line(self, data: bytes, line: int) -> bytes:
        """The rest of the last line; raises InputError if the line is too long."""
        rest = self._read(LONGEST_LINE + 1, to_line_end=True)
        begun = len(data) - data.rfind(b"\n") - 1
        if begun + len(rest) > LONGEST_LINE:
            raise _too_long(self.name, line + data.count(b"\n"))
        return rest

    @property
    def stored(self) -> int:
        """Size of the file on disk; for standard input and pipes, the bytes read so far."""
        if self.again is not None:
            return self.again.stat().st_size
        return self._consumed.count if self.compressed else self._produced

    def whole(self) -> bytes:
        """The whole file; may be called once, instead of ``chunks``."""
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """The whole file in pieces that ignore line ends; may be called once, as ``whole``."""
        yield self.head
        yield from iter(lambda: self._read(CHUNK), b"")

    def _open_raw(self) -> io.BufferedReader:
        if self.path is None:
            return cast(io.BufferedReader, sys.stdin.buffer)
        try:
            return self.path.open("rb")
        except FileNotFoundError:
            raise self.wrong("there is no such file", fix=_similar_name(self.path)) from None
        except IsADirectoryError:
            raise self.wrong(
                "expected a file, got a folder",
                fix="name a file in it; only qrels, queries and documents may be BEIR folders",
            ) from None
        except OSError as error:
            raise self.wrong(f"cannot be opened: {error.strerror}") from None

    def _decompressed(self) -> tuple[str | None, IO[bytes]]:
        try:
            magic = self._raw.read(4)
            if self._raw.seekable():
                self._raw.seek(-len(magic), io.SEEK_CUR)
                magic_read = b""
            else:
                magic_read = magic
        except OSError as error:
            raise self.wrong(f"cannot be read: {error.strerror}") from None
        kind = next((kind for kind, start in _MAGIC.items() if magic.startswith(start)), None)
        if kind is None and not magic_read:
            return None, self._raw
        self._consumed = _Counted(self._raw, magic_read)
        raw = io.BufferedReader(self._consumed, 1 << 16)
        if kind == "gzip":
            return kind, cast(IO[bytes], gzip.GzipFile(fileobj=raw))
        if kind == "zstd":
            return kind, cast(IO[bytes], zstd.ZstdFile(raw))
        if kind == "bzip2":
            return kind, cast(IO[bytes], bz2.BZ2File(raw))
        return None, raw

    def _read_full(self, size: int) -> bytes:
        """Read up to a size, the end or damage; pipes may return less at a time."""
        parts = []
        while size > 0 and self._broken is None and (part := self._read(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _read(self, size: int, *, to_line_end: bool = False) -> bytes:
        """Read up to a size; a damaged stream returns the data before the damage, then raises."""
        if self._broken is not None:
            raise self._damaged()
        try:
            if to_line_end:
                data = self._stream.readline(size)
            elif self.compressed:
                data = self._unpacked(size)
            else:
                data = self._stream.read(size)
        except _BROKEN as error:
            self._broken = error
            raise self._damaged() from None
        self._produced += len(data)
        if self.compressed and self._produced > _BOMB_FROM:
            ratio = self._produced / max(1, self._consumed.count)
            if ratio > BOMB_RATIO:
                raise self.wrong(
                    f"the {self.compressed} file expands more than {BOMB_RATIO} times, which "
                    "real data does not",
                    fix="if you trust it, decompress it first",
                )
        return data

    def _unpacked(self, size: int) -> bytes:
        """Like ``read``, which would discard what it decompressed before an error."""
        parts: list[bytes] = []
        try:
            while size > 0 and (part := self._stream.read1(min(size, _STEP))):  # type: ignore[attr-defined]
                parts.append(part)
                size -= len(part)
        except _BROKEN as error:
            if not parts:
                raise
            self._broken = error
        return b"".join(parts)

    def _damaged(self) -> InputError:
        kind = self.compressed or "file"
        return self.wrong(
            f"the {kind} data is damaged or truncated ({self._broken})",
            fix="copy or download it again",
        )


class _Counted(io.RawIOBase):
    """Raw bytes with a count; ``first`` were already read to detect the compression."""

    def __init__(self, raw: io.BufferedReader, first: bytes) -> None:
        self._raw, self._first = raw, first
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data, self._first = self._first, b""
        data = data or self._raw.read1(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)


def _too_long(name: str, line: int) -> InputError:
    return InputError(
        f"the line is longer than {LONGEST_LINE >> 20} MiB",
        file=name,
        line=line,
        fix="is this a text file with one record per line?",
    )


def _similar_name(path: Path) -> str | None:
    try:
        siblings = [sibling.name for sibling in path.parent.iterdir()]
    except OSError:
        return f"the folder {path.parent} does not exist"
    # Compare names without extensions: files that share only .toml are not similar.
    bare = _bare(path.name)
    alike = [name for name in siblings if SequenceMatcher(None, bare, _bare(name)).ratio() > _ALIKE]
    best = (nearest(path.name, alike, 1) or alike)[:1]
    return f"did you mean {path.parent / best[0]}?" if best else "check its spelling and folder"


def _bare(name: str) -> str:
    return (name.partition(".")[0] or name).casefold()
