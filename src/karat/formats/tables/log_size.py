"""How large a log of queries may be, where others need the memory too; told by unpacking it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from karat.errors import Advice, InputError
from karat.formats.tables.source import Source


@dataclass(frozen=True)
class Most:
    """How large a log may be where others need the memory too.

    Attributes:
        size: Bytes, unpacked.
        rows: Lines, or rows of Parquet.
    """

    size: int
    rows: int

    def refuse(self, size: int, rows: int, file: str) -> None:
        """Refuse more than that.

        Raises:
            InputError: it is more.
        """
        if size > self.size or rows > self.rows:
            raise InputError(
                f"the log holds more than {self.size >> 20} MiB unpacked, or {self.rows:,} lines",
                file=file,
                fix=Advice(
                    "send each query once, with its count; karat golden choose on the server's "
                    "machine takes any size",
                    page="send each query once, with its count",
                ),
            )


def measure(path: str | Path, most: Most) -> None:
    """Refuse a file that is too large, before any of it is kept or parsed.

    Raises:
        InputError: it is, or damaged.
    """
    with Source(path) as source:
        size = rows = 0
        parquet = source.head.startswith(b"PAR1")
        for piece in source.pieces():
            size += len(piece)
            rows += 0 if parquet else piece.count(b"\n")
            most.refuse(size, rows, source.name)
