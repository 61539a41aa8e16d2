"""Size limits for query logs, on servers that share their memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from karat.errors import InputError
from karat.formats.tables.source import Source


@dataclass(frozen=True)
class Most:
    """The largest log accepted: bytes, uncompressed, and rows."""

    size: int
    rows: int

    def refuse(self, size: int, rows: int, file: str) -> None:
        if size > self.size or rows > self.rows:
            raise InputError(
                f"the log has more than {self.size >> 20} MiB uncompressed or {self.rows:,} lines",
                file=file,
                fix="list each query once, with its count",
            )


def measure(path: str | Path, most: Most) -> None:
    """Raise InputError if a file is too large or damaged, by decompressing it once."""
    with Source(path) as source:
        size = rows = 0
        parquet = source.head.startswith(b"PAR1")
        for piece in source.pieces():
            size += len(piece)
            rows += 0 if parquet else piece.count(b"\n")
            most.refuse(size, rows, source.name)
