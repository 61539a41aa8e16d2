"""Results of an evaluation: one row for each run and measure, and one for each query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import UsageError, nearest
from karat.tables.about import facts
from karat.tables.asked import Meant, of_measure, of_slice
from karat.tables.notes import as_lines
from karat.tables.run import Run

State = Literal["ok", "empty", "missing", "failed", "undefined", "unjudged"]
"""How a run answered a query, and whether the query has a value.

``ok`` answered (the value may be 0) · ``empty`` an empty answer, value 0 · ``missing`` not in the
run, value 0 · ``failed`` no answer, no value · ``undefined`` the measure is undefined (for example
without relevant documents), no value · ``unjudged`` no judgments, no value.
"""


@dataclass(frozen=True, slots=True)
class Result:
    """The value of one measure for one run (and one slice), with its counts.

    Attributes:
        run: Name of the run.
        measure: Canonical name of the measure.
        value: The aggregate; None if no query has a value (a note says why).
        aggregate: ``mean`` | ``sum`` | ``geometric``.
        ci_low: Lower end of the 95 % interval of ``value``; None without one (a note says why).
        ci_high: Upper end.
        ci_method: ``t`` | ``bca``; None without an interval.
        n: Number of queries in the aggregate.
        empty: Of these, queries with an empty answer (value 0).
        missing: Of these, queries that are not in the run (value 0).
        failed: Queries without an answer: no value, not in ``n``.
        undefined: Queries for which the measure is undefined: not in ``n``.
        unjudged: Queries of the run without judgments: not in ``n``.
        judged: Mean Judged@k over those of the ``n`` queries with a non-empty answer, for a
            measure with a cutoff k; otherwise None.
        tied: Share of the retrieved documents that are tied with another, 0 to 1.
        tie_low: The lowest value over all orders of tied documents; None if unknown (a note says
            why).
        tie_expected: The mean over all orders of tied documents; None if unknown.
        tie_high: The highest value over all orders of tied documents; None if unknown.
        unjudged_low: The lowest value over all grades that the retrieved unjudged documents (in
            the top k) could have, over the same n queries. Documents that were not retrieved count
            as not relevant. None if unknown or not requested.
        unjudged_high: The highest value; None in the same cases.
        attribute: The query attribute sliced by, or None for all queries.
        slice: Its value, or None for all queries.
        ci_reason: Why there is no interval, or why it was cut to the range of the measure; empty
            if neither, or if no interval was requested.
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
    tie_low: float | None = None
    tie_expected: float | None = None
    tie_high: float | None = None
    unjudged_low: float | None = None
    unjudged_high: float | None = None
    attribute: str | None = None
    slice: str | None = None
    ci_reason: str = ""


@dataclass(frozen=True, slots=True)
class QueryValue:
    """The value of one measure for one query.

    Attributes:
        run: Name of the run.
        measure: Canonical name of the measure.
        query_id: The query.
        value: The value; None only in the states failed, undefined and unjudged.
        state: How the query was answered (``State``).
        outcomes: The user's own outcomes of the query; None if none were requested.
    """

    run: str
    measure: str
    query_id: str
    value: float | None
    state: State
    outcomes: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """Response times of one run, in microseconds.

    Attributes:
        run: Name of the run.
        n: Answers with a time, including failed ones.
        p50_us: Median.
        p95_us: 95th percentile.
        p99_us: 99th percentile.
        max_us: Maximum.
    """

    run: str
    n: int
    p50_us: float
    p95_us: float
    p99_us: float
    max_us: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Correlation of a measure with the user's own outcome, query by query.

    Attributes:
        run: Name of the run.
        measure: Canonical name of the measure.
        outcome: Name of the outcome.
        n: Queries that have both.
        spearman: Rank correlation, -1 to 1; None if one of the two is constant.
        ci_low: Lower end of its 95 % interval; None without an interval.
        ci_high: Upper end.
        kendall: Kendall's tau-b, -1 to 1; None if one of the two is constant.
        auc: For a binary outcome: how often a positive query has the higher value than a negative
            one, ties counting half; 0 to 1; None for other outcomes.
    """

    run: str
    measure: str
    outcome: str
    n: int
    spearman: float | None
    ci_low: float | None
    ci_high: float | None
    kendall: float | None
    auc: float | None


@dataclass(frozen=True, slots=True)
class Silence:
    """The effect of a threshold on the score of the first document.

    Attributes:
        threshold: Answers whose best score is below it are withheld.
        silent_no_answer: Share of the no-answer queries whose answer is empty then (right); 0 to 1.
        silent_answerable: Share of the queries with a relevant document whose answer is empty then
            (wrong); 0 to 1; None if there are none.
    """

    threshold: float
    silent_no_answer: float
    silent_answerable: float | None


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """How one run treats the queries that have no right answer.

    Attributes:
        run: Name of the run.
        n: No-answer queries, without the failed ones.
        silent: Of these, queries with an empty answer (empty or missing), or with a best score
            below ``threshold`` if there is one.
        share: ``silent / n``, 0 to 1; None if n is 0.
        missing: Of the silent, queries that are not in the run.
        failed: No-answer queries that failed; not in n.
        threshold: The threshold, or None.
        curve: The shares at every threshold that makes a difference, lowest first.
    """

    run: str
    n: int
    silent: int
    share: float | None
    missing: int
    failed: int
    threshold: float | None
    curve: list[Silence]


@dataclass(frozen=True, slots=True)
class QueryScores:
    """The values behind the means of one run over all queries.

    Attributes:
        query_ids: The n queries that count.
        values: For each measure that is aggregated by the mean, the value of each query; NaN
            without a value; shape (n,).
        weights: The weight of each query, above 0; None if all are equal; shape (n,).
    """

    query_ids: Sequence[str]
    values: Mapping[str, NDArray[np.float64]]
    weights: NDArray[np.float64] | None = None


def _as_text(row: Result) -> tuple[str, ...]:
    value = "–" if row.value is None else f"{row.value:.4f}"
    span = "" if row.ci_low is None else f"{row.ci_low:.3f} – {row.ci_high:.3f}"
    return row.measure, row.run, value, span, f"{row.n:,}"


@dataclass(frozen=True, repr=False)
class Results:
    """The results of an evaluation.

    Attributes:
        results: One row for each run and measure, in the order requested.
        slices: The same for each value of each attribute in ``by``.
        per_query: One row for each run, measure and query; empty unless requested.
        notes: Sentences a reader must know, the most important first: what was left out, what
            differs, what is None.
        no_answer: One row for each run, if queries are marked as having no right answer.
        latency: One row for each run whose answers have times.
        outcomes: One row for each run, measure and outcome.
        fully_judged: Whether documents without a judgment are declared not relevant.
        runs: The runs evaluated, by name: ``karat.write_run(results.runs["bm25"], "bm25.jsonl")``.
        shown: Renders the HTML for notebooks; set by the workflow.
        scores: The values behind the means over all queries, by the name of the run.
        meant: Resolves other spellings of measures, for ``value``.
    """

    results: list[Result]
    slices: list[Result] = field(default_factory=list)
    per_query: list[QueryValue] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    no_answer: list[NoAnswer] = field(default_factory=list)
    latency: list[Latency] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    fully_judged: bool = False
    runs: dict[str, Run] = field(default_factory=dict, compare=False, repr=False)
    shown: Callable[[Results], str] | None = field(default=None, compare=False, repr=False)
    scores: dict[str, QueryScores] = field(default_factory=dict, compare=False, repr=False)
    meant: Meant | None = field(default=None, compare=False, repr=False)

    @property
    def about(self) -> dict[str, dict[str, str]]:
        """The metadata (engine, index, commit, …) of each run that has any."""
        about_by_run = {name: facts(run.about) for name, run in self.runs.items()}
        return {name: about for name, about in about_by_run.items() if about}

    def __repr__(self) -> str:
        """The result rows and the notes, as text."""
        head = ("measure", "run", "value", "95 %", "n")
        rows = [head, *(_as_text(row) for row in self.results)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, *as_lines(self.notes)])

    def _repr_html_(self) -> str | None:
        return None if self.shown is None else self.shown(self)

    def value(
        self,
        measure: str,
        run: str | None = None,
        *,
        slice: str | None = None,  # noqa: A002 - as the field of a row
    ) -> float | None:
        """The aggregate of one measure for one run.

        Args:
            measure: Its name in any spelling: as requested (``ndcg@3``, ``MRR``) or as printed.
            run: Name of the run; None if there is only one.
            slice: ``category=howto`` for the value in a slice; None for all queries.

        Returns:
            The value in the unit of the measure; None if no query has a value.

        Raises:
            UsageError: there is no such row, or there are several runs and none was named.
        """
        rows = of_measure(of_slice(self.results, self.slices, slice), measure, self.meant)
        named = [row for row in rows if run in (None, row.run)]
        if len(named) == 1:
            return named[0].value
        runs = list(dict.fromkeys(row.run for row in rows))
        if named:
            raise UsageError(
                f"{len(named)} runs have a value of {measure}",
                fix=f'.value("{measure}", "{runs[0]}")',
            )
        raise UsageError(f"unknown run {run!r}", nearest=nearest(str(run), runs) or runs)

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
            left_out = set() if self.outcomes else {"outcomes"}
            out["per_query"] = [
                {key: value for key, value in asdict(row).items() if key not in left_out}
                for row in self.per_query
            ]
        for name in ("no_answer", "latency", "outcomes"):
            if rows := getattr(self, name):
                out[name] = [asdict(row) for row in rows]
        if self.fully_judged:
            out["fully_judged"] = True
        if about := self.about:
            out["about"] = about
        out["notes"] = list(self.notes)
        return out

    def frame(self) -> pl.DataFrame:
        """The result rows as a Polars frame."""
        return pl.DataFrame([asdict(row) for row in self.results], infer_schema_length=None)

    def per_query_frame(self) -> pl.DataFrame:
        """The per-query rows as a Polars frame."""
        return pl.DataFrame(self.per_query_rows(), infer_schema_length=None)

    def per_query_rows(self) -> list[dict[str, Any]]:
        """The per-query rows, with ``outcome_NAME`` for each outcome."""
        rows = [asdict(row) for row in self.per_query]
        names = dict.fromkeys(name for row in rows for name in row["outcomes"] or {})
        return [
            {key: value for key, value in row.items() if key != "outcomes"}
            | {f"outcome_{name}": (row["outcomes"] or {}).get(name) for name in names}
            for row in rows
        ]
