"""Shadow traffic: what two sides answered to the same requests, and the verdict on one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import polars as pl

from karat.tables.comparison import Difference
from karat.tables.run import Run

Verdict = Literal["pass", "fail", "cannot_tell"]
Side = Literal["baseline", "candidate", "again"]
Kind = Literal[
    "same", "reordered", "other_documents", "gained_results", "lost_results", "failed"
]  # fmt: skip
SIDES: Sequence[Side] = ("baseline", "candidate", "again")
KINDS: Sequence[Kind] = (
    "failed", "lost_results", "gained_results", "other_documents", "reordered", "same",
)  # fmt: skip
"""From the gravest to none."""
EXIT_CODES: Mapping[Verdict, int] = {"pass": 0, "fail": 1, "cannot_tell": 3}
SCHEMA_VERSION = 1
LATE_US = 50_000  # microseconds after its time from which a request counts as late
REQUESTS = {
    "id": pl.String,
    "query": pl.String,  # its text, or its id without one
    "query_id": pl.String,  # or null
    "phase": pl.String,
    "late_us": pl.Int64,  # how late it was sent
}
COLD = "cold"  # the phase that only ``by_phase`` counts
TIMEOUT = r"(?i)\btime[d -]?\s?out"  # what the error of a request that timed out contains


@dataclass(frozen=True, slots=True)
class Increase:
    """The largest increase of a latency."""

    size: float  # milliseconds; a share of the baseline's value if `relative`
    relative: bool = True


@dataclass(frozen=True, slots=True)
class ShadowLimits:
    """Limits of a candidate; None for no limit."""

    min_requests: int | None = 200  # that both sides were asked
    min_answered: float | None = 0.95  # share of the requests that both sides were asked
    max_dropped: float | None = 0.05  # share of the requests that the candidate was not asked
    max_errors: float | None = 0.01  # share of the candidate's requests that failed or timed out
    max_p95_ms: float | None = None  # 95th percentile of the candidate's latency
    max_p95_increase: Increase | None = Increase(0.2)  # of the candidate over the baseline
    max_zero_gained: float | None = 0.01  # share of requests that lose all results
    min_overlap: float | None = 0.5  # mean overlap of the top k; a lower one has to be explained


@dataclass(frozen=True)
class Observed:
    """Requests, and what both sides answered."""

    requests: pl.DataFrame  # one row a request: `REQUESTS`
    runs: Mapping[Side, Run]  # with the ids of requests as query ids
    about: Mapping[Side, Mapping[str, str]]  # what each side says about itself
    names: Mapping[Side, str]
    planned: int | None = None  # requests that were to be made; None if unknown
    dropped: int = 0  # requests that the candidate was not asked
    notes: Sequence[str] = ()
    last_us: int | None = None  # time of the last request; None if the source has no times


@dataclass(frozen=True, slots=True)
class ShadowCheck:
    """A limit, and whether the candidate is within it."""

    rule: str  # the name of the limit: `min_requests`, `max_errors`, …
    verdict: Verdict
    reason: str
    value: float | None  # what was seen: a number, a share from 0 to 1, or milliseconds
    ci_low: float | None  # 95 % interval; None for a count or without enough requests
    ci_high: float | None
    limit: float  # in the unit of the value
    unit: str  # `requests` | `share` | `ms`


@dataclass(frozen=True, slots=True)
class ShadowSide:
    """What a side answered, cold requests left out."""

    side: Side  # `again`: the baseline, asked a second time
    name: str
    answered: int  # requests with an answer, empty or not
    empty: int  # of these, those without results
    failed: int  # requests with an error or a timeout
    timeouts: int  # of these, those that timed out
    p50_us: float | None  # quantiles of the latency of its answers, in microseconds
    p95_us: float | None
    p99_us: float | None
    about: dict[str, str]  # engine, index, parameters, commit, … as recorded


@dataclass(frozen=True, slots=True)
class ShadowDifference:
    """Candidate against baseline; requests of one query are averaged, and queries are the unit."""

    # `p50` | `p95` | `p99` (change of the latency, in milliseconds) | `errors` | `timeouts` (change
    # of their share) | `zero_results_gained` | `zero_results_lost` (shares of queries) |
    # `overlap@k` | `rbo` (both 0 to 1) | `displacement@k` (mean change of rank)
    what: str
    value: float | None
    ci_low: float | None  # 95 % interval
    ci_high: float | None
    noise: float | None  # the same between the baseline and itself; None if it was asked once
    noise_ci_low: float | None
    noise_ci_high: float | None
    beyond_noise: float | None  # value minus noise
    p: float | None  # of no difference beyond noise, two-sided; None if it cannot be tested
    p_corrected: float | None  # Holm over the rows with a p
    # Whether `p_corrected` is below 0.05; None without p: overlap, RBO and displacement need a
    # baseline that was asked twice
    different: bool | None
    n: int  # queries


@dataclass(frozen=True, slots=True)
class ShadowPhase:
    """A side in a phase of a replay."""

    phase: str  # `cold` | `warm` | `load 10`: requests a second
    side: Side
    requests: int
    failed: int
    timeouts: int
    late: int  # requests sent more than 50 ms after their time
    p50_us: float | None
    p95_us: float | None
    p99_us: float | None


@dataclass(frozen=True, slots=True)
class ShadowQuery:
    """A query whose answers differ."""

    query: str
    query_id: str | None
    requests: int
    change: float  # 1 minus its mean RBO; 1 if the candidate failed
    rbo: float | None  # mean over its requests; None if a side always failed
    overlap: float | None
    # The most frequent outcome of its requests; `failed`: a side did not answer
    kind: Kind
    baseline_top: list[str]  # the first documents of one request
    candidate_top: list[str]


@dataclass(frozen=True, slots=True)
class ShadowGroup:
    """Queries by what happens to their answers: all of them, or those of a slice."""

    attribute: str | None  # the attribute sliced by, or None for all queries
    slice: str | None
    queries: int
    requests: int
    kinds: dict[str, int]  # number of queries by kind
    overlap: float | None  # mean over its queries
    ci_low: float | None  # 95 % interval
    ci_high: float | None


@dataclass(frozen=True, slots=True)
class ShadowBar:
    """Queries whose mean overlap is from `low` up to, but not including, `high`; 1 has its own."""

    low: float
    high: float
    queries: int
    requests: int


@dataclass(frozen=True, slots=True)
class ShadowPair:
    """An unjudged document of a query whose answers differ."""

    query_id: str | None  # None if the log does not say it, and no known query has this text
    query: str
    doc_id: str
    baseline_rank: int | None  # None below the top k
    candidate_rank: int | None
    requests: int  # of the query


@dataclass(frozen=True)
class ShadowResult:
    """Whether a candidate that was asked next to the baseline passes."""

    verdict: Verdict  # the worst of the checks
    reason: str
    checks: Sequence[ShadowCheck]  # the worst first
    k: int  # depth of the top
    requests: int  # that both sides were asked, cold ones left out
    queries: int  # distinct texts among them
    dropped: int  # requests that the candidate was not asked
    late: int  # requests sent more than 50 ms after their time
    sides: Sequence[ShadowSide]
    differences: Sequence[ShadowDifference]
    by_phase: Sequence[ShadowPhase]  # empty if there is one phase only
    # Difference of nDCG on the judged queries, with its interval and its bounds for unjudged
    # documents; None without judgments
    quality: Difference | None
    quality_slices: Sequence[Difference]  # the same in slices
    most_changed: Sequence[ShadowQuery]  # by requests times change
    groups: Sequence[ShadowGroup]  # all queries, then slices
    histogram: Sequence[ShadowBar]  # of overlap
    judge_next: Sequence[ShadowPair]  # changed and unjudged, of the most changed queries
    # Of baseline and candidate: SHA-256 of what they say about engine, index, template, parameters,
    # function, commit, settings and embedding; of `queries`, `judgments` and `policy` (the limits):
    # of their content. None if there is none
    hashes: dict[str, str | None]
    # Of run files, `baseline` and `candidate`: SHA-256 of the content as in a gate; else empty
    runs: dict[str, str | None]
    explained: str  # why the answers differ so much; empty if not explained
    notes: Sequence[str]
    schema_version: int = field(default=SCHEMA_VERSION)  # of this object; a new one may lack keys

    @property
    def exit_code(self) -> int:
        """0 pass · 1 fail · 3 cannot tell."""
        return EXIT_CODES[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {**asdict(self), "exit_code": self.exit_code}
