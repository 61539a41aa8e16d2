"""Releases of a workspace: the verbs, which append to the ledger what the rules allow."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from karat.clients.switch import SwitchError, read
from karat.errors import InputError, KaratError, UsageError, nearest
from karat.experiments.assignment import Rollout
from karat.formats.own.release_files import (
    checked_name,
    mark_finished,
    restore_switch,
    tombstone,
    write_switch,
)
from karat.formats.own.release_policy import read_release
from karat.online.rules import DAY
from karat.release import pipeline
from karat.release.kept import kept_by, relation
from karat.release.pipeline import (
    KARAT,
    Current,
    NoRelease,
    NotAllowed,
    ReleaseState,
    next_step,
    replay,
    rollout_of,
)
from karat.store.sql import annotations as marks
from karat.store.sql import audit, golden_sets, releases
from karat.tables.days import time_text
from karat.tables.records import record_of
from karat.tables.release.pipeline import (
    Choice,
    EventKind,
    Evidence,
    Opening,
    ReleaseEvent,
    ReleasePolicy,
    ReleaseRun,
    ReleaseStatus,
    ReleaseStory,
    RolledBack,
    Step,
    SwitchConfig,
    TrackRecord,
    stage_name,
)
from karat.tables.release.review import DesignReview
from karat.tables.workspace import RunRow
from karat.workflows.online.log_requests import log_of
from karat.workflows.release._release_review import (
    POLICY,
    missing_promises,
    proposal,
    release_review,
)
from karat.workflows.release._stage_evidence import Gathering, version_of
from karat.workflows.release._switching import drive, roll_back_now
from karat.workflows.workspace.artifacts import key_of
from karat.workflows.workspace.evaluate_stored import find_runs
from karat.workflows.workspace.stored_inputs import inputs_digest
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace

LEASE_US = 120_000_000
_SKEW_US = 300_000_000  # by which clocks of machines may differ
AGAIN_US = 3_600_000_000  # after which evidence is gathered again, if there is new data
_RESERVED = {"record"}  # whose address is that of something else


class Overtaken(NotAllowed):
    """Somebody else took a step meanwhile."""


@dataclass
class Release:
    """A release at a time: its ledger, read once, and the steps that are appended to it."""

    opened: Workspace
    events: list[ReleaseEvent]
    state: ReleaseState
    now: int  # microseconds UTC

    @classmethod
    def of(cls, opened: Workspace, name: str, now: int) -> Self:
        """A release by its name; raises NoRelease with the nearest name if there is none."""
        events = events_of(opened, name)
        return cls(opened, events, replay(name, events), now)

    @property
    def root(self) -> Path:
        return self.opened.workspace.root

    @property
    def current(self) -> Current:
        """What its next step depends on besides the ledger."""
        try:
            judgments = inputs_digest(self.opened.with_golden_set(self.state.opening.golden))
        except KaratError:
            judgments = None
        try:
            fed = log_of(self.opened).last_us
        except InputError:
            fed = None
        return Current(self.now, judgments, fed)

    # --- reading ---

    def status(self) -> ReleaseStatus:
        """Where it is, and what comes next."""
        state, opening = self.state, self.state.opening
        dead = None if state.rolled_back else tombstone(self.root, state.name)
        if dead is not None:
            step = Step("rollback", f"rolled back by {dead.by}: the ledger does not know yet")
        else:  # of one that is over nothing but the ledger is needed
            step = next_step(state, Current(self.now, None) if state.over else self.current)
        why = state.rolled_back or state.held
        return ReleaseStatus(
            name=state.name,
            state="rolled_back" if dead is not None else state.state,
            stage=state.stage,
            over=state.over,
            reason="" if why is None else why.reason,
            started_us=state.started_us,
            entered_us=state.entered_us,
            by=state.by,
            baseline=opening.baseline.name,
            candidate=opening.candidate.name,
            share=0.0 if dead is not None else rollout_of(state).treatment_share,
            switched=pipeline.is_set(state),
            problem="" if state.unreachable is None else state.unreachable.reason,
            step=step,
            stages=list(pipeline.stage_rows(state)),
            evidence=list(state.evidence.values()),
            margin=_margin(state),
            policy=opening.digest,
        )

    def story(self) -> ReleaseStory:
        """Everything about it."""
        opening = self.state.opening
        shown = [replace(event, opening=None) for event in self.events]
        return ReleaseStory(
            self.status(), opening.policy.promise, opening.review, shown, kept_by(self.state)
        )

    def choices(self, by: str) -> list[Choice]:
        """What a user may do with it now."""
        if self.state.finished or tombstone(self.root, self.state.name) is None:
            return list(pipeline.choices(self.state, by, self.current))
        done = self.state.rolled_back is not None and pipeline.is_set(self.state)
        return [] if done else [Choice("rolled_back", "the switch is set again")]

    # --- steps of people ---

    def evidence(self) -> ReleaseStatus:
        """Gather the evidence of the stage again, record it, and roll back if it says so."""
        self.adopt()
        if self.state.over:
            raise NotAllowed(f"{self.state.name} is over: no stage of it wants evidence")
        self.record_evidence(self.gather())
        current = self.current
        step = next_step(self.state, current)
        if step.action == "rollback":
            self.take(step, current)
            self.set_switch()
        return self.status()

    def watch(self) -> ReleaseStatus:
        """Gather the evidence of one whose candidate users get, with its rollback signal."""
        state = self.state
        if not state.over and not state.moves_users:
            raise NotAllowed(f"{state.name} is in {state.stage}: no user gets the candidate yet")
        return self.evidence()

    def advance(self, *, by: str, stage: str = "") -> ReleaseStatus:
        """Pass the stage that it is in, on its evidence; ``stage`` is where the user saw it."""
        self._begin(by)
        state = self.state
        about = state.evidence.get(state.stage)
        self.record(
            "advanced", by=by, stage=stage or state.stage,
            reason="" if about is None else about.reason,
            because=state.gathered.get(state.stage), judgments=self.current.judgments,
        )  # fmt: skip
        self.set_switch()
        return self.status()

    def skip(self, *, by: str, reason: str, stage: str = "") -> ReleaseStatus:
        """Go on without the evidence of a stage: by a person, with a reason."""
        self._begin(by)
        self.record("skipped", by=by, reason=reason, stage=stage or self.state.stage)
        self.set_switch()
        return self.status()

    def note(self, kind: EventKind, *, by: str, reason: str) -> ReleaseStatus:
        """Hold, resume, override the rollback signal, or record the review of false positives."""
        self._begin(by)
        if not reason.strip():
            raise UsageError(
                "a reason is missing", fix="say why, in a sentence", command="--reason TEXT"
            )
        self.record(kind, by=by, reason=reason)
        return self.status()

    def _begin(self, by: str) -> None:
        """Begin a step of a person."""
        check_person(by)
        self.adopt()

    # --- writing ---

    def record(
        self,
        kind: EventKind,
        *,
        by: str = KARAT,
        reason: str = "",
        at_us: int | None = None,  # None: now
        **values: Any,
    ) -> None:
        """Append an event that the rules allow; raises Overtaken if another came first."""
        state = self.state
        at_us = max(self.now if at_us is None else at_us, state.last_us)
        event = ReleaseEvent(state.seq + 1, at_us, kind, by, " ".join(reason.split()), **values)
        after = pipeline.append(state.name, state, event)
        _write(self.opened, state.name, event, _annotation(after, event))
        self.events.append(event)
        self.state = after

    def adopt(self) -> None:
        """Record a rollback that the ledger does not know yet."""
        dead = tombstone(self.root, self.state.name)
        if dead is not None and not self.state.over:
            self.record("rolled_back", by=dead.by, at_us=dead.at_us or None, reason=dead.reason)

    def gather(self) -> Evidence:
        """Evidence of now for the stage that it is in."""
        golden = self.opened.with_golden_set(self.state.opening.golden)
        return Gathering(golden, self.state, self.now).gather()

    def record_evidence(self, found: Evidence) -> None:
        self.record(
            "evidence", at_us=found.made_us, reason=found.reason, stage=found.stage, evidence=found
        )

    def take(self, step: Step, current: Current) -> bool:
        """Take a step that karat takes by itself; whether it is one."""
        match step.action:
            case "advance":
                self.record(
                    "advanced", stage=self.state.stage, reason=step.reason, because=step.because,
                    judgments=current.judgments,
                )  # fmt: skip
            case "hold":
                self.record("held", reason=step.reason)
            case "resume":
                self.record("resumed", reason=step.reason)
            case "finish":
                self.record("finished")
            case "rollback":
                self._go_back(step.reason)
            case _:
                return False
        return True

    def _go_back(self, reason: str) -> None:
        with suppress(KaratError):  # the store is there: the switch follows the ledger
            roll_back_now(self.root, self.state.name, by=KARAT, reason=reason, now=self.now)
        self.adopt()
        if self.state.rolled_back is None:
            self.record("rolled_back", reason=reason)

    def set_switch(self) -> str:
        """Put the switch where the ledger says, and record that; why it failed, or empty."""
        want, config = rollout_of(self.state), self.state.opening.policy.switch
        try:
            there = pipeline.is_set(self.state) and _there(self.root, config, want)
            if not there and drive(self.root, self.state.name, config, want) != want:
                self.adopt()  # rolled back meanwhile
        except KaratError as error:
            problem = str(error).splitlines()[0]
            if self.state.unreachable is None or self.state.unreachable.reason != problem:
                self.record("unreachable", reason=problem)
            return problem
        if not pipeline.is_set(self.state) or self.state.unreachable is not None:
            self.record("switched", rollout=asdict(rollout_of(self.state)))
        if self.state.over:
            mark_finished(self.root, self.state.name)
        return ""

    def go_on(self) -> str:
        """Take one step after another until it waits, each followed by the switch.

        Returns:
            Why the switch is not where it should be; empty if it is.
        """
        problem = ""
        for _ in range(2 * len(self.state.opening.policy.stages) + 4):
            problem = self.set_switch()
            if self.state.over:
                break
            current = self.current
            if _wants_evidence(self.state, current):
                self._look_again()
            if not self.take(next_step(self.state, current), current):
                break
        return problem

    def _look_again(self) -> None:
        """Gather evidence; it is recorded if it says something else, or the last is old."""
        before = self.state.evidence.get(self.state.stage)
        if before is not None and before.kind in {"experiment", "watch"}:
            # Logs grow by the minute: they are read once an hour.
            state = self.state
            key = key_of(state.opening.digest, state.name, state.stage, self.now // AGAIN_US)
            made = self.opened.artifacts.answer(
                "release-evidence", key, lambda: asdict(self.gather())
            )
            found = record_of(Evidence, made)
        else:
            found = self.gather()
        recent = before is not None and found.made_us - before.made_us < DAY // 2
        if before is None or not recent or _says(before) != _says(found):
            self.record_evidence(found)


# --- reading ---


def release_names(opened: Workspace) -> list[str]:
    """The releases, the latest first."""
    with opened.store.read() as connection:
        return releases.names(connection)


def names_in_flight(opened: Workspace) -> list[str]:
    """The releases that are not over, or whose switch has not followed yet."""
    with opened.store.read() as connection:
        return releases.in_flight(connection)


def events_of(opened: Workspace, name: str) -> list[ReleaseEvent]:
    """The ledger of a release; raises NoRelease with the nearest name if there is none."""
    with opened.store.read() as connection:
        contents = releases.events(connection, name)
        known = [] if contents else releases.names(connection)
    if not contents:
        raise NoRelease(
            f"no release {name!r}",
            nearest=nearest(name, known, 1),
            fix="karat release status lists them" if known else "karat release start",
        )
    return [record_of(ReleaseEvent, content) for content in contents]


def state_of(opened: Workspace, name: str) -> ReleaseState:
    return replay(name, events_of(opened, name))


def statuses(opened: Workspace, *, now: int) -> list[ReleaseStatus]:
    """All releases, the latest first."""
    return [Release.of(opened, name, now).status() for name in release_names(opened)]


def in_flight(opened: Workspace, *, now: int) -> list[ReleaseStatus]:
    """The releases that are not over, or whose switch has not followed; the latest first."""
    return [Release.of(opened, name, now).status() for name in names_in_flight(opened)]


def board(opened: Workspace, *, now: int) -> tuple[list[ReleaseStatus], TrackRecord]:
    """All releases, and their track record, each ledger read once."""
    every = [Release.of(opened, name, now) for name in release_names(opened)]
    return [each.status() for each in every], _record_of([each.state for each in every])


def track_record(opened: Workspace) -> TrackRecord:
    """What releases promised and what was measured, over all that reached users and are over."""
    return _record_of([state_of(opened, name) for name in release_names(opened)])


def _record_of(states: Sequence[ReleaseState]) -> TrackRecord:
    rows = [kept_by(state) for state in states if state.over and len(state.entered) > 2]
    return TrackRecord(rows, relation(rows))


def _margin(state: ReleaseState) -> str:
    """How far the nearest guardrail is from its margin, as a share of the margin used up."""
    evidence, used = state.evidence.get(state.stage), []
    effects = () if evidence is None else evidence.result.get("effects", ())
    for effect in effects:
        margin, difference = effect.get("margin"), effect.get("difference")
        if effect["role"] != "guardrail" or not margin or difference is None:
            continue
        harm = difference if effect["direction"] == "lower" else -difference
        used.append((harm / margin, effect["metric"]))
    if not used:
        return ""
    share, metric = max(used)
    return f"{metric} has used {100 * max(0.0, share):.0f} % of its margin"


# --- writing ---


def _write(opened: Workspace, name: str, event: ReleaseEvent, annotation: str) -> None:
    content = {key: value for key, value in asdict(event).items() if value is not None}
    try:
        with opened.store.begin() as connection:
            releases.append(
                connection, name, event.seq, at_us=event.at_us, kind=event.kind, content=content
            )
            if event.by != KARAT:
                audit.note(connection, event.by, f"release {event.kind}", name, event.at_us)
            if annotation:
                marks.add(
                    connection, time_us=event.at_us, kind="release", text=annotation,
                    made_by=event.by, now=event.at_us,
                )  # fmt: skip
    except releases.Taken:
        last = events_of(opened, name)[-1]
        raise Overtaken(
            f"{last.by} took another step of {name} meanwhile: {last.kind.replace('_', ' ')}",
            fix="look at it again",
            command=f"karat release status {name}",
        ) from None


def _annotation(state: ReleaseState, event: ReleaseEvent) -> str:
    """An event that changed what users get, for the charts of trends; empty for others."""
    if event.kind == "rolled_back":
        return f"{state.name}: rolled back"
    if event.kind not in {"advanced", "skipped"} or not state.moves_users:
        return ""
    return f"{state.name}: {stage_name(state.stage)}, {pipeline.consequence(state, state.stage)}"


def _there(root: Path, config: SwitchConfig, want: Rollout) -> bool:
    """Whether a switch that acknowledged a rollout is still there, if it can be asked."""
    if config.kind in {"webhook", "command"}:
        return True
    have = read(config, root)
    if config.kind == "alias":
        return have is not None and have.treatment_share == float(want.treatment_share > 0.999)
    return have == want


# --- verbs ---


def start(
    opened: Workspace,
    name: str,
    baseline: str,
    candidate: str,
    policy: str | Path,
    *,
    by: str,
    now: int,
) -> ReleaseStatus:
    """Start a release: its policy and what it promises are fixed from now on.

    Args:
        baseline: A stored run, by name, or the file of a run, which is stored.
        candidate: Likewise.
    """
    checked_name(name)
    check_person(by)
    if name in _RESERVED:
        raise UsageError(f"{name} is the name of a page", fix=f"{name}-1, say")
    if name in release_names(opened) or tombstone(opened.workspace.root, name) is not None:
        raise UsageError(f"there is a release {name} already", fix=f"{name}-2, say")
    file = read_release(policy)
    rows = [_stored(opened, each, now) for each in (baseline, candidate)]
    if rows[0].sha256 == rows[1].sha256:
        raise UsageError("baseline and candidate are the same run", fix="name two runs")
    review = release_review(opened, rows[0], rows[1], now=now)
    if file.missing:
        raise missing_promises(file.missing, review, str(policy))
    _refuse_shared(opened, file.policy)
    read(file.policy.switch, opened.workspace.root)  # a file may be ours
    opening = _opening(opened, name, file.policy, rows, review, now)
    first = ReleaseEvent(1, now, "started", by, opening=opening)
    state = pipeline.append(name, None, first)
    write_switch(opened.workspace.root, name, opening.policy.switch, rollout_of(state))
    _write(opened, name, first, "")
    release = Release(opened, [first], state, now)
    release.set_switch()
    return release.status()


def propose(opened: Workspace, baseline: str, candidate: str, *, now: int) -> str:
    """A policy to begin with, whose promises are by the review of the change."""
    rows = [_stored(opened, each, now) for each in (baseline, candidate)]
    return f"{POLICY}{proposal(release_review(opened, rows[0], rows[1], now=now))}\n"


def check_person(by: str) -> None:
    """Refuse a user whose name is that of karat itself."""
    if by.strip() in {"", KARAT}:
        raise UsageError(f"{by!r} is not the name of a user", fix="--by NAME")


def _opening(
    opened: Workspace,
    name: str,
    policy: ReleasePolicy,
    rows: Sequence[RunRow],
    review: DesignReview,
    now: int,
) -> Opening:
    arms = (policy.control_arm or f"{name}-control", policy.candidate_arm or name)
    if arms[0] == arms[1]:
        raise UsageError(f"both arms are called {arms[0]}", fix="[ab] control = …, candidate = …")
    versions = [version_of(row, arm) for row, arm in zip(rows, arms, strict=True)]
    # Not a secret: another salt is another assignment.
    salt = key_of(name, now, versions[0].run, versions[1].run)[:16]
    digest = key_of(1, asdict(policy))
    return Opening(policy, digest, versions[0], versions[1], salt, opened.golden.name, review)


def _stored(opened: Workspace, run: str, now: int) -> RunRow:
    """A stored run; a file is stored first."""
    if len(run) < 256 and Path(run).is_file():
        [run] = store_runs(opened, [run], now=now).names
    return find_runs(opened, [run])[0]


def _refuse_shared(opened: Workspace, policy: ReleasePolicy) -> None:
    """Two releases may not move one switch."""
    for name in names_in_flight(opened):
        state = state_of(opened, name)
        if _moves(opened, state.opening.policy) == _moves(opened, policy):
            raise UsageError(
                f"the release {name} uses this switch, and is in {state.state}",
                fix=f"wait until it is finished, or karat release rollback {name}",
            )


def _moves(opened: Workspace, policy: ReleasePolicy) -> object:
    """What a switch moves, however it is written."""
    config = policy.switch
    if config.kind == "file":
        return (opened.workspace.root / config.path).resolve()
    return (config.kind, str(config.url), config.command, config.alias)


def _says(found: Evidence) -> tuple[object, ...]:
    """What evidence is about, and what it says; numbers in its reason may change."""
    reason = "" if found.candidate else found.reason
    return (found.stage, found.verdict, found.ended, found.candidate, found.judgments, reason)


def roll_back_first(
    root: Path,
    name: str,
    opening: Callable[[], AbstractContextManager[Workspace]],
    *,
    by: str,
    reason: str,
    now: int,
) -> RolledBack:
    """Give all users the baseline again, before the workspace is opened and the ledger written.

    Args:
        opening: Opens the workspace; whatever it or its database raises, users are safe.

    Raises:
        SwitchError: the switch is not where it should be; the rollback is recorded nevertheless.
    """
    reason = " ".join(reason.encode("utf-8", "replace").decode().split())
    check_person(by)
    if not reason:
        raise UsageError("a rollback needs a reason", fix="--reason TEXT")
    failed: SwitchError | None = None
    try:
        roll_back_now(root, name, by=by, reason=reason, now=now)
    except SwitchError as error:
        failed = error
    try:
        with opening() as opened:
            release = Release.of(opened, name, now)
            release.adopt()
            if failed is None:
                release.set_switch()
                return RolledBack(name, release.status(), "")
    except Exception as error:  # noqa: BLE001 - a database may fail in any way; users are safe
        if failed is None:
            return RolledBack(name, None, str(error).splitlines()[0])
    assert failed is not None
    raise failed


# --- run ---


def run(opened: Workspace, *, now: int) -> list[ReleaseRun]:
    """Move every release on as far as its evidence carries it, and put its switch in place."""
    rounds = []
    for name in names_in_flight(opened):
        try:
            rounds.append(_ran(opened, name, now))
        except Exception as error:  # noqa: BLE001 - the other releases must not wait for this one
            problem = str(error).splitlines()[0] if str(error) else type(error).__name__
            rounds.append(ReleaseRun(name, [], problem, None))
    return rounds


def _ran(opened: Workspace, name: str, now: int) -> ReleaseRun:
    with _lease(opened, name, now) as mine:
        if not mine:
            return ReleaseRun(name, [], "", None)
        release = Release.of(opened, name, now)
        before = release.state
        if before.over and pipeline.is_set(before):  # meanwhile: another may have its switch
            return ReleaseRun(name, [], "", release.status())
        if before.last_us > now + _SKEW_US:
            when = time_text(before.last_us)
            what = f"clocks disagree: its last step was taken at {when} UTC, which is to come"
            return ReleaseRun(name, [], what, release.status())
        restore_switch(release.root, name, before.opening.policy.switch, rollout_of(before))
        release.adopt()
        try:
            problem = release.go_on()
        except Overtaken as error:
            return ReleaseRun(name, [], error.what, Release.of(opened, name, now).status())
        return ReleaseRun(name, release.events[before.seq :], problem, release.status())


@contextmanager
def _lease(opened: Workspace, name: str, now: int) -> Iterator[bool]:
    holder = f"{socket.gethostname()} {os.getpid()} {secrets.token_hex(4)}"
    with opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)  # so that two do not insert at once
        mine = releases.take(connection, name, holder, now=now, until=now + LEASE_US)
    try:
        yield mine
    finally:
        if mine:
            with opened.store.begin() as connection:
                releases.give_back(connection, name, holder)


def _wants_evidence(state: ReleaseState, current: Current) -> bool:
    if state.held is not None and state.held.by != KARAT and not state.moves_users:
        return False
    if state.moves_users and (current.fed_us or 0) <= state.entered_us:
        return False  # no user has been seen in it
    about = state.evidence.get(state.stage)
    if about is None:
        return True
    if pipeline.not_about(state, about, current):
        return current.now > about.made_us
    # A gate over the same inputs says the same.
    return about.kind != "gate" and current.now - about.made_us >= AGAIN_US
