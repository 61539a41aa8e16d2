"""Rules as people type them."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import UsageError
from karat.online.rules import DAY, MINUTE, SECOND, Rules, duration_text, rules_from


def test_nothing_said_is_the_usual() -> None:
    assert rules_from([]) == Rules()


@pytest.mark.parametrize(
    ("said", "name", "length"),
    [
        ("idle=20min", "idle", 20 * MINUTE),
        (" Idle = 20 Minutes ", "idle", 20 * MINUTE),
        ("satisfied=15s", "satisfied", 15 * SECOND),
        ("purchase=7d", "purchase", 7 * DAY),
        ("typing=1500ms", "typing", 3 * SECOND // 2),
        ("typing=1.5s", "typing", 3 * SECOND // 2),
        ("quick-back=5s", "quick_back", 5 * SECOND),
        ("session=48h", "session", 2 * DAY),
    ],
)
def test_a_rule_is_changed_alone(said: str, name: str, length: int) -> None:
    rules = rules_from([said])
    assert getattr(rules, name) == length
    changed = rules.id.split()[1:]
    assert [each.partition("=")[0] for each in changed] == [name]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["idel=20min"], "did you mean idle"),
        (["idle"], "has no duration"),
        (["idle=20"], "has no duration"),
        (["idle=long"], "has no duration"),
        (["idle=20 parsecs"], "has no duration"),
        (["idle=-5min"], "has no duration"),
        (["idle=0s"], "not between 0 and 366 days"),
        (["purchase=900d"], "not between 0 and 366 days"),
        (["idle=20min", "idle=10min"], "given twice"),
        (["satisfied=5s"], "quick_back is longer than satisfied"),
        (["idle=30h"], "idle is longer than session"),
        (["dwell=10s", "quick_back=5s"], "satisfied is longer than dwell"),
    ],
)
def test_a_mistake_is_told(said: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        rules_from(said)


def test_a_name_that_is_none_is_told_the_names() -> None:
    with pytest.raises(
        UsageError, match=r"\n  fix: --rule NAME=TIME; rules: idle, session, typing"
    ):
        rules_from(["zzz=1s"])


def test_rules_are_printed_as_they_are_typed() -> None:
    said = ["idle=20min", "satisfied=15s", "typing=500ms", "purchase=7d"]
    assert rules_from(said).id == "rules@1 idle=20min typing=0.5s satisfied=15s purchase=7d"


@given(st.integers(1, 366 * DAY // 1000).map(lambda ms: ms * 1000))
def test_what_is_printed_is_read_as_the_same(length: int) -> None:
    rules = Rules(purchase=length)
    assert rules_from(rules.id.split()[1:]) == rules


def test_each_rule_can_be_typed() -> None:
    for each in fields(Rules):
        usual = getattr(Rules(), each.name)
        assert rules_from([f"{each.name}={duration_text(usual)}"]) == Rules()


def test_lengths_of_time_are_in_whole_units() -> None:
    texts = [duration_text(each) for each in (7 * DAY, DAY, 30 * MINUTE, 90 * SECOND, 1_500_000)]
    assert texts == ["7 d", "24 h", "30 min", "90 s", "1.5 s"]
