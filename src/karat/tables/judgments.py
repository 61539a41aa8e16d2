"""Judgments: every fact that counts of who gave which grade to which document for which query."""

from __future__ import annotations

from functools import cached_property

import polars as pl

from karat.errors import InputError
from karat.tables.incoming import conform
from karat.tables.scale import Scale
from karat.tables.schema import JUDGMENTS

STATES = ("graded", "cannot_judge")
SOURCES = ("human", "clicks", "llm", "import")
NOBODY = "import"
"""The rater of imported grades that name nobody; no person can be called that."""
KINDS = ("rating", "repeat", "gold", "adjudication")


class Judgments:
    """Raw judgments, those that count now: what was superseded or withdrawn is not among them.

    Qrels are made of these by a rule (``karat.golden.aggregation``); agreement is computed on
    these, and never on what a rule or an adjudicator made of them.

    Attributes:
        frame: One row for each judgment (``schema.JUDGMENTS``), in the order of ``judgment``.
        scale: Lowest and highest grade there can be.

    Args:
        frame: As above; optional columns may be absent and are null then.
        scale: As above.
        source: What messages call it.

    Raises:
        InputError: a column is missing, an id is empty, an unknown state, source or kind, a grade
            off the scale, a grade that cannot be judged, or none that is graded.
    """

    def __init__(self, frame: pl.DataFrame, scale: Scale, source: str = "judgments") -> None:
        frame = conform(frame, JUDGMENTS, source)
        for column in JUDGMENTS:
            if column.name not in frame.columns:
                frame = frame.with_columns(pl.lit(None, dtype=column.dtype).alias(column.name))
        for name, allowed in (("state", STATES), ("source", SOURCES), ("kind", KINDS)):
            _refuse(frame, ~pl.col(name).is_in(allowed), f"its {name} is none of {allowed}", source)
        graded = pl.col("state") == "graded"
        _refuse(frame, graded != pl.col("grade").is_not_null(), "state and grade differ", source)
        low, high = scale
        _refuse(
            frame,
            graded & ~pl.col("grade").is_between(low, high),
            f"its grade is not on the scale from {low:g} to {high:g}",
            source,
        )
        names = [column.name for column in JUDGMENTS]
        self.frame = frame.select(names).sort("judgment")
        self.scale = scale
        self.source = source

    @cached_property
    def ratings(self) -> pl.DataFrame:
        """The grades that agreement is about: first ratings, graded, one of each rater and pair."""
        return self.frame.filter((pl.col("kind") == "rating") & (pl.col("state") == "graded"))

    @cached_property
    def raters(self) -> list[str]:
        """Everybody who judged, the first first."""
        return self.frame["rater"].unique(maintain_order=True).to_list()

    def of(self, query_ids: pl.Series) -> Judgments:
        """Those of some queries."""
        chosen = self.frame.filter(pl.col("query_id").is_in(query_ids.implode()))
        return Judgments(chosen, self.scale, self.source)

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"<Judgments {self.source}: {len(self)} of {len(self.raters)} raters>"


def _refuse(frame: pl.DataFrame, wrong: pl.Expr, what: str, source: str) -> None:
    found = frame.filter(wrong.fill_null(value=True))
    if found.height:
        row = found.row(0, named=True)
        raise InputError(
            f"judgment {row['judgment']}: {what}",
            file=source,
            query=row["query_id"],
            doc_id=row["doc_id"],
        )
