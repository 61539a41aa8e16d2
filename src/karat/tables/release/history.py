"""History: results over time, one point for each evaluation or gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from karat.tables.records import shared
from karat.tables.results import Result

VERSION = 1
Kind = Literal["evaluate", "gate"]
HASHES = ("queries", "qrels", "run", "corpus")  # the inputs of which a point has the SHA-256
Input = Literal["code", "corpus", "queries", "judgments", "rules", "n", "answers", "karat"]
"""What can differ between two points.

``code``: the commit · ``corpus``, ``queries``, ``judgments``: their hashes · ``rules``: evaluation
settings, and the queries that a gate counts · ``n``: the number of queries, if judgments, queries
and rules do not explain it · ``answers``: the run · ``karat``: the version of karat.
"""
BREAKING: tuple[Input, ...] = ("judgments", "queries", "rules", "n")
"""If one of these changes, two values are not comparable."""
WORTHLESS = ("unhealthy", "error")  # verdicts of points whose values say nothing about the search


@dataclass(frozen=True, slots=True)
class Value:
    """The value of one measure at one point."""

    measure: str  # canonical name of the measure
    value: float | None  # the aggregate; None if no query has a value
    ci_low: float | None = None  # lower end of its 95 % interval; None without an interval
    ci_high: float | None = None  # upper end
    n: int | None = None  # number of queries; None if unknown
    attribute: str | None = None  # the attribute sliced by, or None for all queries
    slice: str | None = None  # its value, or None


@dataclass(frozen=True, slots=True)
class ByQuery:
    """The per-query values of a point, packed (``karat.formats.own.query_values``)."""

    # Hash of the ids of the queries that count; with equal hashes, values can be paired
    queries: str
    n: int  # number of these queries
    values: Mapping[str, str]  # for each measure, its values in the order of the ids
    weights: str | None = None  # weights of the queries; None if all are equal


@dataclass(frozen=True, slots=True)
class Answered:
    """How a run answered the queries: the only health check of a nightly evaluation."""

    queries: int
    failed: int  # of these, queries without an answer; they have no value
    missing: int  # of these, queries that are not in the run (value 0)
    empty: int  # of these, queries with an empty answer (value 0)

    @property
    def worthless(self) -> bool:
        """Whether the values say nothing: queries failed, or no query has a document."""
        return self.failed > 0 or 0 < self.queries <= self.missing + self.empty

    @property
    def trouble(self) -> str | None:
        """What went wrong, in words; None if nothing did. Some empty answers may be right."""
        if 0 < self.queries <= self.failed + self.missing + self.empty and self.failed == 0:
            return f"no document for any of {_queries(self.queries)}"
        parts = [f"{self.failed:,} of {_queries(self.queries)} got no answer"] * (self.failed > 0)
        if self.missing:
            of = "" if parts else f" of {_queries(self.queries)}"
            be = "is" if self.missing == 1 else "are"
            parts.append(f"{self.missing:,}{of} {be} not in the run")
        return ", ".join(parts) or None


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count:,} queries"


@dataclass(frozen=True, slots=True)
class Point:
    """One line of a history."""

    time: str  # time in UTC, as `2026-03-01T02:00:00Z`
    kind: Kind  # the command: `evaluate` | `gate`
    run: str
    commit: str | None  # commit of the code, or any label; None if unknown
    verdict: str | None  # verdict of the gate; None for an evaluation
    # Settings that differ from the defaults, as in `rel=2 depth=100`; for a gate also `without=`
    # and a hash of the known failures, which do not count
    rules: str
    karat: str  # version of karat
    values: tuple[Value, ...]  # one for each measure, and for each slice of it
    # SHA-256 of `queries`, `qrels`, `run` and `corpus`; None if unknown
    hashes: Mapping[str, str | None]
    answered: Answered | None = None  # how the queries were answered; None if unknown
    series: str | None = None  # name of its series; None if that is the name of the run
    by_query: ByQuery | None = None  # its per-query values over all queries; None if unknown

    @property
    def series_name(self) -> str:
        """The name of its series."""
        return self.run if self.series is None else self.series

    @property
    def worthless(self) -> bool:
        """Whether its values say nothing about the search."""
        return self.verdict in WORTHLESS or (self.answered is not None and self.answered.worthless)

    @property
    def trouble(self) -> str | None:
        """What went wrong with its queries, in words; None if nothing did, or it is unknown."""
        return self.answered.trouble if self.answered else None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of its line, with slices under a key of their own."""
        rows = [asdict(value) for value in self.values]
        bare = {"attribute", "slice"}
        fields = asdict(self)
        fields["values"] = [
            {key: value for key, value in row.items() if key not in bare}
            for row in rows
            if row["attribute"] is None
        ]
        fields["slices"] = [row for row in rows if row["attribute"] is not None]
        fields["hashes"] = {name: self.hashes.get(name) for name in HASHES}
        for later in ("series", "by_query"):
            if fields[later] is None:
                del fields[later]  # older versions reject unknown keys
        return {"karat_history": VERSION} | fields


def values_of(rows: Sequence[Result]) -> tuple[Value, ...]:
    """The results of one run as the values of its point."""
    return tuple(Value(**shared(row, Value)) for row in rows)


def answered_by(rows: Sequence[Result], *, missing_not_in_n: bool = False) -> Answered | None:
    """How the queries were answered, from the measure that counts most of them.

    ``missing_not_in_n``: n excludes queries that are not in the run, as in trec_eval without -c.
    """
    overall = [row for row in rows if row.attribute is None]
    if not overall:
        return None
    row = max(overall, key=lambda row: (row.n, row.missing))
    failed = max(row.failed for row in overall)
    queries = row.n + row.undefined + failed + (row.missing if missing_not_in_n else 0)
    return Answered(queries, failed, row.missing, row.empty)
