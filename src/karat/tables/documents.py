"""Documents: what can be found, and which document a chunk belongs to."""

from __future__ import annotations

from typing import Any

import polars as pl

from karat.errors import InputError
from karat.tables.column_names import renamed
from karat.tables.incoming import conform, to_polars
from karat.tables.schema import DOCUMENTS


class Documents:
    """Documents and their attributes: one row for each document.

    Args:
        frame: ``doc_id`` and any of the columns of ``schema.DOCUMENTS``; every further column is
            an attribute (source, language, updated_at …).
        source: What messages call it.

    Raises:
        InputError: a document that stands twice.
    """

    def __init__(self, frame: pl.DataFrame, source: str = "documents") -> None:
        self.frame = conform(frame, DOCUMENTS, source, keep_others=True)
        self.source = source
        twice = self.frame["doc_id"].is_duplicated()
        if twice.any():
            doc = self.frame["doc_id"][int(twice.arg_max() or 0)]
            raise InputError(f"document {doc} stands twice", file=source)

    @classmethod
    def from_frame(cls, frame: Any, source: str = "documents") -> Documents:
        """Documents from any data frame Narwhals reads; ``docno`` and such are renamed."""
        return cls(renamed(to_polars(frame, source), "documents", source), source)

    def parents(self, column: str = "parent_id") -> pl.DataFrame:
        """``doc_id`` and ``parent``: the document each chunk folds into (itself if it has none).

        Raises:
            InputError: there is no such column.
        """
        if column not in self.frame.columns:
            raise InputError(
                f"documents have no column {column!r}; they have {', '.join(self.frame.columns)}",
                file=self.source,
            )
        given = pl.col(column).cast(pl.String)
        parent = pl.when(given != "").then(given).otherwise(pl.col("doc_id"))  # null is not != ""
        return self.frame.select("doc_id", parent.alias("parent"))

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"<Documents {self.source}: {len(self)}>"
