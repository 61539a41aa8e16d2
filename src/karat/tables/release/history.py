"""History: what was measured when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Literal

from karat.tables.release.gate import Gate
from karat.tables.results import Result, Results

VERSION = 1
Kind = Literal["evaluate", "gate"]
HASHES = ("queries", "qrels", "run", "corpus")
"""What a point keeps the SHA-256 of."""
Input = Literal["code", "corpus", "queries", "judgments", "rules", "n", "answers", "karat"]
"""What can differ between two points.

``code``: the commit · ``corpus``, ``queries``, ``judgments``: by their hashes · ``rules``: how it
was evaluated, and which queries a gate counts · ``n``: over how many queries, though none of these
three says why · ``answers``: the run itself · ``karat``: its version.
"""
BREAKING: tuple[Input, ...] = ("judgments", "queries", "rules", "n")
"""After a change of these, two numbers are not of the same thing."""
WORTHLESS = ("unhealthy", "error")
"""Verdicts after which a number says nothing about the search."""


@dataclass(frozen=True, slots=True)
class Value:
    """The value of one measure at one point.

    Attributes:
        measure: Canonical name of the measure.
        value: The aggregate; None where there is none.
        ci_low: Lower end of its 95 % interval, or None.
        ci_high: Upper end.
        n: Queries it is over; None if not known.
        attribute: The attribute sliced by, or None for all queries.
        slice: Its value, or None.
    """

    measure: str
    value: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    n: int | None = None
    attribute: str | None = None
    slice: str | None = None


@dataclass(frozen=True, slots=True)
class ByQuery:
    """The values of a point query by query, packed (``karat.formats.own.query_values``).

    Attributes:
        queries: Hash of the ids of the queries that count: values with the same can be paired.
        n: How many these are.
        values: By the name of a measure its values in the order of the ids.
        weights: What each query counts for; None where all count the same.
    """

    queries: str
    n: int
    values: Mapping[str, str]
    weights: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of the queries of a run: a nightly evaluation has no other health check.

    Attributes:
        queries: Queries that count.
        failed: Of these, without an answer: no value is over them.
        missing: Of these, not in the run; they score 0, as what was answered with nothing does.
        empty: Of these, answered with nothing.
    """

    queries: int
    failed: int
    missing: int
    empty: int

    @property
    def worthless(self) -> bool:
        """Whether values are over other queries than asked, or of a search that found nothing."""
        return self.failed > 0 or 0 < self.queries <= self.missing + self.empty

    @property
    def trouble(self) -> str | None:
        """What went wrong, in words; None if nothing did. An empty answer alone can be right."""
        if 0 < self.queries <= self.failed + self.missing + self.empty and self.failed == 0:
            return f"no document for any of {_queries(self.queries)}"
        said = [f"{self.failed:,} of {_queries(self.queries)} got no answer"] * (self.failed > 0)
        if self.missing:
            of = "" if said else f" of {_queries(self.queries)}"
            be = "is" if self.missing == 1 else "are"
            said.append(f"{self.missing:,}{of} {be} not in the run")
        return ", ".join(said) or None


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count:,} queries"


@dataclass(frozen=True, slots=True)
class Point:
    """One line of a history.

    Attributes:
        time: When, in UTC, as ``2026-03-01T02:00:00Z``.
        kind: What made it: ``evaluate`` | ``gate``.
        run: Name of the run.
        commit: The code it is of, or any label; None if not known.
        verdict: What the gate said; None for an evaluation.
        rules: How it was evaluated where that was not by default, as in ``rel=2 depth=100``; of a
            gate also ``without=`` and a hash of the known failures, which do not count.
        karat: Version of karat.
        values: One for each measure, and for each slice of it.
        hashes: SHA-256 of ``queries``, ``qrels``, ``run`` and ``corpus``; None where not known.
        answered: What became of the queries; None where not known.
        series: Name of the series it belongs to, whatever its run is called; None: by its run.
        by_query: Its values over all queries, query by query; None where not known.
    """

    time: str
    kind: Kind
    run: str
    commit: str | None
    verdict: str | None
    rules: str
    karat: str
    values: tuple[Value, ...]
    hashes: Mapping[str, str | None]
    answered: Answered | None = None
    series: str | None = None
    by_query: ByQuery | None = None

    @property
    def followed_as(self) -> str:
        """The name by which its points are put together over time."""
        return self.run if self.series is None else self.series

    @property
    def worthless(self) -> bool:
        """Whether its values say nothing about the search."""
        return self.verdict in WORTHLESS or (self.answered is not None and self.answered.worthless)

    @property
    def trouble(self) -> str | None:
        """What became of its queries that should not have, in words; None if nothing is known."""
        return self.answered.trouble if self.answered else None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of its line; slices apart."""
        rows = [asdict(value) for value in self.values]
        bare = {"attribute", "slice"}
        held = asdict(self)
        held["values"] = [
            {key: value for key, value in row.items() if key not in bare}
            for row in rows
            if row["attribute"] is None
        ]
        held["slices"] = [row for row in rows if row["attribute"] is not None]
        held["hashes"] = {name: self.hashes.get(name) for name in HASHES}
        for later in ("series", "by_query"):
            if held[later] is None:
                del held[later]  # so that an older karat reads the line
        return {"karat_history": VERSION} | held


def point_of(
    results: Results,
    *,
    run: str,
    time: str,
    hashes: Mapping[str, str | None],
    karat: str,
    commit: str | None = None,
    rules: str = "",
    series: str | None = None,
    by_query: ByQuery | None = None,
) -> Point:
    """The point of one run of an evaluation.

    Args:
        results: What came out, slices included.
        run: Name of the run; a history holds a point for each.
        time: When, in UTC, as ``2026-03-01T02:00:00Z``.
        hashes: SHA-256 of ``queries``, ``qrels``, ``run`` and ``corpus``; those not known may lack.
        karat: Version of karat.
        commit: The code it is of.
        rules: How it was evaluated where that was not by default.
        series: Name of the series it belongs to; that of the run if None.
        by_query: Its values query by query.
    """
    rows = [row for row in (*results.results, *results.slices) if row.run == run]
    values = tuple(_value(row) for row in rows)
    return Point(
        time, "evaluate", run, commit, None, rules, karat, values, _known(hashes),
        _answered(rows, apart="compat=" in rules and "complete=" not in rules), series, by_query,
    )  # fmt: skip


def point_of_gate(
    gate: Gate,
    *,
    time: str,
    karat: str,
    corpus: str | None = None,
    commit: str | None = None,
    rules: str = "",
    series: str | None = None,
    by_query: ByQuery | None = None,
) -> Point:
    """The point of a gate: its verdict, and the candidate's values.

    Args:
        gate: What the policy said.
        time: When, in UTC, as ``2026-03-01T02:00:00Z``.
        karat: Version of karat.
        corpus: SHA-256 of the documents, or any name of their version.
        commit: The code it is of.
        rules: How it was evaluated where that was not by default.
        series: Name of the series it belongs to; that of the candidate if None.
        by_query: Its values query by query.
    """
    values = tuple(map(_value, gate.results))
    hashes = _known({**gate.hashes, "run": gate.hashes.get("candidate"), "corpus": corpus})
    if out := sorted({known.query_id for known in gate.known_failures}):
        # As many others left out would be the same n, over other queries.
        ids = "".join(f"{len(query)}:{query}" for query in out).encode("utf-8", "replace")
        rules = f"{rules} without={sha256(ids).hexdigest()[:16]}".lstrip()
    return Point(
        time, "gate", gate.candidate, commit, gate.verdict, rules, karat, values, hashes,
        _answered(gate.results), series, by_query,
    )  # fmt: skip


def _value(row: Result) -> Value:
    return Value(
        row.measure, row.value, row.ci_low, row.ci_high, row.n, row.attribute, row.slice
    )  # fmt: skip


def _answered(rows: Sequence[Result], *, apart: bool = False) -> Answered | None:
    """What became of the queries, by the measure that has most of them.

    ``apart``: queries that are not in the run are not in n either, as in trec_eval without -c.
    """
    whole = [row for row in rows if row.attribute is None]
    if not whole:
        return None
    row = max(whole, key=lambda row: (row.n, row.missing))
    failed = max(row.failed for row in whole)
    queries = row.n + row.undefined + failed + (row.missing if apart else 0)
    return Answered(queries, failed, row.missing, row.empty)


def _known(hashes: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: hashes.get(name) for name in HASHES}
