"""Rankings written as grades by rank, and a plain re-telling of what evidence is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from karat.measures import Evidence, parse, reduce, registry
from karat.tables import Qrels, Run

Grades = Sequence[float | None]


def evidence_by_rank(
    retrieved: Grades,
    missed: Sequence[float] = (),
    covers: Sequence[str] = (),
    lost: Sequence[str] = (),
) -> Evidence:
    """One query; a grade of None is a document that nobody judged.

    Args:
        retrieved: Grades by rank.
        missed: Grades of judged documents that were not retrieved.
        covers: The subtopics of each retrieved document, a letter each, if there are subtopics.
        lost: The same for those missed.
    """
    ranked = {f"d{rank:03}": -float(rank) for rank in range(1, len(retrieved) + 1)}
    judged = {doc: grade for doc, grade in zip(ranked, retrieved, strict=True) if grade is not None}
    judged |= {f"missed{place}": grade for place, grade in enumerate(missed)}
    if covers:
        of = dict(zip((*ranked, *(f"missed{i}" for i in range(len(missed)))), (*covers, *lost),
                      strict=True))  # fmt: skip
        letters = sorted({letter for held in of.values() for letter in held})
        rows = [
            ("q", letter, doc, grade if letter in of[doc] else 0.0)
            for doc, grade in judged.items()
            for letter in letters
        ]
        columns = ["query_id", "subtopic", "doc_id", "grade"]
        frame = pl.DataFrame(rows, schema=columns, orient="row")
        return reduce(Run.from_dict({"q": ranked}), Qrels(frame))
    return reduce(Run.from_dict({"q": ranked}), Qrels.from_dict({"q": judged}))


@pytest.fixture(scope="session")
def by_rank() -> Callable[..., Evidence]:
    """Evidence of one query, from grades by rank."""
    return evidence_by_rank


@pytest.fixture(scope="session")
def value_of() -> Callable[..., float]:
    """``value_of(measure, grades by rank, grades of judged documents not retrieved)``.

    And ``covers=`` and ``lost=``, as ``evidence_by_rank`` takes them.
    """

    def value(
        measure: str,
        retrieved: Grades,
        missed: Sequence[float] = (),
        **subtopics: Sequence[str],
    ) -> float:
        return float(parse(measure)(evidence_by_rank(retrieved, missed, **subtopics))[0])

    return value


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A copy of the registry: what a test registers is gone after it."""
    registry.entries()  # the families are loaded before the copy is made
    copy = dict(registry._ENTRIES)
    monkeypatch.setattr(registry, "_ENTRIES", copy)
    return copy


Ranking = list[tuple[str, float]]


class PlainEvidence:
    """What ``Evidence`` holds, found by loops over dictionaries and no array.

    ``rankings`` are in order already; ``tied`` is what the whole run has.
    """

    def __init__(
        self, rankings: Mapping[str, Ranking], grades: Mapping[str, Mapping[str, float]]
    ) -> None:
        self.query_ids = sorted(grades, key=lambda query: query.encode())
        self.rankings = {query: list(rankings.get(query, [])) for query in self.query_ids}
        self.grades = grades

    @classmethod
    def of(
        cls, scores: Mapping[str, Mapping[str, float]], grades: Mapping[str, Mapping[str, float]]
    ) -> PlainEvidence:
        """Order by score descending, then document id descending by bytes."""
        rankings = {
            query: sorted(docs.items(), key=lambda pair: (pair[1], pair[0].encode()), reverse=True)
            for query, docs in scores.items()
        }
        return cls(rankings, grades)

    def hits(self) -> list[tuple[int, float, int, int, int]]:
        """(query index, grade, rank, rank where the tied group starts, its size) of each hit."""
        out = []
        for index, query in enumerate(self.query_ids):
            ranking = self.rankings[query]
            scores = [score for _, score in ranking]
            for rank, (doc, score) in enumerate(ranking, 1):
                if doc in self.grades[query]:
                    start, size = scores.index(score) + 1, scores.count(score)
                    out.append((index, self.grades[query][doc], rank, start, size))
        return out

    def ideals(self) -> list[tuple[int, float]]:
        """(query index, grade) of each judgment, best first."""
        return [
            (index, grade)
            for index, query in enumerate(self.query_ids)
            for grade in sorted(self.grades[query].values(), reverse=True)
        ]

    def tied(self) -> list[int]:
        """For each query, how many documents share their score with another."""
        out = []
        for query in self.query_ids:
            scores = [score for _, score in self.rankings[query]]
            out.append(sum(scores.count(score) > 1 for score in scores))
        return out

    def map(self, change: Callable[[str, Ranking], Ranking]) -> PlainEvidence:
        """The same with each ranking changed."""
        changed = {query: change(query, ranking) for query, ranking in self.rankings.items()}
        return PlainEvidence(changed, self.grades)

    def check(self, evidence: Evidence, *, tied: bool = False) -> None:
        """Assert that the evidence says the same."""
        assert evidence.query_ids == self.query_ids
        assert evidence.returned.tolist() == [len(self.rankings[q]) for q in self.query_ids]
        columns = (
            evidence.query,
            evidence.grade,
            evidence.rank,
            evidence.tie_start,
            evidence.tie_size,
        )
        got = list(zip(*(column.tolist() for column in columns), strict=True))
        assert got == self.hits()
        ideals = zip(evidence.ideal_query.tolist(), evidence.ideal_grade.tolist(), strict=True)
        assert list(ideals) == self.ideals()
        if tied:
            assert evidence.tied.tolist() == self.tied()
        assert all(np.issubdtype(column.dtype, np.number) for column in columns)


@pytest.fixture(scope="session")
def plain() -> type[PlainEvidence]:
    """The plain re-telling of evidence."""
    return PlainEvidence
