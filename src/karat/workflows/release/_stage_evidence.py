"""The evidence of a stage of a release: a gate, a shadow comparison, an experiment, a watch.

Each says what it is about, so that nothing passes on evidence of something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from karat.errors import KaratError, UsageError
from karat.experiments.assignment import Rollout
from karat.experiments.shadow import side_digest
from karat.formats.own.shadow_log import read_shadow_log
from karat.online.rules import DAY, duration
from karat.release.pipeline import KARAT, ReleaseState, rollout_at
from karat.release.policy import policy_of
from karat.tables.days import day_of
from karat.tables.experiments.experiment import ExperimentPlan, ExperimentResult
from karat.tables.experiments.shadow import ShadowResult
from karat.tables.online.evaluation import OnlineResult
from karat.tables.online.events import EventLog
from karat.tables.release.pipeline import (
    AB,
    Evidence,
    EvidenceVerdict,
    Signal,
    Version,
)
from karat.tables.workspace import RunRow
from karat.workflows.experiments.analyze import analyze_events
from karat.workflows.experiments.shadow import compare_observed, of_runs
from karat.workflows.online.evaluate import evaluate_log
from karat.workflows.online.log_requests import log_of
from karat.workflows.online.watch import last_whole_day
from karat.workflows.release.stored_gates import Checked, check_stored
from karat.workflows.workspace.stored_inputs import inputs_digest
from karat.workflows.workspace.stored_runs import read_stored, stored_by_name
from karat.workflows.workspace.workspace import Workspace, queries_in

_CHECKS = 20  # of a gate, in evidence
_OF_GATE: Mapping[str, EvidenceVerdict] = {"pass": "pass", "fail": "fail", "unhealthy": "unhealthy"}
_FEWEST = 30  # users below which the rollback signal says nothing


@dataclass(frozen=True)
class Gathering:
    """Gathers the evidence for the stage that a release is in."""

    opened: Workspace  # with the golden set of the release
    state: ReleaseState
    now: int

    def gather(self) -> Evidence:
        """The evidence; "cannot tell" if what it needs is missing."""
        gatherers = {
            "gate": self._gate,
            "shadow": self._shadow,
            "experiment": self._experiment,
            "watch": self._watch,
        }
        try:
            return gatherers[self.state.wants]()
        except KaratError as error:
            return self._made("cannot_tell", str(error).splitlines()[0])

    def _made(
        self,
        verdict: EvidenceVerdict,
        reason: str,
        *,
        marks: Sequence[Mapping[str, str]] = ({}, {}),  # of the baseline and the candidate
        **more: Any,
    ) -> Evidence:
        values = {"judgments": None, "coverage": None, "made_us": self.now, **more}
        return Evidence(
            kind=self.state.wants,
            stage=self.state.stage,
            verdict=verdict,
            reason=reason,
            baseline=marks[0],
            candidate=marks[1],
            policy=self.state.opening.digest,
            **values,
        )

    # --- offline ---

    def _gate(self) -> Evidence:
        opening = self.state.opening
        rows = [run_of(self.opened, version) for version in (opening.baseline, opening.candidate)]
        policy = policy_of(opening.policy.gate, f"release {self.state.name}")
        # Before the gate: judgments that arrive meanwhile make it stale, not fresh.
        judgments = inputs_digest(self.opened)
        baseline = rows[0].id if policy.needs_baseline else None
        by = Checked("release", KARAT, self.now, release=self.state.name)
        number, found = check_stored(self.opened, policy, baseline, rows[1].id, by)
        known = set(found.plan.qrels.query_ids)
        runs = [*found.plan.given]
        if not policy.needs_baseline:
            runs += read_stored(self.opened, rows[:1])
        coverage = min(len(known & set(run.query_ids)) / len(known) for run in runs)
        verdict = _OF_GATE.get(found.verdict, "cannot_tell")
        worst = found.checks[0] if found.checks else None
        reason = "every rule of the gate holds"
        if verdict != "pass":
            reason = "no rule" if worst is None else f"{worst.rule}: {worst.reason}"
        checks = [asdict(check) for check in found.checks[:_CHECKS]]
        return self._made(
            verdict, reason, marks=[{"run": row.sha256} for row in rows], judgments=judgments,
            coverage=coverage, result={"verdict": found.verdict, "checks": checks, "gate": number},
        )  # fmt: skip

    # --- shadow ---

    def _shadow(self) -> Evidence:
        opening, opened = self.state.opening, self.opened
        queries, runs = queries_in(opened), []
        if opening.policy.shadow_log:
            observed = read_shadow_log(opened.workspace.root / opening.policy.shadow_log)
        else:
            versions = (opening.baseline, opening.candidate)
            runs = read_stored(opened, [run_of(opened, version) for version in versions])
            observed = of_runs(runs, queries)
        found = compare_observed(observed, runs, queries=queries, limits=opening.policy.shadow)
        marks = [
            {key: value for key, known in (("run", found.runs), ("configuration", found.hashes))
             if (value := known.get(side))}
            for side in ("baseline", "candidate")
        ]  # fmt: skip
        answered = next((c.value for c in found.checks if c.rule == "min_answered"), None)
        # A log is as old as its last request, whenever it is read.
        made = self.now if observed.last_us is None else min(self.now, observed.last_us)
        return self._made(
            found.verdict, found.reason, marks=marks, coverage=answered,
            made_us=made, result=_of_shadow(found),
        )  # fmt: skip

    # --- experiment ---

    def _experiment(self) -> Evidence:
        log, state = log_of(self.opened), self.state
        plan = plan_of(state, log, self.now)
        found = analyze_events(log, plan)
        verdict, reason = decided(found, plan, self.state)
        signal = None
        with suppress(KaratError):  # the guardrails are there
            signal = self._signal(log, {"arm": state.opening.candidate.arm})
        if signal is not None and signal[0] and state.overridden is None:
            verdict, reason = "breach", signal[1]
        return self._made(
            verdict, reason, ended=found.ended and self._spent(), **self._of_log(log),
            result=_brief(found) | {"signal": None if signal is None else signal[1]},
        )  # fmt: skip

    def _of_log(self, log: EventLog) -> dict[str, Any]:
        """What evidence is about that a log gives."""
        sides = self.state.opening.baseline, self.state.opening.candidate
        arms = [{"arm": side.arm} for side in sides]
        return {"marks": arms, "coverage": 1.0, "until_us": min(log.last_us or 0, self.now)}

    def _spent(self) -> bool:
        """Whether the longest time of the stage has passed."""
        rule = self.state.rule
        longest = None if rule is None else rule.longest_us
        return longest is None or self.now - self.state.entered_us >= longest

    # --- watch ---

    def _watch(self) -> Evidence:
        log = log_of(self.opened)
        known, signal = self._of_log(log), self._signal(log, {})
        if signal is None:
            return self._made("cannot_tell", "the rollback signal has no value yet", **known)
        return self._made("breach" if signal[0] else "pass", signal[1], **known)

    def _signal(self, log: EventLog, only: Mapping[str, str]) -> tuple[bool, str] | None:
        """Whether the rollback signal is beyond its limit, in words; None without a value."""
        signal = self.state.opening.policy.promise.signal
        last = min(last_whole_day(log), day_of(self.now, log.timezone) - 1)  # a whole day
        first = last - duration(signal.window) // DAY + 1
        if first < first_day(self.state, log):
            return None  # the window began before the stage
        results = evaluate_log(
            log, [signal.metric], [], first_day=first, last_day=last,
            only={**signal.slice, **only},
        )  # fmt: skip
        row = results.results[0]
        if row.value is None or row.users < _FEWEST:
            return None
        return beyond(signal, row), signal_text(signal, row)


def beyond(signal: Signal, row: OnlineResult) -> bool:
    """Whether a metric is beyond the limit, with its interval."""
    if row.value is None:
        return False
    if signal.direction == "above":
        return (row.value if row.low is None else row.low) > signal.limit
    return (row.value if row.high is None else row.high) < signal.limit


def signal_text(signal: Signal, row: OnlineResult) -> str:
    where = "".join(f" of {name} {value}" for name, value in signal.slice.items())
    interval = "" if row.low is None or row.high is None else f" ({row.low:.4g} to {row.high:.4g})"
    return (
        f"{signal.metric}{where} is {row.value:.4g}{interval}; the limit is "
        f"{signal.limit:.4g}, bad {signal.direction}"
    )


def first_day(state: ReleaseState, log: EventLog) -> int:
    """The first whole day of the stage: on a part of one, the shares were others."""
    return day_of(state.entered_us - 1, log.timezone) + 1


def plan_of(state: ReleaseState, log: EventLog, now: int) -> ExperimentPlan:
    """The experiment of the stage that a release is in: its own users, its own control."""
    policy, rule, rollout = state.opening.policy, state.rule, rollout_at(state, state.stage)
    assert rule is not None
    assert rule.longest_us is not None
    plan = ExperimentPlan(
        control=state.opening.baseline.arm,
        treatment=state.opening.candidate.arm,
        decide=policy.decide,
        guards=policy.guards,
        name=state.name,
        shares=_shares(rollout),
        weeks=rule.longest_us // (7 * DAY),
        start=first_day(state, log),
        end=day_of(now, log.timezone),
        window_us=policy.window_us,
        trigger=policy.trigger,
        exposures=policy.exposures,
    )
    # Before a step of the ramp, some users had the candidate already.
    return plan if rule.name == AB else replace(plan, before_us=0)


def _shares(rollout: Rollout) -> tuple[float, float]:
    both = rollout.control_share, rollout.treatment_share
    return both if all(both) else (1.0, 1.0)  # assigned by another tool: equal arms


def decided(
    found: ExperimentResult, plan: ExperimentPlan, state: ReleaseState
) -> tuple[EvidenceVerdict, str]:
    """What an experiment says about a stage.

    The A/B test passes on an improvement, or where the policy declares why none is needed. A ramp
    has had its improvement: no guardrail may be breached, and no decision metric be worse.
    """
    if found.verdict == "unhealthy":
        return "unhealthy", found.reason
    guards = [effect for effect in found.effects if effect.role == "guardrail"]
    breached = [effect.metric for effect in guards if effect.held == "breached"]
    if breached:
        return "breach", f"the guardrail {breached[0]} is breached"
    if found.verdict == "fail":
        return "fail", found.reason
    excused = state.opening.policy.non_inferior if state.stage == AB else "ramp"
    if found.verdict == "pass" or not excused:
        return ("pass" if found.verdict == "pass" else "cannot_tell"), found.reason
    # Whole weeks are for the decision; a step of the ramp has the length of the policy.
    ramp = {"weeks"} if state.stage != AB else set()
    open_checks = (check for check in found.health if check.check not in ramp)
    short = [check for check in open_checks if check.state == "cannot_tell"]
    if short:
        return "cannot_tell", short[0].detail
    open_ = [effect.metric for effect in guards if effect.held != "passed"]
    if open_ or len(guards) < len(plan.guards):
        return "cannot_tell", f"guardrails cannot tell: {', '.join(open_) or 'not in the log'}"
    if state.stage == AB:
        return "pass", f"every guardrail passed, and no improvement is needed: {excused}"
    return "pass", "every guardrail passed, and no decision metric is worse"


def _of_shadow(found: ShadowResult) -> dict[str, Any]:
    names = ("verdict", "reason", "requests", "queries", "dropped", "late")
    return {
        **{name: getattr(found, name) for name in names},
        "checks": [asdict(check) for check in found.checks],
        "sides": [asdict(side) for side in found.sides],
        "differences": [asdict(row) for row in found.differences],
    }


def _brief(found: ExperimentResult) -> dict[str, Any]:
    return {
        "verdict": found.verdict,
        "reason": found.reason,
        "users": found.users,
        "period": found.period,
        "health": [asdict(check) for check in found.health],
        "effects": [asdict(effect) for effect in found.effects if effect.role != "diagnostic"],
    }


def run_of(opened: Workspace, version: Version) -> RunRow:
    """The stored run of a version, by its content."""
    rows = stored_by_name(opened).values()
    found = next((row for row in rows if row.sha256 == version.run), None)
    if found is None:
        raise UsageError(f"the run {version.name} is not stored any more", fix="import it again")
    return found


def version_of(row: RunRow, arm: str) -> Version:
    return Version(row.name, row.sha256, side_digest(row.about.get("recorded", {})), arm)
