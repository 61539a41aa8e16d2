"""Uncounted: slices of the queries that a rule says nothing about, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from karat.diagnosis.value_slices import NONE, labelled
from karat.measures.scores import Scores
from karat.tables import Queries


@dataclass(frozen=True)
class Uncounted:
    """Why queries do not count.

    Attributes:
        queries: The queries, if any were given.
        scores: Of any run; which queries count is the same in all.
        known: Queries that are known to fail.
    """

    queries: Queries | None
    scores: Scores
    known: frozenset[str]

    def why(self, query_ids: Sequence[str]) -> str:
        """How many of them do not count for each reason, as in ``3 marked no_answer``."""
        ids = self.scores.evidence.query_ids
        judged = set(ids)
        topics = {ids[index] for index in np.flatnonzero(self.scores.topics)}
        reasons = [
            "marked no_answer"
            if query in self.scores.rules.no_answer
            else "without judgments"
            if query not in judged
            else "known to fail"
            if query in self.known
            else "of weight 0"
            if query in self.scores.rules.zero_weight and query in topics
            else "without a relevant document"
            for query in query_ids
        ]
        return ", ".join(f"{reasons.count(each):,} {each}" for each in dict.fromkeys(reasons))

    def named(self, attribute: str, held: Sequence[str]) -> Mapping[str, list[str]]:
        """The slices by columns of the queries, with all queries of each, judged or not.

        Args:
            attribute: What is sliced by; several with commas between them.
            held: Slices that there are. Where numbers make other bands over all queries than over
                those that count, nothing can be said.

        Returns:
            Ids of the queries by slice; empty where the slices are no columns of the queries.
        """
        if self.queries is None:
            return {}
        whole = attribute in self.queries.attributes
        names = [attribute] if whole else [name.strip() for name in attribute.split(",")]
        if not set(names) <= set(self.queries.attributes):
            return {}
        columns = [_labels(self.queries, name) for name in names]
        found: dict[str, list[str]] = {}
        for query in self.queries.frame["query_id"]:
            for values in product(*(labels.get(query, [NONE]) for labels in columns)):
                found.setdefault(", ".join(values), []).append(query)
        return found if set(held) <= set(found) else {}


def _labels(queries: Queries, name: str) -> dict[str, list[str]]:
    """In which slices each query is; those without a value are left out."""
    held = queries.frame.select("query_id", value=name)
    if held["value"].dtype.base_type() in (pl.List, pl.Array):
        held = held.explode("value")
    labels = labelled(held["value"].alias(name))
    found: dict[str, list[str]] = {}
    for query, code in zip(held["query_id"], labels.code.tolist(), strict=True):
        if code >= 0:
            found.setdefault(query, []).append(labels.names[code])
    return found
