"""Policies of releases: what they say, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.release_road import GATE, POLICY

from karat.errors import InputError
from karat.formats.own.release_policy import read_release
from karat.tables.engines import Secret
from karat.tables.experiments.shadow import Increase, ShadowLimits
from karat.workflows.release._release_review import POLICY as TEMPLATE

DAY = 86_400_000_000


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Write a policy next to its gate, and read it."""
    (tmp_path / "gate.toml").write_text(GATE)

    def read(text: str) -> Any:
        (tmp_path / "release.toml").write_text(text)
        return read_release(tmp_path / "release.toml")

    return read


def test_the_template_is_a_policy_that_promises_nothing(written: Any) -> None:
    file = written(TEMPLATE)
    assert len(file.missing) == 11  # eight promises, three facts of the signal
    stages = {stage.name: stage for stage in file.policy.stages}
    shares = {name: (stage.share, stage.control) for name, stage in stages.items()}
    # A control as large as the candidate's share, where there are as many users.
    assert shares == {
        "offline": (0, 0), "shadow": (0, 0), "ab": (0.05, 0.05), "ramp_25": (0.25, 0.25),
        "ramp_50": (0.5, 0.5), "ramp_100": (0.95, 0.05),
    }  # fmt: skip
    assert stages["ab"].least_us == 7 * DAY
    assert stages["ab"].longest_us == 28 * DAY
    assert [stage.kind for stage in stages.values()] == ["gate", "shadow", *["experiment"] * 4]
    assert file.policy.after("ramp_100") == "done"


def test_without_a_holdback_the_last_step_is_watched_only(written: Any) -> None:
    policy = written(POLICY.replace('holdback = "30%"', "holdback = 0")).policy
    last = policy.stages[-1]
    assert (last.share, last.control, last.kind) == (1.0, 0.0, "watch")


def test_a_complete_policy(written: Any) -> None:
    file = written(POLICY)
    assert not file.missing
    policy = file.policy
    assert policy.promise.signal.metric == "ZeroResults"
    assert policy.promise.override == ("anna",)
    assert {guard.metric: guard.margin for guard in policy.guards} == {
        "ZeroResults": 0.05, "Latency(p95)": 200.0,
    }  # fmt: skip
    assert policy.shadow == ShadowLimits(
        min_requests=100,
        max_errors=0.05,
        max_zero_gained=0.05,
        max_p95_increase=Increase(0.5),
        min_overlap=0.2,
    )
    assert policy.gate["rule"][0]["measure"] == "nDCG@10"


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('share = "40%"', 'share = "60%"', "at most half of the users"),
        ('share = "40%"', 'share = "a lot"', "not a share of all users"),
        ("steps = [50, 100]", "steps = [50]", "rising percentages up to 100"),
        ("steps = [50, 100]", "steps = [50, 25, 100]", "rising percentages up to 100"),
        ("steps = [50, 100]", "step = [50, 100]", "did you mean steps"),
        ('decide = ["CTR"]', 'decide = ["CTRR"]', "CTRR"),
        ("ZeroResults = 0.05\n", 'ZeroResults = "lots"\n', "not a margin"),
        ('ZeroResults = 0.05\n"Latency(p95)" = 200\n', "", "no guardrail"),
        ('kind = "file"', 'kind = "files"', "did you mean file"),
        ('holdback = "30%"', 'holdback = "100%"', "at most half"),
        ('holdback = "30%"', 'holdback = "50%"', "at most half, and less than what is left"),
        ('longest = "14d"', 'longest = "10d"', "whole weeks"),
        ('least = "7d"', 'least = "15d"', "at most longest"),
        ('decide = ["CTR"]', 'decide = ["ZeroResults"]', "ZeroResults decides, or is a guard"),
        ('decide = ["CTR"]', "decide = []", "names no metric"),
        ('window = "1d"', 'window = "banana"', "not a duration"),
        ('path = "rollout.json"', 'path = ""', "has no path"),
        ('path = "rollout.json"', 'path = "a\\u0000b"', "the character NUL"),
        ('path = "rollout.json"', "", "has no path"),
        ('[switch]\nkind = "file"\npath = "rollout.json"\n', "", "nothing moves the traffic"),
        ('least = "7d"', 'least = "a week"', "not a duration"),
        ('gate = "gate.toml"', 'gate = "gates.toml"', "gates.toml"),
        ("limit = 0.2", 'limit = "0.2"', "not a number"),
        ('direction = "above"', 'direction = "up"', "one of above, below"),
    ],
)
def test_mistakes_are_named_with_their_fix(written: Any, old: str, new: str, error: str) -> None:
    assert old in POLICY
    with pytest.raises(InputError, match=error):
        written(POLICY.replace(old, new))


def test_an_alias_moves_all_users_at_once(written: Any) -> None:
    alias = POLICY.replace(
        'kind = "file"\npath = "rollout.json"',
        'kind = "alias"\nurl = { env = "ENGINE" }\nalias = "docs"\nbaseline_index = "docs-1"\n'
        'candidate_index = "docs-2"',
    )
    with pytest.raises(InputError, match="an alias moves all users at once, and ab moves some"):
        written(alias)
    whole = alias.replace('share = "40%"', "share = 0").replace("[50, 100]", "[100]")
    policy = written(whole.replace('holdback = "30%"', "holdback = 0")).policy
    assert policy.switch.url == Secret(env="ENGINE")
    assert [stage.kind for stage in policy.stages[2:]] == ["experiment", "watch"]


def test_a_secret_is_not_in_the_file(written: Any) -> None:
    webhook = POLICY.replace(
        'kind = "file"\npath = "rollout.json"',
        'kind = "webhook"\nurl = "https://switch.example/r"\nsecret = "abc"',
    )
    with pytest.raises(InputError, match="secret does not belong in this file"):
        written(webhook)
