"""Tries: a query asked of one or two variants of engines, and all queries asked of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from karat.tables.about import AboutChange
from karat.tables.results import State


@dataclass(frozen=True)
class Variant:
    """An engine to try, as declared or with another template and parameters."""

    engine: str  # name of the declared engine
    template: str | None = None  # the template as edited; None for the declared one
    params: Mapping[str, str] = field(default_factory=dict)  # other values of parameters, as typed


@dataclass(frozen=True)
class TriedHit:
    """A document that a variant returned."""

    doc_id: str
    rank: int  # from 1
    score: float | None  # None if the engine returns none
    title: str | None  # None if unknown
    grade: float | None  # by the golden set; None if not judged
    other_rank: int | None  # its rank in the other variant; None if not in it, or there is none


@dataclass(frozen=True)
class TriedVariant:
    """What a variant returned for a query, or why it returned nothing."""

    engine: str
    kind: str
    template: str | None  # name of the template and its hash; None without one
    params: Mapping[str, object]
    hits: Sequence[TriedHit]
    latency_us: int | None  # time of the answer, microseconds; None without one
    server_us: int | None  # of these, what the engine reports; None if it reports none
    error: str | None  # why there is no answer; None if there is one
    fix: str | None  # how to fix that, if known
    value: float | None  # under the measure; None where `state` says why
    low: float | None  # the lowest value over all grades that unjudged documents could have
    high: float | None  # the highest
    state: State  # of the query under the measure; `unjudged` if it has no judgments
    judged: int  # how many of the hits are judged
    note: str | None = None  # what a reader of the value must know


@dataclass(frozen=True)
class Tried:
    """One query, asked of one or two variants."""

    text: str
    query_id: str | None  # the golden set's query with this text; None if it has none
    depth: int  # documents asked for
    measure: str
    variants: Sequence[TriedVariant]

    @property
    def answered(self) -> bool:
        """Whether every variant returned an answer."""
        return all(variant.error is None for variant in self.variants)


@dataclass(frozen=True)
class TryRow:
    """A try: all queries asked of a variant, stored as a run."""

    name: str
    run: int  # id of the stored run
    engine: str
    at_us: int  # when it was asked, microseconds UTC
    by: str  # who asked
    template: str | None  # name of the template and its hash; None without one
    params: Mapping[str, str]
    before: str | None  # name of the try of this engine before it; None for the first
    changes: Sequence[AboutChange]  # what changed since the one before
    same_as: str | None  # the earlier try of this engine that returned exactly the same
    values: Mapping[str, float | None]  # by measure; empty until they are computed
    p95_us: float | None  # 95th percentile of its answers, microseconds
    failed: int  # queries without an answer
    comparison: int | None  # id of the comparison with the one before; None without one
    text: str  # its template


@dataclass(frozen=True)
class EngineState:
    """A declared engine, as its page shows it."""

    name: str
    kind: str
    address: str  # its url or function; a secret is named, not shown
    index: str | None
    template: str | None  # name of its template; None without one
    params: Mapping[str, object]
    run: int | None  # id of the newest stored run that it answered
    run_name: str | None
    asked_us: int | None  # when that run was stored, microseconds UTC
    p95_us: float | None  # latency of that run, microseconds, if it is evaluated
    version: str | None  # of the engine, as that run recorded it
    index_fingerprint: str | None  # likewise
