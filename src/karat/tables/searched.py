"""Searched and tuned: the outcomes of sending queries to a search function or an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from karat.tables.about import facts
from karat.tables.comparison import AnswerChange, Difference, QueryDifference
from karat.tables.results import Latency
from karat.tables.run import Run


@dataclass(frozen=True)
class Reason:
    """An error that made queries fail."""

    error: str  # the error message of the first of these queries
    queries: int  # number of queries that failed with it
    query_id: str  # the first of them
    place: str | None  # file and line of the search function that raised it; None if unknown


@dataclass(frozen=True)
class Searched:
    """The outcome of a benchmark run."""

    run: Run  # the run, with its metadata in `about`
    queries: int
    ok: int  # queries with documents
    empty: int  # queries with an empty answer
    failed: int  # queries without an answer
    reasons: list[Reason]  # the errors, the most common first
    latency: Latency | None  # response times; None if no answer has one
    notes: list[str]  # sentences a reader must know
    file: str | None = None  # where the run was written; None if it was not
    server: Latency | None = None  # times that the engine itself reports
    trace: str | None = None  # where the trace was written; None without one

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat search --format json`` (docs/reference/json.md)."""
        return {
            "run": self.run.name,
            "file": self.file,
            "trace": self.trace,
            "queries": self.queries,
            "ok": self.ok,
            "empty": self.empty,
            "failed": self.failed,
            "reasons": [asdict(reason) for reason in self.reasons],
            "latency": None if self.latency is None else asdict(self.latency),
            "server_latency": None if self.server is None else asdict(self.server),
            "about": facts(self.run.about),
            "notes": self.notes,
        }


TuneVerdict = Literal["better", "not better", "cannot tell"]
PartState = Literal["good", "small", "worn"]
"""A held-out part. ``small``: too few queries for the expected gain, even in its first use."""


@dataclass(frozen=True, slots=True)
class TunedParameter:
    """A parameter that was searched."""

    name: str
    declared: Any  # its value in karat.toml
    best: Any  # its value in the best trial
    searched: str  # as typed: the range, or the values


@dataclass(frozen=True, slots=True)
class PartResult:
    """Declared and best parameters on one part of the golden set."""

    part: str  # dev | held_out
    n: int  # queries that have a value under both
    declared_value: float | None
    best_value: float | None
    difference: float | None  # best minus declared
    # Interval at the level that the uses of the part leave; None on the part that was searched
    ci_low: float | None = None
    ci_high: float | None = None
    p: float | None = None  # p-value times the uses of the part; None likewise


@dataclass(frozen=True)
class Tuned:
    """The outcome of ``karat tune``."""

    engine: str
    measure: str  # canonical name
    verdict: TuneVerdict
    reason: str  # in one sentence
    parameters: list[TunedParameter]
    params: Mapping[str, Any]  # all parameters of the engine, as in the best trial
    trials: int  # combinations asked, failed ones included
    failed: int  # combinations for which a query failed
    stopped: str  # why the search ended
    dev: PartResult
    notes: list[str]
    # The rest is None or empty if the held-out part was not asked
    held_out: PartResult | None = None
    difference: Difference | None = None  # the same, as `karat compare` has it
    uses: int | None = None  # uses of the held-out part, this one included
    level: float | None = None  # level of the test on it: 0.05 over the uses
    part_state: PartState | None = None
    smallest_detected: float | None = None  # on the held-out part, at that level
    latency: list[AnswerChange] = field(default_factory=list)  # on the held-out part
    losses: list[QueryDifference] = field(default_factory=list)  # held-out queries, worst first

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat tune --format json``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RecallRow:
    """An engine under one setting, against its own exact search."""

    setting: str  # the parameters, as ef=40; `exact` for the exact search
    n: int  # queries for which the exact search returns documents
    recall: float | None  # mean share of the exact search's first k that is in the first k
    ci_low: float | None  # lower end of its 95 % interval
    ci_high: float | None  # upper end
    p50_us: float  # median response time in microseconds
    p95_us: float
    index_bytes: int | None = None  # size of the index that was asked; None if unknown


@dataclass(frozen=True, slots=True)
class QueryRecall:
    """A query under one setting."""

    setting: str
    query_id: str
    text: str
    recall: float  # 0 to 1


@dataclass(frozen=True)
class Exactness:
    """The outcome of ``karat search --exact``."""

    engine: str
    k: int
    how: str  # how the exact search was asked
    vectors: str | None  # indexes of vectors, their definition and size; None if unknown
    rows: list[RecallRow]  # the exact search first
    queries: list[QueryRecall]  # lowest recall first, for each setting

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat search --exact --format json``."""
        return asdict(self)
