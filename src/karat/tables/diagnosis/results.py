"""Diagnosis: where relevant documents are lost, why queries fail, and what fixes are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from karat.tables.diagnosis.traces import StageKind

ModeId = Literal[
    "unknowable_intent", "unclear_policy", "feedback", "missing_content", "stale_content",
    "candidate", "intent", "calibration", "freshness", "scoring", "debugging", "cannot_tell",
]  # fmt: skip
MODES: tuple[ModeId, ...] = get_args(ModeId)
"""Failure modes in the order of their rules: a document has the first that holds."""


@dataclass(frozen=True)
class StageRow:
    """A stage, over all traced queries."""

    stage: str
    kind: StageKind
    relevant_in: int  # relevant documents that it could have returned
    relevant_out: int  # those that it returned
    lost: int  # those in its input that it did not return
    returned: float  # mean length of its lists
    # Measure → its highest mean over all orders of the relevant documents that this stage returned
    ceiling: dict[str, float]
    latency_us: int | None = None  # median over the queries; None if it was not traced
    lost_share: float | None = None  # lost of relevant_in; None if that is 0
    ci_low: float | None = None  # 95 % interval of this share, over the queries
    ci_high: float | None = None


@dataclass(frozen=True)
class Fix:
    """What a change would be worth."""

    stage: str
    change: str  # in words
    measure: str
    gain: float  # mean change of the measure over the queries
    ci_low: float | None  # 95 % interval; None if there is none
    ci_high: float | None
    bound: bool  # whether it is the most that the change could give, rather than what it gives
    n: int  # queries


@dataclass(frozen=True)
class ModeRow:
    """A failure mode, over the failing queries."""

    mode: ModeId
    queries: int  # failing queries with this mode
    share: float  # of all failing queries
    ci_low: float | None  # 95 % interval of the share
    ci_high: float | None
    loss: float  # the part of the loss of all failing queries that its documents explain


@dataclass(frozen=True)
class QueryMode:
    """A failing query."""

    query_id: str
    # Of the first measure; None for a query marked no_answer for which documents are served
    value: float | None
    mode: ModeId
    stage: str | None  # the stage that lost most, if the mode has one
    evidence: str  # what decided, in a sentence
    doc_id: str | None  # the document that lost most
    loss: float  # IDCG - DCG of the query
    text: str | None = None
    baseline_value: float | None = None  # None without a baseline, or without a value in it


@dataclass(frozen=True)
class Road:
    """A document of a query, relevant or served, on its way through the stages."""

    doc_id: str
    grade: float | None  # None if it is not judged
    ranks: dict[str, int | None]  # stage → rank; None where it was not returned
    lost_at: str | None  # the stage that lost it; None if it is served
    loss: float  # its part of IDCG - DCG
    mode: ModeId | None = None  # None for a document without loss
    evidence: str = ""


@dataclass(frozen=True)
class Reliability:
    """Judged documents of a source of the last fusion, by score: what its scores stand for."""

    stage: str
    low: float  # lowest score of the group, normalised to 0 to 1 within each query
    high: float  # highest
    n: int  # judged documents
    relevant: float  # share of these that are relevant
    fitted: float  # mean probability of relevance by isotonic fits on other queries


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosis of a run."""

    run: str
    measure: str
    value: float | None  # mean of the measure
    n: int  # queries with a value
    traced: int  # number of these with a trace
    failing: int  # queries that are diagnosed
    pipeline: str  # the stages in words
    stages: list[StageRow]
    fixes: list[Fix]
    modes: list[ModeRow]
    queries: list[QueryMode]
    notes: list[str]
    slices: dict[str, list[ModeRow]] = field(default_factory=dict)  # slice → its modes
    # Grade or slice → its stages; grades have no ceilings
    stages_by: dict[str, list[StageRow]] = field(default_factory=dict)
    # Of the sources of the last fusion; none without scores, or with few judged documents
    reliability: list[Reliability] = field(default_factory=list)
    below: float = 0.5  # queries with a lower value fail
    baseline: str | None = None  # and those that this run has a higher value for

    @cached_property
    def mode_of(self) -> dict[str, ModeId]:
        """The failure mode of each failing query; pages of many queries ask for it often."""
        return {each.query_id: each.mode for each in self.queries}

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat diagnose --format json`` (docs/reference/json.md)."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(Diagnosis)}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def arrows(stages: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A pipeline in words, from stages with their parents: ``bm25, dense → fused``."""
    levels: list[list[str]] = []
    at: dict[str, int] = {}
    for name, parents in stages:
        at[name] = 1 + max((at[parent] for parent in parents), default=-1)
        while len(levels) <= at[name]:
            levels.append([])
        levels[at[name]].append(name)
    return " → ".join(", ".join(level) for level in levels)
