"""The content of another tool's file, decompressed: lines, CSV rows and JSON nodes with places."""

from __future__ import annotations

import io
import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karat.errors import InputError, is_disk_full
from karat.formats.own.fields import short
from karat.formats.tables.delimited import decimal_point, is_semicolon_header, records
from karat.formats.tables.detect import refuse_binary
from karat.formats.tables.jsonl import parsed
from karat.formats.tables.reading import stem
from karat.formats.tables.source import BOM, BOMB_RATIO, EmptyFile, Source, text_of

MOST = 1 << 30  # 1 GiB, the largest file of another tool, decompressed
BOMB_FROM = 1 << 26  # bytes; smaller files may expand more than BOMB_RATIO
_FIRST = 1 << 20  # bytes of the longest header
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
FORMULA = re.compile(r" *[=+\-@\t\r]")
"""Matches the start of cells that spreadsheets run as formulas, with or without leading spaces."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The content of a file, decompressed, without a byte order mark."""

    name: str
    stem: str
    data: bytes
    ending: str = ""

    def wrong(self, what: str, **facts: Any) -> InputError:
        """An error in the file; ``facts`` are the arguments of ``InputError``."""
        return InputError(what, file=self.name, **facts)

    def json(self) -> Node:
        """The content as one JSON value; raises InputError with the line if it is invalid."""
        return Node(parsed(self.data, self.name, 1), "", self.name)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Lines that are not blank, stripped, with their numbers from 1."""
        for number, text in enumerate(self.texts(), 1):
            if stripped := text.strip():
                yield number, stripped

    def texts(self) -> Iterator[str]:
        """All lines, without their line ends."""
        raws = self.data.removesuffix(b"\n").split(b"\n")
        return (text_of(raw, self.name, number) for number, raw in enumerate(raws, 1))

    def sheet(self) -> Sheet:
        """The content as CSV or TSV with a header, from which the separator is detected."""
        return Sheet(self)


class Sheet:
    """A CSV or TSV file with a header; duplicate columns are called "NAME (2)" and so on.

    ``line`` is that of the header, and then of the row that is being read.
    """

    def __init__(self, foreign: SourceFile) -> None:
        first = foreign.data[:_FIRST].lstrip(b"\r\n").partition(b"\n")[0]
        semi = is_semicolon_header(first.decode("utf-8", "replace"))
        self.separator = "\t" if b"\t" in first else ";" if semi else ","
        lines = (f"{line}\n" for line in foreign.texts())
        self._records = records(lines, self.separator, foreign.name)
        self.file, self.restored, self.decimal, self.cells = foreign.name, 0, 0, 0
        found = next(self._records, None)
        if found is None:
            raise EmptyFile("the file is empty", file=foreign.name)
        cells = [self.restore(cell).strip() for cell in found[1]]
        self.line = found[0]
        self.twice = sorted({cell for cell in cells if cells.count(cell) > 1})
        self.names = [
            f"{cell} ({n})" if (n := cells[: i + 1].count(cell)) > 1 else cell
            for i, cell in enumerate(cells)
        ]

    def rows(self) -> Iterator[dict[str, str]]:
        """Every row; missing cells are empty."""
        for line, cells in self._records:
            self.line = line
            if len(cells) > len(self.names):
                raise self.wrong(
                    f"{len(cells)} cells where there are {len(self.names)} columns",
                    fix="quote cells that contain the separator",
                )
            self.cells = len(cells)
            padded = cells + [""] * (len(self.names) - len(cells))
            yield dict(zip(self.names, map(self.restore, padded), strict=True))

    def wrong(self, what: str, *, query: str | None = None, fix: str | None = None) -> InputError:
        """An error in the line that is being read."""
        return InputError(what, file=self.file, line=self.line, query=query, fix=fix)

    def grade(self, cell: str, query: str) -> float:
        """The grade in a cell; in files with semicolons, ``1,5`` is 1.5."""
        plain = decimal_point(cell) if self.separator == ";" else cell
        self.decimal += plain != cell
        return graded(plain, self.file, self.line, query, self.separator)

    def position(self, cell: str) -> float:
        """The position in a cell; raises InputError if it is not a number."""
        place = number(cell)
        if place is None:
            raise self.wrong(f"the position {cell[:60]!r} is not a number")
        return place

    def restore(self, cell: str) -> str:
        """A cell without the space that keeps spreadsheets from running it as a formula."""
        if cell.startswith(" ") and FORMULA.match(cell):
            self.restored += 1
            return cell[1:]
        return cell


class Node:
    """A value in a JSON file, with its ``jq`` path: ``.queries[0].ratings``."""

    def __init__(self, value: Any, path: str, file: str) -> None:
        self.value, self.path, self.file = value, path, file

    def wrong(self, expected: str, fix: str | None = None) -> InputError:
        where = self.path or "the file"
        return InputError(
            f"{where} is {short(self.value)}, not {expected}", file=self.file, fix=fix
        )

    def has(self, key: str) -> bool:
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def get(self, key: str) -> Node | None:
        """The value of a key, None if absent or null; raises InputError if not an object."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        value = self.value.get(key)
        return None if value is None else self._at(key, value)

    def need(self, key: str) -> Node:
        """The value of a key; raises InputError if not an object, or the key is absent or null."""
        node = self.get(key)
        if node is None:
            names = ", ".join(map(repr, list(self.value)[:8])) or "nothing"
            raise InputError(
                f"{self.path or 'the file'} has no key {key!r}; its keys are {names}",
                file=self.file,
            )
        return node

    def items(self) -> Iterator[tuple[str, Node]]:
        """Keys and values of an object; raises InputError for any other value."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return ((key, self._at(key, value)) for key, value in self.value.items())

    def list(self) -> Iterator[Node]:
        """The members of an array; raises InputError for any other value."""
        if not isinstance(self.value, list):
            raise self.wrong("an array")
        return (Node(value, f"{self.path}[{i}]", self.file) for i, value in enumerate(self.value))

    def each(self, key: str) -> Iterator[Node]:
        """The members of the array under a key; none if it is absent."""
        node = self.get(key)
        return iter(()) if node is None else node.list()

    def text(self) -> str:
        """Text that is not blank; raises InputError for any other value."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.wrong("text")
        return self.value

    def text_of(self, key: str) -> str | None:
        """The text under a key, None if it is absent, null or empty."""
        node = self.get(key)
        return None if node is None or node.value == "" else node.text()

    def identifier(self) -> str:
        """An id, from a string or an integer; raises InputError for any other value."""
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            return str(self.value)
        return self.text()

    def number(self) -> float:
        """A finite number, also as a string; raises InputError for any other value."""
        value = number(self.value)
        if value is None:
            raise self.wrong("a finite number")
        return value

    def flag(self, key: str) -> bool:
        """Whether a key is true, false if absent or null; raises InputError for other values."""
        node = self.get(key)
        if node is None:
            return False
        if not isinstance(node.value, bool):
            raise node.wrong("true or false")
        return node.value

    def _at(self, key: str, value: Any) -> Node:
        plain = re.fullmatch(r"[A-Za-z_]\w*", key, re.ASCII)
        step = f".{key}" if plain else f"[{short(key)}]"
        return Node(value, self.path + step, self.file)


def number(value: Any) -> float | None:
    """A finite number, also as a string; None for anything else, including NaN and infinity."""
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text):
            return None
        value = text
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        parsed_number = float(value)
    except OverflowError:
        return None
    return parsed_number if math.isfinite(parsed_number) else None


def graded(cell: str, file: str, line: int, query: str, separator: str | None = None) -> float:
    """The number in a cell; raises InputError if it is not a number.

    ``separator`` is that of the CSV file, for the fix.
    """
    value = number(cell)
    if value is None:
        shown = cell if len(cell) <= 60 else f"{cell[:60]}…"
        alternative = ", or separate the cells by semicolons" if separator == "," else ""
        comma = number(decimal_point(cell)) is not None
        raise InputError(
            f"the rating {shown!r} is not a number",
            file=file,
            line=line,
            query=query,
            fix=f"write {decimal_point(cell)}{alternative}"
            if comma
            else "write grades as numbers, such as 2",
        )
    return value


def open_source_file(path: str | Path) -> SourceFile:
    """The content of a file, plain, gzip, zstd, bzip2, or in a ZIP file with one file."""
    with Source(path) as source:
        packed = source.head.startswith(ZIP)
        if not packed:
            refuse_binary(source)
        data, name = source.whole(), source.name
    if packed:
        data = unzipped(data, name)
    if len(data) > MOST:
        raise InputError(f"the file contains more than {MOST >> 30} GiB", file=name)
    ending = "" if str(path) == "-" else Path(path).suffix.lower()
    return SourceFile(name, stem(str(path).removesuffix(".zip")), data.removeprefix(BOM), ending)


def unzipped(data: bytes, name: str) -> bytes:
    with unzipping(name), zipfile.ZipFile(io.BytesIO(data)) as folder:
        entry = _only(folder.infolist(), name)
        with folder.open(entry) as stream:
            out = stream.read(MOST + 1)
    if not out.strip():
        raise EmptyFile(f"{entry.filename} in the ZIP file is empty", file=name)
    return out


@contextmanager
def unzipping(name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        if is_disk_full(error):
            raise InputError(
                "not enough disk space to unpack it", file=name, fix="free disk space"
            ) from error
        raise InputError(
            f"the ZIP file is damaged or truncated ({error})",
            file=name,
            fix="copy or download it again",
        ) from None
    except (ValueError, RuntimeError, UnicodeError) as error:
        raise InputError(f"the ZIP file cannot be read ({error})", file=name) from None


def files_of(entries: Sequence[zipfile.ZipInfo], name: str) -> list[zipfile.ZipInfo]:
    """The files in a ZIP file; raises InputError if a path leads outside of it."""
    for entry in entries:
        parts = re.split(r"[/\\]", entry.filename)
        if ".." in parts or not parts[0] or ":" in parts[0]:
            raise InputError(
                f"the ZIP file contains a path outside of it, {short(entry.filename)}", file=name
            )
    return [
        entry
        for entry in entries
        # macOS adds a metadata file for every file.
        if not entry.is_dir() and not entry.filename.startswith("__MACOSX/")
    ]


def check_size(entry: zipfile.ZipInfo, name: str) -> None:
    """Raise InputError for a file in a ZIP file that is encrypted or expands too much."""
    if entry.flag_bits & 1:
        raise InputError("the ZIP file is encrypted with a password", file=name)
    ratio = entry.file_size / max(1, entry.compress_size)
    if entry.file_size > MOST or (entry.file_size > BOMB_FROM and ratio > BOMB_RATIO):
        raise InputError(
            f"{entry.filename} in the ZIP file expands {ratio:.0f} times, to "
            f"{entry.file_size >> 20} MiB, which real data does not",
            file=name,
            fix="if you trust it, unpack it first",
        )


def _only(entries: Sequence[zipfile.ZipInfo], name: str) -> zipfile.ZipInfo:
    files = files_of(entries, name)
    if len(files) != 1:
        raise InputError(
            f"expected one file or a BEIR folder in the ZIP file, got {len(files)} files",
            file=name,
            fix="unpack it and choose one of its files",
        )
    check_size(files[0], name)
    return files[0]
