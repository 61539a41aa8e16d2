"""Gate: the verdict of a policy on a candidate, rule by rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import polars as pl

from karat.tables.about import AboutChange
from karat.tables.asked import Meant, of_measure, of_slice
from karat.tables.comparison import RankChange
from karat.tables.results import Origin, QueryScores, Result

GateVerdict = Literal["pass", "fail", "cannot_tell", "unhealthy", "stale", "error"]
"""Verdict of a rule, and of a gate.

``pass``: the rule holds · ``fail``: it does not · ``cannot_tell``: not enough evidence ·
``unhealthy``: the search failed to answer, so its values say nothing · ``stale``: the baseline was
computed from other inputs · ``error``: the rule does not apply to these inputs.
"""
WORST_FIRST: tuple[GateVerdict, ...] = (
    "error",
    "unhealthy",
    "stale",
    "fail",
    "cannot_tell",
    "pass",
)
EXIT_CODES: dict[GateVerdict, int] = {
    "pass": 0,
    "fail": 1,
    "cannot_tell": 3,
    "unhealthy": 3,
    "stale": 3,
    "error": 4,
}


@dataclass(frozen=True, slots=True)
class Check:
    """The check of one rule."""

    rule: str  # the rule in a few words, such as `nDCG@10 drops by at most 5%`
    verdict: GateVerdict
    reason: str  # the reason for the verdict, in a sentence
    measure: str | None = None  # canonical name of the measure, or None for a rule about answers
    attribute: str | None = None  # the attribute sliced by, or None for all queries
    slice: str | None = None  # its value, or None
    n: int | None = None  # number of queries; None for a rule that is not about queries
    baseline_value: float | None = None  # value of the baseline; None without one
    candidate_value: float | None = None  # value of the candidate, in the unit of the rule
    # How much worse the candidate is, in the unit of the measure; negative if it is better
    drop: float | None = None
    # Lower end of the 95 % interval of `drop`; None without an interval
    ci_low: float | None = None
    ci_high: float | None = None  # upper end
    limit: float | None = None  # maximum of `drop`, or minimum or maximum of `candidate_value`
    # The smallest drop that these queries detect with a power of 80 %
    smallest_detected: float | None = None


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A query in the policy's list of known failures."""

    query_id: str
    measure: str  # the measure by which it fails
    value: float | None  # its value in the candidate, or None
    passes: bool  # whether it passes now and can be removed from the list
    reason: str = ""  # the reason given in the policy; empty without one


@dataclass(frozen=True, slots=True)
class Regression:
    """A regression: a query that got worse by the measure of a rule that did not pass."""

    measure: str  # canonical name of the measure
    query_id: str
    text: str | None  # text of the query; None if unknown
    baseline_value: float
    candidate_value: float
    attribute: str | None = None  # the attribute that the check slices by; None for all queries
    slice: str | None = None  # its value, or None
    # The rank changes that matter most; None for a saved baseline, which has no documents
    moves: list[RankChange] | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """The verdict of a policy on a candidate."""

    # The worst verdict of all checks, by `WORST_FIRST`; `error` without checks
    verdict: GateVerdict
    baseline: str | None  # name of the baseline; None if no rule needs one
    candidate: str
    policy: str  # name of the policy file
    checks: list[Check]  # one for each rule and slice, the worst first
    # The largest regressions, each query once for a measure; at most ten for each check that did
    # not pass
    lost: list[Regression] = field(default_factory=list)
    known_failures: list[KnownFailure] = field(default_factory=list)  # the queries known to fail
    # SHA-256 of the inputs `queries`, `qrels`, `baseline`, `candidate`, `policy`; None if there is
    # no such input
    hashes: dict[str, str | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # sentences a reader must know
    # Results of the candidate: each measure with its interval and counts, over all queries and in
    # the slices of the rules
    results: list[Result] = field(default_factory=list)
    fully_judged: bool = False  # whether documents without a judgment are declared not relevant
    # The values behind its means over all queries, for a history; not in the JSON
    scores: QueryScores | None = field(default=None, compare=False, repr=False)
    # How the metadata (engine, index, commit, …) of the candidate differs from the baseline's;
    # empty for a saved baseline, which has no metadata
    changes: list[AboutChange] = field(default_factory=list)
    # Resolves other spellings of measures, for `value`; not in the JSON
    meant: Meant | None = field(default=None, compare=False, repr=False)
    # What was measured, the candidate first; as in `Comparison`
    plan: Any = field(default=None, compare=False, repr=False)

    def value(
        self,
        measure: str,
        *,
        slice: str | None = None,  # noqa: A002 - as the field of a row
    ) -> float | None:
        """The candidate's value of a measure of the policy.

        The drop and its limit are in ``checks`` and ``frame``.

        Args:
            measure: Its name in any spelling, such as ``ndcg@10``.
            slice: ``category=howto`` for the value in a slice of a rule; None for all queries.

        Returns:
            The aggregate over the queries that count; None if no query has a value.

        Raises:
            UsageError: no rule uses this measure or slice; the nearest is named.
        """
        overall = [row for row in self.results if row.attribute is None]
        sliced = [row for row in self.results if row.attribute is not None]
        return of_measure(of_slice(overall, sliced, slice), measure, self.meant)[0].value

    def frame(self) -> pl.DataFrame:
        """The checks as a Polars frame, the worst first."""
        rows = [asdict(check) for check in self.checks]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def exit_code(self) -> int:
        """Exit code of ``karat gate``: 0 pass, 1 fail, 3 inconclusive, 4 error."""
        return EXIT_CODES[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat gate --format json`` (docs/reference/json.md)."""
        rows = asdict(replace(self, scores=None, meant=None, plan=None))
        del rows["scores"], rows["meant"], rows["plan"]
        return rows | {"exit_code": self.exit_code}


GateSource = Literal["command", "page", "api", "release"]


@dataclass(frozen=True, slots=True)
class GateRow:
    """A stored result of a gate, in short."""

    id: int
    time_us: int  # when it was checked, microseconds UTC
    candidate: str  # name of the candidate
    baseline: str | None  # name of the baseline; None if no rule needs one
    policy: str  # name of the policy file
    verdict: GateVerdict
    source: GateSource  # what checked it
    person: str  # who checked it; `karat` for a release
    commit: str | None  # commit of the code, or any label; None if unknown
    decides: Check | None = None  # the first check with the verdict; None if every rule holds


@dataclass(frozen=True, slots=True)
class GatePlaces:
    """Where a workspace has what a gate is about; None for what it does not have."""

    candidate: int | None = None  # id of the stored run with its content, else of its name
    baseline: int | None = None  # likewise
    same: bool = True  # whether these runs have the content that was checked
    comparison: int | None = None  # id of the newest comparison of the two
    release: str | None = None  # name of the newest release of the candidate
    history: str | None = None  # name of the history with its point
    series: str | None = None  # name of the series of that point


@dataclass(frozen=True, slots=True)
class GateRecord:
    """A stored result of a gate, in full."""

    row: GateRow
    golden: str  # name of the golden set in whose workspace it is stored
    gate: Gate
    origins: Sequence[Origin]  # what it was computed from
    rules: Sequence[tuple[str, str]]  # how it was computed, as name and value
    places: GatePlaces

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, with the result as ``karat gate --format json`` prints it."""
        rows = asdict(replace(self, gate=replace(self.gate, scores=None, meant=None, plan=None)))
        return rows | {"gate": self.gate.to_dict()}
