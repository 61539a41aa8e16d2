"""Documents: their texts and attributes, and the document each chunk belongs to."""

from __future__ import annotations

from typing import Any

import polars as pl

from karat.errors import InputError
from karat.tables.column_names import renamed
from karat.tables.incoming import conform, to_polars
from karat.tables.schema import DOCUMENTS, PAIRS


class Pairs:
    """Documents to be judged, in the order in which to judge them.

    Args:
        frame: ``query_id`` and ``doc_id``; other columns give reasons why a pair was chosen.
        source: Name of the table in error messages.

    Raises:
        InputError: a missing column or an empty id.
    """

    def __init__(self, frame: pl.DataFrame, source: str = "pairs") -> None:
        self.frame = conform(frame, PAIRS, source, keep_others=True)
        self.source = source

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"<Pairs {self.source}: {len(self)}>"


class Documents:
    """Documents and their attributes: one row for each document.

    Args:
        frame: ``doc_id`` and any of the columns of ``schema.DOCUMENTS``; every other column is an
            attribute (source, language, updated_at …).
        source: Name of the table in error messages.

    Raises:
        InputError: a missing column, an empty id, or a duplicate document.
    """

    def __init__(self, frame: pl.DataFrame, source: str = "documents") -> None:
        self.frame = conform(frame, DOCUMENTS, source, keep_others=True)
        self.source = source
        twice = self.frame["doc_id"].is_duplicated()
        if twice.any():
            doc = self.frame["doc_id"][int(twice.arg_max() or 0)]
            raise InputError(f"duplicate document {doc}", file=source)

    @classmethod
    def from_frame(cls, frame: Any, source: str = "documents") -> Documents:
        """Documents from any data frame Narwhals reads; columns such as ``docno`` are renamed."""
        return cls(renamed(to_polars(frame, source), "documents", source), source)

    def parents(self, column: str = "parent_id") -> pl.DataFrame:
        """``doc_id`` and ``parent``: the document each chunk belongs to (itself without a parent).

        Raises:
            InputError: there is no such column.
        """
        if column not in self.frame.columns:
            raise InputError(
                f"documents have no column {column!r}; they have {', '.join(self.frame.columns)}",
                file=self.source,
            )
        parent_id = pl.col(column).cast(pl.String)  # for null, != "" is null and so not true
        parent = pl.when(parent_id != "").then(parent_id).otherwise(pl.col("doc_id"))
        return self.frame.select("doc_id", parent.alias("parent"))

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"<Documents {self.source}: {len(self)}>"
