"""What was read of an import, until it is known how to cut it: in memory, or on disk."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from karat.store.events.files import unwritten
from karat.tables.online.events import BUCKETS

_FLUSH = 250_000  # rows of a staged file
_HOLD = 500_000  # rows in memory
_GROUP = 16_384


class Staged:
    """Frames with ``user_bucket``, file by file of the import.

    Args:
        folder: For what does not stay in memory; made when it is needed.

    Attributes:
        sizes: Rows of each bucket.
        rows: Rows in all.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._frames: list[pl.DataFrame] = []  # of files that were read whole
        self._paths: list[Path] = []
        self._pending: list[pl.DataFrame] = []  # of the file that is being read
        self._pending_paths: list[Path] = []
        self._written = 0
        self.sizes = [0] * BUCKETS
        self._pending_sizes = [0] * BUCKETS
        self.rows = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Add rows of the file that is being read.

        Raises:
            InputError: the disk is full, or cannot be written.
        """
        self._pending.append(frame)
        for bucket, rows in frame["user_bucket"].value_counts().iter_rows():
            self._pending_sizes[bucket] += rows
        if sum(each.height for each in self._pending) >= _FLUSH:
            self._pending_paths.append(self._write(self._pending))
            self._pending = []

    def keep(self) -> None:
        """The file was read whole: what was read of it counts."""
        self._frames += self._pending
        self._paths += self._pending_paths
        for bucket, rows in enumerate(self._pending_sizes):
            self.sizes[bucket] += rows
        self.rows += sum(self._pending_sizes)
        self._begin()
        if sum(each.height for each in self._frames) >= _HOLD:
            self._paths.append(self._write(self._frames))
            self._frames = []

    def forget(self) -> None:
        """The file was not read whole: nothing of it counts."""
        for path in self._pending_paths:
            path.unlink(missing_ok=True)
        self._begin()

    def _begin(self) -> None:
        self._pending, self._pending_paths = [], []
        self._pending_sizes = [0] * BUCKETS

    def of(self, buckets: range) -> pl.DataFrame:
        """The rows of a range of buckets.

        Args:
            buckets: The range.
        """
        inside = pl.col("user_bucket").is_between(buckets.start, buckets.stop, closed="left")
        parts = [each.filter(inside) for each in self._frames]
        parts += [
            pl.scan_parquet(path, glob=False).filter(inside).collect() for path in self._paths
        ]
        return pl.concat([each for each in parts if each.height], how="diagonal")

    def _write(self, frames: list[pl.DataFrame]) -> Path:
        path = self._folder / f"{self._written:06d}.parquet"
        self._written += 1
        frame = pl.concat(frames, how="diagonal").sort("user_bucket")
        try:
            self._folder.mkdir(exist_ok=True)
            frame.write_parquet(path, compression="lz4", row_group_size=_GROUP)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise unwritten(path, error) from error
        return path
