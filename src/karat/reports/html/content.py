"""What stands in a report, before it is a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from karat.diagnosis.side_by_side import Ranking
from karat.tables.comparison import Comparison
from karat.tables.release.gate import Gate
from karat.tables.results import Results

MOST_LISTED = 1_000
"""Queries in the list, those side by side among them."""
MOST_QUERIES = 100
"""Queries side by side."""
MOST_ROWS = 2_000
"""Documents in one column over all of them, so that the file stays small."""
UNANSWERED = {"failed", "missing", "empty"}
"""States of a query that a run returned nothing for."""


@dataclass(frozen=True, slots=True)
class View:
    """A column of numbers that the list of queries can show and be sorted by.

    Attributes:
        measure: Canonical name of the measure.
        candidate: The run against the baseline; None without a comparison.
    """

    measure: str
    candidate: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A query under one measure, against the baseline.

    Attributes:
        difference: Candidate minus baseline.
        share: What it contributes to the mean difference.
    """

    difference: float
    share: float


@dataclass(frozen=True, slots=True)
class ShownQuery:
    """A query in the list; of the first of them the rankings stand side by side.

    Attributes:
        query_id: The query.
        text: What was typed, if it is known.
        rankings: One of each run, in the order of ``Content.runs``; none of a query whose rankings
            are left out.
        values: Measure by measure the value of each run, None where it has none.
        states: What became of the query in each run, under the first measure.
        changes: One for each of ``Content.views``; None without a comparison, or where one of the
            two runs has no value.
        unfound: Relevant documents that no run returned.
        relevant: Relevant documents, found or not.
        slices: For each candidate (None without a comparison) and attribute sliced by, the values
            it has.
    """

    query_id: str
    text: str | None
    rankings: list[Ranking]
    values: Mapping[str, list[float | None]]
    states: list[str]
    changes: Sequence[Change | None]
    unfound: int
    relevant: int
    slices: Mapping[tuple[str | None, str], list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """What the numbers were computed from.

    Attributes:
        name: What it is: judgments, queries, the name of a run.
        source: Its file, or what messages call it.
        size: How much it holds, in words.
        sha256: Of its content; None if nobody computed it.
    """

    name: str
    source: str
    size: str
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Content:
    """Everything a report shows.

    Attributes:
        measure: Canonical name of the first measure.
        lower: Measures of which less is better.
        k: Ranks shown of each ranking.
        rel: Lowest grade that counts as relevant.
        runs: Names, the baseline first if there is one.
        results: Each run by itself.
        comparison: The runs against the first of them, or None.
        gate: What a policy says, or None.
        views: What the list of queries can show: every measure, and of every candidate.
        queries: Those that contribute most, or score least, first.
        queries_left: Queries that are not among them.
        titles: What documents are called, for those shown, as far as it is known.
        grades: Lowest and highest grade there can be.
        sources: What it was computed from.
        rules: How it was computed, in words: option and value.
        version: Of karat.
        paged: Whether the queries stand elsewhere, on pages: then numbers lead there.
    """

    measure: str
    lower: frozenset[str]
    k: int
    rel: float
    runs: Sequence[str]
    results: Results
    comparison: Comparison | None
    gate: Gate | None
    views: Sequence[View]
    queries: Sequence[ShownQuery]
    queries_left: int
    titles: Mapping[str, str]
    grades: tuple[float, float]
    sources: Sequence[Source]
    rules: Sequence[tuple[str, str]]
    version: str
    paged: bool = False

    @property
    def leads(self) -> bool:
        """Whether a number can lead to its queries."""
        return self.paged or bool(self.queries)
