"""The rules of a release: what passes, what does not, what protects users."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.release.pipeline_cases import DAY, JUDGMENTS, STAGES, T0, Release

from karat.errors import UsageError
from karat.release.pipeline import (
    KARAT,
    NotAllowed,
    next_step,
    replay,
    rollout_of,
    stage_rows,
)

HOUR = DAY // 24


def action(release: Release, **changes: Any) -> str:
    return next_step(release.state, release.current(**changes)).action


def test_a_release_passes_stage_after_stage() -> None:
    release = Release().to("done")
    assert rollout_of(release.state).treatment_share == 1.0
    release.now += DAY
    release.found()
    release.now += 13 * DAY
    release.found()
    assert action(release) == "finish"
    release.add("finished")
    assert release.state.over
    assert [row.state for row in stage_rows(release.state)] == ["passed"] * 6


def test_replaying_the_ledger_gives_the_same_state() -> None:
    release = Release().to("ramp_50")
    assert replay("r", release.events) == release.state


@pytest.mark.parametrize("stage", ["offline", "shadow", "ab", "ramp_25", "ramp_100"])
def test_without_evidence_nothing_passes(stage: str) -> None:
    release = Release().to(stage)
    release.now += 8 * DAY if stage == "ab" else DAY
    assert action(release) in {"evidence", "hold"}
    with pytest.raises(NotAllowed, match="no such evidence"):
        release.advance()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"candidate": {"run": "run-c"}}, "another candidate"),
        ({"candidate": {}}, "does not say which candidate"),
        ({"baseline": {"run": "run-z"}}, "another baseline"),
        ({"judgments": "judgments-0"}, "other judgments"),
        ({"judgments": None}, "other judgments"),
        ({"policy": "digest-0"}, "another policy"),
        ({"coverage": 0.5}, "50% of the queries"),
        ({"coverage": None}, "an unknown share"),
        ({"made_us": T0 - 8 * DAY}, "older than 7 d"),
        ({"made_us": T0 + DAY}, "from the future"),
        ({"stage": "shadow"}, "no such evidence"),
        ({"kind": "shadow"}, "is of offline"),
        ({"verdict": "cannot_tell", "reason": "too few queries"}, "too few queries"),
        ({"verdict": "unhealthy", "reason": "the search failed"}, "the search failed"),
    ],
)
def test_evidence_of_something_else_does_not_pass(changes: dict[str, Any], why: str) -> None:
    release = Release()
    release.found(**changes)
    assert action(release) in {"evidence", "fix"}
    with pytest.raises(NotAllowed, match=why):
        release.advance()
    assert release.state.stage == "offline"


def test_yesterdays_judgments_make_a_gate_stale() -> None:
    release = Release()
    release.found()
    assert action(release) == "advance"
    assert action(release, judgments="judgments-2") == "evidence"
    with pytest.raises(NotAllowed, match="other judgments than those of now"):
        release.advance(judgments="judgments-2")


def test_a_stage_lasts_its_least_time() -> None:
    release = Release().to("ab")
    release.found()
    assert action(release) == "wait"
    with pytest.raises(NotAllowed, match="at least 7 d"):
        release.advance()
    assert next_step(release.state, release.current()).at_us == release.state.entered_us + 7 * DAY


def test_evidence_from_before_the_stage_does_not_pass() -> None:
    release = Release().to("ab")
    release.now += 7 * DAY
    release.found(until_us=release.state.entered_us - 1)
    with pytest.raises(NotAllowed, match="ends before the stage began"):
        release.advance()


def test_false_positives_are_reviewed_before_the_ramp() -> None:
    release = Release().to("ab")
    release.now += 7 * DAY
    release.found()
    assert action(release) == "review"
    with pytest.raises(NotAllowed, match="not reviewed"):
        release.advance()
    with pytest.raises(NotAllowed, match="not reviewed"):
        release.add("skipped", "anna", "in a hurry", stage="ab")
    with pytest.raises(NotAllowed, match="a person and a reason"):
        release.add("reviewed", KARAT, "fine")
    release.add("reviewed", "anna", "ten looked at, one wrong")
    assert action(release) == "advance"
    assert release.advance().stage == "ramp_25"


@pytest.mark.parametrize("stage", ["ab", "ramp_25", "ramp_100", "done"])
@pytest.mark.parametrize("held", [False, True])
def test_a_breach_rolls_back_at_once(stage: str, held: bool) -> None:
    release = Release().to(stage)
    if held:
        release.add("held", "anna", "lunch")
    release.found("breach")
    step = next_step(release.state, release.current())
    assert (step.action, step.reason) == ("rollback", "breach by a test")
    release.add("rolled_back", KARAT, step.reason)
    assert rollout_of(release.state).stopped
    assert rollout_of(release.state).treatment_share == 0


def test_a_breach_of_another_candidate_does_not_roll_back() -> None:
    release = Release().to("ab")
    release.found("breach", candidate={"arm": "other"})
    assert action(release) != "rollback"


def test_the_signal_can_be_overridden_by_those_who_may() -> None:
    release = Release().to("done")
    release.found("breach")
    assert action(release) == "rollback"
    with pytest.raises(NotAllowed, match="ben may not override"):
        release.add("overridden", "ben", "a bug of logging")
    release.add("overridden", "anna", "a bug of logging")
    assert action(release) == "wait"


def test_no_improvement_at_the_end_goes_back() -> None:
    release = Release().to("ab")
    release.now += 28 * DAY
    release.found("cannot_tell", ended=True)
    step = next_step(release.state, release.current())
    assert step.action == "rollback"
    assert "no improvement at the end of the planned time" in step.reason


def test_the_evidence_of_the_last_day_may_come_a_day_late() -> None:
    release = Release().to("ab")
    release.now += 28 * DAY
    release.found("cannot_tell")
    assert action(release) == "evidence"
    release.now += DAY
    assert action(release) == "rollback"


@pytest.mark.parametrize("stage", ["ab", "ramp_25", "done"])
def test_what_is_not_measured_is_held_then_goes_back(stage: str) -> None:
    release = Release().to(stage)
    release.found("cannot_tell", candidate={}, reason="the log has no arm")
    release.now += 30 * HOUR
    assert action(release) == ("wait" if stage == "done" else "evidence")
    release.now += HOUR
    step = next_step(release.state, release.current())
    assert step.reason == "what users get is not measured: the log has no arm"
    release.add("held", KARAT, step.reason)
    release.now += DAY
    assert action(release) == "rollback"


def test_a_ramp_that_does_not_pass_in_time_is_held_then_goes_back() -> None:
    release = Release().to("ramp_25")
    release.now += 8 * DAY
    release.found("cannot_tell")
    step = next_step(release.state, release.current())
    assert (step.action, step.reason[:22]) == ("hold", "not passed within 7 d:")
    release.add("held", KARAT, step.reason)
    assert action(release) == "none"  # and is not resumed
    release.now += DAY
    release.found("cannot_tell")
    assert action(release) == "rollback"


def test_nothing_passes_while_the_switch_is_elsewhere() -> None:
    release = Release().to("ramp_25")
    release.now += DAY
    release.found()
    release.state = replace(release.state, switched=None)
    assert action(release) == "wait"
    done = Release().to("done")
    done.now += 15 * DAY
    done.found()
    done.state = replace(done.state, switched=None)
    assert action(done) == "wait"


def test_no_release_finishes_without_its_signal() -> None:
    release = Release().to("done")
    release.now += 15 * DAY
    release.found("cannot_tell")
    assert action(release) == "evidence"


def test_a_known_breach_is_not_skipped() -> None:
    release = Release().to("ramp_25")
    release.found("breach")
    with pytest.raises(NotAllowed, match="no stage is skipped now: breach by a test"):
        release.add("skipped", "anna", "in a hurry", stage="ramp_25")


def test_too_little_traffic_waits() -> None:
    release = Release().to("ab")
    release.now += 10 * DAY
    release.found("cannot_tell")
    assert action(release) == "evidence"


def test_a_silent_feed_holds_then_goes_back() -> None:
    release = Release().to("ramp_25")
    fed = release.now
    release.now += 7 * HOUR
    step = next_step(release.state, release.current(fed_us=fed))
    assert (step.action, step.reason) == ("hold", "the log has had no events for 6 h")
    release.add("held", KARAT, step.reason)
    assert action(release) == "resume"  # if events come again
    release.now += DAY
    assert action(release, fed_us=fed) == "rollback"


def test_an_unhealthy_experiment_holds_until_it_is_healthy() -> None:
    release = Release().to("ab")
    release.found("unhealthy")
    assert action(release) == "hold"
    release.add("held", KARAT, "unhealthy by a test")
    with pytest.raises(NotAllowed, match="is held"):
        release.advance()
    release.now += HOUR
    release.found("cannot_tell")
    assert action(release) == "resume"


def test_what_a_person_resumed_is_not_held_for_the_same_evidence() -> None:
    release = Release().to("ab")
    release.found("unhealthy")
    release.add("held", KARAT, "unhealthy by a test")
    release.add("resumed", "anna", "known, and harmless")
    assert action(release) == "evidence"
    release.found("unhealthy")
    assert action(release) == "hold"


def test_who_holds_a_release_is_the_one_to_ask() -> None:
    release = Release().to("shadow")
    release.add("held", "anna", "freeze")
    release.found()
    assert action(release) == "none"
    with pytest.raises(NotAllowed, match="anna holds r"):
        release.add("resumed", KARAT, "")
    with pytest.raises(NotAllowed, match="held already, by anna"):
        release.add("held", "ben", "too")
    release.add("resumed", "ben", "over")
    assert action(release) == "advance"


def test_a_skipped_stage_needs_a_name_and_a_reason() -> None:
    release = Release().to("shadow")
    for by, reason in ((KARAT, "no"), ("anna", " "), ("", "no")):
        with pytest.raises(NotAllowed, match="a person and a reason"):
            release.add("skipped", by, reason, stage="shadow")
    release.add("skipped", "anna", "no shadow traffic", stage="shadow")
    row = next(row for row in stage_rows(release.state) if row.stage == "shadow")
    assert (row.state, row.by, row.reason) == ("skipped", "anna", "no shadow traffic")


def test_only_approvers_pass_a_stage() -> None:
    stages = (STAGES[0], replace(STAGES[1], approvers=("anna",)), *STAGES[2:])
    release = Release(stages=stages).to("shadow")
    release.found()
    assert action(release) == "approve"
    for by in (KARAT, "ben"):
        with pytest.raises(NotAllowed, match="may not pass shadow"):
            release.advance(by)
    with pytest.raises(NotAllowed, match="ask anna"):
        release.add("skipped", "ben", "no time", stage="shadow")
    assert release.advance("anna").stage == "ab"


def test_the_second_operator_is_refused() -> None:
    release = Release()
    release.found()
    event = replace(release.events[-1], seq=release.state.seq + 1)
    release.advance("anna")
    with pytest.raises(NotAllowed, match="does not follow"):
        replay("r", [*release.events, event])
    with pytest.raises(NotAllowed, match="is in shadow, not in offline"):
        release.add("skipped", "ben", "me too", stage="offline")


def test_after_a_rollback_there_is_no_way_back() -> None:
    release = Release().to("ramp_50")
    release.add("rolled_back", "anna", "wrong prices")
    for kind, values in (
        ("evidence", {"evidence": release.evidence()}),
        ("advanced", {"stage": "ramp_50"}),
        ("skipped", {"stage": "ramp_50"}),
        ("resumed", {}),
        ("held", {}),
        ("finished", {}),
    ):
        with pytest.raises(UsageError, match="is rolled back: wrong prices"):
            release.add(kind, "ben", "again", **values)
    assert action(release) == "none"


def test_a_failed_shadow_stays_until_a_person_acts() -> None:
    release = Release().to("shadow")
    release.found("fail")
    assert action(release) == "fix"
    with pytest.raises(NotAllowed, match="does not pass"):
        release.advance()


class Releases(RuleBasedStateMachine):
    """Whatever is tried in whatever order: all users only by passing or skipping each stage."""

    def __init__(self) -> None:
        super().__init__()
        self.release = Release()
        self.tried: list[str] = []

    def attempt(self, kind: Any, by: str, reason: str, **values: Any) -> None:
        try:
            self.release.add(kind, by, reason, **values)
        except NotAllowed:
            self.tried.append(kind)

    @rule(hours=st.integers(0, 24 * 15))
    def wait(self, hours: int) -> None:
        self.release.now += hours * HOUR

    @rule(
        verdict=st.sampled_from(["pass", "pass", "pass", "fail", "breach", "cannot_tell"]),
        about=st.sampled_from([{}, {}, {}, {"candidate": {"run": "x", "arm": "x"}},
                               {"coverage": 0.2}, {"policy": "x"}, {"judgments": "x"}]),
    )  # fmt: skip
    def find(self, verdict: Any, about: dict[str, Any]) -> None:
        made = self.release.evidence(verdict, **about)
        self.attempt("evidence", KARAT, "", stage=made.stage, evidence=made)

    @rule(by=st.sampled_from([KARAT, "anna", ""]), judgments=st.sampled_from([JUDGMENTS, "x"]))
    def advance(self, by: str, judgments: str) -> None:
        try:
            self.release.advance(by, judgments)
        except NotAllowed:
            self.tried.append("advanced")

    @rule(by=st.sampled_from([KARAT, "anna", ""]), reason=st.sampled_from(["", "because"]),
          stage=st.sampled_from([stage.name for stage in STAGES]))  # fmt: skip
    def skip(self, by: str, reason: str, stage: str) -> None:
        self.attempt("skipped", by, reason, stage=stage)

    @rule(kind=st.sampled_from(["held", "resumed", "reviewed", "overridden", "finished"]),
          by=st.sampled_from([KARAT, "anna"]))  # fmt: skip
    def note(self, kind: Any, by: str) -> None:
        self.attempt(kind, by, "because")

    @precondition(lambda self: self.release.state.rule and not self.release.state.over)
    @rule()
    def pass_it(self) -> None:
        """What leads on, so that late stages are reached."""
        release = self.release
        if release.state.held is None and release.state.rule is not None:
            release.now += release.state.rule.least_us
            release.found()
            self.attempt("reviewed", "anna", "because")
            release.advance()

    @precondition(lambda self: len(self.release.events) > 12)
    @rule()
    def roll_back(self) -> None:
        self.attempt("rolled_back", KARAT, "because")

    @rule(fed=st.integers(0, 48))
    def follow(self, fed: int) -> None:
        """What karat would do by itself is always allowed."""
        release = self.release
        step = next_step(release.state, release.current(fed_us=release.now - fed * HOUR))
        if step.action == "advance":
            before = release.state.stage
            release.advance()
            assert release.state.stage != before
        kinds = {"hold": "held", "resume": "resumed", "finish": "finished",
                 "rollback": "rolled_back"}  # fmt: skip
        if step.action in kinds:
            release.add(kinds[step.action], KARAT, step.reason)

    @invariant()
    def no_way_around(self) -> None:
        state, events = self.release.state, self.release.events
        names = [stage.name for stage in STAGES]
        place = len(names) if state.stage == "done" else names.index(state.stage)
        for name in names[:place]:
            left = state.left[name]
            assert left.kind == "advanced" or (left.by == "anna" and left.reason)
            if left.kind == "advanced":
                found = next(e.evidence for e in events if e.seq == left.because)
                assert found is not None
                assert (found.stage, found.verdict, found.policy) == (name, "pass", "digest")
                assert found.coverage == 1.0
        share = rollout_of(state).treatment_share
        assert share == (0 if state.rolled_back else 1 if place == len(names)
                         else STAGES[place].share)  # fmt: skip
        back = [at for at, event in enumerate(events) if event.kind == "rolled_back"]
        assert len(back) <= 1
        if back:
            assert {event.kind for event in events[back[0] + 1 :]} <= {"switched", "unreachable"}
        assert replay("r", events) == state


TestReleases = Releases.TestCase
TestReleases.settings = settings(stateful_step_count=40)
