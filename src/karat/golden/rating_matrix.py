"""First ratings as arrays, and agreement figures as rows of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from karat.stats.agreement import Integers, Ratings, Sums, Weights, kappa
from karat.stats.agreement_intervals import agreement_interval
from karat.tables.golden.agreement import Figure
from karat.tables.judgments import Judgments

PAIR = ["query_id", "doc_id"]

ALONE = "nothing was graded by two raters"
ALL_ONE = "every grade is the same, so agreement cannot be distinguished from chance"


class Rated:
    """The ratings of the sources that count, one for each rater and pair.

    Attributes:
        judged: Judgments of kind rating, graded or not (``schema.JUDGMENTS``).
        frame: The graded ones, with ``query``, ``item``, ``rater_place`` and ``level``: the
            indices of ``ratings``.
        ratings: ``frame`` as arrays.
        queries: query_id of each index.
        raters: Name of each index, in order of their first judgments.
        repeats: Graded hidden repeats.
        gold: Graded judgments of gold items.
        repeated: Ratings replaced by a later one of the same rater and pair.
    """

    def __init__(self, judgments: Judgments, sources: Sequence[str]) -> None:
        counting = judgments.frame.filter(pl.col("source").is_in(list(sources)))
        ratings = counting.filter(pl.col("kind") == "rating")
        self.judged = ratings.unique([*PAIR, "rater"], keep="last", maintain_order=True)
        self.repeated = ratings.height - self.judged.height
        frame = self.judged.filter(pl.col("state") == "graded")
        graded = counting.filter(pl.col("state") == "graded")
        self.repeats = graded.filter(pl.col("kind") == "repeat")
        self.gold = graded.filter(pl.col("kind") == "gold")
        # Those who only adjudicated are not raters.
        own = counting.filter(pl.col("kind") != "adjudication")
        self.raters: list[str] = own["rater"].unique(maintain_order=True).to_list()
        self.queries: list[str] = counting["query_id"].unique().sort().to_list()
        # Also of repeats and gold items, which share these indices.
        self.grades = graded["grade"].unique().sort().to_numpy()
        items = frame.select(PAIR).unique(maintain_order=True).with_row_index("item")
        self.frame = self.coded(frame.join(items, on=PAIR, how="left", maintain_order="left"))
        self.ratings = Ratings(
            self.integers(self.frame, "query"),
            self.integers(self.frame, "item"),
            self.integers(self.frame, "rater_place"),
            self.integers(self.frame, "level"),
            self.grades,
            len(self.queries),
        )

    def coded(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame with the indices of query, rater and grade."""

        def place(column: str, values: Sequence[object], name: str, dtype: pl.DataType) -> pl.Expr:
            places = range(len(values))
            old = pl.Series(values, dtype=dtype)
            return pl.col(column).replace_strict(old, places, return_dtype=pl.Int64).alias(name)

        if frame.is_empty():
            none = (pl.lit(None, pl.Int64).alias(n) for n in ("query", "rater_place", "level"))
            return frame.with_columns(none)
        return frame.with_columns(
            place("query_id", self.queries, "query", pl.String()),
            place("rater", self.raters, "rater_place", pl.String()),
            place("grade", self.grades.tolist(), "level", pl.Float64()),
        )

    @staticmethod
    def integers(frame: pl.DataFrame, column: str) -> Integers:
        """A column of ``coded`` as an array."""
        return frame[column].cast(pl.Int64).to_numpy()


def figure(
    name: str,
    sums: Sums,
    nothing: str = ALONE,
    undefined: str = ALL_ONE,
    weights: Weights | None = None,
) -> Figure:
    """A figure with its interval.

    Args:
        name: Name of the figure.
        sums: Sums per query.
        nothing: The reason for no value if no query contributes.
        undefined: The reason for no value if some do.
        weights: Weights of κ.
    """
    queries, pairs = int((sums.weight > 0).sum()), round(float(sums.weight.sum()))
    value = sums.whole
    if math.isnan(value):
        reason = undefined if queries else nothing
        return Figure(name, None, None, None, queries, pairs, reason, weights)
    span = agreement_interval(sums)
    return Figure(name, value, span.low, span.high, queries, pairs, span.reason, weights)


def kappa_of(
    rated: Rated,
    query: Integers,
    first: Integers,
    second: Integers,
    weights: Weights,
    nothing: str = ALONE,
) -> Figure:
    """κ of two gradings of the same pairs; arrays as in ``stats.agreement.kappa``."""
    sums = kappa(query, first, second, rated.grades, len(rated.queries), weights)
    return figure(name_of(weights), sums, nothing, weights=weights)


def name_of(weights: Weights) -> str:
    """The name of κ with its weights."""
    return f"κ, {'no' if weights == 'none' else weights} weights"
