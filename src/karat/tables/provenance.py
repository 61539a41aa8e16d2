"""Whose grades judgments are, and how certain: cut points, and the values behind cut grades."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CutPoints:
    """How values become grades."""

    # Ascending, between 0 and 1; from each on, a value has the next higher grade
    cuts: tuple[float, ...]
    grades: tuple[float, ...]  # ascending; one more than cuts

    def grade(self, values: Floats) -> Floats:
        """The grade of each value."""
        return np.array(self.grades)[np.searchsorted(self.cuts, values, side="right")]

    def lowest(self, rel: float = 1.0) -> float | None:
        """The lowest value whose grade is at least ``rel``; None if every grade is, or none."""
        at = next((place for place, grade in enumerate(self.grades) if grade >= rel), 0)
        return self.cuts[at - 1] if at else None


@dataclass(frozen=True)
class Uncertain:
    """The values behind grades, each known with an error."""

    frame: pl.DataFrame  # `query_id`, `doc_id`, `logit` of the value, `logit_se`
    points: CutPoints

    def draws(
        self, grades: pl.DataFrame, count: int, rng: np.random.Generator
    ) -> Iterator[pl.DataFrame]:
        """Grades by values drawn around those known, each pair by itself.

        Args:
            grades: ``query_id``, ``doc_id``, ``grade``. A pair without an error keeps its grade.
            count: Number of draws.
            rng: Of the draws.
        """
        keys = ["query_id", "doc_id"]
        both = grades.join(self.frame, on=keys, how="left", maintain_order="left")
        logit, error = (both[name].to_numpy() for name in ("logit", "logit_se"))
        known = ~np.isnan(logit) & ~np.isnan(error)
        logit, error, grade = logit[known], error[known], both["grade"].to_numpy()
        cuts = [math.log(cut / (1 - cut)) for cut in self.points.cuts]
        points = CutPoints(tuple(cuts), self.points.grades)
        for _ in range(count):
            new = grade.copy()
            new[known] = points.grade(logit + error * rng.standard_normal(len(logit)))
            yield grades.with_columns(grade=pl.Series(new, dtype=pl.Float64))


@dataclass(frozen=True)
class Provenance:
    """Whose grades judgments are."""

    sources: str  # of `judgments.SOURCES`; several are joined by +
    how: str = ""  # how they came about, such as by which click model
    uncertain: Uncertain | None = None  # None for grades without a known error
