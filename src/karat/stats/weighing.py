"""What each query counts for: sampling weights and strata, where queries were sampled unequally.

A query of weight 0 was chosen on purpose and stands for no share of what is asked. It counts in
nothing over all queries; in a slice where all have weight 0, each counts the same. Which queries
those are ``Scores.counting`` says; here, what they weigh.
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
    """Weights and strata of the judged queries; None where all are alike.

    Attributes:
        weights: 0 or more; shape (n,).
        strata: Stratum index; shape (n,).
        n: Number of queries.
    """

    weights: Floats | None
    strata: NDArray[np.int64] | None
    n: int

    @classmethod
    def of(cls, queries: Queries | None, query_ids: list[str]) -> Weighing:
        """Those of some queries.

        Raises:
            UsageError: there are weights, but a query has none.
            InputError: all of them are 0.
        """
        if queries is None:
            return cls(None, None, len(query_ids))
        weights = strata = None
        given = queries.weights()
        if given:
            lacking = [query for query in query_ids if query not in given]
            if lacking:
                raise UsageError(
                    f"{queries.source} gives weights, but none to query {lacking[0]}",
                    fix="give every judged query a weight, or drop the column",
                )
            weights = np.array([given[query] for query in query_ids])
            marked = queries.no_answer()
            counting = [given[query] for query in query_ids if query not in marked]
            if counting and not any(counting):
                raise InputError(
                    "every judged query has weight 0, so there is nothing to take a mean over",
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
        """Weights and strata of some of the queries; those of weight 0 alone weigh the same."""
        weights = self.over(used)
        return (
            None if weights is None else weights[used],
            None if self.strata is None else self.strata[used],
        )

    def over(self, used: NDArray[np.bool_]) -> Floats | None:
        """Weights for a mean over some of the queries; shape (n,), None where all are alike."""
        if self.weights is None or (used.any() and not self.weights[used].any()):
            return None
        return self.weights

    def drawn(self, count: int, seed: int) -> Floats:
        """The bootstrap's resamples of all queries, as ``resample`` gives them.

        Queries of weight 0 are drawn apart from the others, which so are drawn as without them.

        Args:
            count: How many resamples.
            seed: Of the generator; 0 or more.

        Returns:
            How often each query stands in each; shape (count, n).
        """
        weighs = np.ones(self.n, np.bool_) if self.weights is None else self.weights > 0
        found = np.zeros((count, self.n))
        for part in (weighs, ~weighs):
            if part.any():
                strata = None if self.strata is None else self.strata[part]
                rng = np.random.default_rng(seed)
                found[:, part] = resample(int(part.sum()), count, rng, strata)
        return found
