"""Queries: texts, weights and the attributes to slice results by."""

from __future__ import annotations

from typing import Any

import polars as pl

from karat.errors import InputError, UsageError, nearest
from karat.tables.column_names import renamed
from karat.tables.incoming import conform, refuse_rows, to_polars
from karat.tables.schema import QUERIES


class Queries:
    """Queries and their attributes: one row for each query.

    Args:
        frame: ``query_id`` and any of the columns of ``schema.QUERIES``; every other column is an
            attribute to slice by.
        source: Name of the table in error messages.

    Raises:
        InputError: a missing column, an empty or duplicate query id, a weight that is neither 0
            nor from 1e-9 to 1e9, or a ``no_answer`` that is neither true nor false.
    """

    def __init__(self, frame: pl.DataFrame, source: str = "queries") -> None:
        if "no_answer" in frame.columns:
            frame = _marked(frame, source)
        self.frame = conform(frame, QUERIES, source, keep_others=True)
        self.source = source
        twice = self.frame["query_id"].is_duplicated()
        refuse_rows(self.frame.select("query_id"), twice, "duplicate query id", source)
        if "weight" in self.frame.columns:
            weight = self.frame["weight"]
            bad = ~((weight == 0) | weight.is_between(1e-9, 1e9)).fill_null(value=False)
            what = "weight {weight} is neither 0 nor a number from 1e-9 to 1e9"
            refuse_rows(self.frame.select("query_id", "weight"), bad, what, source)

    @classmethod
    def from_frame(cls, frame: Any, source: str = "queries") -> Queries:
        """Queries from any data frame Narwhals reads; columns such as ``qid`` are renamed."""
        return cls(renamed(to_polars(frame, source), "queries", source), source)

    @property
    def attributes(self) -> list[str]:
        """The columns to slice by: all but the id, the text, the need and the weight."""
        fixed = {"query_id", "text", "need", "weight"}
        return [name for name in self.frame.columns if name not in fixed]

    def attribute(self, name: str) -> dict[str, str]:
        """The value of one attribute for each query, as text; queries without one are left out.

        Raises:
            UsageError: unknown attribute; the nearest is named.
        """
        if name not in self.attributes:
            raise UsageError(
                f"queries have no attribute {name!r}; they have {', '.join(self.attributes)}"
                if self.attributes
                else f"unknown attribute {name!r}: the queries have no attributes",
                nearest=nearest(name, self.attributes, 1),
            )
        column = self.frame[name].cast(pl.String, strict=False)
        pairs = zip(self.frame["query_id"], column, strict=True)
        return {query: value for query, value in pairs if value is not None}

    def texts(self) -> dict[str, str]:
        """The text of each query that has one; empty without a column ``text``."""
        if "text" not in self.frame.columns:
            return {}
        pairs = zip(self.frame["query_id"], self.frame["text"], strict=True)
        return {query: text for query, text in pairs if text}

    def no_answer(self) -> set[str]:
        """The queries marked as having no right answer: a good system returns nothing for them."""
        if "no_answer" not in self.frame.columns:
            return set()
        return set(self.frame["query_id"].filter(self.frame["no_answer"]))

    def weights(self) -> dict[str, float]:
        """The weight of each query; empty without a column ``weight``.

        A query of weight 0 does not count over all queries. In a slice it counts only if all
        queries of the slice have weight 0; they then weigh the same.
        """
        if "weight" not in self.frame.columns:
            return {}
        return dict(zip(self.frame["query_id"], self.frame["weight"], strict=True))

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"<Queries {self.source}: {len(self)}, attributes {self.attributes}>"


YES = ("true", "yes", "y", "1", "1.0")  # accepted spellings of true in files; case does not matter
NO = ("false", "no", "n", "0", "0.0", "")  # accepted spellings of false


def _marked(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """The frame with ``no_answer`` as a column of booleans."""
    column = frame["no_answer"]
    if column.dtype.is_nested():
        raise InputError("no_answer has lists or objects, not true or false", file=source)
    spelt = column.cast(pl.String, strict=False).str.strip_chars().str.to_lowercase()
    wrong = ~spelt.is_in([*YES, *NO]).fill_null(value=True)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        query = str(frame["query_id"][row]) if "query_id" in frame.columns else None
        raise InputError(
            f"no_answer {column[row]!r} is neither true nor false", file=source, query=query
        )
    return frame.with_columns(no_answer=spelt.is_in(YES).fill_null(value=False))
