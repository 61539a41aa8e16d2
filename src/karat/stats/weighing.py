"""What each query counts for: sampling weights and strata, where queries were sampled unequally."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from karat.errors import UsageError
from karat.stats.averages import Floats
from karat.tables import Queries


@dataclass(frozen=True)
class Weighing:
    """Weights and strata of the judged queries; None where all are alike.

    Attributes:
        weights: Above 0; shape (n,).
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
        if "stratum" in queries.frame.columns:
            names = queries.attribute("stratum")
            _, strata = np.unique(
                np.array([names.get(query, "") for query in query_ids]), return_inverse=True
            )
        return cls(weights, strata, len(query_ids))

    def at(self, used: NDArray[np.bool_]) -> tuple[Floats | None, NDArray[np.int64] | None]:
        """Weights and strata of some of the queries."""
        return (
            None if self.weights is None else self.weights[used],
            None if self.strata is None else self.strata[used],
        )
