"""Sampling weights and strata of queries, where queries were sampled unequally.

A query with zero weight was chosen on purpose and represents no share of the traffic. It is
excluded from results over all queries; in a slice where all have zero weight, each counts the
same. ``Scores.counting`` decides which queries count; this module has their weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError, UsageError
from karat.stats.averages import Floats
from karat.stats.intervals import resample
from karat.tables import Queries


@dataclass(frozen=True)
class Weighing:
    """Weights and strata of the judged queries; None if all are equal."""

    weights: Floats | None  # 0 or more; shape (n,)
    strata: NDArray[np.int64] | None  # stratum index; shape (n,)
    n: int  # number of queries

    @classmethod
    def of(cls, queries: Queries | None, query_ids: list[str]) -> Weighing:
        """The weights and strata of some queries.

        Raises:
            UsageError: there are weights, but a query has none.
            InputError: all of them are 0.
        """
        if queries is None:
            return cls(None, None, len(query_ids))
        weights = strata = None
        by_query = queries.weights()
        if by_query:
            lacking = [query for query in query_ids if query not in by_query]
            if lacking:
                raise UsageError(
                    f"{queries.source} has weights, but none for query {lacking[0]}",
                    fix="give every judged query a weight, or drop the column",
                )
            weights = np.array([by_query[query] for query in query_ids])
            marked = queries.no_answer()
            counting = [by_query[query] for query in query_ids if query not in marked]
            if counting and not any(counting):
                raise InputError(
                    "every judged query has weight 0, so there is no mean",
                    file=queries.source,
                    fix="give some of them a weight above 0, or drop the column",
                )
        if "stratum" in queries.frame.columns:
            names = queries.attribute("stratum")
            _, strata = np.unique(
                np.array([names.get(query, "") for query in query_ids]), return_inverse=True
            )
        return cls(weights, strata, len(query_ids))

    def at(self, used: NDArray[np.bool_]) -> tuple[Floats | None, NDArray[np.int64] | None]:
        """Weights and strata of some of the queries; equal weights if all of them are 0."""
        weights = self.over(used)
        return (
            None if weights is None else weights[used],
            None if self.strata is None else self.strata[used],
        )

    def over(self, used: NDArray[np.bool_]) -> Floats | None:
        """Weights for a mean over some of the queries; shape (n,), None if all are equal."""
        if self.weights is None or (used.any() and not self.weights[used].any()):
            return None
        return self.weights

    def means(self, values: Floats, chosen: NDArray[np.bool_]) -> Floats:
        """Mean over the chosen queries in each row; NaN counts in none, nor do rows without values.

        Args:
            values: One row for each draw; shape (draws, n).
            chosen: Shape (n,).
        """
        weights = self.over(chosen)
        weight = np.where(chosen, 1.0 if weights is None else weights, 0.0)
        used = weight * ~np.isnan(values)
        total = used.sum(axis=1)
        sums = (used * np.nan_to_num(values)).sum(axis=1)
        means: Floats = sums[total > 0] / total[total > 0]
        return means

    def drawn(self, count: int, seed: int) -> Floats:
        """The bootstrap's resamples of all queries, as ``resample`` gives them.

        Queries with zero weight are drawn separately, so they do not change the other draws.

        Args:
            count: Number of resamples.
            seed: Random seed, 0 or more.

        Returns:
            How often each query occurs in each; shape (count, n).
        """
        weighs = np.ones(self.n, np.bool_) if self.weights is None else self.weights > 0
        occurrences = np.zeros((count, self.n))
        for part in (weighs, ~weighs):
            if part.any():
                strata = None if self.strata is None else self.strata[part]
                rng = np.random.default_rng(seed)
                occurrences[:, part] = resample(int(part.sum()), count, rng, strata)
        return occurrences
