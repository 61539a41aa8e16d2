"""The content of a report, before it is rendered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata

from karat.diagnosis.side_by_side import Ranking
from karat.measures import lower_is_better
from karat.tables.comparison import Comparison
from karat.tables.release.gate import Gate
from karat.tables.results import Origin, Results

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
    """A column of numbers that the list of queries can show and be sorted by."""

    measure: str  # canonical name of the measure
    candidate: str | None = None  # the run against the baseline; None without a comparison


@dataclass(frozen=True, slots=True)
class Change:
    """A query under one measure, against the baseline."""

    difference: float  # candidate minus baseline
    share: float  # what it contributes to the mean difference


@dataclass(frozen=True, slots=True)
class ShownQuery:
    """A query in the list; the first ones have rankings side by side."""

    query_id: str  # the query
    text: str | None  # its text, if known
    rankings: list[Ranking]  # one per run, in the order of ``Content.runs``; empty if left out
    values: Mapping[str, list[float | None]]  # measure → the value of each run; None if undefined
    states: list[str]  # state of the query in each run, under the first measure
    # One per view of ``Content.views``; None without a comparison, or if a run has no value
    changes: Sequence[Change | None]
    unfound: int  # number of relevant documents that no run returned
    relevant: int  # number of relevant documents
    # Candidate (None without a comparison) and attribute → the query's values
    slices: Mapping[tuple[str | None, str], list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Content:
    """Everything a report shows."""

    measure: str  # canonical name of the first measure
    k: int  # ranks shown of each ranking
    rel: float  # lowest grade that counts as relevant
    runs: Sequence[str]  # names, the baseline first if there is one
    results: Results  # each run by itself
    comparison: Comparison | None  # the runs against the first of them, or None
    views: Sequence[View]  # views of the list of queries: every measure, for every candidate
    grades: tuple[float, float]  # lowest and highest possible grade
    gate: Gate | None = None  # the result of a gate, or None
    queries: Sequence[ShownQuery] = ()  # those that contribute most, or score least, first
    queries_left: int = 0  # number of queries that are left out
    # doc_id → title, for the documents shown
    titles: Mapping[str, str] = field(default_factory=dict)
    sources: Sequence[Origin] = ()  # its inputs
    rules: Sequence[tuple[str, str]] = ()  # its rules, as option and value
    paged: bool = False  # whether queries have pages of their own, to which numbers link

    @property
    def version(self) -> str:
        """The version of karat."""
        return metadata.version("karat")

    @property
    def lower(self) -> frozenset[str]:
        """The measures for which lower is better."""
        measures = {row.measure for row in self.results.results}
        return frozenset(filter(lower_is_better, measures))

    @property
    def leads(self) -> bool:
        """Whether numbers link to their queries."""
        return self.paged or bool(self.queries)
