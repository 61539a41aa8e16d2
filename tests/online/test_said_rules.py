"""Rules as people type them."""

from __future__ import annotations

import pytest

from karat.errors import UsageError
from karat.online.rules import DAY, MINUTE, SECOND, Rules
from karat.online.said_rules import rules_from


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
        (["idle"], "does not say how long"),
        (["idle=20"], "does not say how long"),
        (["idle=long"], "does not say how long"),
        (["idle=20 parsecs"], "does not say how long"),
        (["idle=-5min"], "does not say how long"),
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
