"""Results of an evaluation: one row for each run and measure, and one for each query."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.tables.about import facts
from karat.tables.asked import Meant, of_measure, of_name, of_slice
from karat.tables.notes import as_lines
from karat.tables.run import Run


@dataclass(frozen=True, slots=True)
class Line:
    """One document of the ranking."""

    rank: int | None  # from 1; None for a relevant document that was not retrieved
    doc_id: str  # the document
    score: float | None  # the system's score; None if it was not retrieved
    grade: float | None  # its judgment; None if unjudged
    gain: float | None  # its gain; None if the measure is not a sum over documents
    discount: float | None  # the factor for its rank
    # What it adds to the value. Contributions add up to the value exactly.
    contribution: float | None
    tied: bool  # whether its score equals a neighbour's


@dataclass(frozen=True, slots=True)
class Origin:
    """What a result was computed from: judgments, queries, a run, a policy."""

    name: str  # `judgments`, `queries`, `policy`, or the name of a run
    source: str  # its file or other name
    size: str  # its size, in words
    sha256: str | None  # SHA-256 of its content; None if not computed


@dataclass(frozen=True, slots=True)
class Explanation:
    """How the value of one query comes about."""

    run: str
    measure: str  # canonical name of the measure
    query_id: str
    value: float | None  # its value, or None with the reason in `state`
    state: State  # how the query was answered (`results.State`)
    lines: list[Line]  # the top of the ranking, and every document below it that contributes
    missed: list[Line]  # relevant documents that were not retrieved, best first
    hidden: int  # number of documents of the ranking that are not shown
    notes: list[str]  # sentences a reader must know
    text: str | None = None  # text of the query; None if unknown

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, with null for infinite scores, which JSON does not support."""
        out = asdict(self)
        for line in (*out["lines"], *out["missed"]):
            if line["score"] is not None and math.isinf(line["score"]):
                line["score"] = None
        return out


State = Literal["ok", "empty", "missing", "failed", "undefined", "unjudged"]
"""How a run answered a query, and whether the query has a value.

``ok`` answered (the value may be 0) · ``empty`` an empty answer, value 0 · ``missing`` not in the
run, value 0 · ``failed`` no answer, no value · ``undefined`` the measure is undefined (for example
without relevant documents), no value · ``unjudged`` no judgments, no value.
"""


@dataclass(frozen=True, slots=True)
class Result:
    """The value of one measure for one run (and one slice), with its counts."""

    run: str
    measure: str  # canonical name of the measure
    value: float | None  # the aggregate; None if no query has a value (a note says why)
    aggregate: str  # `mean` | `sum` | `geometric`
    # Lower end of the 95 % interval of `value`; None without one (a note says why)
    ci_low: float | None
    ci_high: float | None  # upper end
    ci_method: str | None  # `t` | `bca`; None without an interval
    n: int  # number of queries in the aggregate
    empty: int  # of these, queries with an empty answer (value 0)
    missing: int  # of these, queries that are not in the run (value 0)
    failed: int  # queries without an answer: no value, not in `n`
    undefined: int  # queries for which the measure is undefined: not in `n`
    unjudged: int  # queries of the run without judgments: not in `n`
    # Mean Judged@k over those of the `n` queries with a non-empty answer, for a measure with a
    # cutoff k; otherwise None
    judged: float | None
    tied: float | None  # share of the retrieved documents that are tied with another, 0 to 1
    # The lowest value over all orders of tied documents; None if unknown (a note says why)
    tie_low: float | None = None
    tie_expected: float | None = None  # the mean over all orders of tied documents; None if unknown
    # The highest value over all orders of tied documents; None if unknown
    tie_high: float | None = None
    # The lowest value over all grades that the retrieved unjudged documents (in the top k) could
    # have, over the same n queries. Documents that were not retrieved count as not relevant. None
    # if unknown or not requested.
    unjudged_low: float | None = None
    unjudged_high: float | None = None  # the highest value; None in the same cases
    attribute: str | None = None  # the query attribute sliced by, or None for all queries
    slice: str | None = None  # its value, or None for all queries
    # Why there is no interval, or why it was cut to the range of the measure; empty if neither, or
    # if no interval was requested
    ci_reason: str = ""


@dataclass(frozen=True, slots=True)
class QueryValue:
    """The value of one measure for one query."""

    run: str
    measure: str  # canonical name of the measure
    query_id: str
    value: float | None  # the value; None only in the states failed, undefined and unjudged
    state: State  # how the query was answered (`State`)
    # The user's own outcomes of the query; None if none were requested
    outcomes: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """Response times of one run, in microseconds."""

    run: str
    n: int  # answers with a time, including failed ones
    p50_us: float  # median
    p95_us: float  # 95th percentile
    p99_us: float  # 99th percentile
    max_us: float  # maximum


@dataclass(frozen=True, slots=True)
class Outcome:
    """Correlation of a measure with the user's own outcome, query by query."""

    run: str
    measure: str  # canonical name of the measure
    outcome: str
    n: int  # queries that have both
    spearman: float | None  # rank correlation, -1 to 1; None if one of the two is constant
    ci_low: float | None  # lower end of its 95 % interval; None without an interval
    ci_high: float | None  # upper end
    kendall: float | None  # Kendall's tau-b, -1 to 1; None if one of the two is constant
    # For a binary outcome: how often a positive query has the higher value than a negative one,
    # ties counting half; 0 to 1; None for other outcomes
    auc: float | None


@dataclass(frozen=True, slots=True)
class MachineMean:
    """A mean, or a difference of means, from people's grades and those of a machine judge."""

    run: str
    baseline: str | None  # what the difference is to; None for a mean
    measure: str
    unit: Literal["query", "pair"]  # what people judged a sample of
    judge: str  # who the machine's grades are by
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    people: float | None  # from people's grades alone
    people_low: float | None
    people_high: float | None
    machine: float | None  # from the machine's grades alone
    weight: float | None  # of the machine's grades in the estimate, 0 to 1
    rho: float | None  # correlation of the machine's values with people's
    effective: float | None  # queries that people alone would have to judge for as narrow a one
    judged: int  # queries, or pairs, that people judged
    machine_only: int  # further ones that only the machine graded
    reason: str = ""  # why there is no estimate or no interval
    # What more judging would buy, where queries are the unit and the price or the time is known:
    # queries that $10 more of the judge grades, and that people judge in 10 more minutes
    dollars_queries: float | None = None
    dollars_effective: float | None = None  # `effective` with them
    minutes_queries: float | None = None
    minutes_effective: float | None = None  # `effective` with them
    # `mean` over queries; `ratio`: the mean DCG over the mean ideal DCG, for nDCG of pairs
    aggregate: Literal["mean", "ratio"] = "mean"
    # Whether the judge's passport certifies it
    certified: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Silence:
    """The effect of a threshold on the score of the first document."""

    threshold: float  # answers whose best score is below it are withheld
    # Share of the no-answer queries whose answer is empty then (right); 0 to 1
    silent_no_answer: float
    # Share of the queries with a relevant document whose answer is empty then (wrong); 0 to 1; None
    # if there are none
    silent_answerable: float | None


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """How one run treats the queries that have no right answer."""

    run: str
    n: int  # no-answer queries, without the failed ones
    # Of these, queries with an empty answer (empty or missing), or with a best score below
    # `threshold` if there is one
    silent: int
    share: float | None  # `silent / n`, 0 to 1; None if n is 0
    missing: int  # of the silent, queries that are not in the run
    failed: int  # no-answer queries that failed; not in n
    threshold: float | None  # the threshold, or None
    curve: list[Silence]  # the shares at every threshold that makes a difference, lowest first


@dataclass(frozen=True, slots=True)
class QueryScores:
    """The values behind the means of one run over all queries."""

    query_ids: Sequence[str]  # the n queries that count
    # For each measure that is aggregated by the mean, the value of each query, shape (n,); NaN
    # without a value
    values: Mapping[str, NDArray[np.float64]]
    # The weight of each query, above 0; None if all are equal; shape (n,)
    weights: NDArray[np.float64] | None = None


def _as_text(row: Result) -> tuple[str, ...]:
    value = "–" if row.value is None else f"{row.value:.4f}"
    span = "" if row.ci_low is None else f"{row.ci_low:.3f} to {row.ci_high:.3f}"
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
        machine_grades: One row for each run and measure, if grades of a machine were given.
        fully_judged: Whether documents without a judgment are declared not relevant.
        judgments: Whose judgments: ``human``, ``llm``, ``clicks`` or ``import``, several joined by
            +; None if unknown.
        runs: The runs evaluated, by name: ``karat.write_run(results.runs["bm25"], "bm25.jsonl")``.
        shown: Renders the HTML for notebooks; set by the workflow.
        scores: The values behind the means over all queries, by the name of the run.
        meant: Resolves other spellings of measures, for ``value``.
        plan: What was measured, with the scores; for reports.
    """

    results: list[Result]
    slices: list[Result] = field(default_factory=list)
    per_query: list[QueryValue] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    no_answer: list[NoAnswer] = field(default_factory=list)
    latency: list[Latency] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    machine_grades: list[MachineMean] = field(default_factory=list)
    fully_judged: bool = False
    judgments: str | None = None
    runs: dict[str, Run] = field(default_factory=dict, compare=False, repr=False)
    shown: Callable[[Results], str] | None = field(default=None, compare=False, repr=False)
    scores: dict[str, QueryScores] = field(default_factory=dict, compare=False, repr=False)
    meant: Meant | None = field(default=None, compare=False, repr=False)
    plan: Any = field(default=None, compare=False, repr=False)

    @property
    def about(self) -> dict[str, dict[str, str]]:
        """The metadata (engine, index, commit, …) of each run that has any."""
        about_by_run = {name: facts(run.about) for name, run in self.runs.items()}
        return {name: about for name, about in about_by_run.items() if about}

    def __repr__(self) -> str:
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
        return of_name(rows, run, lambda row: row.run, measure, "runs have a value of").value

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
        for name in ("no_answer", "latency", "outcomes", "machine_grades"):
            if rows := getattr(self, name):
                out[name] = [asdict(row) for row in rows]
        if self.fully_judged:
            out["fully_judged"] = True
        if self.judgments is not None:
            out["judgments"] = self.judgments
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
