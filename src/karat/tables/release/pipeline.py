"""A release: its policy, the stages of a change, the evidence for each, and what was decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from karat.tables.engines import Secret
from karat.tables.experiments.experiment import Guard
from karat.tables.experiments.shadow import ShadowLimits
from karat.tables.release.review import DesignReview

SCHEMA_VERSION = 1
DONE = "done"
OFFLINE, SHADOW, AB = "offline", "shadow", "ab"


def stage_name(stage: str) -> str:
    """A stage in words: ``A/B test``, ``ramp 25 %``."""
    known = {AB: "A/B test", "rolled_back": "rolled back", DONE: "watch"}
    if stage.startswith("ramp_"):
        return f"ramp {stage.removeprefix('ramp_')} %"
    return known.get(stage, stage)


EvidenceKind = Literal["gate", "shadow", "experiment", "watch"]
EvidenceVerdict = Literal["pass", "fail", "breach", "cannot_tell", "unhealthy"]
"""``breach``: a guardrail is breached, or the rollback signal is beyond its limit."""
EventKind = Literal[
    "started", "evidence", "reviewed", "advanced", "skipped", "held", "resumed", "overridden",
    "rolled_back", "finished", "switched", "unreachable",
]  # fmt: skip
SwitchKind = Literal["file", "webhook", "command", "alias"]
Action = Literal[
    "advance", "wait", "evidence", "approve", "review", "fix", "hold", "resume", "rollback",
    "finish", "none",
]  # fmt: skip
"""What happens next. ``wait``: time has to pass · ``evidence``: what is there does not decide ·
``approve``, ``review``, ``fix``: a person has to act · ``none``: the release is over or held."""


@dataclass(frozen=True)
class Stage:
    """A stage of a release, and what it takes to pass it."""

    name: str  # offline | shadow | ab | ramp_25 …
    share: float = 0.0  # of all users, who get the candidate; 0 in an A/B test of another tool
    control: float = 0.0  # of all users, who are compared with them; 0 in a ramp: watched only
    least_us: int = 0  # shortest time in it
    longest_us: int | None = None  # longest; None: no limit
    fresh_us: int = 7 * 86_400_000_000  # older evidence does not count
    approvers: tuple[str, ...] = ()  # of whom one has to advance it; empty: karat does

    @property
    def kind(self) -> EvidenceKind:
        """The evidence that it wants."""
        if self.name in {OFFLINE, SHADOW}:
            return "gate" if self.name == OFFLINE else "shadow"
        return "experiment" if self.control or self.name == AB else "watch"


@dataclass(frozen=True)
class SwitchConfig:
    """What moves traffic."""

    kind: SwitchKind
    path: str = ""  # the rollout file that ``karat.assign`` reads (`file`)
    url: str | Secret = field(default="", repr=False)  # of a webhook, or of the search engine
    secret: Secret | None = None  # with which a webhook is signed
    headers: Mapping[str, str | Secret] = field(default_factory=dict, repr=False)  # (`alias`)
    command: tuple[str, ...] = ()  # program and arguments; reads the rollout as JSON (`command`)
    alias: str = ""  # name of the alias (`alias`)
    baseline_index: str = ""  # where it points without the candidate
    candidate_index: str = ""  # where it points once all users get the candidate
    timeout: float = 10.0  # seconds


@dataclass(frozen=True)
class Signal:
    """The rollback signal: an online metric, and the value beyond which the release goes back."""

    metric: str
    limit: float
    direction: Literal["above", "below"]  # which side of the limit is bad
    slice: Mapping[str, str] = field(default_factory=dict)  # attribute → value; empty for all
    window: str = "1d"


@dataclass(frozen=True)
class Promise:
    """What was expected before the release: measured against it afterwards."""

    measure: str  # of the offline gain
    gain: float
    slice: str  # the slice that should gain first, as `class=howto`; `none` if none is expected
    latency_ms: float  # change of the 95th percentile
    memory: str  # in words, as the next three
    labelling: str
    attention: str  # of operators
    signal: Signal
    override: tuple[str, ...]  # who may override the signal


@dataclass(frozen=True)
class ReleasePolicy:
    """The rules of a release; they do not change once it has started."""

    stages: tuple[Stage, ...]
    gate: Mapping[str, Any]  # the policy of the gate, as its file has it
    shadow: ShadowLimits
    shadow_log: str  # a shadow log, relative to the workspace; empty: the stored runs are compared
    decide: tuple[str, ...]  # metrics of which one must be better in the A/B test
    guards: tuple[Guard, ...]  # metrics that must not be worse by more than their margin
    non_inferior: str  # why no improvement is needed; empty: it is
    control_arm: str  # names of the arms in the log
    candidate_arm: str
    window_us: int | None  # each user counts for this long from the first exposure
    trigger: str | None
    exposures: str | None  # a table that says who was in which arm, if the log does not
    silent_us: int  # without events for this long, the release is held
    give_up_us: int  # held for this long by karat, it is rolled back
    watch_us: int  # how long the rollback signal is watched after the last stage
    coverage: float  # least share of the queries that evidence is about
    promise: Promise
    switch: SwitchConfig

    def stage(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)

    def after(self, name: str) -> str:
        """The stage after a stage; ``done`` after the last."""
        names = [stage.name for stage in self.stages]
        place = names.index(name) + 1
        return names[place] if place < len(names) else DONE


@dataclass(frozen=True)
class Version:
    """One of the two versions of the search."""

    name: str  # of its run
    run: str  # hash of its run
    configuration: str | None  # hash of what its run says about the engine; None if it says nothing
    arm: str  # its arm in the log

    @property
    def marks(self) -> dict[str, str]:
        """What identifies it in evidence."""
        known = {"run": self.run, "configuration": self.configuration, "arm": self.arm}
        return {name: value for name, value in known.items() if value}


@dataclass(frozen=True)
class Evidence:
    """What one check of the release showed."""

    kind: EvidenceKind
    stage: str
    verdict: EvidenceVerdict
    reason: str  # of the verdict, in a sentence
    made_us: int
    # What it is about, as in ``Version.marks``
    baseline: Mapping[str, str]
    candidate: Mapping[str, str]
    judgments: str | None  # hash of the judgments; None if it needs none
    policy: str  # hash of the policy
    coverage: float | None  # share of the queries that it is about; None if that means nothing
    until_us: int | None = None  # its newest data; None if it has no time
    ended: bool = False  # whether the planned end of the experiment is reached
    # The result behind it, as its command prints it; without lists of queries
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ReleaseEvent:
    """A line of the ledger."""

    seq: int  # from 1, without gaps
    at_us: int
    kind: EventKind
    by: str  # a user, or `karat`
    reason: str = ""  # in a sentence; empty where none is needed
    stage: str = ""  # the stage that is entered, skipped, or that evidence is of
    evidence: Evidence | None = None
    # Of `advanced`, the number of the evidence and the judgments of that time
    because: int | None = None
    judgments: str | None = None
    opening: Opening | None = None  # of `started`
    rollout: Mapping[str, Any] | None = None  # of `switched`, what the switch was set to


@dataclass(frozen=True)
class Opening:
    """What a release starts with."""

    policy: ReleasePolicy
    digest: str  # hash of the policy
    baseline: Version
    candidate: Version
    salt: str  # of the assignment
    golden: str  # name of the golden set whose judgments count
    review: DesignReview


@dataclass(frozen=True)
class Step:
    """What happens next."""

    action: Action
    reason: str  # why, in a sentence
    consequence: str = ""  # what the action does to users
    at_us: int | None = None  # earliest time; None: now, or not known
    because: int | None = None  # number of the evidence that decides


@dataclass(frozen=True)
class Choice:
    """What a user may do with a release now."""

    kind: EventKind  # the event that is appended
    consequence: str  # what it does to users


@dataclass(frozen=True)
class StageStatus:
    """A stage, as a release's page shows it."""

    stage: str
    share: float
    control: float
    state: Literal["passed", "skipped", "current", "waiting"]
    entered_us: int | None
    left_us: int | None
    by: str  # who advanced or skipped it
    reason: str  # why it was skipped; else what its evidence says
    verdict: EvidenceVerdict | None  # of its latest evidence; None without any


@dataclass(frozen=True)
class ReleaseStatus:
    """A release: where it is, and what comes next."""

    name: str
    state: str  # a stage, `done`, `held` or `rolled_back`
    stage: str  # the stage it is in, also if it is held or rolled back
    over: bool  # whether nothing will happen any more
    reason: str  # why it is held or rolled back; empty otherwise
    started_us: int
    entered_us: int
    by: str  # who started it
    baseline: str
    candidate: str
    share: float  # of users who should get the candidate
    switched: bool  # whether the switch has acknowledged that
    problem: str  # why not; empty otherwise
    step: Step
    stages: Sequence[StageStatus]
    evidence: Sequence[Evidence]  # the latest of each stage
    margin: str  # how far the nearest guardrail is from its margin, in words; empty if unknown
    policy: str  # hash
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class ReleaseStory:
    """Everything about a release, from its promise to its end."""

    status: ReleaseStatus
    promise: Promise
    review: DesignReview
    events: Sequence[ReleaseEvent]  # the ledger, without the policy
    kept: Kept
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class ReleaseRun:
    """What one round did to a release."""

    name: str
    events: Sequence[ReleaseEvent]  # what was appended
    problem: str  # why the switch is not where it should be; empty if it is
    status: ReleaseStatus | None  # None while another round has the release


@dataclass(frozen=True)
class RolledBack:
    """A rollback: all users get the baseline again."""

    name: str
    status: ReleaseStatus | None  # None while the ledger cannot be written
    problem: str  # why it cannot be written; empty if it is
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Kept:
    """What a release promised, and what was measured."""

    name: str
    state: str
    ended_us: int
    measure: str
    promised: float
    offline: float | None  # difference that the review measured
    offline_low: float | None
    offline_high: float | None
    metric: str  # online metric that decided
    online: float | None  # its relative difference in the latest experiment
    online_low: float | None
    online_high: float | None
    promised_ms: float  # latency
    measured_ms: float | None


@dataclass(frozen=True)
class Relation:
    """How online gains follow offline gains, over all releases that have both."""

    releases: int
    slope: float | None  # online gain per unit of offline gain; None below ten releases
    ci_low: float | None
    ci_high: float | None
    reason: str = ""  # why there is none


@dataclass(frozen=True)
class TrackRecord:
    """All releases that are over: promised next to measured."""

    releases: Sequence[Kept]
    relation: Relation
    schema_version: int = SCHEMA_VERSION
