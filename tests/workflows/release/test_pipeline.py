"""The whole road on simulated users: good changes ship, bad ones come back, others wait."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.release_road import DAY, Effect, Road, make_road

from karat.errors import InputError, UsageError
from karat.tables.golden.golden_sets import Exchange
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.release import pipeline
from karat.workflows.release._switching import roll_back_now
from karat.workflows.release.pipeline import Release
from karat.workflows.workspace.annotations import annotations_of

BETTER = Effect(lift=0.1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("road") / "shop"
    make_road(folder)
    return folder


@pytest.fixture
def road(made: Path, tmp_path: Path) -> Road:
    shutil.copytree(made, tmp_path / "shop")
    return Road(tmp_path / "shop")


@pytest.fixture
def testing(road: Road) -> Road:
    """In the A/B test."""
    road.start()
    status = road.run()
    assert (status.state, status.share) == ("ab", 0.4), status.step
    return road


def share(road: Road) -> float:
    found: float = json.loads(road.rollout.read_bytes())["treatment_share"]
    return found


def shipped(road: Road) -> None:
    """A good change, from its start to its end."""
    road.start()
    assert share(road) == 0
    assert road.run().state == "ab"
    assert share(road) == 0.4
    road.live(7, BETTER)
    status = road.run()
    assert (status.step.action, status.state) == ("review", "ab")
    road.review()
    assert road.run().state == "ramp_50"
    assert share(road) == 0.5
    road.live(1, BETTER)
    assert road.run().state == "ramp_100"
    assert share(road) == 0.7
    road.live(1, BETTER)
    assert road.run().state == "done"
    assert share(road) == 1.0
    road.live(2, BETTER)
    status = road.run()
    assert status.over
    assert [row.state for row in status.stages] == ["passed"] * 5


def test_a_good_change_ships(road: Road) -> None:
    shipped(road)
    story = road.call(Release.story)
    # By a click rate of .4, .1 more is a quarter; clicks beyond 1 are cut.
    assert story.kept.metric == "CTR"
    assert story.kept.online_low < 0.25 < story.kept.online_high
    assert story.kept.measured_ms == pytest.approx(0, abs=10)
    with road.open() as opened:
        texts = annotations_of(opened)["text"].to_list()
        record = pipeline.track_record(opened)
    assert texts[-1] == "hybrid: watch, all users get the candidate"
    assert [row.name for row in record.releases] == ["hybrid"]
    assert record.relation.reason == "1 of the 10 releases that it needs"
    # Another release has the switch now: rounds leave it alone.
    road.start("second", "slow")
    road.run("second")
    assert json.loads(road.rollout.read_bytes())["experiment"] == "second"
    with pytest.raises(UsageError, match="hybrid is over already"):
        roll_back_now(road.folder, "hybrid", by="anna", reason="too late", now=road.now)
    assert json.loads(road.rollout.read_bytes())["experiment"] == "second"


def test_a_good_change_ships_with_postgresql(tmp_path: Path, database: Any) -> None:
    road = make_road(tmp_path / "shop", database())
    shipped(road)


def test_a_change_that_loses_online_comes_back_by_its_guardrail(testing: Road) -> None:
    testing.live(3, Effect(zero=0.2))
    status = testing.run()
    assert (status.state, status.reason) == ("rolled_back", "the guardrail ZeroResults is breached")
    assert json.loads(testing.rollout.read_bytes())["stopped"]
    testing.live(1, BETTER)
    assert testing.run().state == "rolled_back"
    with pytest.raises(UsageError, match="there is a release hybrid already"):
        testing.start()


def test_a_breach_in_the_ramp_comes_back_although_it_is_held(testing: Road) -> None:
    testing.live(7, BETTER)
    testing.review()
    assert testing.run().state == "ramp_50"
    testing.call(Release.note, kind="held", by="anna", reason="deploy freeze")
    testing.live(1, Effect(lift=0.1, slower=2_000))
    status = testing.run()
    assert (status.state, status.share) == ("rolled_back", 0.0)
    assert "Latency(p95)" in status.reason


def test_a_change_without_effect_is_not_shipped(testing: Road) -> None:
    testing.live(7)
    status = testing.run()
    assert (status.state, status.step.action) == ("ab", "evidence")
    testing.live(7)
    status = testing.run()
    assert status.state == "rolled_back"
    assert "no improvement at the end of the planned time" in status.reason
    assert share(testing) == 0


def test_a_change_without_effect_ships_for_a_declared_reason(road: Road) -> None:
    decide = 'decide = ["CTR"]'
    road.policy = road.policy.replace(decide, f'{decide}\nnon_inferior = "half the price"')
    road.start()
    road.run()
    road.live(14)
    road.review()
    status = road.run()
    assert status.state == "ramp_50"
    assert status.stages[2].reason.endswith("no improvement is needed: half the price")


@pytest.mark.parametrize(
    ("candidate", "why"), [("dead", "requests failed"), ("slow", "p95 latency")]
)
def test_a_dead_and_a_slow_candidate_fail_in_shadow(road: Road, candidate: str, why: str) -> None:
    road.policy = road.policy.replace('max_drop = "2%"', 'max_drop = "60%"')
    road.start(candidate, candidate)
    if candidate == "dead":  # its gate fails too
        road.call(Release.skip, candidate, by="anna", reason="look at shadow", stage="offline")
    status = road.run(candidate)
    assert (status.state, status.step.action, share(road)) == ("shadow", "fix", 0)
    assert why in status.step.reason
    with pytest.raises(UsageError, match="does not pass"):
        road.call(Release.advance, candidate, by="anna")


def test_half_of_the_queries_do_not_pass(road: Road) -> None:
    status = road.start("half", "half")
    status = road.run("half")
    assert (status.state, share(road)) == ("offline", 0)
    with pytest.raises(UsageError, match="does not pass"):
        road.call(Release.advance, "half", by="anna")


def test_judgments_of_yesterday_do_not_pass(road: Road) -> None:
    road.start()
    road.call(Release.evidence)
    later = pl.DataFrame(
        {"query_id": ["q0"], "doc_id": ["q0d9"], "grade": [3.0], "rater": ["ben"]}
    ).with_columns(reason=pl.lit(None, pl.String))
    with road.open() as opened:
        import_exchange(
            opened, Exchange("csv", judgments=later), file="later.csv", sha256="1", now=road.now
        )
    assert "other judgments" in road.call(Release.status).step.reason
    with pytest.raises(UsageError, match="other judgments than those of now"):
        road.call(Release.advance, by="anna")
    road.now += 1
    assert road.run().state == "ab"  # the round gathers it again


def test_a_broken_assignment_stops_as_unhealthy(testing: Road) -> None:
    testing.live(3, Effect(lift=0.1, lost=0.3))
    status = testing.run()
    assert (status.state, share(testing)) == ("held", 0.4)
    assert "sample ratio" in status.reason
    testing.live(1.1, Effect(lift=0.1, lost=0.3))
    status = testing.run()
    assert status.state == "rolled_back"
    assert "held for 24 h without an end" in status.reason


def test_too_little_traffic_waits(testing: Road) -> None:
    testing.users = 30
    testing.live(7, BETTER)
    status = testing.run()
    assert (status.state, share(testing)) == ("ab", 0.4)
    assert status.step.action == "evidence"


def test_a_silent_feed_holds_then_comes_back(testing: Road) -> None:
    testing.live(1, BETTER)
    testing.now += DAY + 1
    status = testing.run()
    assert (status.state, status.reason) == ("held", "the log has had no events for 24 h")
    assert share(testing) == 0.4
    testing.live(0.5, BETTER)
    assert testing.run().state == "ab"
    testing.now += DAY + 1
    assert testing.run().state == "held"
    testing.now += DAY
    assert testing.run().state == "rolled_back"


def test_other_arms_in_the_log_are_no_evidence(testing: Road) -> None:
    """Users of an earlier release are not users of this one."""
    testing.live(7, BETTER)
    testing.roll_back("another try")
    testing.start("second")
    status = testing.run("second")
    assert (status.state, status.step.reason) == ("ab", "there is no evidence")
    testing.now += 7 * DAY
    with pytest.raises(UsageError, match="no such evidence"):
        testing.call(Release.advance, "second", by="anna")


def test_a_skipped_stage_is_shown_for_ever(road: Road) -> None:
    road.start()
    road.run()
    road.review()
    status = road.call(Release.skip, by="anna", reason="too little traffic to test", stage="ab")
    row = next(row for row in status.stages if row.stage == "ab")
    assert (row.state, row.by, row.reason) == ("skipped", "anna", "too little traffic to test")
    assert status.state == "ramp_50"


def test_a_policy_without_promises_gets_a_proposal(road: Road) -> None:
    promises = road.policy.index("[promise]"), road.policy.index("[switch]")
    road.policy = road.policy[: promises[0]] + road.policy[promises[1] :]
    with pytest.raises(InputError, match="does not say what the release promises") as caught:
        road.start()
    assert "gain = 0.2" in str(caught.value.fix)
    assert "# memory = … " in str(caught.value.fix)
    with road.open() as opened:
        assert pipeline.statuses(opened, now=road.now) == []


def test_one_release_that_fails_does_not_stop_the_others(testing: Road) -> None:
    """A damaged folder of one, and a breached guardrail of the other."""
    testing.start("second", "slow", path='path = "second.json"')
    shutil.rmtree(testing.folder / "releases" / "second")
    (testing.folder / "releases" / "second").write_text("a file")
    testing.live(3, Effect(zero=0.2))
    with testing.open() as opened:
        rounds = {each.name: each for each in pipeline.run(opened, now=testing.now)}
    assert rounds["second"].problem
    assert rounds["hybrid"].status is not None
    assert rounds["hybrid"].status.state == "rolled_back"


def test_a_lost_folder_is_written_again(testing: Road) -> None:
    shutil.rmtree(testing.folder / "releases" / "hybrid")
    testing.now += 1
    testing.run()
    roll_back_now(testing.folder, "hybrid", by="anna", reason="wrong", now=testing.now)
    assert json.loads(testing.rollout.read_bytes())["stopped"]


@pytest.mark.parametrize("by", ["karat", ""])
def test_only_karat_is_called_karat(testing: Road, by: str) -> None:
    with pytest.raises(UsageError, match="not the name of a user"):
        testing.call(Release.skip, by=by, reason="me", stage="ab")


def test_two_releases_do_not_share_a_switch(testing: Road) -> None:
    with pytest.raises(UsageError, match="the release hybrid uses this switch"):
        testing.start("second", "slow")


def test_a_template_is_accepted_once_its_promises_are_written(road: Road) -> None:
    with road.open() as opened:
        text = pipeline.propose(opened, "bm25", "hybrid", now=road.now)
    road.policy = text
    with pytest.raises(InputError, match="memory, labelling, attention"):
        road.start()
    for key in ("memory", "labelling", "attention"):
        road.policy = "\n".join(
            f'{key} = "none"' if line.startswith(f"# {key}") else line
            for line in road.policy.splitlines()
        )
    assert road.start().state == "offline"
