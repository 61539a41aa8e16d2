"""A release to test its rules with."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from karat.release.pipeline import Current, ReleaseState, append, rollout_of
from karat.tables.experiments.experiment import Guard
from karat.tables.experiments.shadow import ShadowLimits
from karat.tables.release.pipeline import (
    Evidence,
    Opening,
    Promise,
    ReleaseEvent,
    ReleasePolicy,
    Signal,
    Stage,
    SwitchConfig,
    Version,
)
from karat.tables.release.review import DesignReview, ReviewGain

DAY = 86_400_000_000
T0 = 1_800_000_000_000_000
JUDGMENTS = "judgments-1"
STAGES = (
    Stage("offline"),
    Stage("shadow", fresh_us=3 * DAY),
    Stage("ab", 0.05, 0.05, least_us=7 * DAY, longest_us=28 * DAY, fresh_us=2 * DAY),
    Stage("ramp_25", 0.25, 0.25, least_us=DAY, longest_us=7 * DAY, fresh_us=2 * DAY),
    Stage("ramp_50", 0.5, 0.5, least_us=DAY, longest_us=7 * DAY, fresh_us=2 * DAY),
    Stage("ramp_100", 0.95, 0.05, least_us=DAY, longest_us=7 * DAY, fresh_us=2 * DAY),
)
_GAIN = ReviewGain(0.01, 0.005, 0.015, 100, "better", "the interval excludes 0")
REVIEW = DesignReview(
    "bm25", "hybrid", "nDCG@10", _GAIN, 0.5, 3, [], [], None, None, None, [], []
)  # fmt: skip


def policy(**changes: Any) -> ReleasePolicy:
    """The rules; ``changes`` are other values of fields."""
    promise = Promise(
        "nDCG@10", 0.01, "none", 2.0, "none", "none", "an hour",
        Signal("ZeroResults", 0.1, "above"), ("anna",),
    )  # fmt: skip
    base = ReleasePolicy(
        stages=STAGES, gate={}, shadow=ShadowLimits(), shadow_log="", decide=("SAT",),
        guards=(Guard("ErrorRate", 0.01),), non_inferior="", control_arm="", candidate_arm="",
        window_us=None, trigger=None, exposures=None, silent_us=6 * 3_600_000_000, give_up_us=DAY,
        watch_us=14 * DAY, coverage=0.95, promise=promise,
        switch=SwitchConfig("file", path="rollout.json"),
    )  # fmt: skip
    return replace(base, **changes)


BASELINE = Version("bm25", "run-a", "conf-a", "control")
CANDIDATE = Version("hybrid", "run-b", "conf-b", "treated")
MARKS = {"gate": "run", "shadow": "configuration", "experiment": "arm", "watch": "arm"}


class Release:
    """A ledger in memory, with a clock."""

    def __init__(self, **changes: Any) -> None:
        opening = Opening(policy(**changes), "digest", BASELINE, CANDIDATE, "s", "golden", REVIEW)
        first = ReleaseEvent(1, T0, "started", "ben", opening=opening)
        self.events = [first]
        self.state: ReleaseState = append("r", None, first)
        self.now = T0

    def current(self, **changes: Any) -> Current:
        base = Current(self.now, JUDGMENTS, self.now)
        return replace(base, **changes)

    def add(self, kind: Any, by: str = "karat", reason: str = "", **values: Any) -> ReleaseState:
        """Append an event, if the rules allow it."""
        event = ReleaseEvent(self.state.seq + 1, self.now, kind, by, reason, **values)
        self.state = append("r", self.state, event)
        self.events.append(event)
        if kind in {"advanced", "skipped"}:  # the switch follows at once
            self.add("switched", rollout=asdict(rollout_of(self.state)))
        return self.state

    def evidence(self, verdict: Any = "pass", **changes: Any) -> Evidence:
        """Evidence for the current stage, about this release; ``changes`` make it another."""
        rule = self.state.rule
        kind = "watch" if rule is None else rule.kind
        mark = MARKS[kind]
        base = Evidence(
            kind, self.state.stage, verdict, f"{verdict} by a test", self.now,
            {mark: BASELINE.marks[mark]}, {mark: CANDIDATE.marks[mark]},
            JUDGMENTS if kind == "gate" else None, "digest", 1.0,
            until_us=self.now if kind in {"experiment", "watch"} else None,
        )  # fmt: skip
        return replace(base, **changes)

    def found(self, verdict: Any = "pass", **changes: Any) -> ReleaseState:
        """Record evidence."""
        made = self.evidence(verdict, **changes)
        return self.add("evidence", stage=made.stage, evidence=made)

    def advance(self, by: str = "karat", judgments: str = JUDGMENTS) -> ReleaseState:
        """Pass the stage on its latest evidence."""
        because = self.state.gathered.get(self.state.stage)
        return self.add(
            "advanced", by, stage=self.state.stage, because=because, judgments=judgments
        )

    def to(self, stage: str) -> Release:
        """Pass all stages before one."""
        while self.state.stage != stage:
            assert self.state.rule is not None
            self.now += self.state.rule.least_us
            self.found()
            if self.state.stage == "ab" and self.state.reviewed is None:
                self.add("reviewed", "anna", "looked at ten")
            self.advance()
        return self
