"""The footer of a Parquet file, read before its data to check the claimed sizes.

After parquet.thrift (FileMetaData, RowGroup, ColumnChunk, ColumnMetaData) in Thrift's compact
protocol; fields that are not needed are skipped.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

_MAGIC = b"PAR1"
_TAIL = 8  # length of the footer, and the magic bytes
_LARGEST = 1 << 28
_DEEPEST = 16
_BOOLS = (1, 2)
_MOST_VALUES = 1 << 40
_PAGE_HEAD = 1 << 16  # bytes of the longest page header


@dataclass(frozen=True)
class Footer:
    """The footer of a Parquet file; ``uncompressed`` counts strings in a dictionary once."""

    rows: int
    values: int
    uncompressed: int
    columns: tuple[Mapping[int, Any], ...] = ()
    metadata: Mapping[bytes, bytes] = field(default_factory=dict)


def read_footer(file: BinaryIO) -> Footer | None:
    """The footer of an open, seekable file; None if it has no valid one."""
    end = file.seek(0, io.SEEK_END)
    if end < _TAIL + len(_MAGIC):
        return None
    file.seek(end - _TAIL)
    tail = file.read(_TAIL)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length > min(end - _TAIL, _LARGEST):
        return None
    file.seek(end - _TAIL - length)
    try:
        return _footer(_Thrift(file.read(length)).struct())
    except (IndexError, KeyError, TypeError, ValueError, AttributeError):
        return None


def _footer(fields: dict[int, Any]) -> Footer:
    columns = [chunk[3] for group in fields.get(4, []) for chunk in group.get(1, []) if 3 in chunk]
    return Footer(
        rows=int(fields[3]),
        values=sum(int(column[5]) for column in columns),
        uncompressed=sum(int(column[6]) for column in columns),
        columns=tuple(columns),
        metadata={pair[1]: pair.get(2, b"") for pair in fields.get(5, [])},
    )


def odd_page(file: BinaryIO, footer: Footer) -> str | None:
    """What is wrong with the first inconsistent page; None if all are consistent.

    Polars trusts a page that claims too many values, and aborts the process if it cannot allocate
    the memory.
    """
    end = file.seek(0, io.SEEK_END)
    for column in footer.columns:
        try:
            wrong = _odd_page(file, column, end)
        except (IndexError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
            wrong = "an unreadable page"
        if wrong:
            return wrong
    return None


def _odd_page(file: BinaryIO, column: Mapping[int, Any], end: int) -> str | None:
    values = left = int(column[5])
    at = int(column[9])
    if 0 < (first := int(column.get(11) or 0)) < at:
        at = first  # the dictionary
    if not 0 <= values < _MOST_VALUES:
        return f"a column of {values:,} values"
    while left > 0:
        if not 0 < at < end:
            return f"a page at byte {at:,} of {end:,}"
        file.seek(at)
        thrift = _Thrift(file.read(_PAGE_HEAD))
        head = thrift.struct()
        size, unpacked = int(head[3]), int(head[2])
        data = head.get(5) or head.get(8)
        count = int((data or head[7])[1])
        at += thrift.at + size
        if size < 0 or at > end or unpacked < 0:
            return f"a page of {size:,} bytes"
        if not 0 <= count <= values or (data and count > left):
            return f"a page of {count:,} values in a column of {values:,}"
        left -= count if data else 0
    return None


class _Thrift:
    """A reader of Thrift's compact protocol: dicts by field number, lists, numbers and bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._depth = data, 0, 0
        self._readers: dict[int, Callable[[], Any]] = {
            3: self._byte,
            4: self._number,
            5: self._number,
            6: self._number,
            7: lambda: self._take(8),
            8: lambda: self._take(self._varint()),
            9: self._list,
            10: self._list,
            12: self.struct,
        }

    @property
    def at(self) -> int:
        return self._at

    def struct(self) -> dict[int, Any]:
        self._deeper()
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            kind, step = head & 0x0F, head >> 4
            number = number + step if step else self._number()
            fields[number] = kind == 1 if kind in _BOOLS else self._readers[kind]()
        self._depth -= 1
        return fields

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("nested too deep")

    def _list(self) -> list[Any]:
        self._deeper()
        head = self._byte()
        kind, size = head & 0x0F, head >> 4
        if size == 0x0F:
            size = self._varint()
        if size > len(self._data):  # an element takes at least one byte
            raise ValueError("longer than its file")
        if kind in _BOOLS:
            elements = [byte == 1 for byte in self._take(size)]
        else:
            elements = [self._readers[kind]() for _ in range(size)]
        self._depth -= 1
        return elements

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise ValueError("not a number")

    def _byte(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        return byte

    def _take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) < size:
            raise ValueError("ends early")
        self._at += size
        return piece
