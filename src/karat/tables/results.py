"""Results: what came out, one row for each run and measure, and one for each query."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import polars as pl

State = Literal["ok", "empty", "missing", "failed", "undefined", "unjudged"]
"""What became of a query in a run.

``ok`` answered (a score of 0 is ok) · ``empty`` answered with nothing, scores 0 · ``missing``
not in the run, scores 0 · ``failed`` no answer, no value · ``undefined`` the measure has no
value here (no relevant document), no value · ``unjudged`` no judgments, no value.
"""


@dataclass(frozen=True, slots=True)
class Result:
    """The value of one measure for one run (and one slice), with its counts.

    Attributes:
        run: Name of the run.
        measure: Canonical name of the measure.
        value: The aggregate, or None when no query has a value (a note says why).
        aggregate: How values were put together: ``mean`` | ``sum`` | ``geometric``.
        ci_low: Lower end of the 95 % interval of ``value``, or None (a note says why).
        ci_high: Upper end.
        ci_method: ``t`` | ``bca``, or None.
        n: Queries the aggregate is over.
        empty: Of these, answered with nothing (they score 0).
        missing: Of these, not in the run (they score 0).
        failed: Queries that got no answer: no value, not in ``n``.
        undefined: Queries for which the measure has no value: not in ``n``.
        unjudged: Queries of the run without judgments: not in ``n``.
        judged: Mean Judged@k over the ``n`` queries that returned anything, for a measure with a
            cutoff k, else None.
        tied: Share of the retrieved documents that are tied with another, 0 to 1.
        attribute: The query attribute sliced by, or None for all queries.
        slice: Its value, or None for all queries.
    """

    run: str
    measure: str
    value: float | None
    aggregate: str
    ci_low: float | None
    ci_high: float | None
    ci_method: str | None
    n: int
    empty: int
    missing: int
    failed: int
    undefined: int
    unjudged: int
    judged: float | None
    tied: float | None
    attribute: str | None = None
    slice: str | None = None


@dataclass(frozen=True, slots=True)
class QueryValue:
    """The value of one measure for one query; None only for failed, undefined, unjudged."""

    run: str
    measure: str
    query_id: str
    value: float | None
    state: State


@dataclass(frozen=True)
class Results:
    """Everything one evaluation found.

    Attributes:
        results: One row for each run and measure, in the order asked.
        slices: The same for each value of each attribute asked for with ``by``.
        per_query: One row for each run, measure and query; empty unless asked for.
        notes: Sentences a reader must know: what was left out, what differs, what is None.
    """

    results: list[Result]
    slices: list[Result] = field(default_factory=list)
    per_query: list[QueryValue] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def value(self, measure: str, run: str | None = None) -> float | None:
        """The aggregate of one measure (of one run, if there are several).

        Raises:
            KeyError: no such row.
        """
        for row in self.results:
            if row.measure == measure and run in (None, row.run):
                return row.value
        raise KeyError((measure, run))

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat evaluate --format json`` (docs/reference/json.md)."""
        sliced = {"attribute", "slice"}
        rows = [
            {key: value for key, value in asdict(row).items() if key not in sliced}
            for row in self.results
        ]
        out: dict[str, Any] = {"results": rows}
        if self.slices:
            out["slices"] = [asdict(row) for row in self.slices]
        if self.per_query:
            out["per_query"] = [asdict(row) for row in self.per_query]
        out["notes"] = list(self.notes)
        return out

    def frame(self) -> pl.DataFrame:
        """The result rows as a Polars frame."""
        return pl.DataFrame([asdict(row) for row in self.results], infer_schema_length=None)

    def per_query_frame(self) -> pl.DataFrame:
        """The per-query rows as a Polars frame."""
        return pl.DataFrame([asdict(row) for row in self.per_query], infer_schema_length=None)
