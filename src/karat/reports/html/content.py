"""The content of a report, before it is rendered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from karat.diagnosis.side_by_side import Ranking
from karat.tables.comparison import Comparison
from karat.tables.release.gate import Gate
from karat.tables.results import Results

MOST_LISTED = 1_000
"""Most queries in the list, including those with rankings."""
MOST_QUERIES = 100
"""Most queries with rankings side by side."""
MOST_ROWS = 2_000
"""Most documents of a run over all queries, to keep the file small."""
UNANSWERED = {"failed", "missing", "empty"}
"""States of a query for which a run returned nothing."""


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
    """A query in the list; the first ones have rankings side by side.

    Attributes:
        query_id: The query.
        text: Its text, if known.
        rankings: One per run, in the order of ``Content.runs``; empty if left out.
        values: Measure → the value of each run; None if undefined.
        states: State of the query in each run, under the first measure.
        changes: One per view of ``Content.views``; None without a comparison, or if a run has no
            value.
        unfound: Number of relevant documents that no run returned.
        relevant: Number of relevant documents.
        slices: Candidate (None without a comparison) and attribute → the query's values.
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
    """An input of the numbers.

    Attributes:
        name: Judgments, queries, or the name of a run.
        source: Its file or other name.
        size: Its size, in words.
        sha256: SHA-256 of its content; None if not computed.
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
        lower: Measures for which lower is better.
        k: Ranks shown of each ranking.
        rel: Lowest grade that counts as relevant.
        runs: Names, the baseline first if there is one.
        results: Each run by itself.
        comparison: The runs against the first of them, or None.
        gate: The result of a gate, or None.
        views: Views of the list of queries: every measure, for every candidate.
        queries: Those that contribute most, or score least, first.
        queries_left: Number of queries that are left out.
        titles: doc_id → title, for the documents shown.
        grades: Lowest and highest possible grade.
        sources: Its inputs.
        rules: Its rules, as option and value.
        version: Version of karat.
        paged: Whether queries have pages of their own, to which numbers link.
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
        """Whether numbers link to their queries."""
        return self.paged or bool(self.queries)
