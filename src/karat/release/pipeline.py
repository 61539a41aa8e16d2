"""The state machine of a release: what the ledger says, what may be appended, what comes next.

A pure function of the ledger: ``replay`` folds its events, ``append`` refuses one that the rules do
not allow, ``next_step`` says what karat or a person does next, ``rollout_of`` where the switch has
to be. A stage passes only on evidence about this candidate, baseline, judgments and policy; without
evidence nothing passes. After a rollback only a new release leads back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace

from karat.errors import UsageError, nearest
from karat.experiments.assignment import Rollout, stopped
from karat.online.rules import DAY, duration_text
from karat.tables.release.pipeline import (
    AB,
    DONE,
    OFFLINE,
    SHADOW,
    Choice,
    EventKind,
    Evidence,
    EvidenceKind,
    Opening,
    ReleaseEvent,
    Stage,
    StageStatus,
    Step,
    Version,
    stage_name,
)

KARAT = "karat"
"""Who did what no person did."""
_SWITCHED = {"switched", "unreachable"}
_BEFORE_RAMP = {OFFLINE, SHADOW, AB}
_BACK = "all users get the baseline again"
_NOT_SET = "the switch has not acknowledged the shares of this stage"


class NoRelease(UsageError):
    """No release has this name."""


class NotAllowed(UsageError):
    """The rules of releases do not allow this step."""


@dataclass(frozen=True)
class Current:
    """What a decision depends on besides the ledger."""

    now: int
    judgments: str | None  # hash of the judgments as they are now
    fed_us: int | None = None  # time of the newest event of the log; None without a log


@dataclass(frozen=True)
class ReleaseState:
    """What a ledger says."""

    name: str
    opening: Opening
    stage: str
    entered_us: int
    started_us: int
    by: str
    seq: int
    last_us: int
    held: ReleaseEvent | None = None  # the event that holds it
    resumed: int = 0  # number of the last event by which a person resumed it
    rolled_back: ReleaseEvent | None = None
    finished: bool = False
    overridden: ReleaseEvent | None = None  # by whom the rollback signal is ignored
    reviewed: ReleaseEvent | None = None  # the review of false positives
    entered: Mapping[str, int] = field(default_factory=dict)  # stage → when it began
    left: Mapping[str, ReleaseEvent] = field(default_factory=dict)  # how stages ended
    evidence: Mapping[str, Evidence] = field(default_factory=dict)  # the latest of each stage
    gathered: Mapping[str, int] = field(default_factory=dict)  # numbers of the events that have it
    switched: ReleaseEvent | None = None  # the last that the switch acknowledged
    unreachable: ReleaseEvent | None = None  # why the switch is not there yet

    @property
    def state(self) -> str:
        if self.rolled_back is not None:
            return "rolled_back"
        return "held" if self.held is not None else self.stage

    @property
    def over(self) -> bool:
        return self.finished or self.rolled_back is not None

    @property
    def rule(self) -> Stage | None:
        """The rules of its stage; None once it is done."""
        return None if self.stage == DONE else self.opening.policy.stage(self.stage)

    @property
    def wants(self) -> EvidenceKind:
        """The kind of evidence that its stage wants."""
        return "watch" if self.rule is None else self.rule.kind

    @property
    def moves_users(self) -> bool:
        """Whether users get the candidate."""
        return self.stage not in {OFFLINE, SHADOW}


# --- the ledger ---


def replay(name: str, events: Iterable[ReleaseEvent]) -> ReleaseState:
    """What a ledger says; raises NotAllowed if its events do not follow one another."""
    state: ReleaseState | None = None
    for event in events:
        state = append(name, state, event)
    if state is None:
        raise NotAllowed(f"the release {name} has no events")
    return state


def append(name: str, state: ReleaseState | None, event: ReleaseEvent) -> ReleaseState:
    """The state after an event; raises NotAllowed if the rules do not allow it."""
    if state is None:
        if event.kind != "started" or event.opening is None or event.seq != 1:
            raise NotAllowed(f"the release {name} has not started")
        first = event.opening.policy.stages[0].name
        return ReleaseState(
            name, event.opening, first, event.at_us, event.at_us, event.by, 1, event.at_us,
            entered={first: event.at_us},
        )  # fmt: skip
    if event.seq != state.seq + 1:
        raise NotAllowed(f"event {event.seq} of {name} does not follow event {state.seq}")
    if event.kind not in _SWITCHED | {"started"}:
        _refuse_over(state)
    state = replace(state, seq=event.seq, last_us=max(state.last_us, event.at_us))
    return _after(state, event)


def _refuse_over(state: ReleaseState) -> None:
    if state.rolled_back is not None:
        raise NotAllowed(
            f"{state.name} is rolled back: {state.rolled_back.reason}",
            fix="start a new release for the next candidate",
        )
    if state.finished:
        raise NotAllowed(f"{state.name} is finished", fix="start a new release to go back")


def _after(state: ReleaseState, event: ReleaseEvent) -> ReleaseState:
    match event.kind:
        case "evidence":
            assert event.evidence is not None
            evidence = {**state.evidence, event.evidence.stage: event.evidence}
            gathered = {**state.gathered, event.evidence.stage: event.seq}
            return replace(state, evidence=evidence, gathered=gathered)
        case "reviewed":
            _named(event, "the review of false positives")
            return replace(state, reviewed=event)
        case "advanced":
            return _advanced(state, event)
        case "skipped":
            return _skipped(state, event)
        case "held":
            if state.held is not None and state.held.by != KARAT:
                raise NotAllowed(f"{state.name} is held already, by {state.held.by}")
            return replace(state, held=event)
        case "resumed":
            return _resumed(state, event)
        case "overridden":
            return _overridden(state, event)
        case "finished":
            left = state.entered_us + state.opening.policy.watch_us - event.at_us
            if state.stage != DONE or left > 0:
                raise NotAllowed(f"{state.name} is not at its end")
            return replace(state, finished=True)
        case "rolled_back":
            return replace(state, rolled_back=event, held=None)
        case "switched":
            return replace(state, switched=event, unreachable=None)
        case "unreachable":
            return replace(state, unreachable=event)
        case "started":
            raise NotAllowed(f"the release {state.name} has started already")


def _advanced(state: ReleaseState, event: ReleaseEvent) -> ReleaseState:
    rule = _current(state, event)
    known = state.evidence.get(rule.name)
    if known is None or state.gathered[rule.name] != event.because:
        raise NotAllowed(f"{stage_name(rule.name)} of {state.name} has no such evidence")
    lacking = insufficient(state, known, Current(event.at_us, event.judgments))
    if lacking:
        raise NotAllowed(f"{stage_name(rule.name)} of {state.name} does not pass: {lacking}")
    if waits := too_early(state, rule, event.at_us):
        raise NotAllowed(f"{stage_name(rule.name)} of {state.name} does not pass: {waits}")
    _approver(rule, event, state)
    return _left(state, event)


def _skipped(state: ReleaseState, event: ReleaseEvent) -> ReleaseState:
    rule = _current(state, event)
    _named(event, "a skipped stage")
    seen = state.evidence.get(rule.name)
    if state.moves_users and seen is not None and seen.verdict == "breach":
        raise NotAllowed(f"no stage is skipped now: {seen.reason}", fix="roll the release back")
    _approver(rule, event, state)
    return _left(state, event)


def _left(state: ReleaseState, event: ReleaseEvent) -> ReleaseState:
    if needs_review(state):
        raise NotAllowed(
            f"false positives of {state.name} are not reviewed",
            fix="look at the queries that get worse, and record what you saw",
            command=f"karat release evidence {state.name} --reviewed NOTE",
        )
    to = state.opening.policy.after(state.stage)
    return replace(
        state,
        stage=to,
        entered_us=event.at_us,
        entered={**state.entered, to: event.at_us},
        left={**state.left, state.stage: event},
    )


def _current(state: ReleaseState, event: ReleaseEvent) -> Stage:
    """The rules of the stage that an event leaves."""
    if state.held is not None:
        raise NotAllowed(
            f"{state.name} is held: {state.held.reason}", fix="resume it first",
            command=f"karat release resume {state.name}",
        )  # fmt: skip
    if state.rule is None:
        raise NotAllowed(f"{state.name} has passed all stages")
    if event.stage != state.stage:
        here, there = stage_name(state.stage), stage_name(event.stage) or "no stage"
        raise NotAllowed(f"{state.name} is in {here}, not in {there}")
    return state.rule


def _approver(rule: Stage, event: ReleaseEvent, state: ReleaseState) -> None:
    if rule.approvers and event.by not in rule.approvers:
        raise NotAllowed(
            f"{event.by} may not pass {stage_name(rule.name)} of {state.name}",
            fix=f"ask {' or '.join(rule.approvers)}",
        )


def _named(event: ReleaseEvent, what: str) -> None:
    if event.by in {"", KARAT} or not event.reason.strip():
        raise NotAllowed(f"{what} needs a person and a reason", fix="say who and why",
                         command="--by NAME --reason TEXT")  # fmt: skip


def _resumed(state: ReleaseState, event: ReleaseEvent) -> ReleaseState:
    if state.held is None:
        raise NotAllowed(f"{state.name} is not held")
    if event.by == KARAT and state.held.by != KARAT:
        raise NotAllowed(f"{state.held.by} holds {state.name}: a person resumes it")
    resumed = state.resumed if event.by == KARAT else event.seq
    return replace(state, held=None, resumed=resumed)


def _overridden(state: ReleaseState, event: ReleaseEvent) -> ReleaseState:
    _named(event, "overriding the rollback signal")
    allowed = state.opening.policy.promise.override
    if event.by not in allowed:
        raise NotAllowed(
            f"{event.by} may not override the rollback signal of {state.name}",
            nearest=nearest(event.by, allowed, 1),
            fix=f"ask {' or '.join(allowed)}" if allowed else "the policy names no user who may",
        )
    return replace(state, overridden=event)


# --- evidence ---


def insufficient(state: ReleaseState, evidence: Evidence | None, current: Current) -> str:
    """Why evidence does not pass the stage that a release is in; empty if it does."""
    if evidence is None:
        return "there is no evidence"
    if evidence.verdict == "cannot_tell" and not evidence.candidate:
        return evidence.reason  # it could not be gathered
    if foreign := not_about(state, evidence, current):
        return foreign
    if evidence.verdict != "pass":
        return evidence.reason
    least = state.opening.policy.coverage
    if evidence.coverage is None or evidence.coverage < least:
        seen = "an unknown share" if evidence.coverage is None else f"{evidence.coverage:.0%}"
        return f"its evidence is about {seen} of the queries, and {least:.0%} are needed"
    return ""


def not_about(state: ReleaseState, evidence: Evidence, current: Current) -> str:
    """Why evidence says nothing about the stage that a release is in; empty if it does."""
    rule, opening = state.rule, state.opening
    if evidence.stage != state.stage or evidence.kind != state.wants:
        return f"its evidence is of {stage_name(evidence.stage)}"
    for side, version in (("candidate", opening.candidate), ("baseline", opening.baseline)):
        if why := _other(side, version, getattr(evidence, side)):
            return why
    if evidence.policy != opening.digest:
        return "its evidence is by another policy"
    judged = evidence.judgments
    if (judged or state.wants == "gate") and (judged is None or judged != current.judgments):
        return "its evidence is by other judgments than those of now"
    fresh = 7 * DAY if rule is None else rule.fresh_us
    if evidence.made_us > current.now:
        return "its evidence is from the future: check the clocks"
    if current.now - evidence.made_us > fresh:
        return f"its evidence is older than {duration_text(fresh)}"
    if evidence.until_us is not None and evidence.until_us < state.entered_us:
        return "its data ends before the stage began"
    return ""


def _other(side: str, version: Version, marks: Mapping[str, str]) -> str:
    """Why marks are not of a version: one is another, or none is known of both."""
    known = version.marks
    both = known.keys() & marks.keys()
    if any(known[name] != marks[name] for name in both):
        return f"its evidence is about another {side}"
    return "" if both else f"its evidence does not say which {side} it is about"


def too_early(state: ReleaseState, rule: Stage, now: int) -> str:
    """How long the stage has to last; empty if it has lasted."""
    lasted = now - state.entered_us >= rule.least_us
    return "" if lasted else f"it lasts at least {duration_text(rule.least_us)}"


def needs_review(state: ReleaseState) -> bool:
    """Whether false positives have to be reviewed before the next stage: before the ramp."""
    if state.reviewed is not None or state.stage not in _BEFORE_RAMP:
        return False
    return state.opening.policy.after(state.stage) not in _BEFORE_RAMP


# --- what comes next ---


def next_step(state: ReleaseState, current: Current) -> Step:
    """What happens next: the first rule that holds, those that protect users first."""
    if state.over:
        return Step("none", "it is rolled back" if state.rolled_back else "it is finished")
    for step in _protections(state, current):
        return step
    if state.held is not None:
        return Step("none", f"held by {state.held.by}: {state.held.reason}")
    return _done(state, current) if state.rule is None else _passing(state, state.rule, current)


def _protections(state: ReleaseState, current: Current) -> Iterator[Step]:
    """Rollbacks, then holds and their ends."""
    if not state.moves_users:
        return
    policy = state.opening.policy
    about = state.evidence.get(state.stage)
    if about is not None and not_about(state, about, current):
        about = None
    if about is not None and about.verdict in {"breach", "fail"}:
        ignored = about.kind == "watch" and state.overridden is not None
        if not ignored:
            because = state.gathered[state.stage]
            yield Step("rollback", about.reason, _BACK, because=because)
    why = _doubt(state, current, about)
    held = state.held
    if held is not None and held.by == KARAT:
        if not why:
            yield Step("resume", "what held it is over")
        elif current.now - held.at_us >= policy.give_up_us:
            waited = duration_text(policy.give_up_us)
            yield Step("rollback", f"held for {waited} without an end: {held.reason}", _BACK)
    elif held is None and why:
        yield Step("hold", why, "users keep what they have")


def _doubt(state: ReleaseState, current: Current, about: Evidence | None) -> str:
    """Why what users get cannot be watched now; empty if it can."""
    silent = state.opening.policy.silent_us
    # Users have to come first: the log is not expected to go on before the stage began.
    since = max(current.fed_us or 0, state.entered_us)
    if current.now - since > silent:
        return f"the log has had no events for {duration_text(silent)}"
    if about is None and current.now - state.entered_us > silent + DAY:
        gathered, why = state.evidence.get(state.stage), "no evidence was gathered"
        if gathered is not None:
            why = gathered.reason if not gathered.candidate else not_about(state, gathered, current)
        return f"what users get is not measured: {why}"
    if about is not None and about.verdict == "unhealthy":
        return "" if state.gathered[state.stage] < state.resumed else about.reason
    rule = state.rule
    if rule is None or rule.name == AB or not _late(state, rule, current):
        return ""
    lacking = insufficient(state, about, current)
    longest = duration_text(rule.longest_us or 0)
    return f"not passed within {longest}: {lacking}" if lacking else ""


def _late(state: ReleaseState, rule: Stage, current: Current) -> bool:
    """Whether the longest time of the stage has passed, with what a log takes to arrive."""
    spent = current.now - state.entered_us - state.opening.policy.give_up_us
    return rule.longest_us is not None and spent >= rule.longest_us


def is_set(state: ReleaseState) -> bool:
    """Whether the switch has acknowledged what the ledger says."""
    return state.switched is not None and state.switched.rollout == asdict(rollout_of(state))


def _done(state: ReleaseState, current: Current) -> Step:
    ends = state.entered_us + state.opening.policy.watch_us
    if not is_set(state):
        return Step("wait", _NOT_SET)
    if current.now < ends:
        return Step("wait", "the rollback signal is watched", at_us=ends)
    evidence = state.evidence.get(DONE)
    if evidence is None or not_about(state, evidence, current) or evidence.verdict == "cannot_tell":
        why = "there is none" if evidence is None else evidence.reason
        return Step("evidence", f"it cannot finish without its rollback signal: {why}")
    return Step("finish", "the rollback signal was watched to the end")


def _passing(state: ReleaseState, rule: Stage, current: Current) -> Step:
    evidence = state.evidence.get(rule.name)
    lacking = insufficient(state, evidence, current)
    after = state.opening.policy.after(rule.name)
    late = _late(state, rule, current)
    if state.moves_users and not is_set(state) and not late:
        return Step("wait", _NOT_SET)
    if not lacking:
        assert evidence is not None
        because = state.gathered[rule.name]
        if waits := too_early(state, rule, current.now):
            return Step("wait", waits, consequence(state, after), state.entered_us + rule.least_us)
        if needs_review(state):
            return Step("review", "false positives have to be reviewed before the ramp")
        if rule.approvers:
            who = " or ".join(rule.approvers)
            return Step("approve", f"waits for {who}", consequence(state, after), None, because)
        return Step("advance", evidence.reason, consequence(state, after), None, because)
    over = late or (evidence is not None and evidence.ended and not not_about(
        state, evidence, current))  # fmt: skip
    if rule.name == AB and over:
        why = f"no improvement at the end of the planned time: {lacking}"
        return Step("rollback", why, _BACK)
    if evidence is not None and evidence.verdict == "fail" and lacking == evidence.reason:
        return Step("fix", lacking)
    return Step("evidence", lacking)


def consequence(state: ReleaseState, stage: str) -> str:
    """What users get in a stage."""
    share = rollout_at(state, stage).treatment_share
    if not share:
        return "no user gets the candidate yet"
    return "all users get the candidate" if share >= 1 else f"{100 * share:.0f} % of users get it"


# --- what a user may do ---


def choices(state: ReleaseState, by: str, current: Current) -> Iterator[Choice]:
    """What a user may do with a release now: what ``append`` allows, and has an effect."""
    rule = state.rule
    onward = "" if rule is None else consequence(state, state.opening.policy.after(rule.name))
    effects: dict[EventKind, str] = {
        "advanced": onward,
        "skipped": onward,
        "held": "users keep what they have; guardrails still roll it back",
        "resumed": "it goes on as far as its evidence carries it",
        "rolled_back": _BACK if rollout_of(state).treatment_share else "no user gets the candidate",
    }
    if state.reviewed is None and state.stage in _BEFORE_RAMP:
        effects["reviewed"] = "the ramp may begin"
    if state.overridden is None and state.moves_users:
        effects["overridden"] = "a bad rollback signal no longer rolls it back"
    for kind, effect in effects.items():
        event = ReleaseEvent(
            state.seq + 1, max(current.now, state.last_us), kind, by, "a reason", state.stage,
            because=state.gathered.get(state.stage), judgments=current.judgments,
        )  # fmt: skip
        try:
            append(state.name, state, event)
        except NotAllowed:
            continue
        yield Choice(kind, effect)


# --- traffic ---


def rollout_of(state: ReleaseState) -> Rollout:
    """Where the switch has to be."""
    want = rollout_at(state, state.stage)
    return want if state.rolled_back is None else stopped(want)


def rollout_at(state: ReleaseState, stage: str) -> Rollout:
    """Where the switch has to be in a stage."""
    opening = state.opening
    stages = {each.name: each for each in opening.policy.stages}
    rule = stages.get(stage)
    share, control = (0.0, 0.0) if rule is None else (rule.share, rule.control)
    if stage == DONE:
        share, control = 1.0, 0.0
    return Rollout(
        state.name, opening.salt, opening.baseline.arm, opening.candidate.arm, control, share
    )


# --- status ---


def stage_rows(state: ReleaseState) -> Iterator[StageStatus]:
    """The stages of a release, in order."""
    for rule in state.opening.policy.stages:
        ended, evidence = state.left.get(rule.name), state.evidence.get(rule.name)
        verdict, said = (None, "") if evidence is None else (evidence.verdict, evidence.reason)
        now = rule.name == state.stage
        yield StageStatus(
            rule.name,
            rule.share,
            rule.control,
            "current" if now else "waiting" if ended is None
            else "skipped" if ended.kind == "skipped" else "passed",
            state.entered.get(rule.name),
            None if ended is None else ended.at_us,
            "" if ended is None else ended.by,
            ended.reason if ended is not None and ended.kind == "skipped" else said,
            verdict,
        )  # fmt: skip
